"""Lists the data files of a snapshot in the order of delivery, and assigns those of a micro-batch to tasks.

The order depends on the table only, never on filters, columns or limits, so a number of files is a position in it.
Partitions are delivered one after another. In a partition the first files of all buckets come first, then the second
files, and so on, so that every micro-batch has work for all buckets. In a bucket, files keep the order of writes.

A partition's creation time is the minimum creation time of its live files, so every process computes the same. A
compaction that keeps the creation times of its inputs does not change it.

In a micro-batch, the task of a file depends on its bucket number only. This preserves the order of a bucket across all
partitions and snapshots of a micro-batch, in a parallel sink too. The reference has no such rule.

Source:
    docs/spec/streaming.md section 5; Paimon ``core:table/source/snapshot/SnapshotReaderImpl.java``;
    docs/spec/streaming.md sections 3.2, 5.2 and 5.3.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import compress, groupby, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, overload

import numpy as np

from penstock.format.manifest.entry import FileKind
from penstock.format.row.row import row_decoder
from penstock.options import BucketOptions, ReadOptions, StreamOptions
from penstock.predicate.bind import bind
from penstock.predicate.tree import TRUE, Predicate
from penstock.table.assumptions import check_schema_of_file
from penstock.table.read.files import FileColumns
from penstock.table.read.indexes import FileIndexPruner
from penstock.table.read.live import MAX_STEPS, load_deltas, load_live_files, snapshots_since
from penstock.table.read.prune import BucketPruner, PartitionPruner, PartitionPruneResult, StatsPruner
from penstock.table.read.scan import load_vector_places
from penstock.table.read.split import make_split, pack_files, partition_order
from penstock.table.ref import FileLocator
from penstock.table.stream.offset import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.entry import FileKey, ManifestEntry
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


Files: TypeAlias = "Sequence[ManifestEntry]"
_Key: TypeAlias = "tuple[str, Phase, bool]"

# About 1 KB for each entry that only this cache holds. The last list is always kept, whatever its size, so a full phase
# stays cached; older lists are evicted beyond this number.
_CACHED_UNITS: Final = 50_000
# 16 MB, so that micro-batches with limits and smaller tables decode each file once.
_DECODED_FILES: Final = 4_096
_DECODED_PARTS: Final = 4
_NEVER: Final = (1 << 63) - 1


class FileLists:
    """Lists the files of snapshots, with a cache, so that a snapshot read in many micro-batches is planned once.

    Not for several threads.
    """

    def __init__(self, ref: TableRef, store: MetadataStore) -> None:
        self._ref = ref
        self._store = store
        self._tracker = CreationTracker(store)
        self._decode = row_decoder(tuple(field.type for field in ref.schema.partition_fields))
        self._lists: OrderedDict[_Key, tuple[int, Files]] = OrderedDict()
        self._listed = 0  # files in all lists; a sum over the lists would make a long catch-up quadratic
        self._vectors: tuple[str, Mapping[FileKey, VectorPlace]] = ("", {})  # of the index manifest read last

    def load_files(self, snapshot: Snapshot, phase: Phase, *, by_value: bool) -> Files:
        """List the files that a snapshot delivers.

        Args:
            phase: FULL for all live files, CHANGES for the files that the snapshot added.
            by_value: order partitions by value, null first; else by creation time, then value.
        """
        key = (snapshot.delta_manifest_list, phase, by_value)
        if key not in self._lists:
            load = self._load_full if phase is Phase.FULL else self._load_changes
            files = load(snapshot, by_value)
            self._lists[key] = snapshot.id, files
            self._listed += len(files)
        self._lists.move_to_end(key)
        while len(self._lists) > 1 and self._listed > _CACHED_UNITS:
            self._forget(next(iter(self._lists)))
        return self._lists[key][1]

    def forget_before(self, snapshot_id: int) -> None:
        """Evict the lists of the snapshots that a stream has passed; it reads them again only after a restart."""
        for key in [key for key, (listed_id, _) in self._lists.items() if listed_id < snapshot_id]:
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        _, files = self._lists.pop(key)
        self._listed -= len(files)

    def _load_full(self, snapshot: Snapshot, by_value: bool) -> Files:  # noqa: FBT001 - one of two of a kind
        files = load_live_files(self._store, snapshot)
        data, codes = files.partitions()
        created = np.full(len(data), _NEVER)
        np.minimum.at(created, codes, files.column("created_millis"))
        keys = [
            partition_order(self._decode(each), millis, by_value=by_value)
            for each, millis in zip(data, created.tolist(), strict=True)
        ]
        ranks = np.zeros(len(data), np.int64)
        ranks[sorted(range(len(data)), key=keys.__getitem__)] = np.arange(len(data))
        return OrderedFiles(_OrderedFiles(files, _interleaved(files, ranks[codes])))

    def _load_changes(self, snapshot: Snapshot, by_value: bool) -> Files:  # noqa: FBT001
        groups: dict[bytes, list[ManifestEntry]] = {}
        for entry in self._store.load_delta(snapshot):
            if entry.kind is FileKind.ADD:
                groups.setdefault(entry.partition, []).append(entry)
        created = {} if by_value else self._created(snapshot, groups)
        ordered = sorted(
            groups, key=lambda data: partition_order(self._decode(data), created.get(data, 0), by_value=by_value)
        )
        return tuple(entry for data in ordered for entry in interleave(groups[data]))

    def _created(self, snapshot: Snapshot, groups: dict[bytes, list[ManifestEntry]]) -> dict[bytes, int]:
        # Scalable tables have no order inside of a commit, so creation times, for which all live files are read, are
        # not needed.
        if len(groups) < 2 or not any(is_ordered(entry) for entries in groups.values() for entry in entries):
            return {}
        self._tracker.advance(snapshot)
        return {data: self._tracker.created_millis(data) for data in groups}

    def load_vectors(self, snapshot: Snapshot) -> Mapping[FileKey, VectorPlace]:
        """Load the deletion vectors of a snapshot that delivers files; what later ones delete is delivered."""
        if snapshot.index_manifest is None:
            return {}
        if snapshot.index_manifest != self._vectors[0]:
            self._vectors = snapshot.index_manifest, load_vector_places(self._store, snapshot)
        return self._vectors[1]


def is_ordered(entry: ManifestEntry) -> bool:
    """Whether the file is in a bucket with an order of writes; scalable tables have none inside of a commit."""
    return entry.total_buckets > 0


def interleave(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Order the files of one partition: the first of every bucket, by bucket, then the second of every bucket, ...

    Args:
        entries: in manifest order, which is the order of the commits; scalable tables keep it.
    """
    buckets: dict[int, list[ManifestEntry]] = {}
    for entry in entries:
        buckets.setdefault(entry.bucket, []).append(entry)
    for files in buckets.values():
        if is_ordered(files[0]):
            files.sort(key=lambda entry: entry.file.min_sequence_number)
    ranked = ((rank, bucket, entry) for bucket, files in buckets.items() for rank, entry in enumerate(files))
    return [entry for _, _, entry in sorted(ranked, key=lambda each: each[:2])]


def _interleaved(files: FileColumns, partitions: Array) -> Array:
    """Return the places of files in the order of delivery: by partition, in each as ``interleave`` orders them.

    Args:
        partitions: of each file, numbers in the order of the partitions.
    """
    buckets = files.column("bucket").astype(np.int64)
    order = np.lexsort((buckets, partitions))
    starts = np.flatnonzero(_changes(partitions[order]) | _changes(buckets[order]))
    lengths = np.diff(starts, append=len(order))
    # The first file of a bucket decides, as there.
    is_sorted = np.repeat(files.column("total_buckets")[order[starts]] > 0, lengths)
    if is_sorted.any():
        numbers = np.where(is_sorted, files.min_sequence_numbers()[order], 0)
        order = order[np.lexsort((numbers, buckets[order], partitions[order]))]
    ranks = np.arange(len(order)) - np.repeat(starts, lengths)
    return order[np.lexsort((buckets[order], ranks, partitions[order]))]


def _changes(values: Array) -> Array:
    return np.concatenate([values[:1] == values[:1], values[1:] != values[:-1]])


class _OrderedFiles:
    """Files in an order of their own; some thousand at a time are decoded, and the last of these stay."""

    def __init__(self, files: FileColumns, order: Array) -> None:
        # Without the entries of manifests that are decoded as a whole, which would take all of the cache.
        self.files = FileColumns(tuple(replace(part, keep=None) for part in files.parts), files.rows)
        self.order = order
        self._decoded: dict[int, Sequence[ManifestEntry]] = {}

    def entry(self, place: int) -> ManifestEntry:
        """Return the file at a place of the order."""
        number, rest = divmod(place, _DECODED_FILES)
        entries = self._decoded.get(number)
        if entries is None:
            while len(self._decoded) >= _DECODED_PARTS:
                del self._decoded[next(iter(self._decoded))]
            entries = self._decoded[number] = self._decode(number)
        return entries[rest]

    def _decode(self, number: int) -> Sequence[ManifestEntry]:
        chosen = self.order[number * _DECODED_FILES : (number + 1) * _DECODED_FILES]
        ascending = np.argsort(chosen)
        (files,) = self.files.divided((chosen[ascending],), are_all_used=False)
        entries = np.empty(len(chosen), object)
        entries[ascending] = files.entries()
        decoded: list[ManifestEntry] = entries.tolist()
        return decoded


class OrderedFiles(Sequence["ManifestEntry"]):
    """Files in the order of delivery, which are decoded when they are used.

    Args:
        ordered: all files.
        places: of some of them; None for all.
    """

    def __init__(self, ordered: _OrderedFiles, places: range | None = None) -> None:
        self._ordered = ordered
        self._places = range(len(ordered.order)) if places is None else places

    def __len__(self) -> int:
        """Return their number."""
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ManifestEntry: ...
    @overload
    def __getitem__(self, index: slice) -> OrderedFiles: ...
    def __getitem__(self, index: int | slice) -> ManifestEntry | OrderedFiles:
        """Return one or some of them."""
        if isinstance(index, slice):
            return OrderedFiles(self._ordered, self._places[index])
        return self._ordered.entry(self._places[index])

    def column(self, name: str) -> Array:
        """Return a column of ``ManifestColumns``, with one value per file."""
        places, order = self._places, self._ordered.order
        column: Array = self._ordered.files.column(name)[order[places.start : places.stop : places.step]]
        return column


class CreationTracker:
    """Holds the creation time of every partition as of one snapshot; advancing to a later one reads only the deltas.

    Keeps one number for each live file in memory. Not for several threads.
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._at: Snapshot | None = None
        self._times: dict[bytes, Counter[int]] = {}
        self._least: dict[bytes, int] = {}

    def advance(self, snapshot: Snapshot) -> None:
        """Advance the tracker to a snapshot. Raises as ``MetadataStore.load_manifest``."""
        if self._at == snapshot:
            return
        at, self._at = self._at, None  # cleared first: if a load fails, the next call must not use half of the deltas
        if at is None or not self._follow(at, snapshot):
            self._times.clear()
            self._least.clear()
            files = load_live_files(self._store, snapshot)
            data, codes = files.partitions()
            for code, created in zip(codes.tolist(), files.column("created_millis").tolist(), strict=True):
                self._times.setdefault(data[code], Counter())[created] += 1
        self._at = snapshot

    def created_millis(self, partition: bytes) -> int:
        """Return the least creation time of the partition's live files, a wall clock in ms; 0 if it has no files."""
        least = self._least.get(partition)
        if least is None:
            least = self._least[partition] = min(self._times.get(partition, ()), default=0)
        return least

    def _follow(self, at: Snapshot, snapshot: Snapshot) -> bool:
        """Apply the deltas between two snapshots; False, with no change, if some are missing or there are too many."""
        snapshots = snapshots_since(self._store, at, snapshot, most=MAX_STEPS)
        deltas = None if snapshots is None else load_deltas(self._store, snapshots)
        if deltas is None:
            return False
        for _, entries in deltas:
            self._note(entries)
        return True

    def _note(self, entries: Iterable[ManifestEntry]) -> None:
        for entry in entries:
            times = self._times.setdefault(entry.partition, Counter())
            created = entry.file.creation_millis or 0
            self._least.pop(entry.partition, None)
            if entry.kind is FileKind.ADD:
                times[created] += 1
            elif times[created] > 1:
                times[created] -= 1
            else:
                del times[created]


# Their index files are read in parallel. A micro-batch with a limit may end among them, and the next one reuses the
# cached results.
_ASKED_AT_ONCE: Final = 64


class Delivery(NamedTuple):
    """A file, the id of the snapshot that delivers it, and the deletion vector that it has there."""

    snapshot_id: int
    entry: ManifestEntry
    vector: VectorPlace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """The splits that one task of a micro-batch reads. Picklable.

    Attributes:
        bucket: number of the bucket, or of a task that buckets share; -1 if there is no order to preserve.
        splits: in the order of delivery.
    """

    bucket: int
    splits: tuple[DataSplit, ...]


class TaskPlanner:
    """Prunes files and assigns them to tasks.

    Args:
        ref: its schema is the read schema, to which the filter is bound.
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

    def plan(self, deliveries: Iterable[Delivery], cores: int | None = None) -> tuple[StreamTask, ...]:
        """Assign files to tasks: by bucket number, or without an order in runs of about a split's size.

        Args:
            deliveries: in the order of delivery, which each task keeps.
            cores: number of tasks that run at the same time, among which buckets are divided; None if it is not known,
                then each bucket number has its own task.
        """
        deliveries = tuple(deliveries)
        ordered = [each for each in deliveries if self._keeps_order and is_ordered(each.entry)]
        task_of = self._tasks_of_buckets(deliveries, ordered, cores)
        tasks: dict[int, list[Delivery]] = {}
        for delivery in ordered:
            tasks.setdefault(task_of[delivery.entry.bucket], []).append(delivery)
        loose = [each for each in deliveries if not (self._keeps_order and is_ordered(each.entry))]
        return (
            *(StreamTask(bucket=task, splits=self._splits(tasks[task])) for task in sorted(tasks)),
            *(StreamTask(bucket=-1, splits=self._splits(run)) for run in self._runs(loose)),
        )

    def _tasks_of_buckets(
        self, deliveries: Sequence[Delivery], ordered: Sequence[Delivery], cores: int | None
    ) -> dict[int, int]:
        """Return the task of each bucket number.

        With ``scan.parallelism`` those with equal numbers modulo that share one. If a partition was rescaled in
        between, rows of one key are in several buckets, so there is one task for all.
        """
        sizes: Counter[int] = Counter()
        for each in ordered:
            sizes[each.entry.bucket] += each.entry.file.file_size
        numbers = {(each.entry.partition, each.entry.total_buckets) for each in deliveries}
        is_rescaled = len(numbers) > len({partition for partition, _ in numbers})
        count = 1 if is_rescaled else self._ordered_count
        if count is not None:
            return {bucket: bucket % count for bucket in sizes}
        if cores is None:
            return {bucket: bucket for bucket in sizes}
        return _share_buckets(sizes, cores * max(1, sizes.total() // (cores * self._target_bytes)))

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
            vectors = tuple((each.entry.file.file_name, each.vector) for each in stretch if each.vector is not None)
            made = make_split(self._locator, first.snapshot_id, first.entry, files, verdict)
            splits.append(replace(made, vectors=vectors) if vectors else made)
        return tuple(splits)

    def _evaluate(self, partition: bytes) -> PartitionPruneResult:
        verdict = self._verdicts.get(partition)
        if verdict is None:
            verdict = self._verdicts[partition] = self._partitions.evaluate(partition)
        return verdict


def _share_buckets(sizes: Mapping[int, int], count: int) -> dict[int, int]:
    """Divide buckets among tasks of about equal bytes, the largest first; each has its own if there are enough.

    A task has its costs, and partial results of its own in an aggregation.

    Args:
        sizes: bytes of each bucket number.
        count: number of tasks.
    """
    if len(sizes) <= count:
        return {bucket: bucket for bucket in sizes}
    tasks = {}
    filled = [(0, task) for task in range(count)]
    for bucket in sorted(sizes, key=lambda each: (-sizes[each], each)):
        size, tasks[bucket] = heappop(filled)
        heappush(filled, (size + sizes[bucket], tasks[bucket]))
    return tasks
