"""Time zones by their Java names, and conversion between instants and wall clocks.

Source:
    ``java.time.ZoneId.of``, which reads Paimon's options.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.clocks import EPOCH
from penstock.errors import InvalidOptionError

_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<h>\d{1,2})(?:(?P<colon>:?)(?P<m>\d{2})(?:(?P=colon)(?P<s>\d{2}))?)?", re.ASCII
)
_MOST: Final = timedelta(hours=18)


def parse_zone(text: str | None, key: str, table: str) -> tzinfo | None:
    """Return the zone of that name; None, which means this machine's zone, if the text is None.

    Args:
        text: ``America/Los_Angeles``, ``UTC``, ``Z``, ``+08:00``, ``GMT-8``.
        key: the option, for the message.

    Raises:
        InvalidOptionError: the text is not a zone.
    """
    if text is None:
        return None
    if text in {"Z", "UTC", "GMT", "UT"}:
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is not None:
        hours, minutes, seconds = (int(match[part] or 0) for part in "hms")
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if offset <= _MOST and max(minutes, seconds) < 60:
            return timezone(offset if match["sign"] == "+" else -offset)
    else:
        try:
            return ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise InvalidOptionError(
        f"table {table}: option '{key}' = '{text}': expected the name of a zone such as 'Europe/Berlin', or an offset "
        "such as '+01:00'"
    )


def instant(clock: datetime, zone: tzinfo | None) -> int | None:
    """Return when a zone's wall clock shows a time, in ms since 1970-01-01 UTC; None beyond the calendar's range.

    If the clock shows the time twice, the earlier instant is returned. A time that the clock skips is moved later by
    the length of the skip.

    Args:
        clock: the time, without a zone.
        zone: None for this machine's.
    """
    try:
        moment = clock.astimezone() if zone is None else clock.replace(tzinfo=zone)
        return (moment.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError, OSError):
        return None


def wall_clock(millis: int, zone: tzinfo | None) -> datetime | None:
    """Return the wall clock in a zone, without that zone; None beyond the years 1 to 9999.

    Args:
        millis: since 1970-01-01 UTC.
        zone: None for this machine's.
    """
    try:
        return (EPOCH + timedelta(milliseconds=millis)).astimezone(zone).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return None
