"""Extract column statistics from a Parquet footer.

Source:
    Paimon ``format:parquet/ParquetSimpleStatsExtractor.java``; docs/spec/format.md section 7.3.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.datafile.types import ArrowAny, timestamp_precision, timestamp_unit
from penstock.format.manifest.stats import ColumnStats
from penstock.format.types.data_types import AtomicType, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow.parquet as pq

    from penstock.datafile.parquet.schema import Leaf

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
