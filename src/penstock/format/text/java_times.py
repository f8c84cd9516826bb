"""Format dates and times like Java; directory names contain this text.

Source:
    Paimon ``common:utils/DateTimeUtils.java``, ``LocalDateTime.toString``; tests/golden/data/partition_names.
"""

from __future__ import annotations

from datetime import date
from typing import Final

_DAYS_BEFORE_1970: Final = date(1970, 1, 1).toordinal() - 1
_DAYS_IN_400_YEARS: Final = 146_097
_DAY_NANOS: Final = 86_400_000_000_000
_SECOND_NANOS: Final = 1_000_000_000


def civil_date(epoch_day: int) -> tuple[int, int, int]:
    """Return year, month and day of an epoch day in the proleptic Gregorian calendar, for any year."""
    cycles, days = divmod(epoch_day + _DAYS_BEFORE_1970, _DAYS_IN_400_YEARS)
    day = date.fromordinal(days + 1)
    return day.year + 400 * cycles, day.month, day.day


def format_date(epoch_day: int) -> str:
    """Format a DATE like SQL's cast to STRING; outside of years 0 to 9999 the year is as wrong as in Java."""
    year, month, day = civil_date(epoch_day)
    if 0 <= year <= 9999:
        return f"{year:04}-{month:02}-{day:02}"
    sign = -1 if year < 0 else 1
    digits = "".join(chr(ord("0") + sign * (abs(year) // power % 10)) for power in (1000, 100, 10, 1))
    return f"{digits}-{month:02}-{day:02}"


def format_time(milli_of_day: int, precision: int) -> str:
    """Format a TIME like SQL's cast to STRING: at most ``precision`` digits, without trailing zeros."""
    seconds, millis = divmod(milli_of_day, 1000)
    text = _clock(seconds)
    if precision == 0:
        return text
    fraction = f"{millis:03}"
    shortest = max(1, len(fraction.rstrip("0")))
    return f"{text}.{fraction[: min(precision, shortest)]}"


def format_timestamp(nanos: int, precision: int) -> str:
    """Format a TIMESTAMP like SQL's cast to STRING: ``precision`` digits, more if the value has more.

    Args:
        nanos: wall clock since 1970-01-01, in ns.
    """
    epoch_day, nano_of_day = divmod(nanos, _DAY_NANOS)
    seconds, fraction = divmod(nano_of_day, _SECOND_NANOS)
    digits = f"{fraction:09}"
    kept = max(precision, len(digits.rstrip("0")))
    return f"{format_date(epoch_day)} {_clock(seconds)}{'.' if kept else ''}{digits[:kept]}"


def format_iso_timestamp(nanos: int) -> str:
    """Format a wall clock like ``LocalDateTime.toString``: no seconds if they are 0, fractions of 3, 6 or 9 digits.

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
