"""A table's history as one value, with the lag of its readers, and its commits as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.clocks import utc_millis
from penstock.errors import UnsupportedFeatureError, warn_damaged, warn_left_out
from penstock.format.snapshot import CommitKind
from penstock.format.watermark import declared_watermark
from penstock.options import BucketOptions
from penstock.table.compact.debt import measure_debt
from penstock.table.compact.task import CompactSizes
from penstock.table.inspect.history.buckets import measure_buckets, measure_order
from penstock.table.inspect.history.commits import DEFAULT_LIMIT, ChangeReader, find_stalled_watermarks
from penstock.table.read.live import load_live_entries
from penstock.table.ref import FileLocator
from penstock.table.stream.lag import measure_lag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.errors import FormatError
    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.inspect.history.buckets import BucketSize, Order
    from penstock.table.inspect.history.commits import Commit, StalledWatermark
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
    ref: TableRef,
    store: MetadataStore,
    checkpoints: Sequence[str],
    *,
    now_millis: int,
    on_damaged: Callable[[str, FormatError], None],
) -> tuple[Reader, ...]:
    """Measure the lag of readers; order and arguments as in ``measure_lag``, which warns about damaged snapshots."""
    rows = measure_lag(ref, store, checkpoints, clock=lambda: now_millis, on_damaged=on_damaged).to_pylist()
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


# A compaction in a stream lets a bucket grow to about this many times `compaction.min.file-num` small files.
_USUAL_FACTOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """The compaction debt, over all partitions.

    Attributes:
        waiting_files: that compact would take, with ``waiting_bytes``.
        usual_small_files: number of small files that a compaction that keeps up leaves.
    """

    small_files: int
    small_bytes: int
    waiting_files: int
    waiting_bytes: int
    usual_small_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagMark:
    """A tag, and the commit time of its snapshot."""

    name: str
    snapshot_id: int
    time_millis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHistory:
    """A table's history.

    Attributes:
        seen_millis: when it was read, ms since 1970-01-01 UTC.
        total_buckets: of new files; -1 for a scalable table.
        event_time_column: the column of the declared watermark; None if none is declared.
        commits: the newest ones, oldest first.
        left_out: number of older snapshots that exist.
        unreadable: for the ids of damaged snapshots, what is wrong; newest first.
        damaged: for damaged consumers and tags, ``consumer`` or ``tag``, the name, and what is wrong.
        standstills: stalls of the watermark, oldest first.
        debt: None for a table that Penstock does not compact; ``no_debt`` is the reason.
        buckets: of the newest snapshot, as ``order``, which is None for a scalable table.
    """

    name: str
    location: str
    seen_millis: int
    schema_id: int
    partition_keys: tuple[str, ...]
    total_buckets: int
    event_time_column: str | None
    commits: tuple[Commit, ...]
    left_out: int
    unreadable: tuple[tuple[int, str], ...]
    damaged: tuple[tuple[str, str, FormatError], ...]
    standstills: tuple[StalledWatermark, ...]
    debt: Debt | None
    no_debt: str | None
    readers: tuple[Reader, ...]
    tags: tuple[TagMark, ...]
    buckets: tuple[BucketSize, ...]
    order: Order | None

    @property
    def latest(self) -> Commit | None:
        """The newest commit; None if there is none."""
        return self.commits[-1] if self.commits else None

    @property
    def last_rows(self) -> Commit | None:
        """The newest commit that added rows, of those that were read."""
        return next((commit for commit in reversed(self.commits) if commit.change.brings_rows), None)

    @property
    def last_merge(self) -> Commit | None:
        """The newest compaction, of those that were read."""
        kinds = (commit for commit in reversed(self.commits) if commit.snapshot.commit_kind is CommitKind.COMPACT)
        return next(kinds, None)

    def warn_damaged(self) -> None:
        """Warn with ``DamagedFileWarning`` of the damaged files that are left out."""
        warn_damaged(self.name, [snapshot_id for snapshot_id, _ in self.unreadable])
        for kind, name, error in self.damaged:
            warn_left_out(self.name, kind, name, error)


def load_history(ref: TableRef, store: MetadataStore, *, limit: int = DEFAULT_LIMIT) -> tuple[Commit, ...]:
    """Load the newest commits and the state of the table after each, oldest first; see ``ChangeReader.load``.

    Warns with ``DamagedFileWarning`` about damaged snapshots, which are left out.
    """
    reader = ChangeReader(ref, store)
    loaded = reader.load(limit)
    warn_damaged(store.name, [snapshot_id for snapshot_id, _ in loaded.unreadable])
    changes = loaded.changes
    live = load_live_entries(store, changes[-1].snapshot).values() if changes else ()
    return reader.with_totals(changes, reader.sum_up(entry.file for entry in live))


class HistoryReader:
    """Reads the history of a table; later calls read only new commits. Not thread-safe.

    Args:
        checkpoints: of Spark queries to include as readers of the table; paths or URIs.
        limit: maximum number of snapshots to read.
        clock: ms since 1970-01-01 UTC.
    """

    def __init__(
        self,
        ref: TableRef,
        store: MetadataStore,
        *,
        checkpoints: Sequence[str] = (),
        limit: int = DEFAULT_LIMIT,
        clock: Callable[[], int] = utc_millis,
    ) -> None:
        self._ref = ref
        self._store = store
        self._checkpoints = tuple(checkpoints)
        self._limit = limit
        self._clock = clock
        self._changes = ChangeReader(ref, store)
        locator = FileLocator.of(ref)
        # Dates as text, not as the epoch days in directory names.
        self._locator = replace(locator, layout=replace(locator.layout, legacy_partition_name=False))
        self._live: tuple[Snapshot | None, tuple[ManifestEntry, ...]] = (None, ())
        self._debt: tuple[Debt | None, str | None] = (None, None)

    def load(self) -> TableHistory:
        """Read the history; reads metadata only."""
        ref = self._ref
        loaded = self._changes.load(self._limit)
        latest = loaded.changes[-1].snapshot if loaded.changes else None
        if latest is None or latest != self._live[0]:
            self._load_files(latest)
        live = self._live[1]
        commits = self._changes.with_totals(loaded.changes, self._changes.sum_up(entry.file for entry in live))
        declared = declared_watermark(ref.options)
        total_buckets = ref.parsed(BucketOptions).bucket
        debt, no_debt = self._debt
        now = self._clock()
        damaged: list[tuple[str, str, FormatError]] = []
        readers = measure_readers(
            ref,
            self._store,
            self._checkpoints,
            now_millis=now,
            on_damaged=lambda name, error: damaged.append(("consumer", name, error)),
        )
        tags = self._store.find_tags(lambda name, error: damaged.append(("tag", name, error)))
        marks = tuple(
            TagMark(name=name, snapshot_id=tag.snapshot.id, time_millis=tag.snapshot.time_millis) for name, tag in tags
        )
        return TableHistory(
            name=ref.name,
            location=ref.location,
            seen_millis=now,
            schema_id=ref.schema.id,
            partition_keys=ref.schema.partition_keys,
            total_buckets=total_buckets,
            event_time_column=None if declared is None else declared.column,
            commits=commits,
            left_out=loaded.left_out,
            unreadable=loaded.unreadable,
            damaged=tuple(damaged),
            standstills=find_stalled_watermarks(commits),
            debt=debt,
            no_debt=no_debt,
            readers=readers,
            tags=marks,
            buckets=measure_buckets(live, self._locator),
            order=measure_order(live, self._locator) if total_buckets > 0 else None,
        )

    def _load_files(self, latest: Snapshot | None) -> None:
        entries = load_live_entries(self._store, latest).values() if latest else ()
        self._live = (latest, tuple(entries))
        try:
            self._debt = (_sum_debt(self._ref, self._store, latest), None)
        except UnsupportedFeatureError as error:
            self._debt = (None, str(error))


def _sum_debt(ref: TableRef, store: MetadataStore, snapshot: Snapshot | None) -> Debt:
    parts = measure_debt(ref, store, snapshot, with_history=False)
    return Debt(
        small_files=sum(part.small_files for part in parts),
        small_bytes=sum(part.small_bytes for part in parts),
        waiting_files=sum(part.waiting_files for part in parts),
        waiting_bytes=sum(part.waiting_bytes for part in parts),
        usual_small_files=_USUAL_FACTOR * CompactSizes.of(ref).min_files * sum(part.buckets for part in parts),
    )


_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()

HISTORY_SCHEMA: Final = pa.schema(
    {
        "snapshot_id": _LONG,
        "commit_kind": _TEXT,
        "commit_time": pa.timestamp("ms", tz="UTC"),
        "commit_user": _TEXT,
        "added_rows": _LONG,
        "added_files": _LONG,
        "added_bytes": _LONG,
        "removed_rows": _LONG,
        "removed_files": _LONG,
        "removed_bytes": _LONG,
        "rows": _LONG,
        "files": _LONG,
        "bytes": _LONG,
        "small_files": _LONG,
        "watermark": _LONG,
        "event_time_lag_ms": _LONG,
    }
)
"""Columns of ``history_table``."""


def history_table(commits: Iterable[Commit]) -> pa.Table:
    """Return one row per commit, in order."""
    rows = [_row(commit) for commit in commits]
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(HISTORY_SCHEMA)]
    return pa.Table.from_arrays(columns, schema=HISTORY_SCHEMA)


def _row(commit: Commit) -> tuple[object, ...]:
    snapshot, added, removed, live = commit.snapshot, commit.change.added, commit.change.removed, commit.live
    return (
        snapshot.id,
        snapshot.commit_kind.value,
        snapshot.time_millis,
        snapshot.commit_user,
        added.rows,
        added.files,
        added.bytes,
        removed.rows,
        removed.files,
        removed.bytes,
        live.rows,
        live.files,
        live.bytes,
        live.small_files,
        commit.watermark,
        commit.event_time_lag_ms,
    )
