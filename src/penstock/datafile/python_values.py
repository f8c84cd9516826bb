"""Conversion of Python values to what columns store: exactly, or not at all.

``TAKES`` says which kinds of values a column takes; docs/types.md has the same table. Numbers are taken by value: the
column must have that very number. A floating-point number stands for the decimal number that it prints as, as in
filters, so that 0.1 is a value of FLOAT, of DOUBLE and of DECIMAL(1, 1).
"""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.types import map_parts, to_arrow_type
from penstock.errors import SchemaMismatchError
from penstock.format.types.data_types import (
    BYTES,
    ArrayType,
    AtomicType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    with_nullability,
)
from penstock.format.types.text import format_sql_type
from penstock.predicate.literals import BetweenFloats, Ticks, convert_literal
from penstock.predicate.tree import TimestampLiteral

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField, DataType

# A value is of the first kind that it is an instance of: a bool is an int, and a datetime a date, but neither is meant.
_KINDS: Final = (
    bool, int, float, Decimal, str, bytes, bytearray, memoryview, dt.datetime, dt.date, dt.time, TimestampLiteral,
)  # fmt: skip
_NUMBER: Final = ((int, float, Decimal), "a number")
_TEXT: Final = ((str,), "a text of Unicode characters")
_BYTES: Final = ((bytes, bytearray, memoryview), "bytes")
_MOMENT: Final = (dt.datetime, TimestampLiteral)

TAKES: Final[Mapping[TypeRoot, tuple[tuple[type, ...], str]]] = {
    TypeRoot.BOOLEAN: ((bool,), "True or False"),
    TypeRoot.TINYINT: _NUMBER,
    TypeRoot.SMALLINT: _NUMBER,
    TypeRoot.INT: _NUMBER,
    TypeRoot.BIGINT: _NUMBER,
    TypeRoot.FLOAT: _NUMBER,
    TypeRoot.DOUBLE: _NUMBER,
    TypeRoot.DECIMAL: _NUMBER,
    TypeRoot.CHAR: _TEXT,
    TypeRoot.VARCHAR: _TEXT,
    TypeRoot.BINARY: _BYTES,
    TypeRoot.VARBINARY: _BYTES,
    TypeRoot.DATE: ((dt.date,), "a date, in SQL DATE '2026-01-31'"),
    TypeRoot.TIME: ((dt.time,), "a time of day without a zone, in SQL TIME '10:00:00'"),
    TypeRoot.TIMESTAMP: (_MOMENT, "a datetime without a zone, in SQL TIMESTAMP '2026-01-31 10:00:00'"),
    TypeRoot.TIMESTAMP_LTZ: (_MOMENT, "a datetime with a zone, in SQL TIMESTAMP '2026-01-31 10:00:00Z'"),
}
"""Kinds of Python values that a column of a type takes, and how messages name them."""

# From here on one floating-point number stands for several whole numbers.
MAX_WHOLE_FLOAT: Final = 2**53
# No column has so many digits; arithmetic with all digits of 1e999999 takes minutes.
_MAX_EXPONENT: Final = 400
# Shorter ones are exact in FLOAT.
_LONG_WHOLE: Final = r"^[+-]?\d{8,}$"
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_INT_LIMITS: Final = {
    TypeRoot.TINYINT: 1 << 7, TypeRoot.SMALLINT: 1 << 15, TypeRoot.INT: 1 << 31, TypeRoot.BIGINT: 1 << 63,
}  # fmt: skip
# Values of exactly these types are stored as they are.
_UNCHANGED: Final[Mapping[TypeRoot, type]] = {
    TypeRoot.BOOLEAN: bool,
    TypeRoot.DOUBLE: float,
    TypeRoot.BINARY: bytes,
    TypeRoot.VARBINARY: bytes,
    TypeRoot.DATE: dt.date,
}
# Columns of exactly these types are converted by Arrow, which takes all that pass the test as they are, or fails.
_BY_ARROW: Final[Mapping[TypeRoot, tuple[type, Callable[[Any], bool]]]] = {
    **{root: (kind, lambda _: True) for root, kind in _UNCHANGED.items()},
    **{root: (int, lambda _: True) for root in _INT_LIMITS},
    TypeRoot.CHAR: (str, lambda _: True),
    TypeRoot.VARCHAR: (str, lambda _: True),
    # Arrow ends the process with 1e-999999999.
    TypeRoot.DECIMAL: (Decimal, lambda value: abs(value.adjusted()) <= _MAX_EXPONENT),
    TypeRoot.TIME: (dt.time, lambda value: value.tzinfo is None),
    TypeRoot.TIMESTAMP: (dt.datetime, lambda value: value.tzinfo is None),
    TypeRoot.TIMESTAMP_LTZ: (dt.datetime, lambda value: value.tzinfo is not None),
}
_ARROW_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)


def python_array(values: Sequence[object], field: DataField, table: str) -> ArrowAny:
    """Return Python values as a column, in its canonical Arrow type; None, and NA and NaT of pandas, are NULL."""
    arrow_type = to_arrow_type(field.type)
    # What fails is converted one by one, which finds the row.
    with suppress(*_ARROW_ERRORS):
        quickly = _by_arrow(values, field.type, arrow_type)
        if quickly is not None:
            return quickly
    stored = []
    for row, value in enumerate(values):
        try:
            stored.append(stored_value(value, field.type, field.name))
        except ValueError as error:
            raise SchemaMismatchError(f"table {table}: row {row} (counted from 0): {error}") from error
    return pa.array(stored, arrow_type)


def _by_arrow(values: Sequence[Any], data_type: DataType, arrow_type: ArrowAny) -> ArrowAny | None:
    """Convert by Arrow alone; None where it might change a value. Raises what Arrow raises."""
    found = _BY_ARROW.get(data_type.root) if isinstance(data_type, AtomicType) else None
    if found is None:
        return None
    kind, test = found
    if not set(map(type, values)) <= {kind, type(None)} or not all(
        test(value) for value in values if value is not None
    ):
        return None
    if kind is dt.datetime:
        return pa.array(values, pa.timestamp("us", arrow_type.tz)).cast(arrow_type)
    if kind is dt.time:
        return pa.array(values, pa.time64("us")).cast(arrow_type)
    return pa.array(values, arrow_type)


def stored_value(value: object, data_type: DataType, path: str) -> Any:  # noqa: ANN401 - as Arrow takes it
    """Return the value that a column stores, such that Arrow takes it without a conversion.

    Args:
        path: name of the column, followed by those of nested fields.
    """
    if is_missing(value):
        return None
    match data_type:
        case AtomicType(root=TypeRoot.VARIANT):
            return _record(value, {"value": BYTES, "metadata": BYTES}, path)
        case AtomicType():
            return _atom(value, data_type, path)
        case ArrayType() | VectorType():
            return _elements(value, data_type, path)
        case MapType() | MultisetType():
            return _entries(value, *map_parts(data_type), path)
        case RowType():
            return _record(value, {field.name: field.type for field in data_type.fields}, path)


def parse_floats(texts: ArrowAny, data_type: AtomicType, path: str) -> ArrowAny:
    """Parse texts to the nearest numbers of FLOAT or DOUBLE; whole numbers must be among them.

    Args:
        path: as for ``stored_value``.
    """
    texts = pc.utf8_trim_whitespace(texts)
    numbers: ArrowAny = texts.cast(to_arrow_type(data_type))
    whole: ArrowAny = pc.match_substring_regex(texts, _LONG_WHOLE)
    for text in pc.unique(texts.filter(whole)).to_pylist():
        stored_value(int(text), data_type, path)
    for text in pc.unique(texts.filter(pc.is_inf(numbers))).to_pylist():
        stored_value(Decimal(text), data_type, path)
    return numbers


def is_missing(value: object) -> bool:
    """Whether a value stands for NULL: None, and NA and NaT of pandas."""
    return value is None or (type(value).__name__ in {"NAType", "NaTType"} and "pandas" in type(value).__module__)


def _elements(value: object, data_type: ArrayType | VectorType, path: str) -> list[object]:
    # A text and a dict have elements, but are no lists.
    if not isinstance(value, list | tuple) and not (isinstance(value, np.ndarray) and value.ndim):
        raise _misfit(path, "a list", value)
    if isinstance(data_type, VectorType) and len(value) != data_type.length:
        raise _misfit(path, f"{data_type.length} elements", value)
    inner = f"{path}.element"
    return [stored_value(each, data_type.element, inner) for each in value]


def _entries(value: object, key: DataType, item: DataType, path: str) -> list[tuple[object, object]]:
    pairs: Iterable[Any] = value.items() if isinstance(value, Mapping) else _pairs(value, path)
    keys, items = f"{path}.key", f"{path}.value"
    entries = [(stored_value(one, key, keys), stored_value(other, item, items)) for one, other in pairs]
    if any(one is None for one, _ in entries):
        raise _misfit(path, "keys that are not NULL", value)
    return entries


def _pairs(value: object, path: str) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or any(not isinstance(each, tuple) or len(each) != 2 for each in value):
        raise _misfit(path, "a dict, or a list of pairs", value)
    return value


def _record(value: object, fields: Mapping[str, DataType], path: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise _misfit(path, f"a dict with the keys {', '.join(fields)}", value)
    unknown = [key for key in value if key not in fields]
    if unknown:
        raise ValueError(f"column '{path}' has the fields {', '.join(fields)}, and no {unknown[0]!r}")
    return {name: stored_value(value.get(name), kind, f"{path}.{name}") for name, kind in fields.items()}


def _atom(value: Any, data_type: AtomicType, path: str) -> object:  # noqa: ANN401 - any Python value
    kind, limit = type(value), _INT_LIMITS.get(data_type.root)
    if kind is _UNCHANGED.get(data_type.root) or (kind is int and limit is not None and -limit <= value < limit):
        return value
    return _checked(value, data_type, path)


def _checked(value: object, data_type: AtomicType, path: str) -> object:
    plain = _plain(value)
    if plain is None:
        return None
    kinds, expected = TAKES[data_type.root]
    kind = next((each for each in _KINDS if isinstance(plain, each)), None)
    if kind not in kinds:
        raise _misfit(path, expected, value)
    if kind is float and data_type.root not in _FLOATS and abs(plain) >= MAX_WHOLE_FLOAT:
        raise ValueError(
            f"column '{path}' is {_type_text(data_type)}, and from 2^53 on a floating-point number such as {plain!r} "
            "stands for several whole numbers: give an int or a Decimal"
        )
    if kind in _MOMENT and _has_zone(plain) is not (data_type.root is TypeRoot.TIMESTAMP_LTZ):
        raise _misfit(path, expected, value)
    try:
        stored = convert_literal(plain, data_type)
    except ValueError:
        raise _misfit(path, expected, value) from None
    if isinstance(stored, Ticks):
        return _whole(stored, data_type, path, value)
    if isinstance(stored, BetweenFloats) or (kind is int and stored != plain):
        raise _no_value(path, data_type, value)
    return stored


def _plain(value: object) -> Any:  # noqa: ANN401 - any Python value
    """Unwrap scalars of numpy and Arrow."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    if not isinstance(value, np.generic):
        return value
    plain = value.item()
    # Nanoseconds, which a datetime does not have, come as an int; NaT is None.
    is_nanos = isinstance(value, np.datetime64) and isinstance(plain, int)
    return TimestampLiteral(nanos=plain, has_zone=False) if is_nanos else plain


def _whole(ticks: Ticks, data_type: AtomicType, path: str, value: object) -> object:
    if not ticks.low <= ticks.value <= ticks.high:
        raise _no_value(path, data_type, value, "change the type")
    if ticks.value.denominator != 1:
        raise _no_value(path, data_type, value)
    number = int(ticks.value)
    return ticks.to_internal(number) if data_type.root is TypeRoot.DECIMAL else number


def _has_zone(value: dt.datetime | TimestampLiteral) -> bool:
    return value.has_zone if isinstance(value, TimestampLiteral) else value.tzinfo is not None


def _misfit(path: str, expected: str, value: object) -> ValueError:
    return ValueError(f"column '{path}' takes {expected}, not {_shown(value)}")


def _no_value(
    path: str, data_type: AtomicType, value: object, cure: str = "round it, or change the type"
) -> ValueError:
    return ValueError(f"column '{path}' is {_type_text(data_type)}, which has no value {_shown(value)}: {cure}")


def _type_text(data_type: AtomicType) -> str:
    return format_sql_type(with_nullability(data_type, nullable=True))


def _shown(value: object) -> str:
    if isinstance(value, TimestampLiteral):
        moment = dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=value.nanos // 1000)
        return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}{value.nanos % 1000:03}{'Z' if value.has_zone else ''}'"
    return reprlib.repr(value)
