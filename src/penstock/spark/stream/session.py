"""A streaming query as its source sees it from trigger to trigger: where it stands, when it may look, who it is."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from penstock.options import ConsumerOptions, ReadOptions, StreamOptions
from penstock.spark.stream.spread import spread_tasks
from penstock.table.lease.files import LEASE_MS
from penstock.table.lease.holder import LeaseKeeper, acquire
from penstock.table.store import MetadataStore
from penstock.table.stream.align.membership import open_membership
from penstock.table.stream.aligned import AlignedScanner
from penstock.table.stream.consumers import check_consumer_id, lease_of, record_progress
from penstock.table.stream.limits import NO_LIMITS, limits_of
from penstock.table.stream.offset import Phase, decode_offset, encode_offset
from penstock.table.stream.scanner import StreamScanner

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef
    from penstock.table.stream.offset import StreamOffset
    from penstock.table.stream.tasks import StreamTask

_DISCOVERY_KEY: Final = "continuous.discovery-interval"
_SPLIT_SIZE_KEY: Final = "source.split.target-size"
# Under the default trigger Spark asks every 10 ms while there is nothing to do.
_LEAST_WAIT_MS: Final = 200
_NOTHING_YET: Final = 0


class StreamSession:
    """Answers for one query, in the process that Spark keeps for its source. Not for several threads.

    Args:
        reader: a text that ``report`` repeats.
        parallelism: tasks that run at the same time; work without an order is cut for so many.
        clock: seconds that only grow.
        sleep: seconds.

    Raises:
        InvalidOptionError: options that contradict each other.
        InvalidFilterError: the filter does not fit the table.
        LeaseHeldError: another query reads as the same consumer.
    """

    def __init__(
        self,
        ref: TableRef,
        predicate: Predicate | None = None,
        *,
        reader: str = "",
        parallelism: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        options = ref.parsed(StreamOptions)
        self._ref = ref
        self._reader = reader
        # Who says how large a split shall be gets it.
        self._parallelism = 1 if _SPLIT_SIZE_KEY in ref.options else parallelism
        self._open_file_cost_bytes = ref.parsed(ReadOptions).split_open_file_cost_bytes
        self._clock = clock
        self._limits = limits_of(options)
        self._wait_ms = options.discovery_interval_ms if _DISCOVERY_KEY in ref.options else _LEAST_WAIT_MS
        self._store = MetadataStore(ref)
        self._follower = StreamScanner(ref, self._store, predicate=predicate)
        self._aligned = AlignedScanner(self._follower, open_membership(ref, clock=clock), clock=clock, sleep=sleep)
        self._until: int | None = None
        self._idle: tuple[dict[str, Any], float, int] | None = None
        self._report: dict[str, Any] | None = None
        self._kept: int | None = None
        self._consumer = ref.parsed(ConsumerOptions).consumer_id
        self._lease = None if self._consumer is None else _lease_consumer(ref, self._consumer)

    def stop_at_latest(self) -> None:
        """Let the snapshot that is the latest now be the last one."""
        self._until = self._follower.latest_id() or _NOTHING_YET

    def join_group(self) -> None:
        """Let the sources that are aligned with this one know of it, before any of a query is asked how far it goes.

        Raises:
            StorageError: they could not be told.
        """
        self._aligned.join()

    def advance(self, start: dict[str, Any], *, applies_limits: bool = True) -> dict[str, Any]:
        """Return the encoded offset at the end of the micro-batch after ``start``, or ``start`` itself.

        Args:
            applies_limits: whether the options for the size of a micro-batch count.

        Raises:
            TableStoreError: as ``StreamScanner.advance``; or the consumer's lease was lost.
        """
        if self._lease is not None:
            self._lease.check()
        if self._is_early(start):
            return start
        given = decode_offset(start)
        following = following_snapshot(given)
        if following != self._kept:
            # Spark asks for more when the micro-batch that ended here is done. It does not say so for the last one.
            self._keep(following)
        offset = replace(given, waits=0)
        limits = self._limits if applies_limits else NO_LIMITS
        if self._until is not None:
            # Nobody would come to fill the micro-batch up.
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
            # A query that ends by itself ends where no offset changes.
            return encode_offset(replace(given, waits=given.waits + 1))
        return start

    def report(self) -> dict[str, Any] | None:
        """Return how far the end of the last micro-batch is behind the table; None before the first look."""
        return self._report

    def plan(self, start: dict[str, Any], end: dict[str, Any]) -> tuple[StreamTask, ...]:
        """Plan the micro-batch between two offsets; the same ones give the same rows in the same order always."""
        first, last = decode_offset(start), decode_offset(end)
        if first.start is None and last.start is not None and last.start.phase is Phase.CHANGES:
            # From the first micro-batch on, replayed or not, what is unread does not expire.
            self._keep(last.start.snapshot_id)
        tasks = self._follower.plan_range(first, last)
        return spread_tasks(tasks, parallelism=self._parallelism, least_bytes=self._open_file_cost_bytes)

    def commit(self, end: dict[str, Any]) -> None:
        """Note that a micro-batch is done."""
        self._keep(following_snapshot(decode_offset(end)))

    def close(self) -> None:
        """Give the consumer's lease back, and leave the group."""
        self._aligned.close()
        if self._lease is not None:
            self._lease.close()

    def _keep(self, following: int | None) -> None:
        if self._consumer is not None and following is not None:
            record_progress(self._store, self._consumer, following)
            self._kept = following

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
            "reader": self._reader,
        }
        return {key: value for key, value in found.items() if value is not None}


def following_snapshot(offset: StreamOffset) -> int | None:
    """Return the first snapshot that is not wholly delivered; None while the first one is read in full.

    A consumer that stood at that one would go on with its changes and miss the rest of it.
    """
    position = offset.position
    return None if position is None or position.phase is Phase.FULL else position.snapshot_id


def _lease_consumer(ref: TableRef, consumer: str) -> LeaseKeeper:
    check_consumer_id(consumer, ref.name)
    return LeaseKeeper(acquire(ref.file_io, ref.location, lease_of(consumer), ttl_ms=LEASE_MS))
