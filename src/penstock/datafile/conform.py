"""Convert Arrow arrays of file readers to the canonical Arrow type of their column.

The column type is the one that the file was written with; only its Arrow representation differs (units, names of list
elements, large offsets, integer carriers). Module ``cast`` handles changes of the column type itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.int96 import INT96_CARRIER, decode_int96
from penstock.datafile.types import ArrowAny, has_leaf, is_char, map_parts, to_arrow_field, to_arrow_type
from penstock.errors import FormatError, UnsupportedFeatureError
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.format.types.data_types import DataField

Array: TypeAlias = Any
LeafConversion: TypeAlias = "Callable[[AtomicType], Callable[[Array], Array] | None]"

_MOST_NULL_BYTES: Final = 2 << 30
_UNIT_NANOS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def conform_array(array: Array, data_type: DataType, arrow_type: ArrowAny = None) -> Array:
    """Return the values as the canonical Arrow type of ``data_type``, without a copy if they have it already.

    Names and metadata inside nested types must match too, which Arrow's own equality ignores.

    Args:
        arrow_type: the canonical type, if the caller already has it.
    """
    arrow_type = arrow_type or to_arrow_type(data_type)
    if array.type.equals(arrow_type, check_metadata=True):
        return array
    try:
        return _conform(array, data_type, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise FormatError(f"the file holds {array.type} where {arrow_type} was written: {error}") from error


def _conform(array: Array, data_type: DataType, arrow_type: ArrowAny) -> Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    match data_type:
        case RowType():
            return _conform_struct(array, data_type, arrow_type)
        case ArrayType() | VectorType():
            return _conform_list(array, data_type, arrow_type)
        case MapType() | MultisetType():
            return _conform_map(array, data_type, arrow_type)
        case AtomicType(root=TypeRoot.VARIANT):
            return _conform_variant(array, arrow_type)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            return conform_timestamp(array, arrow_type)
        case AtomicType():
            return array.cast(arrow_type)


def conform_timestamp(array: Array, arrow_type: ArrowAny) -> Array:
    """Convert timestamps to another unit and zone; finer digits are truncated towards the past.

    A wall clock, and the instant with the same wall clock in UTC, have the same number.
    """
    if array.type == INT96_CARRIER:
        return decode_int96(array, arrow_type.unit).view(arrow_type)
    if not pa.types.is_timestamp(array.type):
        return array.cast(arrow_type)
    have, want = _UNIT_NANOS[array.type.unit], _UNIT_NANOS[arrow_type.unit]
    if have >= want:
        # Arrow checks the multiplication for overflow.
        return array.cast(pa.timestamp(arrow_type.unit, tz=array.type.tz)).view(arrow_type)
    factor = want // have
    # Arrow's own division rounds towards 1970, which is wrong for earlier times.
    numbers = array.view(pa.int64())
    floored = np.floor_divide(np.asarray(numbers.fill_null(0)), factor)
    mask = np.asarray(numbers.is_null()) if numbers.null_count else None
    return pa.array(floored, type=pa.int64(), mask=mask).view(arrow_type)


def _conform_struct(array: Array, data_type: RowType, arrow_type: ArrowAny) -> Array:
    # Flattened, so that children are null where their parent is null: the values there are arbitrary.
    found = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    children = [
        conform_array(found[field.name], field.type)
        if field.name in found
        else null_array(len(array), to_arrow_type(field.type))
        for field in data_type.fields
    ]
    return _struct(array, children, [to_arrow_field(field) for field in data_type.fields], arrow_type)


def _struct(array: Array, children: Sequence[Array], fields: list[Any], arrow_type: ArrowAny) -> Array:
    mask = array.is_null() if array.null_count else None
    if not fields:
        validity = None if mask is None else pc.invert(mask).buffers()[1]
        return pa.Array.from_buffers(arrow_type, len(array), [validity])
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _conform_variant(array: Array, arrow_type: ArrowAny) -> Array:
    if array.type.get_field_index("typed_value") >= 0:
        raise UnsupportedFeatureError(
            "the file keeps fields of a VARIANT in columns of their own ('variant.shreddingSchema'), which Penstock "
            "does not read: select other columns, or write the rows again with Paimon and without the options variant.*"
        )
    children = [array.field(name).cast(pa.binary()) for name in ("value", "metadata")]
    return _struct(array, children, list(arrow_type), arrow_type)


def _conform_list(array: Array, data_type: ArrayType | VectorType, arrow_type: ArrowAny) -> Array:
    array = _with_small_offsets(array)
    if isinstance(data_type, VectorType) and not pa.types.is_fixed_size_list(array.type):
        array = _to_fixed_size(array, data_type.length)
    return with_children(array, arrow_type, [conform_array(array.values, data_type.element)])


def _to_fixed_size(array: Array, length: int) -> Array:
    """Convert lists to vectors; lists of null parents are empty, and are filled up."""
    starts = np.asarray(array.offsets)
    sizes = np.diff(starts)
    valid = np.asarray(array.is_valid())
    if not np.isin(sizes[valid], (0, length)).all():
        raise FormatError(f"the file holds lists of other lengths than the {length} of the VECTOR")
    places = (starts[:-1, np.newaxis] + np.arange(length)).ravel()
    filled = np.repeat(valid & (sizes == length), length)
    values = array.values.take(pa.array(np.where(filled, places, 0), mask=~filled))
    vector_type: ArrowAny = pa.list_(array.type.value_field, length)
    return pa.FixedSizeListArray.from_arrays(values, type=vector_type, mask=array.is_null())


def _conform_map(array: Array, data_type: MapType | MultisetType, arrow_type: ArrowAny) -> Array:
    key, value = map_parts(data_type)
    if pa.types.is_struct(array.type):
        raise UnsupportedFeatureError(
            "the file keeps values of a MAP in columns that its keys share ('map.storage-layout'), which Penstock does "
            "not read: select other columns, or write the rows again with Paimon and without this option"
        )
    array = _with_small_offsets(array)
    if pa.types.is_map(array.type):
        keys, items = array.keys, array.items
    else:  # a list of structs: a map without its annotation
        entries = array.values
        keys, items = entries.field(0), entries.field(1)
    return map_with_children(array, arrow_type, conform_array(keys, key), conform_array(items, value))


def _with_small_offsets(array: Array) -> Array:
    if pa.types.is_large_list(array.type):
        return array.cast(pa.list_(array.type.value_field))
    return array


def with_children(array: Array, arrow_type: ArrowAny, children: Sequence[Array]) -> Array:
    """Return a list array with the same offsets, another type and other values; ``children`` are not sliced."""
    shape = array.buffers()[: 1 if pa.types.is_fixed_size_list(array.type) else 2]
    return pa.Array.from_buffers(
        arrow_type, len(array), shape, array.null_count, offset=array.offset, children=list(children)
    )


def map_with_children(array: Array, arrow_type: ArrowAny, keys: Array, items: Array) -> Array:
    """Return a map array with the offsets of a list or map array; keys and items are not sliced."""
    entries = pa.StructArray.from_arrays([keys, items], fields=[arrow_type.key_field, arrow_type.item_field])
    return with_children(array, arrow_type, [entries])


def conform_batch(batch: pa.RecordBatch, data_types: Sequence[DataType], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns of a batch, selected by name, as canonical Arrow; columns missing in the batch are null."""
    places = {name: place for place, name in enumerate(batch.schema.names)}
    arrays = []
    for field, data_type in zip(schema, data_types, strict=True):
        try:
            arrays.append(
                conform_array(batch.column(places[field.name]), data_type, field.type)
                if field.name in places
                else null_array(batch.num_rows, field.type)
            )
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(f"column '{field.name}': {error}") from error
    return make_batch(arrays, schema, batch.num_rows)


def make_batch(arrays: Sequence[Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Return a batch with ``rows`` rows, also if there are no columns."""
    if len(schema):
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    no_columns: ArrowAny = pa.Array.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(no_columns)


def null_array(rows: int, arrow_type: ArrowAny) -> Array:
    """Return an array of ``rows`` nulls."""
    size = rows * _null_bytes(arrow_type)
    if size > _MOST_NULL_BYTES:
        raise UnsupportedFeatureError(
            f"{rows} nulls of type {arrow_type} would take {size} bytes, more than the limit of {_MOST_NULL_BYTES}: "
            "select the columns to read without this one, or drop it"
        )
    return pa.nulls(rows, arrow_type)


def _null_bytes(arrow_type: ArrowAny) -> int:
    """Return about how many bytes a null takes, with its place in nested types."""
    if pa.types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * _null_bytes(arrow_type.value_type)
    if pa.types.is_struct(arrow_type):
        return sum(_null_bytes(field.type) for field in arrow_type)
    return 8


def select_rows(
    batches: Iterator[pa.RecordBatch], start: int, ranges: Sequence[tuple[int, int]] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose positions lie in half-open ranges; the first batch begins at position ``start``."""
    for batch in batches:
        end = start + batch.num_rows
        if ranges is None:
            yield batch
        else:
            for low, high in ranges:
                first, last = max(low, start), min(high, end)
                if first < last:
                    yield batch.slice(first - start, last - first)
        start = end


def leaf_arrays(chunks: Sequence[Array]) -> Iterator[list[Array]]:
    """Yield the values at the leaves of a column's type, in Parquet's order; may include values of null parents."""
    if not chunks:
        return
    arrow_type = chunks[0].type
    if pa.types.is_struct(arrow_type):
        for place in range(arrow_type.num_fields):
            yield from leaf_arrays([chunk.field(place) for chunk in chunks])
    elif pa.types.is_map(arrow_type):
        bounds = [(chunk.offsets[0].as_py(), chunk.offsets[-1].as_py()) for chunk in chunks]
        yield from leaf_arrays([chunk.keys[low:high] for chunk, (low, high) in zip(chunks, bounds, strict=True)])
        yield from leaf_arrays([chunk.items[low:high] for chunk, (low, high) in zip(chunks, bounds, strict=True)])
    elif pa.types.is_nested(arrow_type):
        yield from leaf_arrays([chunk.flatten() for chunk in chunks])
    else:
        yield list(chunks)


def convert_leaves(array: Array, data_type: DataType, arrow_type: ArrowAny, conversion: LeafConversion) -> Array:
    """Return the values with the leaves of some types converted, at any depth.

    Args:
        arrow_type: Arrow type of the result.
        conversion: returns the conversion for a leaf's type, None for no conversion.
    """
    if not has_leaf(data_type, lambda leaf: conversion(leaf) is not None):
        return array
    match data_type:
        case AtomicType():
            convert = conversion(data_type)
            return array if convert is None else convert(array)
        case ArrayType() | VectorType():
            values = convert_leaves(array.values, data_type.element, arrow_type.value_type, conversion)
            return with_children(array, arrow_type, [values])
        case MapType() | MultisetType():
            key_type, value_type = map_parts(data_type)
            keys = convert_leaves(array.keys, key_type, arrow_type.key_type, conversion)
            items = convert_leaves(array.items, value_type, arrow_type.item_type, conversion)
            return map_with_children(array, arrow_type, keys, items)
        case RowType():
            children = [
                convert_leaves(array.field(place), field.type, arrow_type.field(place).type, conversion)
                for place, field in enumerate(data_type.fields)
            ]
            return _struct(array, children, list(arrow_type), arrow_type)


def without_padding(batch: pa.RecordBatch, fields: Sequence[DataField]) -> pa.RecordBatch:
    """Return the batch without blanks at the end of CHAR values, where they mean nothing."""
    return _with_chars(batch, fields, lambda array, _: pc.utf8_rtrim(array, " "))


def with_padding(batch: pa.RecordBatch, fields: Sequence[DataField]) -> pa.RecordBatch:
    """Return the batch with the values of CHAR(n), at any depth, padded with blanks to n characters."""
    return _with_chars(batch, fields, pc.utf8_rpad)


def _with_chars(
    batch: pa.RecordBatch, fields: Sequence[DataField], change: Callable[[Array, int], Array]
) -> pa.RecordBatch:
    """Apply a function of values and n to the values of CHAR(n), in columns with the names and types of fields."""
    types = {field.name: field.type for field in fields if has_leaf(field.type, is_char)}
    if types.keys().isdisjoint(batch.schema.names):
        return batch

    def conversion(leaf: AtomicType) -> Callable[[Array], Array] | None:
        return (lambda array: change(array, leaf.length or 1)) if is_char(leaf) else None

    arrays = [
        convert_leaves(array, types[name], array.type, conversion)
        if name in types and array.type == to_arrow_type(types[name])
        else array
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return make_batch(arrays, batch.schema, batch.num_rows)
