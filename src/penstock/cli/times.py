"""Points in time as users write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from penstock.clocks import to_millis
from penstock.errors import InvalidOptionError

_SHOWN: Final = 40


def parse_millis(text: str | None, option: str) -> int | None:
    """Return ms since 1970-01-01 UTC.

    Args:
        text: digits, or ISO 8601 such as ``2026-01-01T10:00:00Z``; without a zone it is local time.
        option: for the message.
    """
    if text is None:
        return None
    try:
        if text.removeprefix("-").isdecimal():
            return int(text)
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidOptionError(
            f"{option} '{text[:_SHOWN]}': expected a time such as 2026-01-01T10:00:00Z, or milliseconds since 1970"
        ) from error
    return to_millis(time)


def instant_text(millis: int) -> str:
    """Return a time as ISO 8601 in UTC, ``2026-01-01T10:00:00.000Z``; a time beyond the calendar as a number.

    Args:
        millis: since 1970-01-01 UTC; any number, since damaged files are read too.
    """
    try:
        time = datetime.fromtimestamp(millis // 1000, UTC).replace(microsecond=millis % 1000 * 1000)
    except (ValueError, OverflowError, OSError):
        return f"{millis} ms, which is beyond the calendar"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
