"""Numbers, sizes, times and durations as text. All times are UTC."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from penstock.clocks import END_OF_TIME_MS, EPOCH
from penstock.printable import visible

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
YEAR: Final = 365.25 * DAY

# A day from the ends, so that zones can be applied.
_FIRST_MILLIS: Final = -62_135_510_400_000
_LAST_MILLIS: Final = 253_402_214_400_000
_BEGIN_OF_TIME_MS: Final = -62_135_596_800_000
_UNITS: Final = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
_ONE: Final[dict[float, str]] = {SECOND: "second", MINUTE: "minute", HOUR: "hour", DAY: "day", 7 * DAY: "week"}
_STEPS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return ``1 file`` or ``1,234 files``.

    Args:
        many: None for ``one`` with an s.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short_number(value: float) -> str:
    """Return a number of at most three digits, for an axis: ``0``, ``250``, ``1.5k``, ``20M``."""
    for step, letter in _STEPS:
        if abs(value) >= step:
            return f"{_three_digits(value / step)}{letter}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration_words(millis: float) -> str:
    """Return a duration by its two largest units: ``850 ms``, ``12 s``, ``3 min 20 s``, ``2 d 4 h``, ``12.9 years``."""
    if millis < 0:
        return f"-{duration_words(-millis)}"
    if millis < SECOND:
        return f"{millis:.0f} ms" if millis else "0 s"
    if millis >= 2 * YEAR:
        return f"{millis / YEAR:.1f} years"
    if millis >= 60 * DAY:
        return f"{millis / DAY:.0f} d"
    if millis < 10 * SECOND:
        return f"{millis / SECOND:.2g} s"
    parts: list[tuple[int, str]] = []
    rest = round(millis / SECOND) * SECOND
    for unit, name in _UNITS:
        whole, rest = divmod(rest, unit)
        if whole or parts:
            parts.append((int(whole), name))
    return " ".join(f"{whole} {name}" for whole, name in parts[:2] if whole)


def rate_words(step_ms: float) -> str:
    """Return the unit of time of a rate: ``minute``, ``10 s``."""
    return _ONE.get(step_ms) or duration_words(step_ms)


def time_text(millis: int, *, spec: str = "seconds") -> str:
    """Return a time without its zone, ``2026-01-31 10:00:00``.

    Args:
        millis: since 1970-01-01 UTC; may be outside of the calendar, such as the watermark of an ended input.
        spec: as for ``datetime.isoformat``.
    """
    if millis >= END_OF_TIME_MS:
        return "end of time"
    if millis < _BEGIN_OF_TIME_MS:
        return "before all time"
    return datetime_of(millis).replace(tzinfo=None).isoformat(sep=" ", timespec=spec)


def instant_words(millis: int) -> str:
    """Return a time with its zone, ``2026-01-31 10:00:00Z``; words outside of the calendar."""
    text = time_text(millis)
    return f"{text}Z" if text[0].isdigit() else text


def datetime_of(millis: float) -> datetime:
    """Return the time; the calendar's first or last one if ``millis`` is outside of it, as in damaged files."""
    return EPOCH + timedelta(milliseconds=min(max(millis, _FIRST_MILLIS), _LAST_MILLIS))


def millis_of(time: datetime) -> int:
    """Return ms since 1970-01-01 UTC."""
    return (time - EPOCH) // timedelta(milliseconds=1)


def name_text(name: str, most: int | None = None) -> str:
    """Return a name with its control characters escaped.

    Args:
        most: maximum number of characters; longer names have an ellipsis in the middle; None for no limit.
    """
    text = visible(name)
    if most is None or len(text) <= most:
        return text
    # Both ends identify a name better than its beginning: a partition's last key, a number at the end.
    end = most // 2
    return f"{text[: most - end - 1]}…{text[-end:]}"
