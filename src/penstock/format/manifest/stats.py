"""Column statistics of data files: build and read them.

Bounds of long values are truncated, so that they do not fill the manifests.

Source:
    Paimon ``common:statistics/*SimpleColStatsCollector.java``, ``core:utils/StatsCollectorFactories.java``,
    ``core:stats/SimpleStatsConverter.java``; docs/spec/format.md section 7;
    ``common:statistics/TruncateSimpleColStatsCollector.java``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import FormatError, InvalidOptionError
from penstock.format.manifest.entry import EMPTY_STATS, SimpleStats
from penstock.format.row.row import arity_of, decode_field, encode_row, row_decoder
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.types.data_types import DataField


_LAST_CODE_POINT: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def truncate_min(value: object, length: int) -> object:
    """Return the first ``length`` code points of a string or bytes of a binary; other values unchanged."""
    return value[:length] if isinstance(value, str | bytes) else value


def truncate_max(value: object, length: int) -> object:
    """Return an upper bound of ``value`` with at most ``length`` code points or bytes.

    Returns:
        The bound; None if there is none; values that are neither strings nor bytes unchanged.
    """
    match value:
        case str() if len(value) > length:
            return _raise_text(value[:length])
        case bytes() if len(value) > length:
            return _raise_bytes(value[:length])
        case _:
            return value


def _raise_text(prefix: str) -> str | None:
    for place in reversed(range(len(prefix))):
        following = ord(prefix[place]) + 1
        if following in _SURROGATES:
            # Java writes the surrogate, which UTF-8 cannot encode, so its maximum has '?' instead and is too low.
            following = _SURROGATES.stop
        if following <= _LAST_CODE_POINT:
            return prefix[:place] + chr(following)
    return None


def _raise_bytes(prefix: bytes) -> bytes | None:
    for place in reversed(range(len(prefix))):
        if prefix[place] < 0xFF:
            return prefix[:place] + bytes((prefix[place] + 1,))
    return None


_TRUNCATE: Final = re.compile(r"truncate\((\d+)\)")


class StatsKind(StrEnum):
    """The statistics that are kept of a column."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsMode:
    """A value of ``metadata.stats-mode``.

    Attributes:
        length: ``n`` of ``truncate(n)``: code points of strings, bytes of binaries; 0 for other kinds.
    """

    kind: StatsKind
    length: int = 0

    @classmethod
    def parse(cls, text: str) -> StatsMode:
        """Parse ``none``, ``counts``, ``truncate(n)`` or ``full``, in any case."""
        name = text.strip().lower()
        if found := _TRUNCATE.fullmatch(name):
            length = int(found[1])
            if length > 0:
                return cls(kind=StatsKind.TRUNCATE, length=length)
        elif name in (StatsKind.NONE, StatsKind.COUNTS, StatsKind.FULL):
            return cls(kind=StatsKind(name))
        raise InvalidOptionError(
            f"statistics mode {text!r}: expected 'none', 'counts', 'full' or 'truncate(n)' with n above 0"
        )


NO_STATS: Final = StatsMode(kind=StatsKind.NONE)
DEFAULT_STATS_MODE: Final = StatsMode(kind=StatsKind.TRUNCATE, length=16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStats:
    """Statistics of one column of one file.

    Attributes:
        min: internal value, a lower bound of all values; None if unknown or if all values are null.
        max: internal value, an upper bound; likewise.
        null_count: None when unknown.
    """

    min: object = None
    max: object = None
    null_count: int | None = None


_UNKNOWN: Final = ColumnStats()


def choose_modes(
    names: Sequence[str],
    default: StatsMode = DEFAULT_STATS_MODE,
    overrides: Mapping[str, StatsMode] | None = None,
    keep_first: int = -1,
) -> tuple[StatsMode, ...]:
    """Return the statistics mode of each column.

    Args:
        names: the table's columns in order.
        default: value of ``metadata.stats-mode``.
        overrides: values of ``fields.<column>.stats-mode``; they take precedence.
        keep_first: value of ``metadata.stats-keep-first-n-columns``; later columns have statistics only if they have
            their own mode. -1 for no limit.
    """
    chosen = overrides or {}
    return tuple(
        chosen.get(name, NO_STATS if 0 <= keep_first <= place else default) for place, name in enumerate(names)
    )


def build_stats(
    fields: Sequence[DataField], columns: Sequence[ColumnStats | None], modes: Sequence[StatsMode], *, dense: bool
) -> tuple[SimpleStats, tuple[str, ...] | None]:
    """Build the statistics of a file's columns for its entry.

    Args:
        fields: the columns of the file.
        columns: full statistics, one per column; None if the file format has none.
        modes: one per column.
        dense: value of ``metadata.stats-dense-store``: leave out columns without statistics.

    Returns:
        ``value_stats`` and ``value_stats_cols`` of the entry.
    """
    kept = [
        (field, _reduce(stats, mode, field.type)) for field, stats, mode in zip(fields, columns, modes, strict=True)
    ]
    if dense:
        kept = [(field, stats) for field, stats in kept if stats != _UNKNOWN]
    if not kept:
        return EMPTY_STATS, ()
    types = [field.type for field, _ in kept]
    value_stats = SimpleStats(
        min_values=encode_row([stats.min for _, stats in kept], types),
        max_values=encode_row([stats.max for _, stats in kept], types),
        null_counts=tuple(stats.null_count for _, stats in kept),
    )
    return value_stats, None if len(kept) == len(fields) else tuple(field.name for field, _ in kept)


def _reduce(stats: ColumnStats | None, mode: StatsMode, data_type: DataType) -> ColumnStats:
    """Reduce the statistics to those of the mode."""
    if stats is None or mode.kind is StatsKind.NONE:
        return _UNKNOWN
    if mode.kind is StatsKind.COUNTS or _is_binary(data_type):
        return ColumnStats(null_count=stats.null_count)
    if mode.kind is StatsKind.FULL:
        return stats
    return truncate_stats(stats, mode.length)


def truncate_stats(stats: ColumnStats, length: int) -> ColumnStats:
    """Truncate strings to ``length`` code points and binaries to that many bytes; other values are kept.

    A truncated maximum is raised to remain an upper bound. If it cannot be raised, both bounds are dropped.
    """
    if stats.max is None:
        return ColumnStats(null_count=stats.null_count)
    upper = truncate_max(stats.max, length)
    if upper is None:
        return ColumnStats(null_count=stats.null_count)
    return ColumnStats(min=truncate_min(stats.min, length), max=upper, null_count=stats.null_count)


def decode_stats(
    stats: SimpleStats, cols: Sequence[str] | None, fields: Sequence[DataField]
) -> Mapping[str, ColumnStats]:
    """Decode the statistics of a file's columns in an entry.

    Columns are decoded on demand, as a filter uses few of many. A column whose bytes are damaged has unknown
    statistics, since statistics only save work.

    Args:
        stats: ``value_stats`` of the entry.
        cols: ``value_stats_cols`` of the entry; None for all of ``fields``, () for none.
        fields: the columns of the schema that the file was written with, without those missing in ``write_cols``.

    Returns:
        Statistics by column name; columns without statistics in the entry are omitted.
    """
    names = [field.name for field in fields] if cols is None else cols
    arity = arity_of(stats.min_values)
    if arity == 0:
        # Statistics of no columns; some writers declare them as statistics of all columns.
        return {}
    if arity != len(names) or arity_of(stats.max_values) != arity:
        raise FormatError(
            f"statistics of {arity} columns cannot be those of {len(names)} columns ({', '.join(names)}): the entry "
            "is damaged or belongs to another schema; read the table without a filter"
        )
    return _StatsView(stats, names, fields)


class _StatsView(Mapping[str, ColumnStats]):
    """Statistics by column name, decoded on demand."""

    __slots__ = ("_fields", "_names", "_stats")

    def __init__(self, stats: SimpleStats, names: Sequence[str], fields: Sequence[DataField]) -> None:
        self._stats = stats
        self._names = names
        self._fields = fields

    def __getitem__(self, name: str) -> ColumnStats:
        field = next((field for field in self._fields if field.name == name), None)
        if field is None or name not in self._names:
            raise KeyError(name)
        place, stats = self._names.index(name), self._stats
        null_count = stats.null_counts[place] if place < len(stats.null_counts) else None
        try:
            return ColumnStats(
                min=decode_field(stats.min_values, len(self._names), place, field.type),
                max=decode_field(stats.max_values, len(self._names), place, field.type),
                null_count=null_count,
            )
        except FormatError:
            return ColumnStats(null_count=null_count)

    def __iter__(self) -> Iterator[str]:
        known = {field.name for field in self._fields}
        return (name for name in self._names if name in known)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def partition_stats(partitions: Iterable[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Build the partition statistics of a manifest, for the manifest list.

    Args:
        partitions: serialized rows, one per entry, with repetitions.
        types: of the partition columns; empty for an unpartitioned table.

    Returns:
        Minimum and maximum per column, never truncated, and the number of entries with null in the column.
    """
    if not types:
        return EMPTY_STATS
    decode = row_decoder(tuple(types))
    rows = [(decode(data), count) for data, count in Counter(partitions).items()]
    ends = [_ends([row[place] for row, _ in rows], data_type) for place, data_type in enumerate(types)]
    return SimpleStats(
        min_values=encode_row([low for low, _ in ends], types),
        max_values=encode_row([high for _, high in ends], types),
        null_counts=tuple(sum(count for row, count in rows if row[place] is None) for place in range(len(types))),
    )


def _ends(values: Iterable[Any], data_type: DataType) -> tuple[object, object]:
    known = [] if _is_binary(data_type) else [value for value in values if value is not None]
    if not known:
        return None, None
    if isinstance(known[0], float):
        return min(known, key=float_order), max(known, key=float_order)
    return min(known), max(known)


def float_order(value: float) -> tuple[bool, float, float]:
    """Return a sort key for Java's order: -0.0 before 0.0, NaN last."""
    is_nan = math.isnan(value)
    return is_nan, 0.0 if is_nan else value, math.copysign(1.0, value)


def _is_binary(data_type: DataType) -> bool:
    """Whether no range may be stored: Java up to 1.4 compares bytes as signed numbers and would skip matching files."""
    return isinstance(data_type, AtomicType) and data_type.root in (TypeRoot.BINARY, TypeRoot.VARBINARY)
