"""Find the conditions that can be pushed down to partitions, buckets and files.

Spark applies every condition again, so a condition may be left out here; but no condition may drop a row that Spark
would keep. So only columns and literals of the same simple type are used, which both engines compare in the same way.
Floating-point numbers (NaN, precision), times (the session's zone) and texts compared with dates are left to Spark.
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
    """Return the part of AND-ed conditions that can be pushed down; None if there is no such part."""
    types = {field.name: field.type for field in fields}
    found: list[Predicate] = []
    for text in conditions:
        try:
            predicate = parse_filter(text)
            bind(predicate, fields, "")
        except (InvalidFilterError, NotFoundError):
            continue  # the condition is not valid filter syntax, but Spark can evaluate it
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
    # Compare exact types: a datetime is also a date, and True is also an int.
    return all(type(value) is _LITERALS.get(root) for value in values)
