"""Decide which changes of a column's type are widening: every stored value is read unchanged.

Source:
    Paimon ``api:types/DataTypeCasts.java``, whose implicit casts are more (BIGINT to FLOAT, VARCHAR(10) to
    VARCHAR(5)): those lose digits or characters, so here they count as explicit.
"""

from __future__ import annotations

from typing import Final

from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    with_nullability,
)

# Decimal digits that are enough for every value of the type.
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
    """Whether ``target`` can represent every value of ``source`` unchanged; nullability is ignored."""
    if with_nullability(source, nullable=True) == with_nullability(target, nullable=True):
        return True
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return False
    if source.root in _FINER:
        return target.root is source.root and _at_least(target.precision, source.precision)
    if (source.root, target.root) in _LONGER:
        return _at_least(target.length, source.length)
    return _is_wider_number(source, target)


def keeps_values(source: DataType, target: DataType) -> bool:
    """Like ``is_widening``, for types whose nested types may differ; fields of a ROW are matched by id."""
    match source, target:
        case RowType(), RowType():
            stored = {field.id: field.type for field in source.fields}
            return all(field.id not in stored or keeps_values(stored[field.id], field.type) for field in target.fields)
        case ArrayType(element=old), ArrayType(element=new):
            return keeps_values(old, new)
        case MultisetType(element=old), MultisetType(element=new):
            return keeps_values(old, new)
        case VectorType(), VectorType():
            return source.length == target.length and keeps_values(source.element, target.element)
        case MapType(), MapType():
            return keeps_values(source.key, target.key) and keeps_values(source.value, target.value)
        case _:
            return is_widening(source, target)


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
