"""Measures the lag of a table's readers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.clocks import utc_millis
from penstock.errors import NotFoundError, warn_left_out
from penstock.io.resolve import resolve
from penstock.table.stream.backlog import BacklogCache, measure_backlog
from penstock.table.stream.checkpoint import load_delivered
from penstock.table.stream.history import History
from penstock.table.stream.offset import Phase, Position, StreamOffset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.errors import FormatError
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.stream.backlog import Backlog

_NUMBERS: Final = (
    "next_snapshot_id",
    "latest_snapshot_id",
    "snapshots_behind",
    "files_behind",
    "bytes_behind",
    "rows_behind",
    "event_time_lag_ms",
    "oldest_unread_ms",
    "expired_snapshots",
)
_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()
LAG_SCHEMA: Final = pa.schema({"reader": _TEXT, "kind": _TEXT, **dict.fromkeys(_NUMBERS, _LONG)})
"""Columns of ``measure_lag``."""


def measure_lag(
    ref: TableRef,
    store: MetadataStore,
    checkpoints: Sequence[str] = (),
    *,
    clock: Callable[[], int] = utc_millis,
    on_damaged: Callable[[str, FormatError], None] | None = None,
) -> pa.Table:
    """Measure the lag of every consumer of the table, and of the queries with these checkpoints.

    Args:
        checkpoints: of Spark queries that read the table; paths or URIs.
        clock: ms since 1970-01-01 UTC.
        on_damaged: called with the id of each damaged consumer, which is left out. None to warn of it, and of damaged
            snapshots before the latest, which count as empty, with ``DamagedFileWarning``.

    Returns:
        One row for each reader: consumers by name, then checkpoints. Rows, files and bytes are counted before any
        filter. ``event_time_lag_ms`` is null where a watermark is missing. ``oldest_unread_ms`` is the age of the first
        commit with unread rows; null where there is none. ``expired_snapshots`` counts the snapshots that expired
        before they were read.
    """
    readers = [
        ("consumer", consumer_id, StreamOffset(position=Position(snapshot_id=position)))
        for consumer_id, position in store.find_consumers(on_damaged or partial(warn_left_out, store.name, "consumer"))
    ]
    for checkpoint in checkpoints:
        offsets = _load_offsets(store, checkpoint)
        readers += [("checkpoint", checkpoint, offset) for offset in offsets]
    cache = BacklogCache(warns=on_damaged is None)
    # The same time for all, so that the ages of different readers can be compared.
    now = clock()
    earliest = store.earliest_snapshot_id() or 1
    # The slowest reader is measured first: the cache then has the snapshots for the faster ones.
    order = sorted(range(len(readers)), key=lambda index: _next_id(readers[index][2]))
    rows: list[dict[str, Any]] = [{}] * len(readers)
    for index in order:
        kind, name, offset = readers[index]
        measured = _measure(ref, store, _from_earliest(offset, earliest), cache, now)
        expired = max(0, earliest - _next_id(offset)) if offset.position else 0
        rows[index] = {"reader": name, "kind": kind, **measured, "expired_snapshots": expired}
        rows[index]["next_snapshot_id"] = offset.position and offset.position.snapshot_id
    return pa.Table.from_pylist(rows, LAG_SCHEMA)


def _load_offsets(store: MetadataStore, checkpoint: str) -> list[StreamOffset]:
    digest = History(store, fails=True).load_table_digest()
    offsets = [offset for offset in load_delivered(*resolve(checkpoint)) if offset.table == digest]
    if not offsets:
        raise NotFoundError(
            f"table {store.name}: no source of the query with the checkpoint {checkpoint} reads this table, or only "
            "the one that was in its place before"
        )
    return offsets


def _next_id(offset: StreamOffset) -> int:
    return 0 if offset.position is None else offset.position.snapshot_id


def _from_earliest(offset: StreamOffset, earliest: int) -> StreamOffset:
    # The backlog counts only readable snapshots: a reader of an expired one continues at the earliest.
    if offset.position is None or offset.position.snapshot_id >= earliest:
        return offset
    return StreamOffset(position=Position(snapshot_id=earliest))


def _measure(
    ref: TableRef, store: MetadataStore, offset: StreamOffset, cache: BacklogCache, now: int
) -> dict[str, int | None]:
    backlog = measure_backlog(store, ref, offset, cache)
    while backlog.is_partial and offset.position is not None:  # each call measures up to 1,000 more snapshots
        backlog = measure_backlog(store, ref, offset, cache)
    return {
        "latest_snapshot_id": backlog.latest_snapshot_id,
        "snapshots_behind": backlog.snapshots,
        "files_behind": backlog.files,
        "bytes_behind": backlog.bytes,
        "rows_behind": backlog.rows,
        "event_time_lag_ms": backlog.event_time_lag_ms,
        "oldest_unread_ms": _age_of_first(store, offset, backlog, cache, now),
    }


def _age_of_first(
    store: MetadataStore, offset: StreamOffset, backlog: Backlog, cache: BacklogCache, now: int
) -> int | None:
    position = offset.position
    if position is None or backlog.files == 0:
        return None
    ids = [known for known, size in cache.sizes.items() if size.files and known >= position.snapshot_id]
    is_begun = position.phase is Phase.FULL or position.index > 0
    snapshot = store.find_snapshot(position.snapshot_id if is_begun else min(ids))
    return None if snapshot is None else max(0, now - snapshot.time_millis)
