"""Conditions that are safe to apply before Spark sees a file: to partitions, buckets and files.

Spark applies every condition again. So one may be left out here, but none may drop a row that Spark would keep: only
columns and literals of one and the same plain type count, about which both agree to the letter. Floating numbers (NaN,
precision), times (the session's zone) and texts that are to be dates stay with Spark alone.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidFilterError, NotFoundError
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import And, Compare, In, IsNull, Not, Or, StartsWith

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.format.types.data_types import DataField
    from penstock.predicate.tree import Predicate

_WHOLE: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)
_LITERALS: Final[Mapping[TypeRoot, type]] = {
    TypeRoot.VARCHAR: str,
    TypeRoot.BOOLEAN: bool,
    TypeRoot.DATE: dt.date,
    TypeRoot.DECIMAL: Decimal,
    **dict.fromkeys(_WHOLE, int),
}


def safe_filter(conditions: Iterable[str], fields: Sequence[DataField]) -> Predicate | None:
    """Return what can be applied early of conditions that all have to hold; None where nothing can."""
    types = {field.name: field.type for field in fields}
    found: list[Predicate] = []
    for text in conditions:
        try:
            predicate = parse_filter(text)
            bind(predicate, fields, "")
        except (InvalidFilterError, NotFoundError):
            continue  # Spark understands more than a filter can say
        if _is_safe(predicate, {name: each.root for name, each in types.items() if isinstance(each, AtomicType)}):
            found.append(predicate)
    return And(operands=tuple(found)) if found else None


def _is_safe(predicate: Predicate, roots: Mapping[str, TypeRoot]) -> bool:
    match predicate:
        case And(operands=operands) | Or(operands=operands):
            return all(_is_safe(operand, roots) for operand in operands)
        case Not(operand=operand):
            return _is_safe(operand, roots)
        case Compare(column=column, value=value):
            return _agrees(roots.get(column), (value,))
        case In(column=column, values=values):
            return _agrees(roots.get(column), values)
        case IsNull(column=column):
            return column in roots
        case _:
            return isinstance(predicate, StartsWith) and roots.get(predicate.column) is TypeRoot.VARCHAR


def _agrees(root: TypeRoot | None, values: Iterable[object]) -> bool:
    if root is None:
        return False
    # Exactly: a datetime is a date, and True an int.
    return all(type(value) is _LITERALS.get(root) for value in values)
