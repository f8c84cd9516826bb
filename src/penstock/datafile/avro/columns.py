"""Convert Arrow arrays to and from lists of the plain values that Avro stores.

Decimals are big-endian bytes; dates, times and timestamps are numbers; maps with non-text keys are lists of records.

Source:
    Paimon ``format:avro/AvroSchemaConverter.java``; docs/spec/format.md section 8.3.
"""

from __future__ import annotations

from decimal import Context
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from penstock.datafile.avro.schema import AvroSchema, is_avro_map
from penstock.datafile.conform import Array, conform_timestamp, make_batch, map_with_children, null_array
from penstock.datafile.types import ArrowAny, map_parts, to_arrow_type
from penstock.errors import FormatError
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
    from collections.abc import Mapping, Sequence

    from penstock.format.types.data_types import DataField

_NUMBERS: Final = {
    TypeRoot.DATE: pa.int32(),
    TypeRoot.TIME: pa.int32(),
    TypeRoot.TIMESTAMP: pa.int64(),
    TypeRoot.TIMESTAMP_LTZ: pa.int64(),
}
_UNITS: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}
_DECIMAL_BYTES: Final = 16
_EXACT: Final = Context(prec=76)


def to_records(batch: pa.RecordBatch, fields: Sequence[DataField]) -> list[dict[str, object]]:
    """Return the rows as dicts of plain values."""
    names = [field.name for field in fields]
    columns = [to_values(column, field.type) for column, field in zip(batch.columns, fields, strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def to_values(array: Array, data_type: DataType) -> list[Any]:
    """Return the plain values of an array of canonical Arrow type, None for null."""
    match data_type:
        case AtomicType():
            return _atoms(array, data_type)
        case ArrayType() | VectorType():
            return _slices(array, to_values(_used(array, array.values), data_type.element))
        case MapType() | MultisetType():
            return _maps(array, *map_parts(data_type))
        case RowType():
            return _rows(array, data_type)


def _atoms(array: Array, data_type: AtomicType) -> list[Any]:
    if data_type.root is TypeRoot.DECIMAL:
        scale = data_type.scale or 0
        return [None if value is None else _unscaled(value, scale) for value in array.to_pylist()]
    numbers = _NUMBERS.get(data_type.root)
    return list((array if numbers is None else array.view(numbers)).to_pylist())


def _maps(array: Array, key: DataType, value: DataType) -> list[Any]:
    keys, items = _used(array, array.keys), _used(array, array.items)
    pairs = list(zip(to_values(keys, key), to_values(items, value), strict=True))
    if is_avro_map(key):
        return [None if part is None else dict(part) for part in _slices(array, pairs)]
    return _slices(array, [{"key": one, "value": other} for one, other in pairs])


def _unscaled(value: Any, scale: int) -> bytes:  # noqa: ANN401 - a Decimal
    number = int(value.scaleb(scale, _EXACT))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _used(array: Array, children: Array) -> Array:
    """Return the children of an array that is a slice of a longer one, whose children it shares."""
    if not len(array):
        return children.slice(0, 0)
    first = array.offsets[0].as_py()
    return children.slice(first, array.offsets[-1].as_py() - first)


def _slices(array: Array, values: list[Any]) -> list[Any]:
    """Return the lists of an array; ``values`` are those of its used children."""
    bounds = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    first = bounds[0] if bounds else 0
    return [
        values[low - first : high - first] if ok else None
        for low, high, ok in zip(bounds, bounds[1:], valid, strict=False)
    ]


def _rows(array: Array, data_type: RowType) -> list[Any]:
    names = [field.name for field in data_type.fields]
    children = [to_values(array.field(place), field.type) for place, field in enumerate(data_type.fields)]
    rows = zip(*children, strict=True) if children else ([()] * len(array))
    valid = array.is_valid().to_pylist()
    return [dict(zip(names, row, strict=True)) if ok else None for row, ok in zip(rows, valid, strict=True)]


def from_records(
    records: Sequence[Mapping[str, Any]],
    fields: Sequence[DataField],
    schema: pa.Schema,
    written: Mapping[str, AvroSchema],
) -> pa.RecordBatch:
    """Return dicts of plain values as rows of canonical Arrow.

    Args:
        schema: the Arrow schema of ``fields``.
        written: the Avro type of each column in the file; columns missing in it become null.
    """
    arrays = [
        from_values([record[field.name] for record in records], field.type, written[field.name])
        if field.name in written
        else null_array(len(records), arrow_field.type)
        for field, arrow_field in zip(fields, schema, strict=True)
    ]
    return make_batch(arrays, schema, len(records))


def from_values(values: list[Any], data_type: DataType, written: AvroSchema) -> Array:
    """Return plain values, None for null, as an array of canonical Arrow type.

    Args:
        written: the Avro type of the values, which has the unit of timestamps.
    """
    written = _not_null(written)
    arrow_type = to_arrow_type(data_type)
    match data_type:
        case AtomicType():
            return _from_atoms(values, data_type, arrow_type, written)
        case ArrayType():
            items = list(chain.from_iterable(value for value in values if value is not None))
            elements = from_values(items, data_type.element, written["items"])
            return _lists(values, arrow_type, elements)
        case MapType() | MultisetType():
            return _from_maps(values, data_type, arrow_type, written)
        case RowType():
            return _from_rows(values, data_type, arrow_type, written)
        case VectorType():
            raise FormatError("an Avro file cannot hold VECTOR")


def _not_null(written: AvroSchema) -> AvroSchema:
    if isinstance(written, list):
        return next((branch for branch in written if branch != "null"), "null")
    return written


def _from_atoms(values: list[Any], data_type: AtomicType, arrow_type: ArrowAny, written: AvroSchema) -> Array:
    match data_type.root:
        case TypeRoot.DECIMAL:
            return _from_decimals(values, arrow_type, written)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            logical = written.get("logicalType", "") if isinstance(written, dict) else ""
            unit = _UNITS.get(logical.rpartition("-")[2], arrow_type.unit)
            counts: ArrowAny = pa.array(values, type=pa.int64())
            return conform_timestamp(counts.view(pa.timestamp(unit, tz=arrow_type.tz)), arrow_type)
        case root if root in _NUMBERS:
            return pa.array(values, type=_NUMBERS[root]).view(arrow_type)
        case _:
            return pa.array(values, type=arrow_type)


def _from_decimals(values: list[Any], arrow_type: ArrowAny, written: AvroSchema) -> Array:
    """Sign-extend the bytes to 128-bit integers, Arrow's own representation."""
    cells = b"".join(
        bytes(_DECIMAL_BYTES)
        if value is None
        else int.from_bytes(value, "big", signed=True).to_bytes(_DECIMAL_BYTES, "little", signed=True)
        for value in values
    )
    scale = written.get("scale", 0) if isinstance(written, dict) else arrow_type.scale
    stored: ArrowAny = pa.decimal128(38, scale)
    array: ArrowAny = pa.Array.from_buffers(stored, len(values), [_validity(values), pa.py_buffer(cells)])
    return array.cast(arrow_type)


def _validity(values: list[Any]) -> pa.Buffer | None:
    if None not in values:
        return None
    return pa.array([value is not None for value in values], type=pa.bool_()).buffers()[1]


def _lists(values: list[Any], arrow_type: ArrowAny, elements: Array) -> Array:
    lengths = np.fromiter((0 if value is None else len(value) for value in values), dtype=np.int64, count=len(values))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise FormatError("more than 2^31 elements in one batch: read with a smaller batch size")
    buffer = pa.py_buffer(offsets.astype(np.int32).tobytes())
    return pa.Array.from_buffers(arrow_type, len(values), [_validity(values), buffer], children=[elements])


def _from_maps(
    values: list[Any], data_type: MapType | MultisetType, arrow_type: ArrowAny, written: AvroSchema
) -> Array:
    key, value = map_parts(data_type)
    maps = [one for one in values if one is not None]
    if is_avro_map(key):
        keys = from_values(list(chain.from_iterable(maps)), key, "string")
        items = from_values(list(chain.from_iterable(one.values() for one in maps)), value, written["values"])
    else:
        types = {field["name"]: field["type"] for field in written["items"]["fields"]}
        entries = list(chain.from_iterable(maps))
        keys = from_values([entry["key"] for entry in entries], key, types["key"])
        items = from_values([entry["value"] for entry in entries], value, types["value"])
    shape = _lists(values, pa.list_(pa.null()), null_array(len(keys), pa.null()))
    return map_with_children(shape, arrow_type, keys, items)


def _from_rows(values: list[Any], data_type: RowType, arrow_type: ArrowAny, written: AvroSchema) -> Array:
    types = {field["name"]: field["type"] for field in written["fields"]}
    children = [
        from_values([None if row is None else row[field.name] for row in values], field.type, types[field.name])
        if field.name in types
        else null_array(len(values), to_arrow_type(field.type))
        for field in data_type.fields
    ]
    if not children:
        return pa.Array.from_buffers(arrow_type, len(values), [_validity(values)])
    mask = pa.array([row is None for row in values], type=pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=mask)
