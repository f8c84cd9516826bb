"""The current time, and the wall clock that files store as if it were UTC.

Functions that depend on time take a clock as an argument, with one of these as its default.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME_MS: Final = 253_402_300_800_000
"""The first ms that no calendar has, year 10000: a watermark beyond it means that the input has ended."""


def utc_millis() -> int:
    """Return the current time, ms since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


def elapsed_seconds() -> float:
    """Return seconds since a fixed moment, which no step of the wall clock changes.

    On Linux they include the time for which the machine was suspended, unlike ``time.monotonic``.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def local_wall_millis() -> int:
    """Return the local wall clock time in ms as if it were UTC, as Paimon writes creation times of files."""
    return to_wall_clock(utc_millis())


def to_wall_clock(millis: int) -> int:
    """Return the local wall clock time at an instant as if it were UTC, as files store their creation time."""
    try:
        offset = datetime.fromtimestamp(millis / 1000, UTC).astimezone().utcoffset() or timedelta()
    except (ValueError, OverflowError, OSError):  # outside the calendar, where no zone has an offset
        return millis
    return millis + offset // timedelta(milliseconds=1)


def to_millis(moment: datetime | int) -> int:
    """Convert a point in time to ms since 1970-01-01 UTC.

    Args:
        moment: ms since 1970-01-01 UTC, or a datetime; a datetime without a zone is local time.
    """
    if not isinstance(moment, datetime):
        return moment
    try:
        instant = moment.astimezone(UTC)
    except (ValueError, OverflowError):  # within a day of the ends of the calendar, where a zone would lead out of it
        instant = moment.replace(tzinfo=UTC)
    return (instant - EPOCH) // timedelta(milliseconds=1)


def local_now() -> datetime:
    """Wall clock of this machine's zone, taken as if it were UTC: how the format stores creation times."""
    return datetime.now().astimezone().replace(tzinfo=UTC)


def utc_text(millis: int) -> str:
    """Return an instant as text, such as ``2026-01-01 10:00:00.000+00:00``.

    Args:
        millis: since 1970-01-01 UTC.
    """
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return "a time beyond the calendar"
