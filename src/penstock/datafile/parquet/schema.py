"""Build the Parquet schema of a data file, as the Arrow schema with which pyarrow writes it; read its statistics.

Nulls in fields of a ROW that are NOT NULL: where the ROW is null, Arrow may have them, and pyarrow refuses them.

Source:
    Paimon ``format:parquet/ParquetSchemaConverter.java``, ``api:table/SpecialFields.java``; Apache Arrow
    ``cpp:parquet/arrow/path_internal.cc``; docs/spec/format.md section 8.1; Paimon
    ``format:parquet/ParquetSimpleStatsExtractor.java``; docs/spec/format.md section 7.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.conform import map_with_children, with_children
from penstock.datafile.int96 import INT96_CARRIER
from penstock.datafile.types import (
    VARIANT_PARTS,
    ArrowAny,
    map_parts,
    timestamp_precision,
    timestamp_unit,
    to_arrow_type,
    to_numbered_schema,
)
from penstock.format.manifest.stats import ColumnStats
from penstock.format.types.data_types import (
    BYTES,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow.parquet as pq

    from penstock.datafile.conform import Array
    from penstock.datafile.types import ArrowAny
    from penstock.format.types.ddl import ColumnSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One physical column of a file.

    Attributes:
        path: Parquet's path, levels joined with dots.
        place: index of the table's column to which it belongs.
        data_type: type of the values.
        is_nested: whether it is below an ARRAY, MAP or ROW.
    """

    path: str
    place: int
    data_type: AtomicType
    is_nested: bool

    @property
    def is_int96(self) -> bool:
        """Whether the values are timestamps of the old 12-byte type."""
        return is_int96_type(self.data_type)


def is_int96_type(data_type: AtomicType) -> bool:
    """Whether the type is a timestamp of more than six digits: readers before Paimon 2.0 support only INT96 for it."""
    is_timestamp = data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
    return is_timestamp and timestamp_precision(data_type) > 6


def to_parquet_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Return the Arrow schema with the field ids of every level."""
    return to_numbered_schema(fields, key="PARQUET:field_id", to_arrow=_atomic_type)


def _atomic_type(data_type: AtomicType) -> pa.DataType:
    return INT96_CARRIER if is_int96_type(data_type) else to_arrow_type(data_type)


def leaves_of(fields: Sequence[DataField | ColumnSpec]) -> tuple[Leaf, ...]:
    """Return the physical columns in file order."""
    return tuple(
        replace(leaf, place=place)
        for place, field in enumerate(fields)
        for leaf in _leaves(field.name, field.type, is_nested=False)
    )


def _leaves(path: str, data_type: DataType, *, is_nested: bool) -> Iterator[Leaf]:
    match data_type:
        case AtomicType(root=TypeRoot.VARIANT):
            for child in VARIANT_PARTS:
                yield Leaf(path=f"{path}.{child.name}", place=0, data_type=BYTES, is_nested=True)
        case AtomicType():
            yield Leaf(path=path, place=0, data_type=data_type, is_nested=is_nested)
        case ArrayType() | VectorType():
            yield from _leaves(f"{path}.list.element", data_type.element, is_nested=True)
        case MapType() | MultisetType():
            for name, part in zip(("key", "value"), map_parts(data_type), strict=True):
                yield from _leaves(f"{path}.key_value.{name}", part, is_nested=True)
        case RowType():
            for field in data_type.fields:
                yield from _leaves(f"{path}.{field.name}", field.type, is_nested=True)


def has_required(arrow_type: ArrowAny) -> bool:
    """Whether a field of a ROW inside of the type must not be null."""
    if pa.types.is_map(arrow_type):
        return has_required(arrow_type.key_type) or has_required(arrow_type.item_type)
    if pa.types.is_list(arrow_type):
        return has_required(arrow_type.value_type)
    if not pa.types.is_struct(arrow_type):
        return False
    return any(not field.nullable or has_required(field.type) for field in arrow_type)


def without_nulls_below_null(array: Array) -> Array:
    """Return the array with any values, instead of nulls, in the NOT NULL fields of rows that are null.

    Other nulls in such fields stay, so that they are refused.
    """
    return _filled(array, None)


def _filled(array: Array, required_where: Array | None) -> Array:
    """Fill an array and what is inside of it.

    Args:
        required_where: where the array must not be null; None where nothing is known of its nulls, which stay then.
    """
    kind = array.type
    is_null = array.is_null()
    drops = required_where is not None and array.null_count and not pc.any(pc.and_(is_null, required_where)).as_py()
    if pa.types.is_struct(kind) and kind.num_fields:
        below = array.is_valid() if required_where is None else pc.and_(array.is_valid(), required_where)
        children = [_filled(array.field(place), None if field.nullable else below) for place, field in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=None if drops else is_null)
    if pa.types.is_map(kind):
        array = map_with_children(array, kind, _filled(array.keys, None), _filled(array.items, None))
    elif pa.types.is_list(kind):
        array = with_children(array, kind, [_filled(array.values, None)])
    return _without_validity(array) if drops else array


def _without_validity(array: Array) -> Array:
    kind = array.type
    children: list[Any] = []
    buffers = array.buffers()[1:]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        children, buffers = [array.values], buffers[:1]
    elif pa.types.is_fixed_size_list(kind):
        children, buffers = [array.values], []
    return pa.Array.from_buffers(kind, len(array), [None, *buffers], 0, array.offset, children)


_NANOS_PER_UNIT: Final = {"ms": 1_000_000, "us": 1_000}
# Readers before Paimon 2.0 expect only null counts for binary columns.
_COUNTED_ONLY: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})


def footer_stats(
    metadata: pq.FileMetaData, leaves: Sequence[Leaf], unordered: Mapping[int, int | None]
) -> tuple[ColumnStats | None, ...]:
    """Return the statistics per column of the table, None for nested columns.

    Args:
        leaves: the file's physical columns.
        unordered: columns, by index, whose minimum and maximum must not be used, with the null count if the footer has
            none.
    """
    columns: dict[int, ColumnStats | None] = {}
    for index, leaf in enumerate(leaves):
        if leaf.is_nested:
            columns[leaf.place] = None
        elif leaf.place in unordered and unordered[leaf.place] is not None:
            columns[leaf.place] = ColumnStats(min=None, max=None, null_count=unordered[leaf.place])
        else:
            keep_range = leaf.place not in unordered and leaf.data_type.root not in _COUNTED_ONLY
            columns[leaf.place] = _column_stats(metadata, index, leaf.data_type, keep_range=keep_range)
    return tuple(columns[place] for place in sorted(columns))


def _column_stats(metadata: pq.FileMetaData, index: int, data_type: AtomicType, *, keep_range: bool) -> ColumnStats:
    null_count: int | None = 0
    ranges: list[tuple[object, object]] = []
    for place in range(metadata.num_row_groups):
        row_group = metadata.row_group(place)
        stats: ArrowAny = row_group.column(index).statistics
        if stats is None or not stats.has_null_count:
            null_count, keep_range = None, False
            break
        null_count += stats.null_count
        if stats.null_count == row_group.num_rows:
            continue
        # The library omits values of more than 4 KiB; then the range of the whole file is unknown.
        keep_range = keep_range and stats.has_min_max
        if keep_range:
            ranges.append((stats.min_raw, stats.max_raw))
    if not keep_range or not ranges:
        return ColumnStats(min=None, max=None, null_count=null_count)
    if data_type.root in _FLOATS:
        low, high = _float_range(ranges)
    else:
        decode = _decoder(data_type)
        low, high = min(decode(low) for low, _ in ranges), max(decode(high) for _, high in ranges)
    return ColumnStats(min=low, max=high, null_count=null_count)


def _float_range(ranges: Sequence[tuple[ArrowAny, ArrowAny]]) -> tuple[float | None, float | None]:
    """Return a range that is valid in all engines: none if a bound is NaN; a bound of 0 is set to include both zeros.

    Other writers order NaN above all numbers and -0.0 below 0.0, and write such bounds to the footer.
    """
    if any(math.isnan(bound) for pair in ranges for bound in pair):
        return None, None
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return low or -0.0, high or 0.0


def _decoder(data_type: AtomicType) -> Callable[[ArrowAny], ArrowAny]:
    """Return the conversion from the physical to the internal value of a type."""
    match data_type.root:
        case TypeRoot.CHAR | TypeRoot.VARCHAR:
            return bytes.decode
        case TypeRoot.DECIMAL:
            return lambda raw: to_decimal(raw, data_type.scale or 0)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            nanos = _NANOS_PER_UNIT[timestamp_unit(timestamp_precision(data_type))]
            return lambda raw: raw * nanos
        case _:
            return lambda raw: raw


def to_decimal(unscaled: int | bytes, scale: int) -> Decimal:
    """Convert an unscaled number, or its big-endian two's complement; exact in any decimal context."""
    number = int.from_bytes(unscaled, "big", signed=True) if isinstance(unscaled, bytes) else unscaled
    return Decimal(f"{number}E-{scale}")
