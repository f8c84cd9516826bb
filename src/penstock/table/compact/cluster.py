"""Incremental clustering: which files of a table are sorted together next, and the level of those that replace them.

A new file is at level 0. The files of a higher level are the result of one sort, or of a few, and are one run; at level
0, each file is a run of its own. As in an LSM tree, small runs are sorted often, and large ones seldom.

A job commits COMPACT snapshots, which replace exactly the files that it took: rows written meanwhile stay at level 0.

Source:
    Paimon ``core:append/cluster/IncrementalClusterManager.java``, ``BucketedAppendClusterManager.java``,
    ``IncrementalClusterStrategy.java``, ``HistoryPartitionCluster.java``,
    ``core:mergetree/compact/UniversalCompaction.java``; docs/spec/compaction.md section 9. Deviations. Of history
    partitions: they are idle by when rows arrived, as for every compaction, where the reference looks at the creation
    times of the files below the highest level; the limit takes those without rows for longest, where the reference
    takes them in the order of a hash table; and where none is idle, none is taken, where the reference takes all, since
    its scan takes an empty list of partitions for no condition. Of ``full``: files of which many rows are deleted are
    sorted again. Of tables with buckets: files at level 0 are in the order of their sequence numbers, where the
    reference takes them in the order of a hash set.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind
from penstock.options import BucketOptions, ClusteringMode, ClusteringOptions, ClusteringStrategy, CompactOptions
from penstock.table.compact.plan import (
    CompactStrategy,
    IdleTest,
    buckets_of,
    last_written,
    plan_partitions,
    with_many_deleted,
)
from penstock.table.compact.sort import OrderStrategy, SortJob, SortOrder, check_sortable, run_sort
from penstock.table.compact.task import CompactTask
from penstock.table.partition_scope import partition_test
from penstock.table.read.files import LazyEntries
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.compact.job import CompactionResult
    from penstock.table.compact.local import CompactionRequest
    from penstock.table.compact.plan import CompactionPlan, PartitionPlan, PlanTasks, Vectors
    from penstock.table.ref import TableRef

Run: TypeAlias = "tuple[DataFileMeta, ...]"
"""Files of one level that were sorted together: at level 0 one file, else all."""

Pick: TypeAlias = "tuple[int, int]"
"""How many runs are sorted, from the lowest level on, and the level of the new files."""

# ``auto`` takes the Hilbert curve from this number of columns on.
_MANY_COLUMNS: Final = 5

# Whether files are sorted by the table's columns is known from the schemas that the files name.
_OF_TABLE: Final = (
    "clustering.columns",
    "clustering.strategy",
    "sink.clustering.by-columns",
    "sink.clustering.strategy",
)


def cluster_table(
    ref: TableRef,
    request: CompactionRequest,
    sort: Callable[[SortJob], CompactionResult] | None,
    *,
    dry_run: bool = False,
    on_plan: Callable[[CompactionPlan], None] = lambda _: None,
) -> CompactionResult:
    """Cluster a table once; arguments as for ``sort_table``.

    Args:
        request: ``full`` takes all files, ``minor`` those that the options say.
    """
    job = plan_clustering(ref, MetadataStore(ref), request)
    if sort is None and not dry_run:
        if job.plan.tasks:
            raise UnsupportedFeatureError(
                f"table {ref.name}: incremental clustering sorts rows on Spark: give compact a session, or 'penstock "
                "compact' a --spark MASTER"
            )
        dry_run = True  # there is nothing to do
    return run_sort(job, sort, dry_run=dry_run, on_plan=on_plan)


def check_job_options(ref: TableRef, options: Mapping[str, str]) -> None:
    """Check that the options of one job leave the order of the table's rows as it is."""
    for key in options:
        if key in _OF_TABLE:
            raise InvalidOptionError(
                f"table {ref.name}: '{key}' cannot be an option of one job of incremental clustering: set it in the "
                "table"
            )


def plan_clustering(ref: TableRef, store: MetadataStore, request: CompactionRequest) -> SortJob:
    """Plan the sorts of the latest snapshot; reads metadata only.

    If the request has partitions, history partitions outside of them may be added, as the options say.
    """
    options = ref.parsed(ClusteringOptions)
    scope, is_full = request.scope, request.strategy is CompactStrategy.FULL
    has_history = scope is not None and options.history_idle_ms is not None and bool(ref.schema.partition_keys)
    # Paimon does not look for those of tables with buckets.
    has_history = has_history and ref.parsed(BucketOptions).bucket == -1
    in_scope = partition_test(scope, touched=frozenset(), ref=ref) if scope is not None else lambda _: True
    plan = plan_partitions(
        ref,
        store,
        plan_levels(ref, store, lambda data: is_full or not in_scope(data)),
        scope=None if has_history else scope,
        idle_ms=request.idle_ms,
        otherwise="nothing to cluster",
    )
    if has_history and plan.snapshot is not None:
        wanted = tuple(each for each in plan.partitions if in_scope(each.data))
        others = (each for each in plan.partitions if not in_scope(each.data))
        plan = replace(plan, partitions=(*wanted, *_history_of(ref, store, plan.snapshot, others)))
    # As for a sort compaction: not older than the schema of any file.
    ref = replace(ref, schema=store.load_latest_schema())
    is_local = options.mode is ClusteringMode.LOCAL_SORT
    return SortJob(ref=ref, order=_checked_order(ref), plan=plan, kind=CommitKind.COMPACT, is_local=is_local)


def plan_levels(ref: TableRef, store: MetadataStore, is_full: Callable[[bytes], bool]) -> PlanTasks:
    """Return the function that plans the sort of one partition.

    Args:
        is_full: whether all files of a partition are sorted, which has these values.

    Raises:
        UnsupportedFeatureError: the table cannot be clustered with its options or types.
    """
    buckets, options = ref.parsed(BucketOptions), ref.parsed(ClusteringOptions)
    if buckets.bucket != -1 and buckets.is_append_ordered:
        raise UnsupportedFeatureError(
            f"table {ref.name}: 'clustering.incremental' would change the order of the rows in its buckets: set "
            "'bucket-append-ordered' = 'false' to give it up, or 'clustering.incremental' = 'false'"
        )
    if _max_level(options) < 1:
        raise UnsupportedFeatureError(
            f"table {ref.name}: 'num-levels' = '{options.max_levels}' leaves no level for clustered files: set at "
            "least 2, or remove it"
        )
    _checked_order(ref)
    is_forced = ref.parsed(CompactOptions).force_rewrite_all_files

    @cache
    def is_by_these_columns(schema_id: int) -> bool:
        stored = ClusteringOptions.parse(store.load_schema(schema_id).option_map, table=ref.name)
        return stored.names == options.names

    def plan(data: bytes, entries: Sequence[ManifestEntry], vectors: Vectors) -> tuple[CompactTask, ...]:
        is_all = is_full(data)
        # Of tables with buckets, too, since a bucket has no more runs than all of them.
        if not is_all and _count_runs(entries) < options.trigger:
            return ()
        tasks, dirty = [], with_many_deleted(ref, vectors, entries)
        for (bucket, total), files in buckets_of(entries):
            runs = runs_of(files)
            if is_all:
                top = _max_level(options)
                is_done = len(runs) == 1 and runs[0][0].level == top and is_by_these_columns(runs[0][0].schema_id)
                is_again = is_forced or bucket in dirty
                picked = None if is_done and not is_again else (len(runs), top)
            else:
                picked = pick(runs, options)
            if picked is not None:
                count, level = picked
                chosen = tuple(file for run in runs[:count] for file in run)
                task = CompactTask(partition=data, bucket=bucket, total_buckets=total, files=chosen, level=level)
                tasks.append(task.with_vectors(vectors))
        return tuple(tasks)

    return plan


def _count_runs(entries: Sequence[ManifestEntry]) -> int:
    """Return the number of runs of a partition; entries in columns are not decoded."""
    if isinstance(entries, LazyEntries):
        levels: list[int] = entries.files.column("level").tolist()
    else:
        levels = [entry.file.level for entry in entries]
    return levels.count(0) + len({*levels} - {0})


def runs_of(files: Sequence[DataFileMeta]) -> list[Run]:
    """Return the runs of a bucket, lowest level first; at level 0 in the order of their sequence numbers."""
    levels: dict[int, list[DataFileMeta]] = {}
    for file in sorted(files, key=lambda file: (file.level, file.min_sequence_number)):
        levels.setdefault(file.level, []).append(file)
    new = [(file,) for file in levels.pop(0, ())]
    return [*new, *map(tuple, levels.values())]


def pick(runs: Sequence[Run], options: ClusteringOptions) -> Pick | None:
    """Return which runs are sorted now, by the rules of universal compaction; None if there are too few."""
    if len(runs) < options.trigger:
        return None
    sizes = [sum(file.file_size for file in run) for run in runs]
    top = _max_level(options)
    if sum(sizes[:-1]) * 100 > options.max_amplification * sizes[-1]:
        return len(runs), top
    count = _extend(sizes, 1, options)
    if count == 1 and len(runs) > options.trigger:
        count = _extend(sizes, len(runs) - options.trigger + 1, options)
    return None if count == 1 else _with_level(runs, count, top)


def _extend(sizes: Sequence[int], count: int, options: ClusteringOptions) -> int:
    """Return how many runs to take: at least ``count``, and the next ones that are about as large as those before."""
    total = sum(sizes[:count])
    for size in sizes[count:]:
        if total * (100.0 + options.size_ratio) / 100.0 < size:
            break
        total, count = total + size, count + 1
    return count


def _with_level(runs: Sequence[Run], count: int, top: int) -> Pick:
    """Return the pick of ``count`` runs or, since no clustered file is at level 0, of more."""
    level = max(0, runs[count][0].level - 1) if count < len(runs) else top
    while level == 0 and count < len(runs):
        level = runs[count][0].level
        count += 1
    return count, top if count == len(runs) else level


def order_of(ref: TableRef) -> SortOrder:
    """Return the order of clustered files; without partition columns, which have one value in each partition."""
    options = ref.parsed(ClusteringOptions)
    columns = tuple(name for name in options.names if name not in ref.schema.partition_keys)
    if len(columns) == 1 < len(options.names):
        strategy = OrderStrategy.ORDER  # which any curve through one column is
    elif options.strategy is not ClusteringStrategy.AUTO:
        strategy = OrderStrategy(options.strategy)
    elif len(options.names) > 1:
        strategy = OrderStrategy.ZORDER if len(options.names) < _MANY_COLUMNS else OrderStrategy.HILBERT
    else:
        strategy = OrderStrategy.ORDER
    return SortOrder(strategy=strategy, columns=columns)


def _checked_order(ref: TableRef) -> SortOrder:
    """Return the order. Raises ``UnsupportedFeatureError`` if Spark cannot sort the table's rows by it."""
    order = order_of(ref)
    if not order.columns and ref.parsed(ClusteringOptions).names:
        raise UnsupportedFeatureError(
            f"table {ref.name}: 'clustering.columns' names partition columns alone, which have one value in each "
            "partition: name others that queries filter by, or set 'clustering.incremental' = 'false'"
        )
    try:
        check_sortable(ref, order, source="'clustering.columns'")
    except InvalidOptionError as error:
        raise UnsupportedFeatureError(str(error)) from error  # the option is the table's, not the call's
    return order


def _history_of(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot, partitions: Iterable[PartitionPlan]
) -> tuple[PartitionPlan, ...]:
    """Return those with a file below the highest level and without new rows for the time of the options."""
    options = ref.parsed(ClusteringOptions)
    idle_test = IdleTest(store, snapshot, options.history_idle_ms or 0)
    found: list[tuple[int, PartitionPlan]] = []
    for partition in partitions:
        files = [file for task in partition.tasks for file in task.files]
        is_below = any(file.level < _max_level(options) for file in files)
        if is_below and idle_test.is_idle(partition.data, files):
            found.append((last_written(files), partition))
    found.sort(key=lambda each: each[0])
    return tuple(partition for _, partition in found[: options.max_history_partitions])


def _max_level(options: ClusteringOptions) -> int:
    return (options.trigger + 1 if options.max_levels is None else options.max_levels) - 1
