"""State of a streaming query in its source, from trigger to trigger: position, polling interval, consumer lease."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.options import ConsumerOptions, ReadOptions, StreamOptions
from penstock.spark.types import check_columns, check_not_outdated
from penstock.table.lease import LEASE_MS, LeaseKeeper, acquire
from penstock.table.store import MetadataStore
from penstock.table.stream.align.membership import open_membership
from penstock.table.stream.align.progress import AlignmentRule
from penstock.table.stream.aligned import AlignedScanner
from penstock.table.stream.consumers import check_consumer_id, lease_of, record_progress
from penstock.table.stream.event_time import usable_watermark
from penstock.table.stream.files import StreamTask
from penstock.table.stream.limits import NO_LIMITS, Bounds, limits_of
from penstock.table.stream.offset import Phase, decode_offset, encode_offset
from penstock.table.stream.scanner import StreamScanner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.types import StructType

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.predicate.tree import Predicate
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.stream.offset import StreamOffset

_DISCOVERY_KEY: Final = "continuous.discovery-interval"
_SPLIT_SIZE_KEY: Final = "source.split.target-size"
# Under the default trigger Spark polls every 10 ms while there are no new rows.
_MIN_WAIT_MS: Final = 200
_NOTHING_YET: Final = 0


class StreamSession:
    """Plans the micro-batches of one query, in the process that Spark keeps for its source. Not thread-safe.

    Args:
        stream_id: id of the DataFrame of ``read_stream``, which ``report`` repeats; empty for ``readStream.format``.
        cores: returns how many tasks run at the same time, which changes as executors come and go; None if that is not
            known: unordered work is then cut for the cores of this machine, and each bucket keeps a task of its own.
        clock: monotonic, in seconds.
        sleep: takes seconds.
    """

    def __init__(
        self,
        ref: TableRef,
        predicate: Predicate | None = None,
        *,
        stream_id: str = "",
        cores: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        options = ref.parsed(StreamOptions)
        self._ref = ref
        self._stream_id = stream_id
        self._cores = cores
        # A split size that the user sets overrides the number of cores.
        self._tasks = options.scan_parallelism or (1 if _SPLIT_SIZE_KEY in ref.options else None)
        self._open_file_cost_bytes = ref.parsed(ReadOptions).split_open_file_cost_bytes
        self._clock = clock
        self._limits = limits_of(options)
        self._bound = Bounds.describe(options)
        self._wait_ms = options.discovery_interval_ms if _DISCOVERY_KEY in ref.options else _MIN_WAIT_MS
        self._store = MetadataStore(ref)
        self._follower = StreamScanner(ref, self._store, predicate=predicate)
        self._aligned = AlignedScanner(self._follower, open_membership(ref, clock=clock), clock=clock, sleep=sleep)
        self._is_aligned = AlignmentRule.of(ref) is not None
        self._until: int | None = None
        self._idle: tuple[dict[str, Any], float, int] | None = None
        self._report: dict[str, Any] | None = None
        self._recorded: int | None = None
        consumer = ref.parsed(ConsumerOptions)
        self._consumer, self._ignores_progress = consumer.consumer_id, consumer.ignore_progress
        self._lease = None if self._consumer is None else _lease_consumer(ref, self._consumer)

    def stop_at_latest(self) -> None:
        """End the stream with the current latest snapshot."""
        self._until = self._follower.latest_id() or _NOTHING_YET

    def join_group(self) -> None:
        """Register this source in its alignment group, before Spark asks any source of the query for an offset."""
        self._aligned.join()

    def advance(self, start: dict[str, Any], *, applies_limits: bool = True) -> dict[str, Any]:
        """Return the encoded offset at the end of the micro-batch after ``start``, or ``start`` itself.

        Args:
            applies_limits: whether the options that limit a micro-batch apply.
        """
        if self._is_aligned and not applies_limits:
            raise UnsupportedFeatureError(
                f"table {self._ref.name}: option 'scan.watermark.alignment.group' lets a source wait for others, which "
                "a query of a single batch cannot: use trigger(availableNow=True) instead of trigger(once=True)"
            )
        if self._lease is not None:
            self._lease.check()
        if self._is_early(start):
            return start
        start_offset = decode_offset(start)
        self._check_closed(start_offset)
        following = next_undelivered_snapshot(start_offset)
        if following != self._recorded:
            # This call means that the previous micro-batch is done. For the last one, Spark does not call commit().
            self._record_consumer(following, delivered=start_offset)
        offset = replace(start_offset, waits=0)
        limits = self._limits if applies_limits else NO_LIMITS
        if self._until is not None:
            # No later trigger would fill the micro-batch up.
            limits = replace(limits, min_rows=None, max_delay_ms=None)
        if self._until is None:
            end = self._aligned.advance(offset, limits)
        else:
            end = self._aligned.advance_or_wait(offset, limits, until=self._until)
        self._report = self._measure(end)
        if end != offset:
            self._idle = None
            return encode_offset(end)
        if self._aligned.held_by is None:
            self._idle = (start, self._clock(), self._wait_ms)
        elif self._until is None:
            self._idle = (start, self._clock(), self._aligned.update_interval_ms)
        else:
            # Under such a trigger a query ends when no offset changes, so change this one.
            return encode_offset(replace(start_offset, waits=start_offset.waits + 1))
        return start

    def close_input(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the offset of an ended stream, marked as one whose query has emitted all of its state."""
        return encode_offset(replace(decode_offset(start), closed=self._bound))

    def report(self) -> dict[str, Any] | None:
        """Return the lag of the last micro-batch's end behind the table; None before the first ``advance``."""
        return self._report

    def plan(
        self, start: dict[str, Any], end: dict[str, Any], pushed: Predicate | None = None
    ) -> tuple[StreamTask, ...]:
        """Plan the micro-batch between two offsets; the same offsets always give the same rows in the same order.

        Args:
            pushed: skips files, as for ``StreamScanner.plan_range``.
        """
        first, last = decode_offset(start), decode_offset(end)
        if first.start is None and last.start is not None and last.start.phase is Phase.CHANGES:
            # Protect unread snapshots from expiry from the first micro-batch on, replayed or not.
            self._record_consumer(last.start.snapshot_id, moves_back=self._ignores_progress)
        cores = None if self._cores is None else self._cores()
        tasks = self._follower.plan_range(first, last, pushed, cores)
        parallelism = self._tasks or cores or os.cpu_count() or 1
        return spread_tasks(tasks, parallelism=parallelism, least_bytes=self._open_file_cost_bytes)

    def commit(self, end: dict[str, Any]) -> None:
        """Move the consumer after a micro-batch."""
        self._record_consumer(next_undelivered_snapshot(decode_offset(end)))

    def close(self) -> None:
        """Release the consumer's lease, and leave the alignment group."""
        self._aligned.close()
        if self._lease is not None:
            self._lease.close()

    def _record_consumer(
        self, following: int | None, *, delivered: StreamOffset | None = None, moves_back: bool = False
    ) -> None:
        if self._consumer is not None and following is not None:
            if delivered is not None:
                self._follower.check_delivered(delivered)
            record_progress(self._store, self._consumer, following, moves_back=moves_back)
            self._recorded = following

    def _check_closed(self, offset: StreamOffset) -> None:
        if offset.closed is not None and offset.closed != self._bound:
            raise InvalidOptionError(
                f"table {self._ref.name}: this query has ended with the bound {offset.closed}, and has delivered the "
                "rows that it kept until then, such as its last windows; Spark would drop all rows that follow as "
                "late: start it with that bound, or with a new checkpoint"
            )

    def _is_early(self, start: dict[str, Any]) -> bool:
        if self._idle is None or self._until is not None:
            return False
        seen, seconds, wait_ms = self._idle
        return seen == start and (self._clock() - seconds) * 1000 < wait_ms

    def _measure(self, end: StreamOffset) -> dict[str, Any]:
        backlog = self._follower.measure_backlog(end)
        found = {
            "snapshot": backlog.latest_snapshot_id,
            "snapshots_behind": backlog.snapshots,
            "files_behind": backlog.files,
            "bytes_behind": backlog.bytes,
            "rows_behind": backlog.rows,
            "is_partial": backlog.is_partial,
            "event_time_lag_ms": backlog.event_time_lag_ms,
            "waits_for": None if self._aligned.held_by is None else self._aligned.held_by.table,
            "table": self._ref.name,
            "reader": self._stream_id,
        }
        return {key: value for key, value in found.items() if value is not None}


def open_session(
    ref: TableRef,
    schema: StructType,
    predicate: Predicate | None,
    *,
    cores: Callable[[], int] | None = None,
    stream_id: str = "",
    is_inferred: bool = False,
) -> StreamSession:
    """Open the session of a query whose columns Spark has already fixed.

    Args:
        schema: the columns that Spark expects.
        cores: see ``StreamSession``.
        is_inferred: whether Spark got the columns from Penstock, and not from the user.
    """
    if is_inferred:
        check_not_outdated(ref, schema)
    declared = usable_watermark(ref)
    check_columns(ref, schema, event_time=None if declared is None else declared.column)
    return StreamSession(ref, predicate, stream_id=stream_id, cores=cores)


def next_undelivered_snapshot(offset: StreamOffset) -> int | None:
    """Return the first snapshot that is not completely delivered; None while the first snapshot is read in full.

    A consumer set to that snapshot would continue with its changes only, and miss the rest of its rows.
    """
    position = offset.position
    return None if position is None or position.phase is Phase.FULL else position.snapshot_id


def _lease_consumer(ref: TableRef, consumer: str) -> LeaseKeeper:
    check_consumer_id(consumer, ref.name)
    return LeaseKeeper(acquire(ref.file_io, ref.location, lease_of(consumer), ttl_ms=LEASE_MS))


def spread_tasks(tasks: Sequence[StreamTask], *, parallelism: int, least_bytes: int) -> tuple[StreamTask, ...]:
    """Cut unordered tasks if fewer tasks than ``parallelism`` exist; ordered tasks are not changed.

    Args:
        parallelism: number of tasks that run at the same time.
        least_bytes: smallest size of the files of a new task, in bytes on storage.

    Returns:
        Tasks with the same files in the same order; new tasks have about equal bytes. No file is divided.
    """
    loose = [(split, file) for task in tasks if task.bucket < 0 for split in task.splits for file in split.files]
    total_bytes = sum(file.file_size for _, file in loose)
    count = min(parallelism, total_bytes // max(1, least_bytes))
    if len(tasks) >= count:
        return tuple(tasks)
    runs: list[list[tuple[DataSplit, DataFileMeta]]] = [[] for _ in range(count)]
    before = 0
    for split, file in loose:
        # Assign a file by its middle, so that no run gets much more than its share.
        middle = min(before + file.file_size // 2, total_bytes - 1)
        runs[middle * count // total_bytes].append((split, file))
        before += file.file_size
    ordered = [task for task in tasks if task.bucket >= 0]
    return (*ordered, *(StreamTask(bucket=-1, splits=_joined(run)) for run in runs if run))


def _joined(run: Sequence[tuple[DataSplit, DataFileMeta]]) -> tuple[DataSplit, ...]:
    groups = (list(group) for _, group in groupby(run, key=lambda each: id(each[0])))
    return tuple(replace(group[0][0], files=tuple(file for _, file in group)) for group in groups)
