"""Evaluate a bound filter on one row or on the values of a partition, and derive what it allows.

Floating-point numbers are ordered as in Spark and in the format's reference: NaN equals itself and is greater than
every other number, and the two zeros are equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias, assert_never

from penstock.predicate.bind import columns_of, conjunction, disjunction
from penstock.predicate.tree import (
    FALSE,
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


def matches_partition(predicate: BoundPredicate, known: Row) -> bool:
    """Whether a partition with these values may contain a row that passes; exact for the known columns."""
    return residual(predicate, known).root != FALSE


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
