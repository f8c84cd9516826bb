"""Evaluate a bound filter on one row, on the values of a partition, or on column statistics; derive what it allows.

Floating-point numbers are ordered as in Spark and in the format's reference: NaN equals itself and is greater than
every other number, and the two zeros are equal.

On column statistics, it skips files in which no row can pass.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.predicate.bind import columns_of, conjunction, disjunction
from penstock.predicate.tree import (
    And,
    BoundPredicate,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.format.manifest.stats import ColumnStats


Row: TypeAlias = "Mapping[str, object]"


def evaluate(node: Predicate, row: Row) -> bool | None:
    """Evaluate the filter on a row of internal values: true, false or None for unknown."""
    match node:
        case Constant(value=value):
            return value
        case And(operands=operands):
            answers = [evaluate(operand, row) for operand in operands]
            return False if False in answers else None if None in answers else True
        case Or(operands=operands):
            answers = [evaluate(operand, row) for operand in operands]
            return True if True in answers else None if None in answers else False
        case Not(operand=operand):
            answer = evaluate(operand, row)
            return None if answer is None else not answer
        case Compare() | In() | IsNull() | StartsWith():
            return _leaf(node, row[node.column])
        case other:
            assert_never(other)


def residual(predicate: BoundPredicate, known: Row) -> BoundPredicate:
    """Substitute the columns that are constant in a partition; the result refers to the other columns only.

    On rows of that partition the result is equivalent to the filter; it is FALSE if no row can pass.
    """
    root = _substitute(predicate.root, known)
    used = frozenset(columns_of(root))
    return BoundPredicate(root=root, fields=tuple(field for field in predicate.fields if field.name in used))


def allowed_values(node: Predicate, column: str) -> frozenset[object] | None:
    """Return the set of values (null included) outside of which no row can pass; None if the filter gives no set."""
    match node:
        case Constant(value=value):
            return None if value else frozenset()
        case And(operands=operands):
            sets = [allowed for operand in operands if (allowed := allowed_values(operand, column)) is not None]
            return frozenset.intersection(*sets) if sets else None
        case Or(operands=operands):
            either = [allowed_values(operand, column) for operand in operands]
            return None if None in either else frozenset().union(*(allowed or () for allowed in either))
        case Compare() | In() | IsNull() if node.column == column:
            return _leaf_values(node)
        case _:
            return None


def _leaf_values(node: Compare | In | IsNull) -> frozenset[object] | None:
    match node:
        case Compare(operator=Operator.EQ, value=value):
            return frozenset({value})
        case In(values=values, negated=False):
            return frozenset(value for value in values if value is not None)
        case IsNull(negated=False):
            return frozenset({None})
        case _:
            return None


def compare_values(left: object, operator: Operator, right: object) -> bool:
    """Compare two non-null internal values of one type."""
    if isinstance(left, float) and isinstance(right, float) and (math.isnan(left) or math.isnan(right)):
        left, right = math.isnan(left), math.isnan(right)
        if left != right:  # exactly one is NaN: compare the flags; if both are NaN, True == True makes them equal
            return _ordered(int(left), operator, int(right))
    return _ordered(left, operator, right)


def _ordered(left: object, operator: Operator, right: object) -> bool:
    answer: object
    match operator:
        case Operator.EQ:
            answer = left == right
        case Operator.NE:
            answer = left != right
        case Operator.LT:
            answer = left < right  # type: ignore[operator] # values of one column's type are ordered
        case Operator.LE:
            answer = left <= right  # type: ignore[operator]
        case Operator.GT:
            answer = left > right  # type: ignore[operator]
        case Operator.GE:
            answer = left >= right  # type: ignore[operator]
        case other:
            assert_never(other)
    return bool(answer)


def _leaf(node: Compare | In | IsNull | StartsWith, value: object) -> bool | None:
    if isinstance(node, IsNull):
        return (value is None) != node.negated
    if value is None:
        return None
    match node:
        case Compare(operator=operator, value=literal):
            return compare_values(value, operator, literal)
        case In(values=values, negated=negated):
            found = any(item is not None and compare_values(value, Operator.EQ, item) for item in values)
            return None if not found and None in values else found != negated
        case StartsWith(prefix=prefix, negated=negated):
            return str(value).startswith(str(prefix)) != negated
        case other:
            assert_never(other)


def _substitute(node: Predicate, known: Row) -> Predicate:
    match node:
        case And(operands=operands):
            return conjunction(_substitute(operand, known) for operand in operands)
        case Or(operands=operands):
            return disjunction(_substitute(operand, known) for operand in operands)
        case Constant(value=value):
            return Constant(value=bool(value))  # no NOT above: unknown rejects a row, as false does
        case Not():
            raise AssertionError("bind pushed every NOT into the leaves")
        case Compare() | In() | IsNull() | StartsWith():
            if node.column not in known:
                return node
            return Constant(value=bool(_leaf(node, known[node.column])))
        case other:
            assert_never(other)


_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_BINARIES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})


def may_match(predicate: BoundPredicate, stats: Mapping[str, ColumnStats], row_count: int) -> bool:
    """Whether rows with these statistics may contain one that passes; True if unknown.

    Args:
        stats: by column name; a missing column, minimum, maximum or null count prunes nothing. A minimum may be less
            than the least value and a maximum greater than the greatest (truncated texts).
        row_count: number of rows that the statistics cover.
    """
    return row_count > 0 and _Pruner(predicate, stats, row_count).may(predicate.root)


class _Pruner:
    """A filter with the statistics of one set of rows."""

    def __init__(self, predicate: BoundPredicate, stats: Mapping[str, ColumnStats], row_count: int) -> None:
        self._stats = stats
        self._row_count = row_count
        self._roots = {f.name: f.type.root if isinstance(f.type, AtomicType) else None for f in predicate.fields}

    def may(self, node: Predicate) -> bool:
        match node:
            case Constant(value=value):
                return value is True
            case And(operands=operands):
                return all(self.may(operand) for operand in operands)
            case Or(operands=operands):
                return any(self.may(operand) for operand in operands)
            case Not():
                raise AssertionError("bind pushed every NOT into the leaves")
            case Compare() | In() | IsNull() | StartsWith():
                return self._leaf(node)
            case other:
                assert_never(other)

    def _leaf(self, node: Compare | In | IsNull | StartsWith) -> bool:
        stats = self._stats.get(node.column)
        if stats is None:
            return True
        nulls = stats.null_count
        if isinstance(node, IsNull):
            return nulls is None or (nulls < self._row_count if node.negated else nulls > 0)
        if nulls is not None and nulls >= self._row_count:
            return False
        return self._values(node, *self._bounds(node.column, stats))

    def _values(self, node: Compare | In | StartsWith, low: object, high: object) -> bool:
        match node:
            case Compare(operator=operator, value=value):
                return _compare(operator, value, low, high)
            case In(values=values, negated=True):
                return None not in values and all(_compare(Operator.NE, value, low, high) for value in values)
            case In(values=values):
                return any(_compare(Operator.EQ, value, low, high) for value in values if value is not None)
            case StartsWith(prefix=prefix, negated=negated):
                return _starts_with(str(prefix), low, high, negated=negated)
            case other:
                assert_never(other)

    def _bounds(self, column: str, stats: ColumnStats) -> tuple[object, object]:
        root = self._roots.get(column)
        if root in _FLOATS:
            # NaN is greater than any maximum: writers omit NaN from the statistics, or write NaN as both bounds.
            is_nan = isinstance(stats.min, float) and math.isnan(stats.min)
            return None if is_nan else stats.min, None
        if root is TypeRoot.CHAR and isinstance(stats.min, str):
            # ORC pads CHAR with blanks in its statistics; row values may have no padding.
            return stats.min.rstrip(" "), stats.max
        if root in _BINARIES:
            # Older writers compare bytes as signed numbers.
            return None, None
        return stats.min, stats.max


def _compare(operator: Operator, value: object, low: object, high: object) -> bool:
    """Whether some value between the bounds (None: unbounded) may satisfy the comparison."""
    match operator:
        case Operator.EQ:
            above = low is not None and compare_values(low, Operator.GT, value)
            return not above and not (high is not None and compare_values(high, Operator.LT, value))
        case Operator.NE:
            return low is None or high is None or not (low == high == value)
        case Operator.LT | Operator.LE:
            return low is None or compare_values(low, operator, value)
        case Operator.GT | Operator.GE:
            return high is None or compare_values(high, operator, value)
        case other:
            assert_never(other)


def _starts_with(prefix: str, low: object, high: object, *, negated: bool) -> bool:
    low_text, high_text = (None if bound is None else str(bound) for bound in (low, high))
    low_has = low_text is not None and low_text.startswith(prefix)
    if negated:
        return not (low_has and high_text is not None and high_text.startswith(prefix))
    if low_text is not None and low_text > prefix and not low_has:
        return False
    return high_text is None or high_text >= prefix
