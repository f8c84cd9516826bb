"""Pruning of many files at once by the statistics in their manifest entries.

``StatsPruner`` is the reference: files for which the columns do not give the answer for sure, such as those with
damaged statistics, are decided by it.

Source:
    As ``prune``; design/0093.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from penstock.errors import TableStoreError
from penstock.format.row.row import ARITY_BYTES, MAX_COMPACT_DECIMAL, null_area_bytes
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.predicate.tree import (
    FALSE,
    And,
    BoundPredicate,
    Compare,
    Constant,
    In,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.format.avro.columns import Array, Cursor, Places
    from penstock.format.manifest.columns import ManifestColumns
    from penstock.format.types.data_types import DataType
    from penstock.table.read.prune import StatsPlaces, StatsPruner

_WORD_BYTES: Final = 8
_MAX_INLINE: Final = 7
# Longer bounds are left to the reference; by default, writers truncate them to 16 characters.
_MAX_TEXT_BYTES: Final = 64
_NANOS_PER_MILLI: Final = 1_000_000
_MAX_MILLIS: Final = (1 << 63) // _NANOS_PER_MILLI - 1
_INT64: Final = range(-(1 << 63), 1 << 63)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_HIGH_HALF: Final = np.uint64(32)
_ALL: Final = slice(None)
_INTEGERS: Final[dict[TypeRoot, Any]] = {
    TypeRoot.TINYINT: np.int8,
    TypeRoot.SMALLINT: np.int16,
    TypeRoot.INT: np.int32,
    TypeRoot.BIGINT: np.int64,
    TypeRoot.DATE: np.int32,
    TypeRoot.TIME: np.int32,
}
_TIMESTAMPS: Final = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


class ColumnsPruner:
    """Prunes files in columns; its answers are those of ``StatsPruner``.

    Attributes:
        undecided: number of files that were decided by the reference.
    """

    def __init__(self, reference: StatsPruner) -> None:
        self._reference = reference
        self.undecided = 0

    def keeps(self, files: ManifestColumns, rows: Array, predicate: BoundPredicate) -> Array:
        """Return for each file whether it may contain a row that passes the filter.

        Args:
            files: the entries of a manifest; what ``read`` returned may be in ``visited``.
            rows: ascending; the entries to decide on.
            predicate: as of ``StatsPruner.keeps``.
        """
        if not predicate.fields:
            answers = _plain_answers(files.row_count[rows], predicate)
        else:
            answers = self._answers(files, rows, predicate)
        kept: Array = answers == MAY
        unknown = np.flatnonzero(answers == UNKNOWN)
        self.undecided += len(unknown)
        entries = files.entries(rows[unknown]) if len(unknown) else []
        kept[unknown] = [self._reference.keeps(entry.file, predicate) for entry in entries]
        return kept

    def _answers(self, files: ManifestColumns, rows: Array, predicate: BoundPredicate) -> Array:
        """Return for each file ``MAY``, ``CANNOT`` or ``UNKNOWN``."""
        answers = np.full(len(rows), UNKNOWN)
        visited, is_new, at = [], False, 0
        for group in files.statistics(rows):
            found = group.visited
            if not isinstance(found, GroupBounds) or not self._fits(found, files, predicate):
                found, is_new = self.read(predicate, files, group.cursor(), group.entries), True
            visited.append(found)
            of_group = found.answers(predicate, files.row_count[group.entries])
            end = at + len(group.rows)
            answers[at:end] = of_group if len(group.rows) == len(of_group) else of_group[group.rows]
            at = end
        if is_new:
            files.keep_visited(visited)
        return answers

    def read(
        self, predicate: BoundPredicate, files: ManifestColumns, cursor: Cursor, entries: slice = _ALL
    ) -> GroupBounds:
        """Read the statistics that a filter needs.

        Args:
            predicate: as of ``StatsPruner.keeps``.
            files: entries of a manifest.
            cursor: at the statistics of some of them.
            entries: these.
        """
        layouts = files.layout[entries]
        codes = np.unique(_distinct(layouts))
        found = []
        for code in codes.tolist():
            places = self._places(files, code, predicate)
            if places is None:
                continue
            if len(codes) == 1:
                found.append(_LayoutBounds(code, _ALL, places, _read_statistics(cursor, places)))
            else:
                chosen = np.flatnonzero(layouts == code)
                found.append(_LayoutBounds(code, chosen, places, _read_statistics(cursor.some(chosen), places)))
        return GroupBounds(found)

    def _fits(self, bounds: GroupBounds, files: ManifestColumns, predicate: BoundPredicate) -> bool:
        """Whether they are of the columns of a filter."""
        places = (self._places(files, part.layout, predicate) for part in bounds.parts)
        return all(
            each is not None and each.content == part.places.content
            for each, part in zip(places, bounds.parts, strict=True)
        )

    def _places(self, files: ManifestColumns, layout: int, predicate: BoundPredicate) -> StatsPlaces | None:
        # An error counts only if an entry is live: the reference, which decides on it, raises it again.
        with suppress(TableStoreError):
            return self._reference.reader(predicate).places(files.layouts[layout])
        return None


def are_counted(files: ManifestColumns, rows: Array, places: StatsPlaces) -> bool:
    """Return whether entries certainly have the null counts of some columns.

    Args:
        files: the entries of a manifest.
        rows: ascending; the entries to look at, which have one layout.
        places: of the columns in it.
    """
    if files.encoded is None:
        return False
    for group in files.statistics(rows):
        cursor = group.cursor().some(group.rows)
        for _ in range(2):
            cursor.spans()  # the minima, and the maxima
        counts = read_null_counts(cursor, places.arity, max(place for _, place, _ in places.columns))
        if not cursor.is_good.all() or not all(counts[place][1].all() for _, place, _ in places.columns):
            return False
    return True


UNKNOWN: Final = np.uint8(0)
MAY: Final = np.uint8(1)
CANNOT: Final = np.uint8(2)


class _LayoutBounds(NamedTuple):
    """Statistics of those files of a group that have one layout.

    Attributes:
        layout: its number in the manifest.
        files: numbers in the group.
        places: where the statistics were.
    """

    layout: int
    files: slice | Array
    places: StatsPlaces
    stats: _Statistics


class GroupBounds:
    """The statistics of a group of files that a filter needs.

    Attributes:
        parts: without those that cannot be read.
        nbytes: about how much memory they take.
    """

    def __init__(self, parts: Sequence[_LayoutBounds]) -> None:
        self.parts = parts
        self.nbytes = sum(each.nbytes for part in parts for each in part.stats.arrays())
        self.nbytes += sum(part.files.nbytes for part in parts if not isinstance(part.files, slice))

    def answers(self, predicate: BoundPredicate, row_counts: Array) -> Array:
        """Return for each file ``MAY``, ``CANNOT`` or ``UNKNOWN``."""
        answers = np.full(len(row_counts), UNKNOWN)
        for part in self.parts:
            counts = _distinct(row_counts[part.files])
            answer = _Evaluation(part.stats, part.places, counts).answer(predicate.root)
            found = np.where(answer.may, MAY, np.where(answer.cannot, CANNOT, UNKNOWN))
            # The reference decides on counts below zero.
            found = np.where(part.stats.is_good & (counts >= 0), found, UNKNOWN)
            answers[part.files] = np.where(counts == 0, CANNOT, found)
        return answers


def _distinct(values: Array) -> Array:
    """Return only the first value if all are equal, without the memory of the others."""
    if values.strides == (0,):
        return values[:1]
    is_one = len(values) > 1 and values[0] == values[-1] and bool((values == values[0]).all())
    return values[:1].copy() if is_one else values


def _plain_answers(row_counts: Array, predicate: BoundPredicate) -> Array:
    """Return the answers to a filter that names no column."""
    return np.where((row_counts != 0) & (predicate.root != FALSE), MAY, CANNOT)


@dataclass(frozen=True, slots=True)
class _Answer:
    """For each file, whether it may for sure, or for sure cannot, contain a row that passes; else it is not known."""

    may: Array
    cannot: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Bounds of one column in many files; arrays of one value where it is that of all of them.

    Attributes:
        low: minimum, where ``has_low``.
        nulls: number of nulls, where ``has_nulls``.
        root: of the type in the files; None for a nested one.
    """

    low: Array
    high: Array
    has_low: Array
    has_high: Array
    nulls: Array
    has_nulls: Array
    root: TypeRoot | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statistics:
    """Statistics of many files.

    Attributes:
        is_good: false where the reference has to read them; an array as those of ``_Bounds``.
    """

    columns: dict[str, _Bounds]
    is_good: Array

    def arrays(self) -> Iterator[Array]:
        """Yield all arrays."""
        yield self.is_good
        for each in self.columns.values():
            yield from (each.low, each.high, each.has_low, each.has_high, each.nulls, each.has_nulls)


def _read_statistics(cursor: Cursor, places: StatsPlaces) -> _Statistics:
    """Read statistics at a cursor, which is moved."""
    size = len(cursor.positions)
    if not places.columns:
        return _Statistics(columns={}, is_good=np.ones(size, bool))
    low, high = (StatsRows(cursor, places.arity) for _ in range(2))
    nulls = read_null_counts(cursor, places.arity, max(place for _, place, _ in places.columns))
    columns = {}
    for (name, place, is_trusted), data_type in zip(places.columns, places.types, strict=True):
        low_values, has_low = low.values(place, data_type)
        high_values, has_high = high.values(place, data_type)
        if low_values.dtype == np.float64:
            # As in the reference: a maximum may leave out NaN, which is the greatest number.
            has_low, has_high = has_low & ~np.isnan(low_values), has_high & False
        columns[name] = _Bounds(
            low=_distinct(low_values),
            high=_distinct(high_values),
            has_low=_distinct(has_low & is_trusted),
            has_high=_distinct(has_high & is_trusted),
            nulls=_distinct(nulls[place][0]),
            has_nulls=_distinct(nulls[place][1]),
            root=data_type.root if isinstance(data_type, AtomicType) else None,
        )
    return _Statistics(columns=columns, is_good=_distinct(cursor.is_good & low.is_good & high.is_good))


def read_null_counts(cursor: Cursor, arity: int, last: int) -> Sequence[tuple[Array, Array]]:
    """Read the null counts of columns up to the last one: the counts, and where they are known.

    Args:
        cursor: after the rows of minima and maxima; entries with other than ``arity`` counts are not good.
    """
    records, size = cursor.records, len(cursor.positions)
    if cursor.is_even:
        return _read_counts(cursor, arity, last)
    first = cursor.first()
    wanted = _read_counts(first, arity, last)
    width = int(first.positions[0] - cursor.positions[0])
    if first.is_good[0] and 0 < width <= _MAX_TEXT_BYTES:
        rows = records.rows(cursor.positions, width)
        if (rows == rows[0]).all():
            return [(np.repeat(each, size), np.repeat(known, size)) for each, known in wanted]
    return _read_counts(cursor, arity, last)


def _read_counts(cursor: Cursor, arity: int, last: int) -> Sequence[tuple[Array, Array]]:
    cursor.is_good &= cursor.present()
    cursor.is_good &= cursor.sizes() == arity
    return [cursor.nullable_longs() for _ in range(last + 1)]


class StatsRows:
    """The serialized rows of minima, or of maxima, of many files.

    Attributes:
        is_good: where the values that were read are sound.
    """

    def __init__(self, cursor: Cursor, arity: int) -> None:
        starts, sizes = cursor.spans()
        self._records = cursor.records
        self._body_sizes = _distinct(sizes) - ARITY_BYTES
        self._head = null_area_bytes(arity)
        self._starts = starts + ARITY_BYTES
        is_whole = self._body_sizes >= self._head + _WORD_BYTES * arity
        if not is_whole.all():
            self._starts = np.where(is_whole, self._starts[:], ARITY_BYTES)
        written = self._records.words_at(self._only(self._starts + -ARITY_BYTES, ARITY_BYTES)) & _LOW_HALF
        self.is_good = is_whole & (written == np.uint64(int.from_bytes(arity.to_bytes(4, "big"), "little")))

    def values(self, place: int, data_type: DataType) -> tuple[Array, Array]:
        """Return the values of a column, and where they are not null.

        Each array has one value where all files have the same. Decimals are unscaled; those of more than 8 bytes,
        binaries and nested values are not read, and are not good.
        """
        bit = place + 8
        nulls = self._records.bytes_at(self._only(self._starts + bit // 8, 1))
        present = (nulls & np.uint8(1 << bit % 8)) == 0
        slots = self._only(self._starts + self._head + _WORD_BYTES * place, _WORD_BYTES)
        has_value = self.is_good & present
        if has_value.all():
            words = self._records.words_at(slots).copy()
        else:
            slots = np.where(has_value, slots[:], 0)
            words = self._records.words[slots]
        values: Array
        match data_type:
            case AtomicType(root=TypeRoot.DOUBLE):
                values = words.view(np.float64)
            case AtomicType(root=TypeRoot.FLOAT):
                values = (words & _LOW_HALF).astype(np.uint32).view(np.float32).astype(np.float64)
            case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ, precision=precision):
                values = self._timestamps(words, present, 6 if precision is None else precision)
            case AtomicType(root=TypeRoot.VARCHAR | TypeRoot.CHAR):
                values = self._texts(slots, words, present)
            case AtomicType(root=TypeRoot.BOOLEAN):
                values = words.view(np.uint8)[::_WORD_BYTES] != 0
            case AtomicType(root=TypeRoot.DECIMAL, precision=precision) if (precision or 10) <= MAX_COMPACT_DECIMAL:
                values = words.view(np.int64)
            case AtomicType(root=root) if root in _INTEGERS:
                values = words.astype(_INTEGERS[root]).astype(np.int64, copy=False)
            case _:
                self.is_good = self.is_good & ~present
                values = np.zeros(len(words), np.int64)
        return values, present

    def _only(self, places: Places, size: int) -> Places:
        return self._records.distinct(places, size)

    def _timestamps(self, words: Array, present: Array, precision: int) -> Array:
        rest: Array = np.zeros(len(words), np.int64)
        if precision > 3:
            rest = (words & _LOW_HALF).astype(np.int64)
            words = self._records.words[self._tails(words, present, np.full(len(words), _WORD_BYTES))]
        millis = words.view(np.int64)
        self.is_good = self.is_good & (~present | ((millis < _MAX_MILLIS) & (millis > -_MAX_MILLIS)))
        return np.where(self.is_good, millis, 0) * _NANOS_PER_MILLI + rest

    def _texts(self, slots: Places, words: Array, present: Array) -> Array:
        mark = (words >> np.uint64(56)).astype(np.int64)
        is_inline = mark >= 0x80
        sizes = np.where(is_inline, mark & 0x7F, (words & _LOW_HALF).astype(np.int64))
        self.is_good = self.is_good & (~present | (sizes <= np.where(is_inline, _MAX_INLINE, _MAX_TEXT_BYTES)))
        in_tail = present & ~is_inline
        starts = np.where(in_tail, self._tails(words, in_tail, sizes), slots[:])
        sizes = np.where(self.is_good & present, sizes, 0)
        width = max(int(sizes.max(initial=0)), 1)
        rows = self._records.rows(starts, width)
        has_byte = np.arange(width) < sizes[:, None]
        shown = np.ascontiguousarray(rows * has_byte)
        # Zeros at the end do not count in comparisons of numpy.
        is_plain = ~((rows == 0) & has_byte).any(axis=1)
        for row in np.flatnonzero((shown > 0x7F).any(axis=1)).tolist():
            is_plain[row] &= _is_text(shown[row].tobytes())
        self.is_good = self.is_good & is_plain
        shown[~is_plain] = 0
        return shown.view(f"S{width}")[:, 0]

    def _tails(self, words: Array, present: Array, sizes: Array) -> Array:
        """Return where the values are whose slots hold an offset."""
        offsets = (words >> _HIGH_HALF).astype(np.int64)
        is_inside = offsets + sizes <= self._body_sizes
        self.is_good = self.is_good & (~present | is_inside)
        return np.where(is_inside & present, self._starts[:] + offsets, 0)


def _is_text(data: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        data.decode()
        return True
    return False


class _Evaluation:
    """A filter on the statistics of many files of one layout."""

    def __init__(self, stats: _Statistics, places: StatsPlaces, row_counts: Array) -> None:
        self._stats = stats
        self._lacking = places.lacking
        self._row_counts = row_counts

    def answer(self, node: Predicate) -> _Answer:
        """Return the answer for each file."""
        match node:
            case Constant(value=value):
                return self._all(may=value is True)
            case And(operands=operands):
                answer = self._all(may=True)
                for other in map(self.answer, operands):
                    answer = _Answer(answer.may & other.may, answer.cannot | other.cannot)
                return answer
            case Or(operands=operands):
                answer = self._all(may=False)
                for other in map(self.answer, operands):
                    answer = _Answer(answer.may | other.may, answer.cannot & other.cannot)
                return answer
            case Compare() | In() | IsNull() | StartsWith():
                return self._leaf(node)
            case _:
                return self._unknown()

    def _leaf(self, node: Compare | In | IsNull | StartsWith) -> _Answer:
        if node.column in self._lacking:
            return self._all(may=isinstance(node, IsNull) and not node.negated)
        bounds = self._stats.columns.get(node.column)
        if bounds is None:
            return self._all(may=True)
        if isinstance(node, IsNull):
            has_some = bounds.nulls < self._row_counts if node.negated else bounds.nulls > 0
            may = ~bounds.has_nulls | has_some
            return _Answer(may, ~may)
        may_match = _values(node, bounds)
        if may_match is None:
            return self._unknown()
        may = may_match & ~(bounds.has_nulls & (bounds.nulls >= self._row_counts))
        return _Answer(may, ~may)

    def _all(self, *, may: bool) -> _Answer:
        size = len(self._row_counts)
        return _Answer(np.full(size, may), np.full(size, not may))

    def _unknown(self) -> _Answer:
        size = len(self._row_counts)
        return _Answer(np.zeros(size, bool), np.zeros(size, bool))


def _values(node: Compare | In | StartsWith, bounds: _Bounds) -> Array | None:
    """Return whether a value between the bounds may satisfy a leaf; None if that is left to the reference."""
    match node:
        case Compare(operator=Operator.EQ | Operator.NE as operator, value=value):
            literals = _literals([value], bounds.root)
            return None if literals is None else _member(literals, bounds, negated=operator is Operator.NE)
        case Compare(operator=operator, value=value):
            literals = _literals([value], bounds.root)
            return None if literals is None else _ordered(operator, literals[0], bounds)
        case In(values=values, negated=negated):
            if negated and None in values:
                return np.zeros(len(bounds.low), bool)
            literals = _literals([value for value in values if value is not None], bounds.root)
            return None if literals is None else _member(literals, bounds, negated=negated)
        case StartsWith(prefix=prefix, negated=negated):
            return _starts_with(str(prefix), bounds, negated=negated)


def _literals(values: Sequence[object], root: TypeRoot | None) -> Array | None:
    """Return the values of a filter, ascending; None if numpy may compare them in another way than the reference."""
    if root is TypeRoot.VARCHAR:
        texts = [value.encode() for value in values if isinstance(value, str) and "\0" not in value]
        return np.sort(np.array(texts, bytes)) if len(texts) == len(values) else None
    if root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        floats = [value for value in values if isinstance(value, float) and not math.isnan(value)]
        return np.sort(np.array(floats, np.float64)) if len(floats) == len(values) else None
    if root not in _INTEGERS and root not in _TIMESTAMPS:
        return None
    numbers = [value for value in values if type(value) is int and value in _INT64]
    return np.sort(np.array(numbers, np.int64)) if len(numbers) == len(values) else None


def _member(literals: Array, bounds: _Bounds, *, negated: bool) -> Array:
    if negated:
        is_one: Array = bounds.has_low & bounds.has_high & (bounds.low == bounds.high)
        return ~(is_one & np.isin(bounds.low, literals))
    if not len(literals):
        return np.zeros(len(bounds.low), bool)
    if len(literals) == 1:
        within: Array = (~bounds.has_low | (bounds.low <= literals[0])) & (
            ~bounds.has_high | (literals[0] <= bounds.high)
        )
        return within
    # The first literal that is not below the minimum must not be above the maximum.
    at = np.where(bounds.has_low, np.searchsorted(literals, bounds.low, "left"), 0)
    found = literals[np.minimum(at, len(literals) - 1)]
    may: Array = (at < len(literals)) & (~bounds.has_high | (found <= bounds.high))
    return may


def _ordered(operator: Operator, value: object, bounds: _Bounds) -> Array:
    match operator:
        case Operator.LT:
            return ~bounds.has_low | (bounds.low < value)
        case Operator.LE:
            return ~bounds.has_low | (bounds.low <= value)
        case Operator.GT:
            return ~bounds.has_high | (bounds.high > value)
        case _:
            return ~bounds.has_high | (bounds.high >= value)


def _starts_with(prefix: str, bounds: _Bounds, *, negated: bool) -> Array | None:
    data = prefix.encode()
    if b"\0" in data or bounds.root is not TypeRoot.VARCHAR:
        return None
    low_has = bounds.has_low & np.char.startswith(bounds.low, data)
    if negated:
        return ~(low_has & bounds.has_high & np.char.startswith(bounds.high, data))
    literal = np.array([data], bytes)[0]
    is_above: Array = bounds.has_low & (bounds.low > literal) & ~low_has
    may: Array = ~is_above & (~bounds.has_high | (bounds.high >= literal))
    return may
