"""Translate filters that Spark pushes down to Penstock's predicates.

Source:
    ``org.apache.spark.sql.connector.expressions.filter.Predicate``: names of predicates, and literals as Spark's own
    internal values (days, microseconds, ``UTF8String``, ``Decimal``).
"""

from __future__ import annotations

import datetime as dt
import json
from base64 import b64decode
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.datafile.types import is_char
from penstock.errors import InvalidFilterError, UnsupportedFeatureError
from penstock.format.types.data_types import INTEGERS, AtomicType, DataType, TypeRoot
from penstock.predicate.bind import bind, columns_of
from penstock.predicate.tree import (
    FALSE,
    MIRRORED,
    TRUE,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    TimestampLiteral,
)
from penstock.spark.read.filters import COMPARED_ALIKE
from penstock.spark.types import has_nanoseconds
from penstock.table.read.top import Top

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.ref import TableRef

_Node: TypeAlias = dict[str, Any]
"""An expression, as ``Driver.predicates`` writes it."""
_COMPARISONS: Final = {sign.value: sign for sign in Operator}
_DAY_NANOS: Final = 86_400 * 10**9
_MILLI_NANOS: Final = 10**6
_MICRO_NANOS: Final = 10**3
_MIDNIGHT: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# None of these types has the same order in Spark and Penstock.
_UNLIKE: Final = frozenset({TypeRoot.VARIANT, TypeRoot.BLOB})
_EXACT_FOR_ROWS: Final = frozenset({*COMPARED_ALIKE, TypeRoot.DECIMAL, TypeRoot.FLOAT, TypeRoot.DOUBLE})
# Spark's names of types whose literals have native Python values.
_PLAIN: Final[dict[str, Callable[[str], object]]] = {
    "bigint": int,
    "boolean": lambda text: text.lower() == "true",
    "double": float,
    "float": float,
    "int": int,
    "smallint": int,
    "string": str,
    "tinyint": int,
}
# Spark's readers compare floating-point numbers with the ranges in footers, which omit NaN; they do not read TIME.
_UNSAFE_IN_FILES: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.TIME})
# Values that Spark sorts as their statistics compare; not CHAR, with blanks at the end, and not NaN.
_SORTED: Final = frozenset(
    {*INTEGERS, TypeRoot.DECIMAL, TypeRoot.DATE, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ, TypeRoot.VARCHAR}
)
_MAX_VALUES: Final = 1_000
# 1900-01-01: from then on, the Julian calendar of Java's older classes and local mean times do not change values.
_FIRST_PLAIN_NANOS: Final = -2_208_988_800 * 10**9


class _UnknownError(Exception):
    """There is no equivalent predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """One filter that Spark pushed down.

    Attributes:
        place: position of Spark's filter in the given list.
        predicate: the equivalent predicate.
        is_of_partitions: it compares partition columns only, so it holds for all rows of a partition or for none.
        is_exact: every row of a partition that is not pruned matches, so Spark need not filter again.
        is_exact_for_rows: Penstock's result for a row can replace Spark's.
        is_for_files: Spark's readers may use it to skip row groups.
    """

    place: int
    predicate: Predicate
    is_of_partitions: bool
    is_exact: bool
    is_exact_for_rows: bool
    is_for_files: bool


def take_filters(
    bridge: Bridge, ref: TableRef, predicates: JavaObject, *, pads: bool | None = None
) -> list[Pushed | None]:
    """Translate Spark's filters; None for each that has no equivalent predicate.

    Args:
        predicates: a ``Predicate[]``.
        pads: see ``translate_nodes``.
    """
    return translate_nodes(ref, json.loads(bridge.driver.predicates(predicates)), pads=pads)


def translate_nodes(ref: TableRef, nodes: Sequence[_Node], *, pads: bool | None) -> list[Pushed | None]:
    """Translate Spark's filters as ``Driver.predicates`` returns them; None for those without an equivalent.

    Args:
        pads: whether the values of CHAR that Spark compares are padded; None where the filters name partitions.
    """
    return [_take(ref, place, node, pads=pads) for place, node in enumerate(nodes)]


def _take(ref: TableRef, place: int, node: _Node, *, pads: bool | None) -> Pushed | None:
    roots = {field.name: field.type.root if isinstance(field.type, AtomicType) else None for field in ref.schema.fields}
    literals: list[object] = []
    nanosecond_columns = frozenset(field.name for field in ref.schema.fields if has_nanoseconds(field.type))
    time_columns = frozenset(name for name, root in roots.items() if root is TypeRoot.TIME)
    chars = {
        field.name: field.type.length or 1
        for field in ref.schema.fields
        if isinstance(field.type, AtomicType) and is_char(field.type)
    }
    try:
        predicate = _translate(node, literals)
        if pads is not None:
            predicate = _on_leaves(predicate, partial(_check_padding, chars=chars, pads=pads))
        columns = set(columns_of(predicate))
        if not nanosecond_columns.isdisjoint(columns):
            predicate = _on_leaves(predicate, partial(_widen_to_micros, nanosecond_columns=nanosecond_columns))
        predicate = _on_leaves(predicate, partial(_with_times, time_columns=time_columns))
        if any(roots.get(name) in _UNLIKE for name in columns):
            return None
        bind(predicate, ref.schema.fields, ref.name)
    except (_UnknownError, InvalidFilterError):
        return None
    is_of_partitions = bool(columns) and columns <= {field.name for field in ref.schema.partition_fields}
    return Pushed(
        place=place,
        predicate=predicate,
        is_of_partitions=is_of_partitions,
        is_exact=is_of_partitions and all(roots[name] in COMPARED_ALIKE for name in columns),
        is_exact_for_rows=all(_compares_alike(field.type) for field in ref.schema.fields if field.name in columns),
        is_for_files=bool(columns)
        and not any(roots[name] is None or roots[name] in _UNSAFE_IN_FILES for name in columns)
        and columns.isdisjoint(chars)
        and all(map(_is_plain, literals)),
    )


def _compares_alike(kind: DataType) -> bool:
    """Whether Penstock compares a value as Spark does: not for padded strings, nor for digits that Spark truncates."""
    if not isinstance(kind, AtomicType):
        return False
    return kind.root in _EXACT_FOR_ROWS or (kind.root in _TIMESTAMPS and not has_nanoseconds(kind))


def _on_leaves(node: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """Return a condition with each comparison replaced by the result of ``change``."""
    match node:
        case And(operands=operands):
            return And(operands=tuple(_on_leaves(each, change) for each in operands))
        case Or(operands=operands):
            return Or(operands=tuple(_on_leaves(each, change) for each in operands))
        case Not(operand=operand):
            return Not(operand=_on_leaves(operand, change))
        case _:
            return change(node)


def _check_padding(leaf: Predicate, chars: Mapping[str, int], *, pads: bool) -> Predicate:
    """Return a comparison; raise if Spark compares CHAR with a text that it has not padded, as in BETWEEN and LIKE.

    Args:
        chars: the n of the columns that are CHAR(n).
    """
    texts: Sequence[object] = ()
    match leaf:
        case Compare(column=column, value=value) if column in chars:
            texts = (value,)
        case In(column=column, values=values) if column in chars:
            texts = values
        case StartsWith(column=column) if column in chars:
            pass
        case _:
            return leaf
    if not pads or any(isinstance(text, str) and len(text) != chars[column] for text in texts):
        raise _UnknownError
    return leaf


def _widen_to_micros(leaf: Predicate, nanosecond_columns: frozenset[str]) -> Predicate:
    """Rewrite a comparison for Spark's truncation to microseconds: true for a value where Spark finds ``leaf`` true.

    Args:
        nanosecond_columns: columns with more digits.
    """
    match leaf:
        case In(column=column, values=values) if column in nanosecond_columns:
            return Or(operands=tuple(_same_micro(column, each) for each in values))
        case Compare(column=column, value=TimestampLiteral() as value) if column in nanosecond_columns:
            return _compare_micros(leaf.operator, column, value)
        case _:
            return leaf


def _with_times(leaf: Predicate, time_columns: frozenset[str]) -> Predicate:
    """Return a comparison of TIME with times instead of milliseconds of the day, as which Spark reads them."""
    match leaf:
        case In(column=column, values=values) if column in time_columns:
            return replace(leaf, values=tuple(map(_to_time, values)))
        case Compare(column=column, value=value) if column in time_columns:
            return replace(leaf, value=_to_time(value))
        case _:
            return leaf


def _to_time(millis: object) -> dt.time:
    if not isinstance(millis, int) or not 0 <= millis < _DAY_NANOS // _MILLI_NANOS:
        raise _UnknownError
    return (_MIDNIGHT + dt.timedelta(milliseconds=millis)).time()


def _compare_micros(operator: Operator, column: str, value: TimestampLiteral) -> Predicate:
    match operator:
        case Operator.EQ:
            return _same_micro(column, value)
        case Operator.NE:
            return Not(operand=_same_micro(column, value))
        case Operator.LE:
            return Compare(column=column, operator=Operator.LT, value=_next_micro(value))
        case Operator.GT:
            return Compare(column=column, operator=Operator.GE, value=_next_micro(value))
        case _:
            return Compare(column=column, operator=operator, value=value)


def _same_micro(column: str, value: object) -> Predicate:
    if not isinstance(value, TimestampLiteral):
        return Compare(column=column, operator=Operator.EQ, value=value)
    least = Compare(column=column, operator=Operator.GE, value=value)
    return And(operands=(least, Compare(column=column, operator=Operator.LT, value=_next_micro(value))))


def _next_micro(value: TimestampLiteral) -> TimestampLiteral:
    return replace(value, nanos=value.nanos + _MICRO_NANOS)


def conjunction_of(pushed: Sequence[Pushed]) -> Predicate | None:
    """Return the conjunction of all filters; None if there are none."""
    return And(operands=tuple(each.predicate for each in pushed)) if pushed else None


def _is_plain(literal: object) -> bool:
    """Whether a literal reaches a reader unchanged; old dates are converted through the Julian calendar."""
    if literal is None:
        return False  # the ORC reader fails on it
    if isinstance(literal, TimestampLiteral):
        # Readers truncate a literal to the milliseconds of a column, for every comparison operator.
        return literal.nanos >= _FIRST_PLAIN_NANOS and literal.nanos % _MILLI_NANOS == 0
    return True


def _translate(node: _Node, literals: list[object]) -> Predicate:
    name, children = node.get("name"), node.get("children", [])
    match name:
        case "AND" | "OR":
            operands = tuple(_translate(child, literals) for child in children)
            return And(operands=operands) if name == "AND" else Or(operands=operands)
        case "NOT":
            return Not(operand=_translate(children[0], literals))
        case "ALWAYS_TRUE" | "ALWAYS_FALSE":
            return TRUE if name == "ALWAYS_TRUE" else FALSE
        case str():
            return _leaf(name, children, literals)
        case None if node.get("type") == "boolean" and node.get("value") is not None:
            # Spark's predicates that are always true, or false, are literals.
            return TRUE if node["value"] == "true" else FALSE
        case _:
            raise _UnknownError


def _leaf(name: str, children: list[_Node], literals: list[object]) -> Predicate:
    match name:
        case "IS_NULL" | "IS_NOT_NULL":
            return IsNull(column=_column(children[0]), negated=name == "IS_NOT_NULL")
        case "IN" if 1 < len(children) <= _MAX_VALUES + 1:
            return In(column=_column(children[0]), values=tuple(_literal(each, literals) for each in children[1:]))
        case "STARTS_WITH":
            return StartsWith(column=_column(children[0]), prefix=_literal(children[1], literals))
        case _:
            return _compare(name, children, literals)


def _compare(name: str, children: list[_Node], literals: list[object]) -> Predicate:
    if len(children) != 2 or name not in {*_COMPARISONS, "<=>"}:
        raise _UnknownError
    left, right = children
    is_mirrored = "type" in left
    if is_mirrored:
        left, right = right, left
    column, value = _column(left), _literal(right, literals)
    if name != "<=>":
        operator = _COMPARISONS[name]
        return Compare(column=column, operator=MIRRORED[operator] if is_mirrored else operator, value=value)
    if value is None:
        return IsNull(column=column)
    # Never unknown, unlike `=`, which matters below a NOT.
    return And(
        operands=(IsNull(column=column, negated=True), Compare(column=column, operator=Operator.EQ, value=value))
    )


def _column(node: _Node) -> str:
    names = node.get("column", [])
    if len(names) != 1:
        raise _UnknownError  # not a column, or a field of a ROW
    return str(names[0])


def _literal(node: _Node, literals: list[object]) -> object:
    if "type" not in node:
        raise _UnknownError
    text, kind = node["value"], node["type"]
    if text is None and kind == "binary":
        raise _UnknownError  # Spark logs accepted filters, and fails on this literal
    value = text if text is None else b64decode(text) if kind == "binary" else _known_literal(text, kind)
    literals.append(value)
    return value


def to_literal(value: JavaObject, kind: str) -> object:
    """Convert one of Spark's internal values to a literal of a filter.

    Args:
        kind: the type, as Spark names it, such as ``timestamp_ntz``.
    """
    if value is None:
        return None
    try:
        return bytes(value) if kind == "binary" else _known_literal(str(value), kind)
    except _UnknownError:
        raise UnsupportedFeatureError(f"a value of Spark's type {kind} in a condition") from None


def _known_literal(value: str, kind: str) -> object:
    match kind:
        case _ if kind in _PLAIN:
            return _PLAIN[kind](value)
        case "date":
            return TimestampLiteral(nanos=int(value) * _DAY_NANOS, has_zone=False)
        case "timestamp" | "timestamp_ntz":
            return TimestampLiteral(nanos=int(value) * 1000, has_zone=kind == "timestamp")
        case _ if kind.startswith("decimal"):
            return Decimal(value)
        case _:
            raise _UnknownError


def take_top(bridge: Bridge, ref: TableRef, orders: JavaObject, limit: int) -> Top | None:
    """Return the first rows of an order by which files can be skipped; None if statistics compare otherwise.

    Args:
        orders: a ``SortOrder[]``.
    """
    name, descends, nulls_first = json.loads(bridge.driver.firstOrder(orders))
    fields = {field.name: field for field in ref.schema.fields}
    data_type = fields[name].type if name in fields else None
    if not isinstance(data_type, AtomicType) or data_type.root not in _SORTED or has_nanoseconds(data_type):
        return None
    return Top(column=name, descends=descends, nulls_first=nulls_first, rows=limit)
