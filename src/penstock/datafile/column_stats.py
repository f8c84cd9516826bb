"""Collect column statistics while rows are written, for formats whose footers pyarrow does not expose.

Source:
    docs/spec/format.md section 7.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.format.manifest.stats import ColumnStats
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.types.data_types import DataField

_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
# Readers before Paimon 2.0 expect only null counts for binary columns.
_COUNTED_ONLY: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.VARIANT})
_INTEGER_VIEW: Final = {TypeRoot.DATE: pa.int32(), TypeRoot.TIME: pa.int32()}
_UNIT_NANOS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(slots=True)
class _Range:
    """The statistics of one column so far."""

    low: Any = None
    high: Any = None
    null_count: int = 0
    is_ordered: bool = True


class StatsCollector:
    """Counts nulls of all columns; keeps minimum and maximum only of types with the same order in all readers."""

    def __init__(self, fields: Sequence[DataField]) -> None:
        self._types = [field.type for field in fields]
        self._ranges = [_Range(is_ordered=_has_order(data_type)) for data_type in self._types]

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch, which has the canonical Arrow schema."""
        for column, data_type, known in zip(batch.columns, self._types, self._ranges, strict=True):
            known.null_count += column.null_count
            if known.is_ordered and isinstance(data_type, AtomicType) and column.null_count < len(column):
                _widen(known, column, data_type)

    def result(self) -> tuple[ColumnStats, ...]:
        """Return the statistics per column."""
        return tuple(
            ColumnStats(
                min=known.low if known.is_ordered else None,
                max=known.high if known.is_ordered else None,
                null_count=known.null_count,
            )
            for known in self._ranges
        )


def holds_nan(column: Any) -> bool:  # noqa: ANN401 - an array of floating-point numbers
    """Whether a column holds NaN; also true for infinities of both signs, where only the range is lost.

    Engines order NaN above all numbers, but ranges exclude it. The sum is the cheapest check.
    """
    total = pc.sum(column).as_py()
    return total is not None and math.isnan(total)


def _has_order(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root not in _COUNTED_ONLY


def _widen(known: _Range, column: Any, data_type: AtomicType) -> None:  # noqa: ANN401 - any array
    if data_type.root in _FLOATS and holds_nan(column):
        known.is_ordered = False
        return
    factor = 1
    if pa.types.is_timestamp(column.type):
        factor = _UNIT_NANOS[column.type.unit]
        column = column.view(pa.int64())
    elif data_type.root in _INTEGER_VIEW:
        column = column.view(_INTEGER_VIEW[data_type.root])
    found: Any = pc.min_max(column)
    low, high = found["min"].as_py(), found["max"].as_py()
    if data_type.root in _FLOATS:
        # -0.0 and 0.0 are equal here but not in every engine, so the range includes both.
        low, high = low if low != 0 else -0.0, high if high != 0 else 0.0
    else:
        low, high = (low * factor, high * factor) if factor != 1 else (low, high)
    known.low = low if known.low is None else min(known.low, low)
    known.high = high if known.high is None else max(known.high, high)
