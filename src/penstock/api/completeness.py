"""Knowing that data is complete: the part of a table's handle that waits for it, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.handle import TableHandle
from penstock.catalog.checks.features import check_writable
from penstock.clocks import to_millis
from penstock.table.mark_done.partitions import mark_due_partitions, mark_named_partitions
from penstock.table.read.wait import WaitPolicy, wait_for_watermark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from penstock.format.snapshot import Snapshot
    from penstock.table.mark_done.marker import DonePartition


class TableCompleteness(TableHandle):
    """Waiting for watermarks, and marks of partitions; ``Table`` is the whole handle."""

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
        return wait_for_watermark(
            self._checked_store, to_millis(watermark), WaitPolicy(timeout=timeout, interval=interval)
        )

    def mark_partitions_done(
        self, partitions: Sequence[Mapping[str, object]] | None = None, *, dry_run: bool = False
    ) -> tuple[DonePartition, ...]:
        """Mark partitions done: write the file ``_SUCCESS`` into their directories, for whoever waits for it.

        A partition that is marked again keeps the time of its first mark. Commits do this by themselves where the
        options ``partition.idle-time-to-done`` or ``partition.end-input-to-done`` ask for it.

        Args:
            partitions: each such as ``{"dt": "2026-01-01"}``; one that leaves columns out stands for all that agree
                with it, one that names all also for a partition without rows. None for those that are due by the
                options and have no mark since their last rows.
            dry_run: only say which.

        Returns:
            Them, with the times of their marks.

        Raises:
            InvalidOptionError: no partition, names of other columns, values that do not fit; or with None, options that
                do not say when a partition is done.
            NotFoundError: no partition agrees.
            UnsupportedFeatureError: ``partition.mark-done-action`` asks for more than ``success-file``, or a table that
                Penstock only reads.
        """
        check_writable(self._ref)
        if partitions is None:
            return mark_due_partitions(self._ref, self._checked_store, dry_run=dry_run)
        return mark_named_partitions(self._ref, self._checked_store, partitions, dry_run=dry_run)
