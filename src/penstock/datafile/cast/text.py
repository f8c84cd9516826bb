"""Parse text like Java Paimon's casts, for columns that had the type STRING before.

Source:
    Paimon ``common:utils/BinaryStringUtils.java``, ``common:utils/DateTimeUtils.java``.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Final

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAY_MILLIS: Final = 86_400_000
_SECOND_NANOS: Final = 1_000_000_000
_BOOLEANS: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_INTEGER: Final = re.compile(r"([+-]?)([0-9]*)(?:\.[0-9]*)?")
# Java's Double.parseDouble: surrounding blanks, a type suffix, and NaN and Infinity in this case only.
_FLOAT: Final = re.compile(r"\s*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?\s*")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER: Final = re.compile(r"[0-9]+")
_DATE: Final = re.compile(r"([0-9]{1,4})(?:-\s*([0-9]{1,2})\s*(?:-\s*([0-9]{1,2})\s*)?)?")
_TIME: Final = re.compile(r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]+))?)?)?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4,})-([0-9]{1,2})-([0-9]{1,2})(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?)?"
)
_EPOCH_UNIT_NANOS: Final = {0: 1_000_000_000, 3: 1_000_000, 6: 1_000, 9: 1}


def parse_boolean(text: str) -> bool:
    """Parse one of t, true, y, yes, 1 and their opposites, in any case. Raises ``ValueError``."""
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError(f"'{text}' is not a BOOLEAN") from None


def parse_integer(text: str, bits: int) -> int:
    """Parse a number; digits after a point are dropped. Raises ``ValueError``, also if the number is too large."""
    found = _INTEGER.fullmatch(text)
    if found is None or not text or text in ("+", "-"):
        raise ValueError(f"'{text}' is not an integer")
    number = int(f"{found[1]}{found[2] or 0}")
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"'{text}' does not fit {bits} bits")
    return number


def parse_float(text: str) -> float:
    """Parse a number like Java. Raises ``ValueError``."""
    found = _FLOAT.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a number")
    return float(found[1])


def parse_decimal(text: str) -> Decimal:
    """Parse a decimal of any size. Raises ``ValueError``."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(f"'{text}' is not a number")
    return Decimal(text)


def parse_date(text: str) -> int:
    """Parse ``yyyy-mm-dd``, optionally with a time, or a number of days; return the epoch day."""
    if _NUMBER.fullmatch(text):
        return parse_integer(text, 32)
    found = _DATE.fullmatch(text.partition(" ")[0] or text)
    if found is None:
        raise ValueError(f"'{text}' is not a DATE")
    return _epoch_day(found[1], found[2] or "1", found[3] or "1")


def parse_time(text: str) -> int:
    """Parse ``hh:mm:ss.sss``, or a number of milliseconds; return the millisecond of the day."""
    if _NUMBER.fullmatch(text):
        return parse_integer(text, 32)
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not a TIME")
    millis = int(f"{found[4] or 0:0<3}"[:3])
    return _second_of_day(found[1], found[2], found[3]) * 1000 + millis


def parse_timestamp(text: str, precision: int) -> int:
    """Parse a date and a time, or a number of units of the precision; return the wall clock in ns since 1970.

    Digits finer than ``precision`` are dropped.
    """
    if _NUMBER.fullmatch(text):
        if precision not in _EPOCH_UNIT_NANOS:
            raise ValueError(f"the number '{text}' is not a TIMESTAMP({precision})")
        return parse_integer(text, 64) * _EPOCH_UNIT_NANOS[precision]
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a TIMESTAMP")
    year, month, day, hour, minute, second, fraction = found.groups()
    seconds = _epoch_day(year, month, day) * (_DAY_MILLIS // 1000) + _second_of_day(hour, minute, second)
    digits = f"{fraction or '':0<9}"
    return seconds * _SECOND_NANOS + int(f"{digits[:precision]:0<9}")


def _epoch_day(year: str, month: str, day: str) -> int:
    return date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY


def _second_of_day(hour: str | None, minute: str | None, second: str | None) -> int:
    numbers = [int(part or 0) for part in (hour, minute, second)]
    if numbers[0] > 23 or numbers[1] > 59 or numbers[2] > 59:
        raise ValueError(f"{numbers[0]}:{numbers[1]}:{numbers[2]} is not a time of day")
    return numbers[0] * 3600 + numbers[1] * 60 + numbers[2]
