"""Which changes of a column's type are widening: every value stored so far reads back unchanged.

Source:
    Paimon ``api:types/DataTypeCasts.java``, whose implicit casts are more (BIGINT to FLOAT, VARCHAR(10) to
    VARCHAR(5)): those lose digits or characters, so here they count as explicit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.datafile.evolve import can_cast
from penstock.errors import InvalidSchemaError
from penstock.spec.type_text import format_sql_type
from penstock.spec.types import AtomicType, DataType, TypeRoot, with_nullability

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLICIT_CASTING_DISABLED: Final = "disable-explicit-type-casting"

# Decimal digits that hold every value of the type.
_INTEGER_DIGITS: Final = {TypeRoot.TINYINT: 3, TypeRoot.SMALLINT: 5, TypeRoot.INT: 10, TypeRoot.BIGINT: 19}
# FLOAT has 24 bits of mantissa, DOUBLE 53: larger integers lose their last digits.
_EXACT_IN_FLOAT: Final = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT})
_EXACT_IN_DOUBLE: Final = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.FLOAT})
_LONGER: Final = frozenset(
    {
        (TypeRoot.CHAR, TypeRoot.CHAR),
        (TypeRoot.CHAR, TypeRoot.VARCHAR),
        (TypeRoot.VARCHAR, TypeRoot.VARCHAR),
        (TypeRoot.BINARY, TypeRoot.VARBINARY),
        (TypeRoot.VARBINARY, TypeRoot.VARBINARY),
    }
)
# Not TIME: Java Paimon has no cast between its precisions.
_FINER: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


def is_widening(source: DataType, target: DataType) -> bool:
    """Tell whether every value of ``source`` is the same value in ``target``; nullability does not count."""
    if with_nullability(source, nullable=True) == with_nullability(target, nullable=True):
        return True
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return False
    if source.root in _FINER:
        return target.root is source.root and _at_least(target.precision, source.precision)
    if (source.root, target.root) in _LONGER:
        return _at_least(target.length, source.length)
    return _is_wider_number(source, target)


def hashes_alike(source: DataType, target: DataType) -> bool:
    """Tell whether values of both types have the same bytes in a bucket's hash: text and bytes of any length."""
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return False
    return source.root is target.root and source.root in (TypeRoot.VARCHAR, TypeRoot.VARBINARY)


def _is_wider_number(source: AtomicType, target: AtomicType) -> bool:
    match target.root:
        case TypeRoot.FLOAT:
            return source.root in _EXACT_IN_FLOAT
        case TypeRoot.DOUBLE:
            return source.root in _EXACT_IN_DOUBLE
        case TypeRoot.DECIMAL:
            return _fits_decimal(source, target)
        case _:
            return _INTEGER_DIGITS.get(source.root, 99) < _INTEGER_DIGITS.get(target.root, 0)


def _fits_decimal(source: AtomicType, target: AtomicType) -> bool:
    whole = (target.precision or 0) - (target.scale or 0)
    if source.root is TypeRoot.DECIMAL:
        return _at_least(target.scale, source.scale) and whole >= (source.precision or 0) - (source.scale or 0)
    return whole >= _INTEGER_DIGITS.get(source.root, 99)


def _at_least(target: int | None, source: int | None) -> bool:
    return (target or 0) >= (source or 0)


def check_type_change(
    change: tuple[DataType, DataType], *, options: Mapping[str, str], allow_explicit: bool, where: str
) -> None:
    """Check that a column may get another type.

    Widening always may. Other casts may where ``allow_explicit`` or the option ``disable-explicit-type-casting`` =
    'false' asks for them and the option does not forbid them with 'true'.

    Args:
        change: the old type and the new one.
        where: the table and column, for messages.

    Raises:
        InvalidSchemaError: saying which of the two it is, and what to do.
    """
    source, target = change
    if is_widening(source, target):
        return
    what = f"{where} of type {format_sql_type(source)} cannot become {format_sql_type(target)}"
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        raise InvalidSchemaError(f"{what}: change the fields, elements or values inside it one by one, or add a column")
    if not can_cast(source, target):
        raise InvalidSchemaError(f"{what}: there is no such cast; add a column of the new type")
    setting = options.get(EXPLICIT_CASTING_DISABLED, "").strip().lower()
    if setting == "true":
        raise InvalidSchemaError(f"{what}: values could change, and '{EXPLICIT_CASTING_DISABLED}' = 'true' forbids it")
    if not allow_explicit and setting != "false":
        raise InvalidSchemaError(
            f"{what} unasked, since values could change; say allow_explicit=True, or add a column of the new type"
        )
