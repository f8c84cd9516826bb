"""The readers of a table, and their lag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.table.stream.lag import measure_lag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A consumer, or a Spark query by its checkpoint.

    Attributes:
        kind: ``consumer`` or ``checkpoint``.
        next_snapshot_id: the next snapshot to read; None if a query has not begun.
        snapshots: number of unread snapshots with rows; ``files``, ``bytes`` and ``rows`` are theirs, before any
            filter.
        event_time_lag_ms: the table's watermark minus that of the rows read; None if one is missing.
        unread_since_millis: commit time of the first unread snapshot with rows; None if all were read.
        expired_snapshots: number of snapshots that expired before they were read.
    """

    name: str
    kind: str
    next_snapshot_id: int | None
    snapshots: int
    files: int
    bytes: int
    rows: int
    event_time_lag_ms: int | None
    unread_since_millis: int | None
    expired_snapshots: int


def measure_readers(
    ref: TableRef, store: MetadataStore, checkpoints: Sequence[str], *, now_millis: int
) -> tuple[Reader, ...]:
    """Measure the lag of readers; order, arguments and errors as ``measure_lag``."""
    rows = measure_lag(ref, store, checkpoints, clock=lambda: now_millis).to_pylist()
    return tuple(
        Reader(
            name=row["reader"],
            kind=row["kind"],
            next_snapshot_id=row["next_snapshot_id"],
            snapshots=row["snapshots_behind"],
            files=row["files_behind"],
            bytes=row["bytes_behind"],
            rows=row["rows_behind"],
            event_time_lag_ms=row["event_time_lag_ms"],
            unread_since_millis=None if row["oldest_unread_ms"] is None else now_millis - row["oldest_unread_ms"],
            expired_snapshots=row["expired_snapshots"],
        )
        for row in rows
    )
