"""Marks partitions done: manually, all that are due, and while a job writes to a table.

A partition is done when both its end and its last rows are more than the idle time ago. Flink stores the pending
partitions in its state; here they are derived from the table: when a job starts, those whose mark is missing or older
than their rows; then those to which its own commits add rows. design/0013 has the reasons.

Source:
    Paimon ``flink:sink/listener/PartitionMarkDoneTrigger.java``, ``PartitionMarkDoneListener.java``,
    ``flink:procedure/MarkPartitionDoneProcedure.java``; docs/spec/commit.md section 7.3.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import InvalidOptionError
from penstock.format.row.row import row_decoder
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from penstock.options import MarkDoneMode, MarkDoneOptions
from penstock.printable import open_log
from penstock.table.mark_done.marks import (
    Ledger,
    Marked,
    add_to_ledger,
    check_actions,
    find_partitions,
    is_in_ledger,
    ledger_entries,
    load_ledger,
    load_live_partitions,
    load_marked,
    mark_done,
    save_ledger,
)
from penstock.table.read.live import load_written_partitions
from penstock.table.read.travel import find_at_or_after, newest_by_time, watermark_of
from penstock.table.success import find_success
from penstock.table.times import instant, partition_time_parser, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.format.snapshot import Snapshot
    from penstock.table.mark_done.marks import DonePartition, LivePartition
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_LOG: Final = open_log(__name__)
_LONG_AGO: Final = -(2**63)
_NEVER: Final = 2**63
# If several jobs start within a short time, not all of them check all partitions.
_RECHECK_INTERVAL_MS: Final = 3_600_000
_NAMES_IN_LOG: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWrite:
    """When a partition last received rows.

    Attributes:
        clock: by the clock of the mode: ms of processing time or event time.
        millis: ms since 1970-01-01 UTC, so that a later mark includes these rows; None for partitions found at start,
            whose last write only the files show.
    """

    clock: int
    millis: int | None


class DoneWatch:
    """Watches the partitions of one table for as long as a job commits to it.

    ``add_commit`` may be called while another thread is in one of the others.

    Args:
        clock_millis: now, ms since 1970-01-01 UTC.
    """

    def __init__(self, ref: TableRef, options: MarkDoneOptions, *, clock_millis: Callable[[], int]) -> None:
        check_actions(options, ref.name)
        self._ref = ref
        self._options = options
        self._now = clock_millis
        self._by_watermark = options.mode is MarkDoneMode.WATERMARK
        self._decode = row_decoder(tuple(field.type for field in ref.schema.partition_fields))
        self._time_of = partition_time_parser(
            ref.schema.partition_fields,
            pattern=options.timestamp_pattern,
            formatter=options.timestamp_formatter,
            table=ref.name,
        )
        self._ends: dict[bytes, int | None] = {}
        self._commits: deque[tuple[Snapshot, frozenset[bytes], int]] = deque()
        self._pending: dict[bytes, LastWrite] = {}
        # Their input has ended, so they are done at any time.
        self._ended: set[bytes] = set()
        # Until this job has checked all partitions: when it has to, by its own clock and by the configured one.
        self._recheck_at: tuple[int, int] | None = (0, _LONG_AGO) if options.recover and options.is_by_time else None
        # Marks that are not in the ledger yet.
        self._new_ledger: Ledger | None = None
        self._found_marks: dict[str, Marked] = {}

    def add_commit(self, store: MetadataStore, snapshot: Snapshot) -> None:
        """Add the partitions of a snapshot that this job has committed.

        Args:
            store: that of the committer, which has cached what it wrote.
        """
        if snapshot.commit_kind is not CommitKind.COMPACT:
            self._commits.append((snapshot, load_written_partitions(store, snapshot), self._now()))

    def mark_due(self, store: MetadataStore, latest: Snapshot) -> tuple[DonePartition, ...]:
        """Mark the partitions that are done as of a snapshot that this job has committed; no request if there are none.

        Args:
            latest: newer snapshots are not read.

        Raises:
            TableStoreError: not all could be marked; the next call continues.
        """
        self._apply_commits()
        if latest.commit_kind is not CommitKind.COMPACT:  # a job that only merges does not mark
            self._recover_in_turn(store, latest)
        return self._mark(self.find_due(store, latest))

    def check_on_idle(
        self, store: MetadataStore, load_latest: Callable[[], Snapshot | None]
    ) -> tuple[DonePartition, ...]:
        """Mark the partitions that are done by the clock alone, without a new commit.

        Args:
            load_latest: called only when partitions may be due, or the job has committed no snapshot yet.
        """
        if self._by_watermark or not (self._is_to_recover(self._now()) or self._due(self._now())):
            return ()
        latest = load_latest()
        if latest is None:
            return ()
        self._recover_in_turn(store, latest)
        return self._mark(self.find_due(store, latest))

    def recover(self, store: MetadataStore, latest: Snapshot, ledger: Ledger) -> Ledger:
        """Also watch partitions that earlier jobs may have left unmarked; reads all manifests.

        Returns:
            The new ledger, without dropped partitions, and with the time at which the next one is due.
        """
        live = load_live_partitions(self._ref, store, latest)
        for data, each in live.items():
            if self._end(data) is not None and not is_in_ledger(each, ledger):
                self._pending.setdefault(data, LastWrite(clock=_LONG_AGO, millis=None))
        directories = {each.directory for each in live.values()}
        clock = self._clock(latest)
        dues = [self._due_at(data, last_write) for data, last_write in self._pending.items()]
        return Ledger(
            checked_millis=self._now(),
            # Those that are due are marked now.
            next_due=min((due for due in dues if clock is None or due >= clock), default=None),
            partitions={name: marked for name, marked in ledger.partitions.items() if name in directories},
        )

    def find_due(self, store: MetadataStore, latest: Snapshot) -> tuple[LivePartition, ...]:
        """Find the partitions to mark now, in order of their ends."""
        due, ended = self._due(self._clock(latest)), frozenset(self._ended)
        if not due | ended:
            return ()
        live = load_live_partitions(self._ref, store, latest, due | ended)
        for data in (due | ended) - live.keys():  # dropped meanwhile
            self._pending.pop(data, None)
            self._ended.discard(data)
        self._forget_marked([live[data] for data in due & live.keys() if self._pending[data].millis is None])
        ready = [
            each
            for data, each in live.items()
            if data in ended or (data in self._pending and self._is_still_due(store, latest, each))
        ]
        return tuple(sorted(ready, key=lambda each: (self._end(each.data) or 0, each.directory)))

    def _is_to_recover(self, clock: int) -> bool:
        return self._recheck_at is not None and (self._now() >= self._recheck_at[0] or clock > self._recheck_at[1])

    def _recover_in_turn(self, store: MetadataStore, latest: Snapshot) -> None:
        """Recover once per job, and not before a partition that no other job has marked can be due."""
        clock = self._clock(latest)
        if clock is None or not self._is_to_recover(clock):
            return
        ledger = load_ledger(self._ref.file_io, self._ref.location)
        # Partitions with rows since that check cannot be done before the idle time has passed.
        pause = min(self._options.idle_time_ms or 0, _RECHECK_INTERVAL_MS)
        due = _NEVER if ledger.next_due is None else ledger.next_due
        self._recheck_at = (ledger.checked_millis + pause, due)
        if self._is_to_recover(clock):
            self._new_ledger = self.recover(store, latest, ledger)
            self._recheck_at = None

    def _apply_commits(self) -> None:
        while self._commits:
            snapshot, partitions, millis = self._commits.popleft()
            if self._options.at_end_of_input and snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
                self._ended |= partitions
            clock = _event_time(snapshot) if self._by_watermark else millis
            for data in partitions if self._options.is_by_time else ():
                if self._end(data) is not None:
                    self._pending[data] = LastWrite(clock=clock, millis=millis)

    def _clock(self, latest: Snapshot) -> int | None:
        return watermark_of(latest) if self._by_watermark else self._now()

    def _end(self, data: bytes) -> int | None:
        """Return the end of a partition, in ms; None for those without a time."""
        if data not in self._ends:
            time = self._time_of(self._decode(data))
            start = None if time is None else instant(time, UTC if self._by_watermark else None)
            self._ends[data] = None if start is None else start + (self._options.time_interval_ms or 0)
        return self._ends[data]

    def _due(self, clock: int | None) -> frozenset[bytes]:
        if clock is None:
            return frozenset()
        return frozenset(data for data, last_write in self._pending.items() if self._is_due(data, last_write, clock))

    def _is_due(self, data: bytes, last_write: LastWrite, clock: int) -> bool:
        return clock > self._due_at(data, last_write)

    def _due_at(self, data: bytes, last_write: LastWrite) -> int:
        """Return the time that the clock has to pass."""
        return max(self._end(data) or 0, last_write.clock) + (self._options.idle_time_ms or 0)

    def _forget_marked(self, partitions: list[LivePartition]) -> None:
        """Stop watching partitions that have a mark since their last rows."""
        if not partitions:
            return
        ledger = load_ledger(self._ref.file_io, self._ref.location)
        marked = load_marked(self._ref, partitions, ledger)
        for each in partitions:
            if each.directory in marked:
                del self._pending[each.data]
        self._found_marks |= {each: mark for each, mark in marked.items() if ledger.partitions.get(each) != mark}

    def _is_still_due(self, store: MetadataStore, latest: Snapshot, partition: LivePartition) -> bool:
        """Check whether other jobs have written to a partition that is due for this job, or have marked it."""
        last_write = self._pending[partition.data]
        if partition.written_millis is not None:
            clock_time = wall_clock(partition.written_millis, UTC)
            written = (None if clock_time is None else instant(clock_time, None)) or 0
            if last_write.millis is None or written > last_write.millis:
                clock = _watermark_then(store, latest, written) if self._by_watermark else written
                last_write = LastWrite(
                    clock=max(clock, last_write.clock), millis=None if last_write.millis is None else written
                )
        if not self._is_due(partition.data, last_write, self._clock(latest) or 0):
            self._pending[partition.data] = last_write
            return False
        if last_write.millis is not None:
            success = find_success(self._ref.file_io, self._ref.layout.partition_success_path(partition.directory))
            if success is not None and success.modification_millis > last_write.millis:
                del self._pending[partition.data]
                return False
        return True

    def _mark(self, partitions: tuple[LivePartition, ...]) -> tuple[DonePartition, ...]:
        done = mark_done(self._ref, partitions, now_millis=self._now())
        for each in partitions:
            self._pending.pop(each.data, None)
            self._ended.discard(each.data)
        self._remember({**self._found_marks, **ledger_entries(done)})
        if not done:
            return ()
        names = ", ".join(each.directory for each in done[:_NAMES_IN_LOG])
        more = f" and {len(done) - _NAMES_IN_LOG} more" if len(done) > _NAMES_IN_LOG else ""
        _LOG.info("table %s: marked done: %s%s", self._ref.name, names, more)
        return done

    def _remember(self, marked: dict[str, Marked]) -> None:
        """Write the ledger if it has changed, after the marks, so that it contains only existing marks."""
        file_io, location = self._ref.file_io, self._ref.location
        if self._new_ledger is not None:
            save_ledger(
                file_io, location, replace(self._new_ledger, partitions={**self._new_ledger.partitions, **marked})
            )
        elif marked:
            add_to_ledger(file_io, location, marked)
        self._new_ledger, self._found_marks = None, {}


def _event_time(snapshot: Snapshot) -> int:
    watermark = watermark_of(snapshot)
    return _LONG_AGO if watermark is None else watermark


def _watermark_then(store: MetadataStore, latest: Snapshot, millis: int) -> int:
    """Return the watermark of the first snapshot since a time; if it may have expired, a very old one."""
    before = newest_by_time(store, latest, millis)
    if before is None:
        return _LONG_AGO
    following = None if before.id >= latest.id else find_at_or_after(store, before.id + 1)
    return _event_time(following or latest)


def open_done_watch(ref: TableRef, *, clock_millis: Callable[[], int]) -> DoneWatch | None:
    """Return a watch over the partitions of a table, if its options require one."""
    options = ref.parsed(MarkDoneOptions)
    if not ref.schema.partition_keys:
        return None
    if options.idle_time_ms is not None and options.time_interval_ms is None:
        _LOG.warning(
            "table %s: option 'partition.idle-time-to-done' marks no partition done without 'partition.time-interval', "
            "such as '1 d' for daily ones",
            ref.name,
        )
    if not options.is_by_time and not options.at_end_of_input:
        return None
    return DoneWatch(ref, options, clock_millis=clock_millis)


def mark_named_partitions(
    ref: TableRef, store: MetadataStore, specs: Sequence[Mapping[str, object]], *, dry_run: bool = False
) -> tuple[DonePartition, ...]:
    """Mark the partitions that match at least one spec, even if already done.

    Args:
        dry_run: only return which.
    """
    check_actions(ref.parsed(MarkDoneOptions), ref.name)
    done = mark_done(ref, find_partitions(ref, store, specs), dry_run=dry_run)
    if not dry_run:
        add_to_ledger(ref.file_io, ref.location, ledger_entries(each for each in done if each.rows))
    return done


def mark_due_partitions(ref: TableRef, store: MetadataStore, *, dry_run: bool = False) -> tuple[DonePartition, ...]:
    """Mark the partitions that are done by the table's options and have no mark since their last rows.

    Args:
        dry_run: only return which.
    """
    options = ref.parsed(MarkDoneOptions)
    if not options.is_by_time or not ref.schema.partition_keys:
        raise InvalidOptionError(
            f"table {ref.name}: only a partitioned table with the options 'partition.idle-time-to-done' and "
            "'partition.time-interval' determines which partitions are done; otherwise name them"
        )
    watch = DoneWatch(ref, replace(options, recover=True), clock_millis=utc_millis)
    latest = store.load_latest_snapshot()
    if latest is None:
        return ()
    watch.recover(store, latest, load_ledger(ref.file_io, ref.location))
    done = mark_done(ref, watch.find_due(store, latest), dry_run=dry_run)
    if not dry_run and done:
        add_to_ledger(ref.file_io, ref.location, ledger_entries(done))
    return done
