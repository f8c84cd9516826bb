"""Convert Python literals of a filter to internal values of a column's type.

Numbers, dates and times become ``Ticks``, an exact fraction of the column's smallest step, so that ``x > 2.5`` on
an INT column, or a literal finer or larger than the column can hold, is compared exactly. Numbers for FLOAT and DOUBLE
columns are exact too: a number that prints like a value of the column equals that value, so ``f = 0.1`` matches the
FLOAT 0.1; any other number lies between two values.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from penstock.format.text.java_floats import format_double, format_float
from penstock.format.types.data_types import INTEGER_BITS, AtomicType, TypeRoot
from penstock.predicate.tree import ArrowNumber, SignedZero, TimestampLiteral

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.format.types.data_types import DataType

FLOAT_ROOTS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
"""Types of floating-point columns."""

_TEXT_ROOTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BINARY_ROOTS: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
# No column has so many digits; arithmetic with all digits of 1e999999 takes minutes.
_MAX_EXPONENT: Final = 400
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_DAY_NANOS: Final = 86_400 * 10**9
_TIMESTAMP: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:[ T](?P<minute>\d\d:\d\d)(?P<second>:\d\d(?:\.(?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d\d(?::?\d\d)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A literal as a multiple of the smallest step of its column.

    Attributes:
        value: may be a fraction, and outside of ``low`` to ``high``.
        low: minimum value that the column can hold.
        high: maximum value that the column can hold.
        to_internal: converts whole ticks to the internal value.
    """

    value: Fraction
    low: int
    high: int
    to_internal: Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenFloats:
    """A number that a FLOAT or DOUBLE column cannot represent.

    Attributes:
        below: the greatest value of the column that is less than the number; may be infinite.
    """

    below: float


def convert_literal(value: object, data_type: DataType) -> object | Ticks | BetweenFloats:
    """Return the internal value for a text, binary, boolean or floating column, ``Ticks`` for the others.

    For floating-point columns it may be ``BetweenFloats`` instead.
    """
    if not isinstance(data_type, AtomicType):
        raise _expected("IS NULL or IS NOT NULL only, values of nested columns do not compare", value)
    root = data_type.root
    is_of_arrow = isinstance(value, ArrowNumber)
    value = value.value if isinstance(value, ArrowNumber) else _plain(value)
    if root in _TEXT_ROOTS:
        return _unicode(_exactly(str, "a text in quotes", value))
    if root is TypeRoot.BOOLEAN:
        return _exactly(bool, "TRUE or FALSE", value)
    if root in _BINARY_ROOTS:
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        return _exactly(bytes, "bytes, X'00ff'", value)
    if root in FLOAT_ROOTS:
        return (_to_exact_float if is_of_arrow else _to_float)(value, single=root is TypeRoot.FLOAT)
    if root in _TICKS:
        return _TICKS[root](value, data_type)
    raise _expected("IS NULL or IS NOT NULL only, values of this type do not compare", value)


def parse_timestamp_text(text: str) -> TimestampLiteral:
    """Parse ``2024-01-31``, ``2024-01-31 10:00[:00[.123456789]]``, with ``T`` for the space and an optional zone."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    day = dt.date.fromisoformat(match["day"])
    seconds = 0
    if match["minute"] is not None:
        time = dt.time.fromisoformat(match["minute"] + (match["second"] or ":00")[:3])
        seconds = (time.hour * 60 + time.minute) * 60 + time.second
    nanos = int((match["fraction"] or "0").ljust(9, "0"))
    zone = match["zone"]
    total = (_days(day) * 86_400 + seconds - _zone_seconds(zone)) * 10**9 + nanos
    return TimestampLiteral(nanos=total, has_zone=zone is not None)


def parse_time_text(text: str) -> dt.time:
    """Parse ``10:00[:00[.123]]``."""
    time = dt.time.fromisoformat(text.strip())
    if time.tzinfo is not None:
        raise ValueError(text)
    return time


TYPED_LITERALS: Final[Mapping[str, Callable[[str], object]]] = {
    "DATE": lambda text: dt.date.fromisoformat(text.strip()),
    "TIME": parse_time_text,
    "TIMESTAMP": parse_timestamp_text,
    "X": bytes.fromhex,
}
"""What parses the text of each typed literal, such as ``DATE '2026-01-31'``; it raises ``ValueError``."""


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone in {"Z", "UTC"}:
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = (int(digits[:2]) * 60 + int(digits[2:])) * 60
    return -seconds if zone[0] == "-" else seconds


def char_texts(text: str, data_type: DataType) -> tuple[str, ...]:
    """Return the stored texts that are the same value, the longest last: for CHAR(n), with any number of blanks."""
    if not isinstance(data_type, AtomicType) or data_type.root is not TypeRoot.CHAR:
        return (text,)
    shortest, longest = text.rstrip(" "), max(data_type.length or 1, len(text))
    return tuple(shortest.ljust(size) for size in range(len(shortest), longest + 1))


def _plain(value: object) -> object:
    """Unwrap scalars of array libraries, which all have the method ``item``."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def _exactly(kind: type, expected: str, value: object) -> object:
    if not isinstance(value, kind):
        raise _expected(expected, value)
    return value


def _unicode(text: Any) -> str:  # noqa: ANN401 - a str
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _expected("a text of Unicode characters", text) from None
    return str(text)


def _expected(expected: str, value: object) -> ValueError:
    return ValueError(f"expected {expected}, found {value!r}")


def _to_float(value: object, *, single: bool) -> float | BetweenFloats:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _expected("a number", value)
    if isinstance(value, SignedZero):
        return value
    # Not math.isfinite for both: it converts Decimal 1e400 to a float, which is infinite.
    if not (value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)):
        return float(value)
    nearest = _nearest(value, single=single)
    # Decimal instead of Fraction, which would expand all digits of 1e-999999.
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if value == nearest or number in _texts_of(nearest, single=single):
        return nearest
    return BetweenFloats(below=nearest if nearest < value else _next_below(nearest, single=single))


def nearest_float(number: ArrowNumber, data_type: DataType) -> float:
    """Return the value of a floating-point column that a number is rounded to."""
    is_single = isinstance(data_type, AtomicType) and data_type.root is TypeRoot.FLOAT
    return _nearest(number.value, single=is_single)


def _to_exact_float(value: Any, *, single: bool) -> float | BetweenFloats:  # noqa: ANN401 - a number
    value = float(value) if isinstance(value, Decimal) else value
    nearest = _nearest(value, single=single)
    if value == nearest or math.isnan(nearest):
        return nearest
    return BetweenFloats(below=nearest if nearest < value else _next_below(nearest, single=single))


def _nearest(value: float | Decimal, *, single: bool) -> float:
    try:
        number = float(value)
        return float(struct.unpack("<f", struct.pack("<f", number))[0]) if single else number
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _texts_of(number: float, *, single: bool) -> set[Decimal]:
    """Return what a number prints as: exactly, as briefly as possible, and on the JVMs that Paimon runs on."""
    of_java = (format_float if single else format_double)(number)
    return {Decimal(text) for text in (repr(number), _shortest(number, single=single), of_java)}


def _shortest(number: float, *, single: bool) -> str:
    """Return the shortest decimal text that parses to the number."""
    if not single:
        return repr(number)
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next((text for text in texts if _nearest(float(text), single=True) == number), repr(number))


def _next_below(number: float, *, single: bool) -> float:
    if not single:
        return math.nextafter(number, -math.inf)
    bits = int(struct.unpack("<i", struct.pack("<f", number))[0])
    # The bits of positive numbers grow with the number, those of negative ones with its magnitude; below zero is the
    # smallest negative number.
    below = bits - 1 if number > 0 else bits + 1 if number < 0 else -(2**31) + 1
    return float(struct.unpack("<f", struct.pack("<i", below))[0])


def _number_ticks(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _expected("a number", value)
    if not (value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)):
        raise _expected("a finite number", value)
    if isinstance(value, Decimal) and value and abs(value.adjusted()) > _MAX_EXPONENT:
        # Larger than all values of columns, or between zero and their smallest step, as before.
        value = Decimal((value.is_signed(), (1,), _MAX_EXPONENT if value.adjusted() > 0 else -_MAX_EXPONENT))
    # A float is taken as the decimal that it prints as: col("price") == 9.99 means 9.99.
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _int_ticks(value: object, data_type: AtomicType) -> Ticks:
    limit = 1 << (INTEGER_BITS[data_type.root] - 1)
    return Ticks(value=_number_ticks(value), low=-limit, high=limit - 1, to_internal=int)


def _decimal_ticks(value: object, data_type: AtomicType) -> Ticks:
    scale = data_type.scale or 0
    limit = 10 ** (data_type.precision or 10) - 1

    def to_decimal(ticks: int) -> Decimal:
        # Built from digits: arithmetic would round to the 28 digits of the context.
        return Decimal((int(ticks < 0), tuple(map(int, str(abs(ticks)))), -scale))

    return Ticks(value=_number_ticks(value) * 10**scale, low=-limit, high=limit, to_internal=to_decimal)


def _date_ticks(value: object, _: AtomicType) -> Ticks:
    nanos, has_zone = _to_nanos(value, "DATE '2024-01-31' or a datetime.date")
    if has_zone:
        raise _expected("a date without a time zone", value)
    return Ticks(value=Fraction(nanos, _DAY_NANOS), low=-(1 << 31), high=(1 << 31) - 1, to_internal=int)


def _timestamp_ticks(value: object, data_type: AtomicType) -> Ticks:
    nanos, has_zone = _to_nanos(value, "TIMESTAMP '2024-01-31 10:00:00' or a datetime.datetime")
    if has_zone and data_type.root is TypeRoot.TIMESTAMP:
        raise _expected("a timestamp without a time zone, which this column's values do not have", value)
    if not has_zone and data_type.root is TypeRoot.TIMESTAMP_LTZ:
        # Not UTC: the same text is a time of the session's zone in Spark, so the rows would differ.
        raise _expected("a time with a zone, TIMESTAMP '2024-01-31 10:00:00+00:00' or a datetime with tzinfo", value)
    precision = 6 if data_type.precision is None else data_type.precision
    step = 10**6 if precision <= 3 else 10**3 if precision <= 6 else 1
    limit = 1 << 63
    return Ticks(value=Fraction(nanos, step), low=-limit, high=limit - 1, to_internal=lambda ticks: ticks * step)


def _time_ticks(value: object, _: AtomicType) -> Ticks:
    expected = "TIME '10:00:00' or a dt.time"
    if isinstance(value, str):
        try:
            value = parse_time_text(value)
        except ValueError:
            raise _expected(expected, value) from None
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        raise _expected(expected, value)
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    return Ticks(value=Fraction(micros, 1000), low=0, high=86_400_000 - 1, to_internal=int)


def _to_nanos(value: object, expected: str) -> tuple[int, bool]:
    """Return nanoseconds since 1970-01-01, and whether the value has a zone (then in UTC)."""
    if isinstance(value, str):
        try:
            value = parse_timestamp_text(value)
        except ValueError:
            raise _expected(expected, value) from None
    if isinstance(value, TimestampLiteral):
        return value.nanos, value.has_zone
    if isinstance(value, dt.datetime):
        has_zone = value.tzinfo is not None
        since = (value if has_zone else value.replace(tzinfo=dt.UTC)) - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        # pandas.Timestamp is a datetime with nanoseconds.
        return micros * 1000 + int(getattr(value, "nanosecond", 0)), has_zone
    if isinstance(value, dt.date):
        return _days(value) * _DAY_NANOS, False
    raise _expected(expected, value)


def _days(day: dt.date) -> int:
    return day.toordinal() - _EPOCH_DAY


_TICKS: Final[dict[TypeRoot, Callable[[object, AtomicType], Ticks]]] = {
    **dict.fromkeys(INTEGER_BITS, _int_ticks),
    TypeRoot.DECIMAL: _decimal_ticks,
    TypeRoot.DATE: _date_ticks,
    TypeRoot.TIME: _time_ticks,
    TypeRoot.TIMESTAMP: _timestamp_ticks,
    TypeRoot.TIMESTAMP_LTZ: _timestamp_ticks,
}
