"""Evaluate a bound filter exactly, on Arrow rows."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

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
    from collections.abc import Callable

# pyarrow generates its compute functions at run time; they take arrays and scalars alike.
_Datum: TypeAlias = Any

_COMPARE: Final[dict[Operator, Callable[[_Datum, _Datum], _Datum]]] = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}
_NANOS_PER: Final = {"ms": 10**6, "us": 10**3, "ns": 1}


def filter_batch(batch: pa.RecordBatch, predicate: BoundPredicate) -> pa.RecordBatch:
    """Return the rows that pass, in their order; the batch itself if all rows pass.

    Args:
        batch: canonical Arrow with at least the columns of the filter.
    """
    mask = row_mask(batch, predicate)
    if mask.true_count == batch.num_rows:
        return batch
    return batch.filter(mask)


def row_mask(batch: pa.RecordBatch, predicate: BoundPredicate) -> pa.BooleanArray:
    """Return the filter's result for every row: true, false or (null) unknown."""
    evaluated = _evaluate(predicate.root, batch)
    mask: pa.BooleanArray = (
        pa.array([evaluated.as_py()] * batch.num_rows, pa.bool_()) if isinstance(evaluated, pa.Scalar) else evaluated
    )
    return mask


def _evaluate(node: Predicate, batch: pa.RecordBatch) -> _Datum:
    match node:
        case Constant(value=value):
            return pa.scalar(value, pa.bool_())
        case And(operands=operands):
            return _fold(pc.and_kleene, [_evaluate(operand, batch) for operand in operands], empty=True)
        case Or(operands=operands):
            return _fold(pc.or_kleene, [_evaluate(operand, batch) for operand in operands], empty=False)
        case Not(operand=operand):
            return pc.invert(_evaluate(operand, batch))
        case Compare() | In() | IsNull() | StartsWith():
            return _leaf(node, batch.column(node.column))
        case other:
            assert_never(other)


def _fold(kernel: Callable[[_Datum, _Datum], _Datum], masks: list[_Datum], *, empty: bool) -> _Datum:
    return reduce(kernel, masks) if masks else pa.scalar(empty)


def _leaf(node: Compare | In | IsNull | StartsWith, column: _Datum) -> _Datum:
    match node:
        case IsNull(negated=negated):
            return pc.is_valid(column) if negated else pc.is_null(column)
        case Compare(operator=operator, value=value):
            return _compare(column, operator, value)
        case In():
            return _is_in(column, node)
        case StartsWith(prefix=prefix, negated=negated):
            found = pc.starts_with(column, pattern=str(prefix))
            return pc.invert(found) if negated else found
        case other:
            assert_never(other)


def _compare(column: _Datum, operator: Operator, value: object) -> _Datum:
    if not pa.types.is_floating(column.type) or not isinstance(value, float):
        return _COMPARE[operator](column, to_scalar(value, column.type))
    # In Arrow every comparison with NaN except <> is false; here NaN equals itself and is greater than all other
    # values.
    is_nan = pc.is_nan(column)
    if math.isnan(value):
        rank = pc.cast(is_nan, pa.int8())
        return _COMPARE[operator](rank, pa.scalar(1, pa.int8()))
    mask = _COMPARE[operator](column, to_scalar(value, column.type))
    return pc.or_(mask, is_nan) if operator in {Operator.GT, Operator.GE} else mask


def _is_in(column: _Datum, node: In) -> _Datum:
    values = [value for value in node.values if value is not None]
    if pa.types.is_floating(column.type):
        # Compared, not looked up by hash: the two zeros are equal.
        found = _fold(pc.or_kleene, [_compare(column, Operator.EQ, value) for value in values], empty=False)
    else:
        items = pa.array([to_scalar(value, column.type) for value in values], column.type)
        found = pc.is_in(column, value_set=items)
    unknown = pa.scalar(None, pa.bool_())
    if len(values) < len(node.values):
        found = pc.if_else(found, found, unknown)
    answer = pc.invert(found) if node.negated else found
    return pc.if_else(pc.is_valid(column), answer, unknown)


def to_scalar(value: object, arrow_type: pa.DataType) -> pa.Scalar[Any]:
    """Return an internal value as a scalar of a canonical Arrow type."""
    if pa.types.is_timestamp(arrow_type) and isinstance(value, int):
        value //= _NANOS_PER[arrow_type.unit]
    return pa.scalar(value, arrow_type)
