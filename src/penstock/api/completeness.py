"""Knowing that data is complete: the part of a table's handle that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.handle import TableHandle
from penstock.api.moments import to_millis
from penstock.table.wait import Patience, wait_for_watermark

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.spec.snapshot import Snapshot


class TableCompleteness(TableHandle):
    """Waiting for watermarks; ``Table`` is the whole handle."""

    def wait_until(self, watermark: int | datetime, *, timeout: float | None = None, interval: float = 1.0) -> Snapshot:
        """Wait until the table's latest snapshot has a watermark that has reached a point in event time.

        It has all rows of earlier event times then, but for those that come late. Read exactly that state with
        ``to_arrow(snapshot_id=...)``.

        Args:
            watermark: ms of event time, or a datetime, local without a zone. The event time of a column without a zone
                counts as UTC.
            timeout: seconds; None for as long as it takes, 0 to look once.
            interval: seconds between looks; each asks the storage three things.

        Returns:
            The first such snapshot that was seen.

        Raises:
            TimedOutError: it has not in time; the message says how far the table is.
            NotFoundError: the table was dropped.
            InvalidOptionError: a timeout below zero, or an interval that is not above it.
        """
        return wait_for_watermark(self._store, to_millis(watermark), Patience(timeout=timeout, interval=interval))
