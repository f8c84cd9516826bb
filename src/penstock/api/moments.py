"""Convert points in time from callers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_millis(moment: datetime | int) -> int:
    """Convert a point in time to ms since 1970-01-01 UTC.

    Args:
        moment: ms since 1970-01-01 UTC, or a datetime; a datetime without a zone is local time.
    """
    if not isinstance(moment, datetime):
        return moment
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
