"""Which changes of a column's type Spark's CAST makes as Penstock does, for every value, and in which mode.

Not those from texts, from seconds, and from floating-point numbers to DECIMAL: Spark accepts other texts, and has NULL
where a value that cannot be converted is an error here. Nor floating-point numbers as text, which depend on the version
of Java.

Source:
    ``tests/spark/connector/test_changed_types.py`` compares all pairs of types, with values at their limits.
"""

from __future__ import annotations

from typing import Final

from penstock.format.types.data_types import (
    INTEGERS,
    MAX_LENGTH,
    AtomicType,
    DataType,
    RowType,
    TypeRoot,
    with_nullability,
)
from penstock.spark.types import has_nanoseconds

_WRAPPING: Final = "LEGACY"
"""Name of the mode of Spark in which whole numbers wrap around, and decimals with too many digits become NULL."""

_ANSI: Final = "ANSI"
"""Name of the mode in which texts of decimals have no exponent."""

_INTEGERS: Final = frozenset(INTEGERS)
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_BYTES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
_INSTANTS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# Decimals of more digits are not exact as doubles before Java divides them by a power of ten, up to the second number.
_MAX_EXACT_DIGITS: Final = 15
_MAX_COMPACT_DIGITS: Final = 18
_TARGETS: Final = {
    **dict.fromkeys(_INTEGERS, _INTEGERS | _FLOATS | {TypeRoot.DECIMAL, TypeRoot.BOOLEAN}),
    **dict.fromkeys(_FLOATS, _INTEGERS | _FLOATS),
    TypeRoot.DECIMAL: _INTEGERS | {TypeRoot.DECIMAL},
    TypeRoot.BOOLEAN: _INTEGERS | _FLOATS | {TypeRoot.DECIMAL},
    TypeRoot.DATE: _INSTANTS,
    **dict.fromkeys(_INSTANTS, frozenset({TypeRoot.DATE})),
}
_TEXTS: Final = _INTEGERS | {TypeRoot.DECIMAL, TypeRoot.BOOLEAN, TypeRoot.DATE}


def can_convert(stored: DataType, wanted: DataType) -> bool:
    """Whether Spark's expressions make values of one type of another as ``datafile.evolve`` does."""
    if with_nullability(stored, nullable=True) == with_nullability(wanted, nullable=True):
        return True
    if isinstance(stored, RowType) and isinstance(wanted, RowType):
        types = {field.id: field.type for field in stored.fields}
        return all(field.id not in types or can_convert(types[field.id], field.type) for field in wanted.fields)
    return isinstance(stored, AtomicType) and isinstance(wanted, AtomicType) and mode_of(stored, wanted) is not None


def mode_of(stored: AtomicType, wanted: AtomicType) -> str | None:
    """Return the mode of a cast that is equal; None if there is none.

    Values of a column of which only the precision or the length becomes greater are the same, with any cast.
    """
    old, new = stored.root, wanted.root
    if new is TypeRoot.VARCHAR:
        return _ANSI if wanted.length == MAX_LENGTH and old in _TEXTS else None
    if new is TypeRoot.VARBINARY:
        keeps = (stored.length or 0) <= (wanted.length or 0) if old in _BYTES else wanted.length == MAX_LENGTH
        is_equal = keeps and old in {*_BYTES, TypeRoot.VARCHAR}
    elif old in _INSTANTS and new in _INSTANTS:
        is_equal = (wanted.precision or 0) >= (stored.precision or 0)
    elif old is TypeRoot.DECIMAL and new is TypeRoot.DOUBLE:
        is_equal = not _MAX_EXACT_DIGITS < (stored.precision or 0) <= _MAX_COMPACT_DIGITS
    else:
        is_equal = new in _TARGETS.get(old, ())
    return _WRAPPING if is_equal and not has_nanoseconds(wanted) else None
