"""Bind a filter to a table: check names, type literals, remove NOT, fold constants."""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never

from penstock.errors import InvalidFilterError
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type
from penstock.predicate.literals import FLOAT_ROOTS, BetweenFloats, Ticks, char_texts, convert_literal, nearest_float
from penstock.predicate.tree import (
    FALSE,
    NEGATED,
    TRUE,
    UNKNOWN,
    And,
    ArrowNumber,
    BoundPredicate,
    Compare,
    Constant,
    In,
    IsNull,
    Leaf,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    UnpaddedText,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.types.data_types import DataField

_TEXT_ROOTS = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BELOW = frozenset({Operator.LT, Operator.LE})
_ABOVE = frozenset({Operator.GT, Operator.GE})
_NAN: Final = float("nan")
# Each value of a CHAR(n) is compared as up to n texts of up to n characters.
_MAX_CHARACTERS: Final = 50_000_000


def bind(predicate: Predicate, fields: Sequence[DataField], table: str) -> BoundPredicate:
    """Check a filter against columns and turn its literals into internal values.

    A literal is an exact number. If it is outside of the column's range, or between two of its values, the comparison
    is replaced by one with the same result (``tinyint < 1000`` is true where the column is not null).

    Args:
        fields: the columns that the filter may use.
        table: ``db.table``, for messages.
    """
    root = _Binder(fields, table).bound(predicate, negated=False)
    used = frozenset(columns_of(root))
    return BoundPredicate(root=root, fields=tuple(field for field in fields if field.name in used))


def columns_of(node: Predicate) -> Iterable[str]:
    """Yield the column of every leaf; a column that several leaves use is repeated."""
    match node:
        case And(operands=operands) | Or(operands=operands):
            for operand in operands:
                yield from columns_of(operand)
        case Not(operand=operand):
            yield from columns_of(operand)
        case Compare(column=column) | In(column=column) | IsNull(column=column) | StartsWith(column=column):
            yield column
        case Constant():
            return
        case other:
            assert_never(other)


def conjunction(operands: Iterable[Predicate]) -> Predicate:
    """Return the AND without operands that are always true; nested ANDs become one."""
    kept: list[Predicate] = []
    for operand in operands:
        if operand == FALSE:
            return FALSE
        if isinstance(operand, And):
            kept.extend(operand.operands)
        elif operand != TRUE:
            kept.append(operand)
    return kept[0] if len(kept) == 1 else And(operands=tuple(kept)) if kept else TRUE


def disjunction(operands: Iterable[Predicate]) -> Predicate:
    """Return the OR without operands that are always false; nested ORs become one."""
    kept: list[Predicate] = []
    for operand in operands:
        if operand == TRUE:
            return TRUE
        if isinstance(operand, Or):
            kept.extend(operand.operands)
        elif operand != FALSE:
            kept.append(operand)
    return kept[0] if len(kept) == 1 else Or(operands=tuple(kept)) if kept else FALSE


class _Binder:
    """Binds filters to the columns of one table."""

    def __init__(self, fields: Sequence[DataField], table: str) -> None:
        self._fields = {field.name: field for field in fields}
        self._table = table

    def bound(self, node: Predicate, *, negated: bool) -> Predicate:
        """Return the bound node, negated on request, without ``Not`` nodes."""
        match node:
            case Constant(value=value):
                return node if value is None else Constant(value=value != negated)
            case Not(operand=operand):
                return self.bound(operand, negated=not negated)
            case And(operands=operands):
                parts = [self.bound(operand, negated=negated) for operand in operands]
                return disjunction(parts) if negated else conjunction(parts)
            case Or(operands=operands):
                parts = [self.bound(operand, negated=negated) for operand in operands]
                return conjunction(parts) if negated else disjunction(parts)
            case Compare() | In() | IsNull() | StartsWith():
                return self._leaf(node, negated=negated)
            case other:
                assert_never(other)

    def _leaf(self, node: Leaf, *, negated: bool) -> Predicate:
        match node:
            case IsNull():
                # Kept for a NOT NULL column too: files written before the column became NOT NULL may hold nulls.
                return IsNull(column=self._field(node.column).name, negated=node.negated != negated)
            case Compare(value=ArrowNumber()) if _is_floating(self._field(node.column)):
                return self._compare_as_arrow(node, negated=negated)
            case Compare():
                return self._compare(node, NEGATED[node.operator] if negated else node.operator)
            case In():
                return self._in(node, negated=node.negated != negated)
            case StartsWith():
                return self._starts_with(node, negated=node.negated != negated)
            case other:
                assert_never(other)

    def _compare(self, node: Compare, operator: Operator) -> Predicate:
        field = self._field(node.column)
        if node.value is None:
            return UNKNOWN
        literal = self._literal(node.value, field)
        if isinstance(literal, Ticks):
            return _compare_ticks(node.column, operator, literal)
        if isinstance(literal, BetweenFloats):
            return _compare_between(node.column, operator, literal.below)
        if _is_char(field):
            return self._compare_char(operator, str(literal), field)
        return Compare(column=node.column, operator=operator, value=literal)

    def _compare_char(self, operator: Operator, text: str, field: DataField) -> Predicate:
        """Compare as if both were padded with blanks: texts that differ in nothing else are between two others."""
        texts = self._char_texts((text,), field)
        equal = In(column=field.name, values=texts, negated=operator in {Operator.NE, Operator.LT})
        if operator in {Operator.EQ, Operator.NE}:
            return equal
        if min(text.rstrip(" "), default=" ") < " ":
            raise self._error(field, "characters before the blank have no order here: compare with = or IN")
        is_below = operator in _BELOW
        compared = Compare(column=field.name, operator=Operator.LE if is_below else Operator.GT, value=texts[-1])
        if operator in {Operator.LE, Operator.GT}:
            return compared
        return conjunction([compared, equal]) if is_below else disjunction([compared, equal])

    def _char_texts(self, texts: Iterable[str], field: DataField) -> tuple[str, ...]:
        found = [each for text in texts for each in char_texts(text, field.type)]
        if sum(map(len, found)) > _MAX_CHARACTERS:
            raise self._error(field, "so many values of so long a CHAR cannot be compared: make the column a STRING")
        return tuple(found)

    def _compare_as_arrow(self, node: Compare, *, negated: bool) -> Predicate:
        operator = node.operator
        literal = self._literal(node.value, self._field(node.column))
        if isinstance(literal, float) and math.isnan(literal):
            return _certain(node.column, holds=(operator is Operator.NE) != negated)
        compared = self._compare(node, NEGATED[operator] if negated else operator)
        if operator not in _ABOVE:
            return compared
        # In the order of this module NaN is greater than all numbers.
        if negated:
            return disjunction([compared, Compare(column=node.column, operator=Operator.EQ, value=_NAN)])
        return conjunction([compared, Compare(column=node.column, operator=Operator.NE, value=_NAN)])

    def _in(self, node: In, *, negated: bool) -> Predicate:
        field = self._field(node.column)
        values: list[object] = []
        for value in node.values:
            if isinstance(value, ArrowNumber) and _is_floating(field):
                values.append(self._float_of_set(value, field))
                continue
            literal = None if value is None else self._literal(value, field)
            if isinstance(literal, BetweenFloats):
                continue  # the column cannot hold this value
            if isinstance(literal, Ticks):
                if literal.value.denominator != 1 or not literal.low <= literal.value <= literal.high:
                    continue  # likewise
                literal = literal.to_internal(literal.value.numerator)
            values.append(literal)
        if not node.values:
            return TRUE if negated else FALSE  # IN () is false for null as well: there are no values to compare with
        if not values:
            return _certain(node.column, holds=negated)
        if _is_char(field):
            texts = self._char_texts((value for value in values if isinstance(value, str)), field)
            values = [*texts, *(value for value in values if value is None)]
        return In(column=node.column, values=tuple(dict.fromkeys(values)), negated=negated)

    def _float_of_set(self, value: ArrowNumber, field: DataField) -> float:
        number = nearest_float(value, field.type)
        if number == 0:
            raise self._error(
                field,
                "isin of Arrow takes 0.0 and -0.0 for two values: compare with 0 by ==, with the others by isin",
            )
        return number

    def _starts_with(self, node: StartsWith, *, negated: bool) -> Predicate:
        field = self._field(node.column)
        if not (isinstance(field.type, AtomicType) and field.type.root in _TEXT_ROOTS):
            raise self._error(field, "LIKE needs a text column; compare with =, <, > or IN instead")
        if node.prefix is None:
            return UNKNOWN
        prefix = self._literal(node.prefix, field)
        if prefix == "":
            return _certain(node.column, holds=not negated)
        starts = StartsWith(column=node.column, prefix=prefix, negated=negated)
        size = len(str(prefix))
        shorter = tuple(text for text in char_texts(str(prefix), field.type) if len(text) < size)
        if not shorter or size > (field.type.length or 1):
            return starts
        equal = In(column=node.column, values=shorter, negated=negated)
        return conjunction([starts, equal]) if negated else disjunction([starts, equal])

    def _literal(self, value: object, field: DataField) -> object:
        size = field.type.length if isinstance(field.type, AtomicType) else None
        if isinstance(value, UnpaddedText) and _is_char(field) and len(value) != size:
            raise self._error(
                field,
                "Spark does not pad the texts of BETWEEN, of LIKE without %, and of IN with NULL: write >= AND <=, =, "
                "or IN without NULL, which compare padded texts",
            )
        try:
            return convert_literal(value, field.type)
        except ValueError as error:
            raise self._error(field, str(error)) from None

    def _field(self, name: str) -> DataField:
        field = self._fields.get(name)
        if field is not None:
            return field
        folded = {known.lower(): known for known in self._fields}
        near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
        known = f"did you mean '{folded[near[0]]}'?" if near else "its columns are " + ", ".join(self._fields)
        raise InvalidFilterError(f"table {self._table}: filter on unknown column '{name}'; {known}")

    def _error(self, field: DataField, cause: str) -> InvalidFilterError:
        kind = format_sql_type(replace(field.type, nullable=True))
        return InvalidFilterError(f"table {self._table}, filter on column '{field.name}' ({kind}): {cause}")


def _is_floating(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in FLOAT_ROOTS


def _is_char(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root is TypeRoot.CHAR


def _certain(column: str, *, holds: bool) -> Predicate:
    """Return a filter that is ``holds`` where the column is not null, and unknown where it is null."""
    if holds:
        return Or(operands=(IsNull(column=column, negated=True), UNKNOWN))
    return And(operands=(IsNull(column=column), UNKNOWN))


def _compare_ticks(column: str, operator: Operator, literal: Ticks) -> Predicate:
    value = literal.value
    if value > literal.high:
        return _certain(column, holds=operator in _BELOW or operator is Operator.NE)
    if value < literal.low:
        return _certain(column, holds=operator in _ABOVE or operator is Operator.NE)
    floor = value.numerator // value.denominator
    internal = literal.to_internal(floor)
    if floor != value:
        return _compare_between(column, operator, internal)
    return Compare(column=column, operator=operator, value=internal)


def _compare_between(column: str, operator: Operator, below: object) -> Predicate:
    """Compare with a value between two values of a column: less than it means at most ``below``."""
    if operator not in _BELOW | _ABOVE:
        return _certain(column, holds=operator is Operator.NE)
    return Compare(column=column, operator=Operator.LE if operator in _BELOW else Operator.GT, value=below)
