"""Plans one micro-batch: from a start offset, over snapshots and files, to its end offset.

Source:
    Paimon ``core:table/source/DataTableStreamScan.java``; docs/spec/streaming.md sections 2.1 and 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.format.snapshot import CommitKind
from penstock.table.read.travel import watermark_of
from penstock.table.stream.align.progress import latest_of, least_of
from penstock.table.stream.history import snapshot_digest
from penstock.table.stream.limits import NO_LIMITS
from penstock.table.stream.offset import Phase, Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.options import StreamOptions
    from penstock.table.store import MetadataStore
    from penstock.table.stream.align.progress import WatermarkLimit
    from penstock.table.stream.event_time import EventTimes
    from penstock.table.stream.files import FileLists, Files, TaskPlanner
    from penstock.table.stream.history import History
    from penstock.table.stream.limits import Bounds, Budget
    from penstock.table.stream.offset import BucketWatermarks, StreamOffset

# Requested at the same time; a micro-batch with limits may not need that many.
_REQUESTED_SNAPSHOTS: Final = 32
_REQUESTED_BY_LIMITED: Final = 4
# About 1 KB each. A micro-batch with more snapshots reads the others again when its tasks are planned.
_KEPT_SNAPSHOTS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReaders:
    """The readers of a table's metadata that a planner uses."""

    store: MetadataStore
    history: History
    files: FileLists
    tasks: TaskPlanner
    times: EventTimes


def delivers(snapshot: Snapshot, position: Position, *, overwrites: bool) -> bool:
    """Whether the stream delivers the snapshot's changes: by its kind, or because some are already delivered."""
    kind = snapshot.commit_kind
    return position.index > 0 or kind is CommitKind.APPEND or (overwrites and kind is CommitKind.OVERWRITE)


def load_files(table: TableReaders, snapshot: Snapshot, position: Position, offset: StreamOffset) -> Files | None:
    """List the files that a snapshot delivers at a position; None when its metadata has expired meanwhile.

    Args:
        offset: sets the order of partitions and the delivered kinds of snapshots.
    """
    if position.phase is Phase.CHANGES and not delivers(snapshot, position, overwrites=offset.overwrites):
        return ()
    try:
        files = table.files.load_files(snapshot, position.phase, by_value=offset.by_value)
    except NotFoundError:
        if table.store.find_snapshot(snapshot.id) is not None:
            raise
        return None
    if position.index > len(files):
        raise table.history.rolled_back(snapshot.id)
    return files


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgress:
    """The progress of a stream in event time.

    Attributes:
        watermark: after the planned rows, ms; None where there is none.
        by_file: watermarks by bucket after the last planned file; None outside of the full phase, or where the table
            declares no watermark.
    """

    watermark: int | None = None
    by_file: BucketWatermarks | None = None


def load_progress(table: TableReaders, offset: StreamOffset, position: Position) -> ReadProgress:
    """Return the progress in event time at a resolved offset; reads only the previous snapshot.

    In the full phase it comes from the delivered files, which requires the list of all files.
    """
    if position.phase is Phase.CHANGES:
        before = table.store.find_snapshot(position.snapshot_id - 1) if position.snapshot_id > 1 else None
        watermark = None if before is None else watermark_of(before)
        return ReadProgress(watermark=latest_of(watermark, least_of(offset.watermarks)))
    snapshot = table.store.find_snapshot(position.snapshot_id) if position.index > 0 else None
    files = None if snapshot is None else load_files(table, snapshot, position, offset)
    timed = () if snapshot is None else _timed_files(table, snapshot, position, (files or ())[: position.index])
    by_file = table.times.advance(None, timed)
    return ReadProgress(watermark=least_of(by_file), by_file=by_file)


def _timed_files(
    table: TableReaders, snapshot: Snapshot, position: Position, files: Iterable[ManifestEntry]
) -> Iterable[ManifestEntry]:
    """Return the files that say their latest event time: that of others may be of a row that a vector deletes."""
    vectors = table.files.load_vectors(snapshot) if position.phase is Phase.FULL else {}
    return (entry for entry in files if entry.key not in vectors) if vectors else files


@dataclass(slots=True, kw_only=True)
class MicroBatchPlanner:
    """Plans one micro-batch, and holds the state of the plan.

    Attributes:
        start: offset where the plan began, or continued after a pause.
        offset: offset where the plan continues; it also moves over snapshots without rows to deliver.
        reached: offset after the last file that was taken.
        budget: the amount taken.
        horizon: the last snapshot to read.
        ready_millis: only snapshots committed until then are read, ms since 1970-01-01 UTC; None for all.
        limit_by_watermark: limit set by the alignment group; None for a stream without a group.
        progress: in event time at ``offset``; empty for a stream without a group.
        is_cut: a limit ended the micro-batch, and there are more rows.
        is_held: the limit of the group ended it, and there are more rows.
        next_watermark: after the files that were first checked against the group; None if there was no check, or the
            group knew the stream's watermark.
        snapshots: the first snapshots that were read, by id.
    """

    table: TableReaders
    options: StreamOptions
    bounds: Bounds
    start: StreamOffset
    offset: StreamOffset
    reached: StreamOffset
    budget: Budget
    horizon: int
    ready_millis: int | None
    limit_by_watermark: WatermarkLimit | None = None
    progress: ReadProgress = field(default_factory=ReadProgress)
    is_cut: bool = False
    is_held: bool = False
    next_watermark: int | None = None
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    @property
    def position(self) -> Position:
        """Position where the plan continues."""
        if self.offset.position is None:
            raise AssertionError  # a plan begins at a resolved offset
        return self.offset.position

    def extend_to(self, horizon: int, ready_millis: int | None, limit_by_watermark: WatermarkLimit | None) -> None:
        """Set new ends for a plan that ended before a limit was reached, so that ``run`` continues."""
        self.start, self.horizon, self.ready_millis, self.limit_by_watermark = (
            self.offset,
            horizon,
            ready_millis,
            limit_by_watermark,
        )
        self.is_held, self.next_watermark = False, None

    def run(self) -> None:
        """Plan until a limit, a bound, the horizon, or the limit of the alignment group."""
        with self.table.store.file_io.prefetch() as ahead:
            store = self.table.store.reading(ahead)
            self._request(store)
            self._run(store)

    def _request(self, store: MetadataStore) -> None:
        """Request the snapshots up to the horizon, with their changes, as far as this micro-batch may need them."""
        position, limits = self.position, self.budget.limits
        if position.snapshot_id > self.horizon or position.phase is Phase.FULL:
            return
        max_snapshots = _REQUESTED_SNAPSHOTS if limits == NO_LIMITS else _REQUESTED_BY_LIMITED
        last = min(self.horizon, position.snapshot_id + max_snapshots - 1)
        store.request_changes([position.rests_on, *range(position.snapshot_id, last + 1)])

    def _run(self, store: MetadataStore) -> None:
        self._check_predecessor(store)
        while not self.is_cut and not self.offset.ended and not self.is_held:
            snapshot = self._next_snapshot(store)
            if snapshot is None:
                return
            if len(self.snapshots) < _KEPT_SNAPSHOTS:
                self.snapshots[snapshot.id] = snapshot
            files = load_files(self.table, snapshot, self.position, self.offset)
            if files is None:
                self._skip_lost()
            elif self._may_begin(snapshot, files):
                self._take(snapshot, files)

    @property
    def _limit_by_file(self) -> WatermarkLimit | None:
        """The group's limit if it is checked file by file: in the full phase, which may span all event time."""
        is_by_file = self.position.phase is Phase.FULL and not self.options.align_checkpoints
        return self.limit_by_watermark if is_by_file and self.progress.by_file is not None else None

    def _may_begin(self, snapshot: Snapshot, files: Files) -> bool:
        if self.limit_by_watermark is None or self._limit_by_file is not None or self.position.index > 0:
            return True
        following = self._watermark_after(snapshot, self._watermarks_after(snapshot, files))
        return self._is_allowed(self.limit_by_watermark, following)

    def _is_allowed(self, limit_by_watermark: WatermarkLimit, following: int | None) -> bool:
        self.is_held = not limit_by_watermark.allows(self.progress.watermark, following)
        if self.progress.watermark is None:
            self.next_watermark = following
        return not self.is_held

    def _may_take_file(self, limit_by_watermark: WatermarkLimit, snapshot: Snapshot, entry: ManifestEntry) -> bool:
        timed = _timed_files(self.table, snapshot, self.position, (entry,))
        by_file = self.table.times.advance(self.progress.by_file, timed)
        if not self._is_allowed(limit_by_watermark, least_of(by_file)):
            return False
        self.progress = ReadProgress(watermark=latest_of(self.progress.watermark, least_of(by_file)), by_file=by_file)
        return True

    def _watermark_after(self, snapshot: Snapshot, watermarks: BucketWatermarks | None) -> int | None:
        # The later of both: batch writers repeat the last watermark that a stream has stored, but their rows are newer.
        return latest_of(watermark_of(snapshot), least_of(watermarks))

    def _check_predecessor(self, store: MetadataStore) -> None:
        position = self.position
        # Snapshots taken before a pause may be rolled back even if no later snapshot exists.
        may_differ = position.snapshot_id <= self.horizon or self.budget.files > 0
        if not position.is_inside and may_differ:
            before = store.find_snapshot(position.rests_on) if position.rests_on > 0 else None
            self.table.history.check_seen(before, self.offset)

    def _next_snapshot(self, store: MetadataStore) -> Snapshot | None:
        while True:
            position = self.position
            if not position.is_inside and self.bounds.is_beyond_id(position.snapshot_id):
                self._end()
                return None
            if position.snapshot_id > self.horizon and position.phase is Phase.CHANGES:
                return None
            snapshot = store.find_snapshot(position.snapshot_id)
            if snapshot is None:
                self._skip_lost()
                continue
            if position.is_inside:
                self.table.history.check_seen(snapshot, self.offset)
            elif self.bounds.is_beyond(snapshot):
                self._end()
                return None
            elif self.ready_millis is not None and snapshot.time_millis > self.ready_millis:
                return None
            return snapshot

    def _take(self, snapshot: Snapshot, files: Files) -> None:
        position, limit_by_watermark = self.position, self._limit_by_file
        is_first = True
        for index, entry in self._kept(files):
            self.is_cut = not self._may_take(files, entry, is_first=is_first)
            if self.is_cut or (
                limit_by_watermark is not None and not self._may_take_file(limit_by_watermark, snapshot, entry)
            ):
                self._stop_at(snapshot, position.at(index), is_first=is_first)
                return
            self.budget.take([entry.file])
            self.budget.snapshots += is_first
            is_first = False
            if self.budget.limits == NO_LIMITS and limit_by_watermark is None:
                break  # nothing ends the micro-batch before the last file
        self.offset = replace(
            self.offset,
            position=position.after(),
            seen=snapshot_digest(snapshot),
            watermarks=self._watermarks_after(snapshot, files),
        )
        if self.limit_by_watermark is not None:
            watermark = self._watermark_after(snapshot, self.offset.watermarks)
            self.progress = ReadProgress(watermark=latest_of(self.progress.watermark, watermark))
        is_last_full = position.phase is Phase.FULL and (
            self.bounds.is_beyond(snapshot) or self.bounds.is_beyond_id(snapshot.id + 1)
        )
        if is_last_full:
            self._end()
        elif not is_first:
            self.reached = self.offset

    def _watermarks_after(self, snapshot: Snapshot, files: Files) -> BucketWatermarks | None:
        # Files that a filter prunes count too: event time advances over their rows as well.
        created_from, known = self.offset.created_from, self.offset.watermarks

        def delivered() -> Iterator[ManifestEntry]:
            for entry in files:
                if created_from is None or (entry.file.creation_millis or 0) >= created_from:
                    yield entry

        count = max((entry.total_buckets for entry in delivered()), default=0) if known else 0
        if known and count > 0:  # no rows follow in the buckets that a rescale has removed
            known = tuple(each for each in known if each[0] < count)
        return self.table.times.advance(known, _timed_files(self.table, snapshot, self.position, delivered()))

    def _kept(self, files: Files) -> Iterator[tuple[int, ManifestEntry]]:
        first = self.position.index
        for index, entry in self.table.tasks.kept(files[first:], self.offset.created_from):
            yield first + index, entry

    def _may_take(self, files: Files, entry: ManifestEntry, *, is_first: bool) -> bool:
        if is_first and not self.budget.has_room:
            return False
        if not self.options.align_checkpoints:
            return self.budget.fits([entry.file])
        return not is_first or self.budget.fits(kept.file for _, kept in self._kept(files))

    def _stop_at(self, snapshot: Snapshot, position: Position, *, is_first: bool) -> None:
        if not is_first:
            self.offset = self.reached = replace(self.offset, position=position, seen=snapshot_digest(snapshot))

    def _skip_lost(self) -> None:
        position = Position(snapshot_id=self.table.history.lost(self.position.snapshot_id))
        self.offset = replace(self.offset, position=position, seen=None)

    def _end(self) -> None:
        self.offset = self.reached = replace(self.offset, ended=True)
