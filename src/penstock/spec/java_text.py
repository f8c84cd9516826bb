"""Numbers, dates and times as Java prints them; directory names are made of such text.

Source:
    ``Float.toString`` and ``Double.toString`` of JDK 19 and later, ``LocalDateTime.toString``;
    Paimon ``common:utils/DateTimeUtils.java``. Checked against Paimon 1.4.2 on JDK 17.
"""

from __future__ import annotations

import math
import struct
from datetime import date
from typing import Final

_DAYS_BEFORE_1970: Final = date(1970, 1, 1).toordinal() - 1
_DAYS_IN_400_YEARS: Final = 146_097
_DAY_NANOS: Final = 86_400_000_000_000
_SECOND_NANOS: Final = 1_000_000_000


def format_double(value: float) -> str:
    """Format a DOUBLE as the shortest decimal that reads back as the same number.

    JDK 18 and older print up to two digits more for a few numbers (whole ones above 2**53, mostly).
    """
    return _format_floating(value, is_float=False)


def format_float(value: float) -> str:
    """Format a FLOAT, given as the double of the same number; see ``format_double``."""
    return _format_floating(value, is_float=True)


def _format_floating(value: float, *, is_float: bool) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _shortest_digits(abs(value), is_float=is_float)
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{digits[: exponent + 1].ljust(exponent + 1, '0')}.{digits[exponent + 1 :] or '0'}"


def _shortest_digits(value: float, *, is_float: bool) -> tuple[str, int]:
    """Return the digits, without zeros at the end, and the power of ten of the first one."""
    # From two digits on, since Java picks the closest among those of one and two: 4.9E-324, not 5E-324.
    for decimals in range(1, 17):
        text = f"{value:.{decimals}e}"
        if (_to_float(text) if is_float else float(text)) == value:
            break
    mantissa, _, exponent = text.partition("e")
    return mantissa.replace(".", "").rstrip("0"), int(exponent)


def _to_float(text: str) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", float(text)))[0])
    except OverflowError:  # rounded up beyond the largest FLOAT
        return math.inf


def civil_date(epoch_day: int) -> tuple[int, int, int]:
    """Return year, month and day of an epoch day in the proleptic Gregorian calendar, for any year."""
    cycles, days = divmod(epoch_day + _DAYS_BEFORE_1970, _DAYS_IN_400_YEARS)
    day = date.fromordinal(days + 1)
    return day.year + 400 * cycles, day.month, day.day


def format_date(epoch_day: int) -> str:
    """Format a DATE as SQL's cast to STRING does; outside of years 0 to 9999 the year comes out as Java garbles it."""
    year, month, day = civil_date(epoch_day)
    sign = -1 if year < 0 else 1
    digits = "".join(chr(ord("0") + sign * (abs(year) // power % 10)) for power in (1000, 100, 10, 1))
    return f"{digits}-{month:02}-{day:02}"


def format_time(milli_of_day: int, precision: int) -> str:
    """Format a TIME as SQL's cast to STRING does: at most ``precision`` digits, ending where only zeros follow."""
    seconds, millis = divmod(milli_of_day, 1000)
    text = _clock(seconds)
    if precision == 0:
        return text
    fraction = f"{millis:03}"
    shortest = max(1, len(fraction.rstrip("0")))
    return f"{text}.{fraction[: min(precision, shortest)]}"


def format_timestamp(nanos: int, precision: int) -> str:
    """Format a TIMESTAMP as SQL's cast to STRING does: ``precision`` digits, more where the value has more.

    Args:
        nanos: wall clock since 1970-01-01, in ns.
    """
    epoch_day, nano_of_day = divmod(nanos, _DAY_NANOS)
    seconds, fraction = divmod(nano_of_day, _SECOND_NANOS)
    digits = f"{fraction:09}"
    kept = max(precision, len(digits.rstrip("0")))
    return f"{format_date(epoch_day)} {_clock(seconds)}{'.' if kept else ''}{digits[:kept]}"


def format_iso_timestamp(nanos: int) -> str:
    """Format a wall clock as ``LocalDateTime.toString``: no seconds where they are 0, fractions of 3, 6 or 9 digits.

    Args:
        nanos: wall clock since 1970-01-01, in ns.
    """
    epoch_day, nano_of_day = divmod(nanos, _DAY_NANOS)
    seconds, fraction = divmod(nano_of_day, _SECOND_NANOS)
    clock = _clock(seconds)
    if fraction:
        digits = f"{fraction:09}"
        kept = -(-len(digits.rstrip("0")) // 3) * 3
        clock = f"{clock}.{digits[:kept]}"
    elif seconds % 60 == 0:
        clock = clock[:5]
    year, month, day = civil_date(epoch_day)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{clock}"


def _clock(second_of_day: int) -> str:
    minutes, second = divmod(second_of_day, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
