"""Plans a dedicated compaction, partition by partition, with the reason for each partition that is skipped.

A merged file has the creation time of its oldest input, so a merge does not make a partition appear newer. Rows that
were both written and merged within the idle time are found in the snapshots that wrote them, unless those have expired.

Source:
    docs/spec/compaction.md section 7. Two deviations: ``full`` merges small files of scalable tables too, where the
    reference ignores it; and idleness is determined by when rows arrived, so that a merge does not make a partition
    active.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.clocks import local_wall_millis, to_wall_clock
from penstock.errors import InvalidFilterError, NotFoundError, UnsupportedFeatureError
from penstock.format.manifest.entry import FileKind, FileSource
from penstock.format.snapshot import CommitKind
from penstock.options import ClusteringOptions, CompactOptions, PartitionExpireOptions, WriteOptions
from penstock.options.group import MAX_INT
from penstock.options.status.features import Operation, refusals_of
from penstock.predicate.bind import bind
from penstock.table.compact.coordinator import pack_small
from penstock.table.compact.queue import blocks_of, plan_bucket, plan_bucket_fully
from penstock.table.compact.task import CompactSizes, CompactTask
from penstock.table.expire.partitions import find_expired_partitions
from penstock.table.partition_scope import MatchingPartitions, OverwriteScope, partition_test
from penstock.table.read.files import LazyEntries, total_of
from penstock.table.read.live import load_live_by_partition, pruner_of_partitions, pruner_of_scope
from penstock.table.read.scan import load_vector_places
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, FileKey, ManifestEntry
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

Pick: TypeAlias = "Callable[[list[DataFileMeta], bool], Iterable[tuple[DataFileMeta, ...]]]"
"""Takes the files of a bucket and whether the table is a queue; returns the files of each task."""

Vectors: TypeAlias = "Mapping[FileKey, VectorPlace]"

PlanTasks: TypeAlias = "Callable[[bytes, Sequence[ManifestEntry], Vectors], tuple[CompactTask, ...]]"
"""Takes a serialized partition, its live files and the deletion vectors of the snapshot; returns the tasks."""

# Maximum number of tiny files in one task of a full compaction; opening that many takes a few seconds.
_MAX_FILES: Final = 4_096


class CompactStrategy(StrEnum):
    """How much a dedicated compaction merges; see ``plan_compaction``."""

    MINOR = "minor"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlan:
    """The planned merges of one partition.

    Attributes:
        data: serialized BinaryRow (arity prefix included) of the partition values.
        name: such as ``dt=2026-01-01``; empty where the table has no partitions.
        files: number of live files.
        bytes: size of the live files.
        tasks: merges; empty if the partition is skipped.
        skipped: why the partition is skipped; None if it is not.
    """

    data: bytes
    name: str
    files: int
    bytes: int
    tasks: tuple[CompactTask, ...]
    skipped: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The plan of a dedicated compaction.

    Attributes:
        snapshot: the planned snapshot; None if nothing was ever committed.
        partitions: the partitions in scope, in manifest order.
    """

    snapshot: Snapshot | None
    partitions: tuple[PartitionPlan, ...]

    @property
    def tasks(self) -> tuple[CompactTask, ...]:
        """All merges."""
        return tuple(task for partition in self.partitions for task in partition.tasks)


def plan_compaction(
    ref: TableRef,
    store: MetadataStore,
    *,
    strategy: CompactStrategy = CompactStrategy.FULL,
    scope: OverwriteScope | frozenset[bytes] | None = None,
    idle_ms: int | None = None,
) -> CompactionPlan:
    """Plan the merges of the latest snapshot; reads metadata only.

    Args:
        strategy: ``minor`` merges what the background compaction of a stream would merge. ``full`` also merges fewer
            files: in a scalable table, any two small files of a partition; in a queue, whole buckets in which most
            files are small.
        scope: the partitions, also as serialized values; None for all.
        idle_ms: only partitions that received no rows for this long.
    """
    check_compactable(ref)
    sizes = CompactSizes.of(ref)
    may_pick_large = sizes.max_files is not None or ref.parsed(CompactOptions).force_rewrite_all_files
    plan_tasks = partial(plan_merges, ref, picker(ref, strategy), None if may_pick_large else sizes)
    return plan_partitions(ref, store, plan_tasks, scope=scope, idle_ms=idle_ms, otherwise="too few small files")


def _live_partitions(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot, scope: OverwriteScope | frozenset[bytes] | None
) -> dict[bytes, Sequence[ManifestEntry]]:
    if scope is None:
        return load_live_by_partition(store, snapshot)
    if isinstance(scope, frozenset):
        return load_live_by_partition(store, snapshot, scope.__contains__, pruner_of_partitions(ref.schema, scope))
    none = frozenset[bytes]()
    keep = partition_test(scope, touched=none, ref=ref)
    return load_live_by_partition(store, snapshot, keep, pruner_of_scope(ref.schema, scope, none))


def _has_small(sizes: CompactSizes, entries: Sequence[ManifestEntry]) -> bool:
    """Whether one of the files is small; in columns, none of them is decoded."""
    if isinstance(entries, LazyEntries):
        return bool(sizes.are_small(entries.files).any())
    return any(sizes.is_small(entry.file) for entry in entries)


def plan_partitions(
    ref: TableRef,
    store: MetadataStore,
    plan_tasks: PlanTasks,
    *,
    scope: OverwriteScope | frozenset[bytes] | None = None,
    idle_ms: int | None = None,
    otherwise: str,
) -> CompactionPlan:
    """Plan the tasks that ``plan_tasks`` chooses; other arguments as in ``plan_compaction``.

    Args:
        otherwise: the text of ``skipped`` for a partition without tasks.
    """
    snapshot = store.load_latest_snapshot()
    check_rewritable(ref)
    if snapshot is None:
        return CompactionPlan(snapshot=None, partitions=())
    partitions = _live_partitions(ref, store, snapshot, scope)
    idle_test = None if idle_ms is None else IdleTest(store, snapshot, idle_ms)
    planner = _Planner(ref, plan_tasks, idle_test, otherwise, load_vector_places(store, snapshot))
    plan = CompactionPlan(
        snapshot=snapshot, partitions=tuple(planner.plan(data, entries) for data, entries in partitions.items())
    )
    return _without_expired(plan, ref, store)


def _without_expired(plan: CompactionPlan, ref: TableRef, store: MetadataStore) -> CompactionPlan:
    """Skip partitions that partition expiration will drop, if the table's options ask for that."""
    if not ref.parsed(CompactOptions).skip_expired_partitions:
        return plan
    options = ref.parsed(PartitionExpireOptions)
    if options.expiration_time_ms is None or not ref.schema.partition_keys:
        return plan
    found = find_expired_partitions(ref, store, options=replace(options, max_num=MAX_INT))
    expired = {each.directory for each in found}
    return replace(
        plan,
        partitions=tuple(
            replace(each, tasks=(), skipped="expired, to be dropped") if each.name in expired else each
            for each in plan.partitions
        ),
    )


def scope_of_filter(ref: TableRef, predicate: Predicate) -> MatchingPartitions:
    """Return the scope of the partitions that match a condition on partition columns."""
    try:
        return MatchingPartitions(predicate=bind(predicate, ref.schema.partition_fields, ref.name))
    except InvalidFilterError as error:
        keys = ", ".join(ref.schema.partition_keys) or "none: it is not partitioned"
        raise InvalidFilterError(
            f"table {ref.name}: where has to be about partition columns alone ({keys}): {error}"
        ) from error


class _Planner:
    """Plans one partition at a time."""

    def __init__(
        self,
        ref: TableRef,
        plan_tasks: PlanTasks,
        idle_test: IdleTest | None,
        otherwise: str,
        vectors: Vectors,
    ) -> None:
        self._vectors = vectors
        self._plan_tasks = plan_tasks
        self._otherwise = otherwise
        self._idle_test = idle_test
        self._locator = FileLocator.of(ref)

    def plan(self, data: bytes, entries: Sequence[ManifestEntry]) -> PartitionPlan:
        tasks, skipped = self._tasks(data, entries)
        return PartitionPlan(
            data=data,
            name=self._locator.partition_label(data),
            files=len(entries),
            bytes=total_of(entries, "file_size"),
            tasks=tasks,
            skipped=skipped,
        )

    def _tasks(self, data: bytes, entries: Sequence[ManifestEntry]) -> tuple[tuple[CompactTask, ...], str | None]:
        if self._idle_test is not None and not self._idle_test.is_idle(data, [each.file for each in entries]):
            return (), "written to within the idle time"
        tasks = self._plan_tasks(data, entries, self._vectors)
        return tasks, None if tasks else self._otherwise


def plan_merges(
    ref: TableRef,
    pick: Pick,
    of_small: CompactSizes | None,
    data: bytes,
    entries: Sequence[ManifestEntry],
    vectors: Vectors,
) -> tuple[CompactTask, ...]:
    """Plan the merges of one partition; arguments as in ``PlanTasks``.

    Args:
        of_small: sizes by which ``pick`` chooses no file of a partition without small ones; None if it may.
    """
    dirty = with_many_deleted(ref, vectors, entries)
    if not dirty and of_small is not None and not _has_small(of_small, entries):
        return ()
    return tuple(
        CompactTask(partition=data, bucket=bucket, total_buckets=total, files=run).with_vectors(vectors)
        for (bucket, total), files in buckets_of(entries)
        for run in _runs_of(ref, pick, files, dirty.get(bucket, ()), is_queue=total > 0)
    )


def buckets_of(entries: Iterable[ManifestEntry]) -> list[tuple[tuple[int, int], list[DataFileMeta]]]:
    """Return the files of each bucket of a partition, with its number and the number of buckets, in this order."""
    found: dict[tuple[int, int], list[DataFileMeta]] = {}
    for entry in entries:
        found.setdefault((entry.bucket, entry.total_buckets), []).append(entry.file)
    return sorted(found.items(), key=itemgetter(0))


def with_many_deleted(ref: TableRef, vectors: Vectors, entries: Iterable[ManifestEntry]) -> dict[int, set[str]]:
    """Return the files of a partition of which so many rows are deleted that they are rewritten, whatever their size.

    Returns:
        Names by bucket.
    """
    most = ref.parsed(CompactOptions).delete_ratio_threshold
    found: dict[int, set[str]] = {}
    for entry in entries if vectors else ():
        place = vectors.get(entry.key)
        if place is not None and (place.row_count is None or place.row_count > most * entry.file.row_count):
            found.setdefault(entry.bucket, set()).add(entry.file.file_name)
    return found


def _runs_of(
    ref: TableRef, pick: Pick, files: list[DataFileMeta], dirty: Collection[str], *, is_queue: bool
) -> Iterator[tuple[DataFileMeta, ...]]:
    """Yield the files of each task of a bucket: those that are picked, and others with many deleted rows.

    Args:
        dirty: names of those with many deleted rows.
    """
    picked = tuple(pick(files, is_queue))
    yield from picked
    rest = set(dirty).difference(file.file_name for run in picked for file in run)
    if is_queue and rest:
        yield from (block for block in blocks_of(files) if any(file.file_name in rest for file in block))
    elif rest:
        yield from _all_in_bins([file for file in files if file.file_name in rest], CompactSizes.of(ref))


def picker(ref: TableRef, strategy: CompactStrategy) -> Pick:
    """Return the function that chooses the files that a strategy merges."""
    return partial(_pick, ref, strategy, CompactSizes.of(ref))


def _pick(
    ref: TableRef,
    strategy: CompactStrategy,
    sizes: CompactSizes,
    files: list[DataFileMeta],
    is_queue: bool,  # noqa: FBT001 - the signature of Pick
) -> Iterable[tuple[DataFileMeta, ...]]:
    is_full = strategy is CompactStrategy.FULL
    force = ref.parsed(CompactOptions).force_rewrite_all_files
    if is_queue:
        return plan_bucket_fully(files, sizes, force=force) if is_full else plan_bucket(files, sizes)
    if is_full and force:
        return _all_in_bins(files, sizes)
    if is_full:
        # With the full open cost, many tiny files would fill a bin and give a file that is small again.
        cost = min(sizes.open_file_cost_bytes, 2 * sizes.target_bytes // _MAX_FILES)
        sizes = replace(sizes, open_file_cost_bytes=cost)
    small = [file for file in files if sizes.is_small(file)]
    bins = pack_small(small, sizes)
    if not is_full:
        return bins
    packed = {file.file_name for part in bins for file in part}
    rest = tuple(file for file in small if file.file_name not in packed)
    return (*bins, rest) if len(rest) > 1 else bins


def _all_in_bins(files: list[DataFileMeta], sizes: CompactSizes) -> list[tuple[DataFileMeta, ...]]:
    """Pack every file, so that a task reads at most about twice the target size."""
    bins: list[list[DataFileMeta]] = [[]]
    weight = 0
    for file in files:
        if bins[-1] and weight + file.file_size > 2 * sizes.target_bytes:
            bins.append([])
            weight = 0
        bins[-1].append(file)
        weight += file.file_size
    return [tuple(part) for part in bins]


def check_compactable(ref: TableRef) -> None:
    """Check that a merge keeps the meaning of the table's files. Raises ``UnsupportedFeatureError``."""
    check_rewritable(ref)
    if ref.parsed(ClusteringOptions).is_incremental:
        raise UnsupportedFeatureError(
            f"table {ref.name}: 'clustering.incremental' = 'true' keeps files in levels, which merging or sorting them "
            "would destroy: call compact without an order strategy, as a job of its own, which clusters them, or set "
            "'clustering.incremental' = 'false'"
        )


def merges_on_its_own(ref: TableRef) -> bool:
    """Whether writers merge the table's small files, and not only a job that is called."""
    return not (ref.parsed(WriteOptions).write_only or ref.parsed(ClusteringOptions).is_incremental)


def check_rewritable(ref: TableRef) -> None:
    """Check that files can be written again at all. Raises ``UnsupportedFeatureError``."""
    for reason in refusals_of(ref.options, Operation.REWRITE):
        raise UnsupportedFeatureError(f"table {ref.name}: {reason}")


class IdleTest:
    """Tests partitions of one snapshot for being idle.

    Args:
        snapshot: the snapshot whose partitions are tested.
        idle_ms: a partition is idle when it got no rows for this long.
    """

    def __init__(self, store: MetadataStore, snapshot: Snapshot, idle_ms: int) -> None:
        self._store = store
        self._snapshot = snapshot
        self._newest_allowed = local_wall_millis() - idle_ms
        self._merged_since: frozenset[bytes] | None = None

    def is_idle(self, data: bytes, files: Sequence[DataFileMeta]) -> bool:
        """Whether a partition got no rows within the idle time.

        Args:
            data: the partition's values as a serialized BinaryRow.
            files: the partition's live files.
        """
        if last_written(files) > self._newest_allowed:
            return False
        if self._merged_since is None:
            self._merged_since = frozenset(entry.partition for entry in self._rewritten() if self._is_new(entry))
        return data not in self._merged_since

    def _is_new(self, entry: ManifestEntry) -> bool:
        return entry.kind is FileKind.ADD and (entry.file.creation_millis or 0) > self._newest_allowed

    def _rewritten(self) -> Iterator[ManifestEntry]:
        """Yield the entries of snapshots within the idle time that a later snapshot may have rewritten.

        Entries that no later snapshot rewrote are among the live files.
        """
        snapshot, is_rewritten = self._snapshot, False
        while to_wall_clock(snapshot.time_millis) > self._newest_allowed:
            try:
                if is_rewritten and snapshot.commit_kind is not CommitKind.COMPACT:
                    yield from self._store.load_delta(snapshot)
                is_rewritten = is_rewritten or snapshot.commit_kind is not CommitKind.APPEND
                snapshot = self._store.load_snapshot(snapshot.id - 1)
            except NotFoundError:
                return  # there is no earlier snapshot, or all earlier ones have expired


def last_written(files: Sequence[DataFileMeta]) -> int:
    """Return when the newest of the live files was written, by the writers' wall clock in ms.

    Appended files count; merged files only where there are no others.
    """
    appended = [file.creation_millis or 0 for file in files if file.file_source is not FileSource.COMPACT]
    return max(appended or [file.creation_millis or 0 for file in files])
