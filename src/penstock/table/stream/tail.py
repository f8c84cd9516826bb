"""Reads a stream in this process, without Spark."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Final

from penstock.options import ConsumerOptions
from penstock.table.lease import LeaseKeeper, acquire
from penstock.table.read.batches import TableReader
from penstock.table.stream.align.membership import open_membership
from penstock.table.stream.aligned import AlignedScanner
from penstock.table.stream.consumers import check_consumer_id, lease_of, record_progress
from penstock.table.stream.limits import ReadLimits
from penstock.table.stream.offset import UNRESOLVED, Phase
from penstock.table.stream.scanner import StreamScanner

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    import pyarrow as pa

    from penstock.predicate.tree import Predicate
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.stream.files import StreamTask
    from penstock.table.stream.offset import Position, StreamOffset

# Each step reads one snapshot, so all rows of a snapshot are delivered before those of the next one.
_ONE_SNAPSHOT: Final = ReadLimits(max_snapshots=1)
# A consumer without new rows writes its position again in this interval, so that it does not expire.
_ALIVE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PollOptions:
    """How a reader polls for new snapshots.

    Attributes:
        interval_ms: pause after a poll that found nothing.
        once: end when a poll finds no rows, and no other source of an alignment group holds any back.
        sleep: seconds.
    """

    interval_ms: int = 1_000
    once: bool = False
    sleep: Callable[[float], None] = time.sleep


class LocalStreamReader:
    """Reads a table as a stream, in this process, snapshot by snapshot.

    In a snapshot, partitions are read in the order of the stream; in a partition, bucket after bucket; in a bucket of a
    queue, rows keep the order of writes. Not for several threads.

    Args:
        ref: its options set where the stream begins and ends, and its alignment group; with ``consumer-id`` the
            position is stored in the table.
        columns: names in the desired order; None for all.
        on_snapshot: called before the rows of each snapshot.

    Attributes:
        schema: of every batch.
    """

    def __init__(
        self,
        ref: TableRef,
        store: MetadataStore,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        on_snapshot: Callable[[int, Phase], None] | None = None,
    ) -> None:
        self._ref = ref
        self._store = store
        self._on_snapshot = on_snapshot
        consumer = ref.parsed(ConsumerOptions)
        self._consumer, self._ignores_progress = consumer.consumer_id, consumer.ignore_progress
        if self._consumer is not None:
            check_consumer_id(self._consumer, ref.name)
        self._follower = StreamScanner(ref, store, predicate=predicate)
        self._aligned = AlignedScanner(self._follower, open_membership(ref))
        self._reader = TableReader(ref, store, columns)
        self.schema = self._reader.schema

    def read(self, waiting: PollOptions, *, limit: int | None = None) -> Generator[pa.RecordBatch]:
        """Yield rows until the stream's bound, or forever, holding the consumer's lease.

        The consumer's position advances when the caller requests the next row after the last one of a snapshot. A
        snapshot that was not read to its end is read again by the next reader with this consumer id.

        Args:
            waiting: how to poll.
            limit: maximum number of rows; None for all.
        """
        if limit == 0:
            return
        with ExitStack() as stack:
            stack.callback(self._aligned.close)
            keeper = None
            if self._consumer is not None:
                lease = acquire(self._ref.file_io, self._ref.location, lease_of(self._consumer))
                keeper = stack.enter_context(LeaseKeeper(lease))
            left = limit
            is_kept = False
            for offset, batches in self._steps(waiting):
                if not is_kept:  # from now on unread snapshots do not expire
                    self._keep(offset.start, keeper, moves_back=self._ignores_progress)
                    is_kept = True
                for batch in batches:
                    if left is not None and batch.num_rows > left:
                        if left:
                            yield batch.slice(0, left)
                        return
                    yield batch
                    left = None if left is None else left - batch.num_rows
                if self._consumer is not None:
                    self._follower.check_delivered(offset)
                self._keep(offset.position, keeper)
                if left == 0:
                    return

    def _steps(self, waiting: PollOptions) -> Iterator[tuple[StreamOffset, Iterable[pa.RecordBatch]]]:
        """Yield the end offset of each step with its rows; without new rows, yield an empty step every minute."""
        offset, alive = UNRESOLVED, time.monotonic()
        while not offset.ended:
            end = self._aligned.advance(offset, _ONE_SNAPSHOT)
            if end != offset:
                yield end, self._batches(offset, end)
                offset = end
                continue
            is_held = self._aligned.held_by is not None
            if waiting.once and not is_held:
                return
            waiting.sleep((self._aligned.update_interval_ms if is_held else waiting.interval_ms) / 1000)
            if time.monotonic() - alive >= _ALIVE_SECONDS:
                alive = time.monotonic()
                yield end, ()

    def _batches(self, start: StreamOffset, end: StreamOffset) -> Iterator[pa.RecordBatch]:
        splits = in_order(self._follower.plan_range(start, end))
        if splits and self._on_snapshot is not None:
            first = start.position or end.start
            self._on_snapshot(splits[0].snapshot_id, Phase.CHANGES if first is None else first.phase)
        for split in splits:
            yield from self._reader.read_split(split)

    def _keep(self, position: Position | None, keeper: LeaseKeeper | None, *, moves_back: bool = False) -> None:
        if self._consumer is None or keeper is None or position is None:
            return
        keeper.check()
        # A consumer stores a snapshot id only: stored inside the full phase, it would lose the rest of that phase.
        if position.phase is Phase.CHANGES:
            record_progress(self._store, self._consumer, position.snapshot_id, moves_back=moves_back)


def in_order(tasks: Sequence[StreamTask]) -> tuple[DataSplit, ...]:
    """Order the splits of one snapshot: partition by partition, and inside a partition bucket by bucket.

    Args:
        tasks: each has its partitions in the order of the stream, but need not have all partitions.
    """
    # The orders of the tasks do not contradict each other, since they are parts of one order.
    order: TopologicalSorter[bytes] = TopologicalSorter()
    splits: dict[bytes, list[DataSplit]] = {}
    for task in tasks:
        before: list[bytes] = []
        for split in task.splits:
            splits.setdefault(split.partition, []).append(split)
            if split.partition not in before:
                order.add(split.partition, *before)
                before = [split.partition]
    return tuple(split for partition in order.static_order() for split in splits[partition])
