"""Follows a table as a stream: plans where a micro-batch ends, and what its tasks read.

Source:
    Paimon ``core:table/source/DataTableStreamScan.java``; docs/spec/streaming.md sections 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import DataLossError, InvalidOptionError, OptionWarning, warn
from penstock.options import ConsumerOptions, StreamOptions, check_reads
from penstock.table.stream.backlog import Backlog, BacklogCache, measure_backlog
from penstock.table.stream.event_time import EventTimes
from penstock.table.stream.files import Delivery, FileLists, StreamTask, TaskPlanner
from penstock.table.stream.history import History, snapshot_digest
from penstock.table.stream.limits import Bounds, Budget, ReadLimits, limits_of
from penstock.table.stream.offset import Position, StreamOffset
from penstock.table.stream.planner import MicroBatchPlanner, ReadProgress, TableReaders, load_files, load_progress
from penstock.table.stream.start import StreamStart, check_start, read_options, resolve_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.stream.align.progress import WatermarkLimit

# After this many snapshots without rows the offset moves all the same, so that it does not point to expired snapshots.
_MAX_SKIPPED: Final = 50
# A micro-batch waits while this many snapshots of the backlog are measured: about a hundred reads of storage.
_COUNTED_SNAPSHOTS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pause:
    """A plan that has found too few rows, and continues when there are more snapshots.

    Attributes:
        resolved: the start offset of the micro-batch.
        planner: its state, with which to continue.
        since_millis: when the first of its rows were found.
    """

    resolved: StreamOffset
    planner: MicroBatchPlanner
    since_millis: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEnd:
    """Where a micro-batch ends.

    Attributes:
        watermark: after the planned rows or, if these have none, after the next rows. None if unknown, and for a stream
            without a group.
        is_held: it ended because the others of the group lag too far; there are more rows.
        has_rows: rows are planned; for a stream of a group only.
    """

    offset: StreamOffset
    watermark: int | None = None
    is_held: bool = False
    has_rows: bool = False


class StreamScanner:
    """Follows one table. It caches metadata between calls, but a new scanner returns the same results.

    Not for several threads; not picklable.

    Args:
        ref: its schema is the read schema, its options are those of the read.
        predicate: prunes files; the splits carry the part that must still be applied to rows.
        clock_millis: ms since 1970-01-01 UTC.
    """

    def __init__(
        self,
        ref: TableRef,
        store: MetadataStore,
        *,
        predicate: Predicate | None = None,
        clock_millis: Callable[[], int] = utc_millis,
    ) -> None:
        self._ref = ref
        self._store = store
        self._clock_millis = clock_millis
        check_reads(ref.options, ref.name)
        self._read = read_options(ref)
        self._options = ref.parsed(StreamOptions)
        check_start(self._read, ref.name)
        _check_stream(self._options, ref.name)
        self._history = History(store, fails=self._options.fail_on_data_loss)
        tasks = TaskPlanner(ref, store, predicate)
        files, times = FileLists(ref, store), EventTimes(ref, store)
        self._table = TableReaders(store=store, history=self._history, files=files, tasks=tasks, times=times)
        self._backlog = BacklogCache(files=self._table.files, max_looks=_COUNTED_SNAPSHOTS)
        self._snapshots: dict[int, Snapshot] = {}
        self._skipped: tuple[StreamOffset, StreamOffset] | None = None
        self._pause: _Pause | None = None
        self._last_progress: tuple[StreamOffset, ReadProgress] | None = None
        self._has_warned = False
        self._latest_id: int | None = None

    def latest_id(self) -> int | None:
        """Return the id of the latest snapshot; None when nothing was ever committed."""
        return self._store.latest_snapshot_id()

    def check_delivered(self, offset: StreamOffset) -> None:
        """Raise ``DataLossError`` if the snapshots before an offset were rolled back: no consumer may move there."""
        self._history.check_delivered(offset)

    def advance(
        self,
        offset: StreamOffset,
        limits: ReadLimits,
        *,
        until: int | None = None,
    ) -> StreamOffset:
        """Advance by one micro-batch outside of any group; as ``plan_batch``, which returns more."""
        return self.plan_batch(offset, limits, until=until).offset

    def plan_batch(
        self,
        offset: StreamOffset,
        limits: ReadLimits,
        *,
        until: int | None = None,
        limit_by_watermark: WatermarkLimit | None = None,
    ) -> BatchEnd:
        """Find where the next micro-batch ends.

        The first call that resolves where the stream begins returns that offset even without rows, so that a checkpoint
        stores it. Later the offset moves only when there are rows, when the stream ends, or when at least 50 snapshots
        had no rows.

        Args:
            offset: where the micro-batch starts.
            limits: the first one reached ends the micro-batch; at least one file is always taken.
            until: the last snapshot to read; None for the latest. If it is set, no micro-batch waits for more rows.
            limit_by_watermark: how far the alignment group lets the stream go.
        """
        self._latest_id = None
        if offset.ended:
            return BatchEnd(offset=offset)
        if offset.start is not None:
            self._check_resumed(offset)
        resolved = self._begin() if offset.start is None else offset
        if resolved is None or resolved.ended or resolved.position is None:
            return BatchEnd(offset=resolved or offset)
        self._table.files.forget_before(resolved.position.snapshot_id)
        latest = self._latest_id = self._store.latest_snapshot_id()
        horizon = latest if until is None else min(until, latest or 0)
        planner = self._resumed_planner(resolved, limits, horizon, limit_by_watermark, may_wait=until is None)
        try:
            self._run(planner, latest)
        except DataLossError:
            if planner.start == resolved:
                raise
            # The snapshots skipped or planned since ``resolved`` were not delivered: their rollback loses nothing.
            self._skipped = self._pause = None
            planner = self._new_planner(resolved, resolved, limits, horizon, limit_by_watermark)
            self._run(planner, latest)
        self._snapshots = planner.snapshots
        end = self._outcome(resolved, planner, may_wait=until is None)
        if limit_by_watermark is None or self._pause is not None:
            return BatchEnd(offset=end, watermark=planner.next_watermark, is_held=planner.is_held)
        self._last_progress = (planner.offset, planner.progress)
        reached = planner.progress.watermark
        return BatchEnd(
            offset=end,
            watermark=planner.next_watermark if reached is None else reached,
            is_held=planner.is_held,
            has_rows=planner.budget.files > 0,
        )

    def plan_range(
        self, start: StreamOffset, end: StreamOffset, pushed: Predicate | None = None, cores: int | None = None
    ) -> tuple[StreamTask, ...]:
        """Plan the tasks of a micro-batch; every call with the same arguments returns the same, in any process.

        Args:
            start: unresolved for the first micro-batch; it then begins at the stream's start, which ``end`` holds.
            end: as returned by ``advance``.
            pushed: skips files of this micro-batch only, so that it never has an effect on offsets; the rows of the
                other files still have to be filtered by it.
            cores: see ``TaskPlanner.plan``.
        """
        first = start.position or end.start
        if first is None or end.position is None or first == end.position:
            return ()
        self._history.check_table(end)
        pruner = None if pushed is None else TaskPlanner(self._ref, self._store, pushed)
        return self._table.tasks.plan(self._deliveries(first, end.position, end, pruner), cores)

    def measure_backlog(self, offset: StreamOffset) -> Backlog:
        """Measure the backlog after an offset with a cache; each call measures at most 32 more snapshots.

        It is measured up to the snapshot that the last ``advance`` has found, so that it costs no additional request.


        """
        return measure_backlog(self._store, self._ref, offset, self._backlog, latest_id=self._latest_id)

    def _begin(self) -> StreamOffset | None:
        consumer = self._ref.parsed(ConsumerOptions)
        last_id = (self._store.latest_snapshot_id() or 0) if self._options.bounded else None
        start = resolve_start(self._store, self._ref, self._read, consumer)
        if start is None and last_id is not None:
            # The start does not exist, and later snapshots are not part of a bounded stream: it ends without rows.
            start = StreamStart(position=Position(snapshot_id=last_id + 1))
        if start is None:
            return None
        position = start.position
        snapshot = self._store.find_snapshot(position.rests_on) if position.rests_on > 0 else None
        bounds = Bounds.of(self._options, last_id)
        return StreamOffset(
            start=position,
            position=position,
            by_value=self._read.plan_sort_partition,
            ended=not position.is_inside
            and (bounds.is_beyond_id(position.snapshot_id) or (snapshot is not None and bounds.is_beyond(snapshot))),
            table=self._history.load_table_digest(),
            overwrites=self._options.read_append_overwrite,
            seen=None if snapshot is None else snapshot_digest(snapshot),
            created_from=start.created_from,
            last_id=last_id,
            watermarks=self._table.times.advance(None, ()),
        )

    def _check_resumed(self, offset: StreamOffset) -> None:
        """Raise if the table is not that of the offset; warn if its order of partitions has changed."""
        self._history.check_table(offset)
        if offset.by_value != self._read.plan_sort_partition and not self._has_warned:
            self._has_warned = True
            warn(
                f"table {self._ref.name}: option 'scan.plan-sort-partition' has changed, but a query keeps the order "
                "of partitions that it began with; start it with a new checkpoint to change that",
                OptionWarning,
            )

    def _resumed_planner(
        self,
        resolved: StreamOffset,
        limits: ReadLimits,
        horizon: int | None,
        limit_by_watermark: WatermarkLimit | None,
        *,
        may_wait: bool,
    ) -> MicroBatchPlanner:
        """Return a planner that continues after the snapshots that earlier calls with this offset handled."""
        pause = self._pause
        if may_wait and pause is not None and pause.resolved == resolved and pause.planner.budget.limits == limits:
            pause.planner.extend_to(horizon or 0, self._ready_millis(), limit_by_watermark)
            return pause.planner
        skipped = self._skipped
        offset = skipped[1] if skipped is not None and skipped[0] == resolved else resolved
        return self._new_planner(resolved, offset, limits, horizon, limit_by_watermark)

    def _new_planner(
        self,
        resolved: StreamOffset,
        offset: StreamOffset,
        limits: ReadLimits,
        horizon: int | None,
        limit_by_watermark: WatermarkLimit | None,
    ) -> MicroBatchPlanner:
        return MicroBatchPlanner(
            table=self._table,
            options=self._options,
            bounds=Bounds.of(self._options, resolved.last_id),
            start=offset,
            offset=replace(offset, overwrites=self._options.read_append_overwrite),
            reached=resolved,
            budget=Budget(limits=limits),
            horizon=horizon or 0,
            ready_millis=self._ready_millis(),
            limit_by_watermark=limit_by_watermark,
            progress=ReadProgress() if limit_by_watermark is None else self._progress_at(offset),
        )

    def _progress_at(self, offset: StreamOffset) -> ReadProgress:
        if self._last_progress is not None and self._last_progress[0] == offset:
            return self._last_progress[1]
        return ReadProgress() if offset.position is None else load_progress(self._table, offset, offset.position)

    def _ready_millis(self) -> int | None:
        delay = self._options.snapshot_delay_ms
        return None if delay is None else self._clock_millis() - delay

    def _run(self, planner: MicroBatchPlanner, latest: int | None) -> None:
        self._history.check_reach(planner.position, planner.offset, latest)
        planner.run()

    def _outcome(self, resolved: StreamOffset, planner: MicroBatchPlanner, *, may_wait: bool) -> StreamOffset:
        if planner.offset.ended:
            return planner.offset
        self._skipped = (planner.reached, planner.offset)
        is_too_little = may_wait and not planner.is_cut and planner.budget.is_too_little
        self._pause = self._paused(resolved, planner) if is_too_little else None
        if self._pause is not None:
            return resolved
        if planner.budget.files == 0 and resolved.position is not None:
            skipped = planner.position.snapshot_id - resolved.position.snapshot_id
            return planner.offset if skipped >= _MAX_SKIPPED else resolved
        return planner.reached

    def _paused(self, resolved: StreamOffset, planner: MicroBatchPlanner) -> _Pause | None:
        """Pause a plan with too few rows; return None when it has waited for ``max_delay_ms`` since they were found."""
        now, pause = self._clock_millis(), self._pause
        since = pause.since_millis if pause is not None and pause.resolved == resolved else now
        if now - since >= (planner.budget.limits.max_delay_ms or 0):
            return None
        return _Pause(resolved=resolved, planner=planner, since_millis=since)

    def _deliveries(
        self, first: Position, last: Position, end: StreamOffset, pruner: TaskPlanner | None
    ) -> Iterator[Delivery]:
        position = first
        while position != last and position.snapshot_id <= last.snapshot_id:
            is_last = (position.snapshot_id, position.phase) == (last.snapshot_id, last.phase)
            snapshot = self._find(position, end, last)
            files = None if snapshot is None else load_files(self._table, snapshot, last if is_last else position, end)
            if files is None:
                position = Position(snapshot_id=self._history.lost(position.snapshot_id))
                continue
            left = files[position.index : last.index if is_last else None]
            kept = self._table.tasks.kept(left, end.created_from)
            if pruner is not None:
                kept = pruner.kept([entry for _, entry in kept], None)
            vectors = {} if snapshot is None else self._table.files.load_vectors(snapshot)
            for _, entry in kept:
                yield Delivery(position.snapshot_id, entry, vectors.get(entry.key))
            position = last if is_last else position.after()

    def _find(self, position: Position, end: StreamOffset, last: Position) -> Snapshot | None:
        """Load a snapshot of a range; check that the last one is still the one that the end offset was made with."""
        snapshot = self._snapshots.get(position.snapshot_id) or self._store.find_snapshot(position.snapshot_id)
        if snapshot is not None and position.snapshot_id == last.rests_on:
            self._history.check_seen(snapshot, end)
        return snapshot


def _check_stream(options: StreamOptions, table: str) -> None:
    limits_of(options)
    if options.read_overwrite:
        raise InvalidOptionError(
            f"table {table}: option 'streaming-read-overwrite' is for tables with a primary key; to deliver what an "
            "overwrite writes set 'streaming-read-append-overwrite' = 'true'"
        )
