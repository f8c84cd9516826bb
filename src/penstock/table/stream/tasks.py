"""Assigns the files of a micro-batch to tasks.

Source:
    docs/spec/streaming.md section 3.2, 5.2, 5.3. Specific to Penstock: the task depends on the bucket number only. This
    preserves the order of a bucket across all partitions and snapshots of a micro-batch, in a parallel sink too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress, groupby, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.options import BucketOptions, ReadOptions, StreamOptions
from penstock.predicate.bind import bind
from penstock.predicate.tree import TRUE, Predicate
from penstock.table.assumptions import check_schema_of_file
from penstock.table.read.indexes import FileIndexPruner
from penstock.table.read.prune import BucketPruner, PartitionPruner, PartitionPruneResult, StatsPruner
from penstock.table.read.split import make_split, pack_files
from penstock.table.ref import FileLocator
from penstock.table.stream.files import is_ordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# Their index files are read in parallel. A micro-batch with a limit may end among them, and the next one reuses the
# cached results.
_ASKED_AT_ONCE: Final = 64


class Delivery(NamedTuple):
    """A file, and the id of the snapshot that delivers it."""

    snapshot_id: int
    entry: ManifestEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """The splits that one task of a micro-batch reads. Picklable.

    Attributes:
        bucket: number of the bucket, with ``scan.parallelism`` modulo that; -1 if there is no order to preserve.
        splits: in the order of delivery.
    """

    bucket: int
    splits: tuple[DataSplit, ...]


class TaskPlanner:
    """Prunes files and assigns them to tasks.

    Args:
        ref: its schema is the read schema, to which the filter is bound.

    Raises:
        InvalidFilterError: the filter does not fit the schema.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, predicate: Predicate | None) -> None:
        bound = bind(TRUE if predicate is None else predicate, ref.schema.fields, ref.name)
        options = ref.parsed(ReadOptions)
        self._ref = ref
        self._store = store
        self._fields = bound.fields
        self._held_schemas = {ref.schema.id}
        self._target_bytes = options.split_target_bytes
        self._open_file_cost_bytes = options.split_open_file_cost_bytes
        self._keeps_order = ref.parsed(BucketOptions).is_append_ordered
        self._ordered_count = ref.parsed(StreamOptions).scan_parallelism
        self._locator = FileLocator.of(ref)
        self._partitions = PartitionPruner(ref.schema, bound)
        self._buckets = BucketPruner(ref, bound, store.load_schema)
        self._stats = StatsPruner(store.load_schema)
        self._indexes = FileIndexPruner(ref, store.load_schema)
        self._verdicts: dict[bytes, PartitionPruneResult] = {}

    def kept(self, files: Sequence[ManifestEntry], created_from: int | None) -> Iterator[tuple[int, ManifestEntry]]:
        """Yield the files that may hold a row that passes the filter, each with its index.

        Args:
            created_from: minimum creation time of the file, a wall clock in ms; None for any.

        Raises:
            SchemaMismatchError: a file is of a newer schema, in which a column of the filter has a type that the read
                schema cannot hold.
        """
        budget = self._indexes.new_budget()
        for first in range(0, len(files), _ASKED_AT_ONCE):
            part = [
                (index, files[index])
                for index in range(first, min(first + _ASKED_AT_ONCE, len(files)))
                if self._may_hold(files[index], created_from)
            ]
            verdicts = self._indexes.kept(((entry, self._evaluate(entry.partition).rest) for _, entry in part), budget)
            yield from compress(part, verdicts)

    def _may_hold(self, entry: ManifestEntry, created_from: int | None) -> bool:
        if created_from is not None and (entry.file.creation_millis or 0) < created_from:
            return False
        if entry.file.schema_id not in self._held_schemas:
            # The reader checks this too, but a filter by the older type may prune a file with newer values.
            check_schema_of_file(self._ref, self._store, entry.file.schema_id, self._fields)
            self._held_schemas.add(entry.file.schema_id)
        verdict = self._evaluate(entry.partition)
        return not verdict.is_excluded and self._buckets.keeps(entry) and self._stats.keeps(entry.file, verdict.rest)

    def plan(self, deliveries: Iterable[Delivery]) -> tuple[StreamTask, ...]:
        """Assign files to tasks: by bucket number, or without an order in runs of about a split's size.

        Each bucket number has its own task; with ``scan.parallelism`` buckets with equal numbers modulo that share one.

        Args:
            deliveries: in the order of delivery, which each task keeps.
        """
        tasks: dict[int, list[Delivery]] = {}
        loose: list[Delivery] = []
        for delivery in deliveries:
            if self._keeps_order and is_ordered(delivery.entry):
                bucket = delivery.entry.bucket
                task = bucket if self._ordered_count is None else bucket % self._ordered_count
                tasks.setdefault(task, []).append(delivery)
            else:
                loose.append(delivery)
        ordered = [StreamTask(bucket=task, splits=self._splits(tasks[task])) for task in sorted(tasks)]
        return (*ordered, *(StreamTask(bucket=-1, splits=self._splits(run)) for run in self._runs(loose)))

    def _runs(self, deliveries: Sequence[Delivery]) -> list[list[Delivery]]:
        packs = pack_files(
            [delivery.entry.file for delivery in deliveries],
            target_bytes=self._target_bytes,
            open_file_cost_bytes=self._open_file_cost_bytes,
        )
        left = iter(deliveries)
        return [list(islice(left, len(pack))) for pack in packs]

    def _splits(self, deliveries: Sequence[Delivery]) -> tuple[DataSplit, ...]:
        """Combine consecutive files with the same snapshot, partition and bucket into one split."""
        splits = []
        for _, group in groupby(
            deliveries, key=lambda each: (each.snapshot_id, each.entry.partition, each.entry.bucket)
        ):
            stretch = list(group)
            first = stretch[0]
            files = tuple(each.entry.file for each in stretch)
            verdict = self._evaluate(first.entry.partition)
            splits.append(make_split(self._locator, first.snapshot_id, first.entry, files, verdict))
        return tuple(splits)

    def _evaluate(self, partition: bytes) -> PartitionPruneResult:
        verdict = self._verdicts.get(partition)
        if verdict is None:
            verdict = self._verdicts[partition] = self._partitions.evaluate(partition)
        return verdict
