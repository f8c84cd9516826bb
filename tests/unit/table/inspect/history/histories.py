"""Stories made by hand."""

from __future__ import annotations

from typing import Any

from penstock.format.snapshot import CommitKind, Snapshot
from penstock.table.inspect.history.commits import Change, Commit, FileSums, find_stalled_watermarks
from penstock.table.inspect.history.history import Debt, Reader, TableHistory


def commit(
    number: int,
    time_millis: int,
    watermark: int | None = None,
    *,
    rows: int = 1,
    kind: CommitKind = CommitKind.APPEND,
    live: FileSums | None = None,
    **sums: int,
) -> Commit:
    """A commit that adds a file of so many rows; without rows it is a merge."""
    kind = kind if rows else CommitKind.COMPACT
    snapshot = Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="b",
        delta_manifest_list="d",
        commit_user="tester",
        commit_identifier=number,
        commit_kind=kind,
        time_millis=time_millis,
        total_record_count=None,
        delta_record_count=None,
        watermark=watermark,
    )
    added = FileSums(files=1, rows=rows or 5, bytes=sums.get("bytes", 100), small_files=1)
    removed = FileSums(rows=sums.get("removed", 0), files=1 if sums.get("removed") else 0)
    return Commit(
        change=Change(snapshot=snapshot, added=added, removed=removed),
        live=live or FileSums(files=number, rows=number, bytes=100 * number, small_files=number),
    )


def reader(name: str = "nightly", **values: Any) -> Reader:
    """A reader that has read everything."""
    nothing = {"next_snapshot_id": 1, "snapshots": 0, "files": 0, "bytes": 0, "rows": 0}
    known = {"event_time_lag_ms": None, "unread_since_millis": None, "expired_snapshots": 0}
    return Reader(**{"name": name, "kind": "consumer", **nothing, **known, **values})


def history(*commits: Commit, seen_millis: int | None = None, **values: Any) -> TableHistory:
    """A story of a scalable table, seen with its last commit."""
    last = commits[-1].snapshot.time_millis if commits else 0
    defaults = {
        "name": "shop.orders",
        "location": "memory://x/shop.db/orders",
        "schema_id": 0,
        "partition_keys": (),
        "total_buckets": -1,
        "event_time_column": None,
        "left_out": 0,
        "unreadable": (),
        "damaged": (),
        "debt": Debt(small_files=1, small_bytes=1, waiting_files=0, waiting_bytes=0, usual_small_files=10),
        "no_debt": None,
        "readers": (),
        "tags": (),
        "buckets": (),
        "order": None,
    }
    return TableHistory(
        commits=commits,
        seen_millis=last if seen_millis is None else seen_millis,
        standstills=find_stalled_watermarks(commits),
        **{**defaults, **values},
    )
