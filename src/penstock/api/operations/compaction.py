"""Operations that merge data files and manifests, or move rows to other buckets."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from penstock.api.arguments import (
    INTEGER,
    MAPPINGS,
    Filter,
    Names,
    Options,
    check_classic,
    encode_options,
    to_names,
    to_predicate,
)
from penstock.api.handle import TableHandle
from penstock.api.lazy import lazy_spark
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Extra, Procedure, ResultRows
from penstock.catalog.backend import Backend
from penstock.catalog.changes import SetOption
from penstock.catalog.checks.features import check_writable
from penstock.catalog.place import TablePlace, alter_place
from penstock.catalog.selection import select_tables
from penstock.errors import InvalidOptionError, TableStoreError
from penstock.options import BucketOptions, ClusteringOptions, check_keys
from penstock.table.actions.changes import open_committer
from penstock.table.actions.file_indexes import FileIndexRewrite, rewrite_file_indexes
from penstock.table.actions.manifests import ManifestCompaction, compact_manifests
from penstock.table.actions.rescale import RescaledPartition, rescale_partitions
from penstock.table.assumptions import at_latest_schema
from penstock.table.compact.cluster import check_job_options, cluster_table
from penstock.table.compact.job import CompactionResult
from penstock.table.compact.local import compact_table, for_compaction, request_compaction, run_here
from penstock.table.compact.plan import CompactionPlan
from penstock.table.compact.sort import parse_order, sort_table
from penstock.table.compact.task import MergedFiles
from penstock.table.partition_scope import WholeTable, partition_of_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _ignore(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Compact(Operation[TableHandle, CompactionResult]):
    """Merge small files without changing rows or, in a queue, their order; or sort the rows of a scalable table.

    Concurrent appends are not affected; a merge whose files another commit has replaced is discarded. Tables with the
    option ``write-only`` are compacted too. Of tables with ``clustering.incremental``, it sorts some files at a time.

    Args:
        spark: merge on its executors; None to merge in this process. Needed for every sort.
        partitions: only these partitions, such as ``dt=2026-01-01``; a spec may omit columns.
        where: only partitions that satisfy this condition on partition columns, such as ``dt < '2026-01-01'``, in any
            form that ``Table.to_arrow`` takes; not with ``partitions``.
        strategy: ``full``, the default, merges all small files; ``minor`` what a stream with compaction would have
            merged by now. With ``clustering.incremental``, ``full`` sorts all files, and ``minor``, the default there,
            those that are due.
        idle_time: only partitions that received no rows for this long, such as ``1 h``.
        order_strategy: rewrite all rows of each partition, sorted by the first column, then the next (``order``), or
            along a curve so that files have narrow ranges in all columns (``zorder``, ``hilbert``). Needs Spark.
        order_by: the columns to sort by; without ``order_strategy`` it implies ``order``.
        options: of this job, such as ``target-file-size`` = ``128 mb``.
        dry_run: only return what would be merged.
        threads: concurrent merges in this process; by default the option ``penstock.compaction.max-tasks``, or one per
            core if it is not set.
        on_start: called with the total number of bytes that the merges will read.
        on_done: called after every merge or sorted partition.

    Returns:
        The result for each partition, or the reason why nothing was done.

    Raises:
        InvalidOptionError, InvalidFilterError: invalid arguments.
        UnsupportedFeatureError: the table is read-only for Penstock, or has ``clustering.incremental`` and an order is
            given for it, or its buckets keep their order.
        TableStoreError: a file cannot be read or written, or the commit failed; merges that were already committed
            remain, the others leave no files.
    """

    spark: "SparkSession | None" = None
    _: KW_ONLY
    partitions: Sequence[Mapping[str, object]] | None = None
    where: Filter | None = None
    strategy: Annotated[str | None, Named("compact_strategy")] = None
    idle_time: Annotated[str | None, Named("partition_idle_time")] = None
    order_strategy: str | None = None
    order_by: Names | None = None
    options: Options | None = None
    dry_run: bool = False
    threads: int | None = None
    on_start: Callable[[int], None] = _ignore
    on_done: Callable[[MergedFiles], None] = _ignore

    def run(self, table: TableHandle, /) -> CompactionResult:
        encoded = encode_options(self.options)
        check_keys(encoded, table=table.name)
        ref = for_compaction(at_latest_schema(table.ref, table.checked_store), encoded)
        check_writable(ref)
        if self.spark is not None:
            check_classic(self.spark, ref.name, "compact() without spark, which merges in this process")
        request = request_compaction(
            ref,
            partitions=self.partitions,
            where=to_predicate(self.where, ref.name),
            strategy=self.strategy,
            idle_time=self.idle_time,
        )
        order = parse_order(ref, self.order_strategy, to_names(self.order_by))

        spark = self.spark
        with nullcontext() if spark is not None else table.progress("compacting", "read") as bar:

            def on_plan(plan: CompactionPlan) -> None:
                self.on_start(sum(task.size_bytes for task in plan.tasks))
                if bar is not None and bar.is_shown:
                    bar.total = sum(file.row_count for task in plan.tasks for file in task.files)

            sort = None if spark is None else partial(lazy_spark.sort_compact, spark, on_done=self.on_done)
            if order is not None:
                return sort_table(ref, order, request, sort, dry_run=self.dry_run, on_plan=on_plan)
            if ref.parsed(ClusteringOptions).is_incremental:
                check_job_options(ref, encoded)
                return cluster_table(ref, request, sort, dry_run=self.dry_run, on_plan=on_plan)
            merger = (
                run_here(ref, self.threads) if spark is None else lazy_spark.SparkMerger(spark=spark, ref=ref).execute
            )
            return compact_table(ref, request, merger, dry_run=self.dry_run, on_plan=on_plan, on_done=self.on_done)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCompaction:
    """The outcome of compacting one of several tables.

    Attributes:
        table: ``database.table``.
        result: None if there is an ``error``.
    """

    table: str
    result: CompactionResult | None
    error: TableStoreError | None


def compact_tables(names: Iterable[str], compact: Callable[[str], CompactionResult]) -> Iterator[TableCompaction]:
    """Compact tables; if one of them fails, continue with the next."""
    for name in names:
        try:
            yield TableCompaction(table=name, result=compact(name), error=None)
        except TableStoreError as error:
            yield TableCompaction(table=name, result=None, error=error)


@dataclass(frozen=True, slots=True)
class CompactDatabase(Operation[Backend, tuple[TableCompaction, ...]]):
    """Compact the tables of one or more databases, one after another, as ``Table.compact`` does.

    Args:
        databases: a name, or a regular expression that matches the whole name.
        including: regular expression for the tables, as ``table`` or ``database.table``.
        excluding: regular expression for tables to exclude.

    Returns:
        One result per table. If a table cannot be compacted, its result has the error, and the others are still
        compacted.

    Raises:
        NotFoundError: no database matches.
        InvalidOptionError: an invalid regular expression.
    """

    databases: Annotated[str, Named("including_databases")] = ".*"
    spark: "SparkSession | None" = None
    _: KW_ONLY
    including: Annotated[str, Named("including_tables")] = ".*"
    excluding: Annotated[str | None, Named("excluding_tables")] = None
    strategy: Annotated[str | None, Named("compact_strategy")] = None
    idle_time: Annotated[str | None, Named("partition_idle_time")] = None
    options: Annotated[Options | None, Named("table_options", aliases=("options",))] = None
    dry_run: bool = False

    def run(self, warehouse: Backend, /) -> tuple[TableCompaction, ...]:
        names = select_tables(warehouse, databases=self.databases, including=self.including, excluding=self.excluding)
        compact = Compact(
            self.spark, strategy=self.strategy, idle_time=self.idle_time, options=self.options, dry_run=self.dry_run
        )
        return tuple(compact_tables(names, lambda name: compact.run(TableHandle(warehouse.load_table(name)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactManifests(Operation[TableHandle, ManifestCompaction]):
    """Merge manifests that are small or contain entries of deleted files; commits merge fewer at a time.

    Args:
        dry_run: only count them.
    """

    dry_run: bool = False

    def run(self, table: TableHandle, /) -> ManifestCompaction:
        check_writable(table.ref)
        committer = open_committer(table.ref, table.checked_store, adds_rows=False)
        return compact_manifests(committer, dry_run=self.dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFileIndex(Operation[TableHandle, FileIndexRewrite]):
    """Give existing data files the indexes that the options ask for now, without rewriting the files.

    Reads the indexed columns of every file, in this process; files that have exactly these indexes stay as they are.
    Indexes of kinds that only other engines write are kept.

    Args:
        where: only partitions that satisfy this condition on partition columns, in any form that ``Table.to_arrow``
            takes; not with ``partitions``.
        partitions: only these partitions, such as ``dt=2026-01-01``; a spec may omit columns.
        dry_run: only count the files.

    Returns:
        The number of files whose index changes, and of their partitions.

    Raises:
        UnsupportedFeatureError: an index cannot have the type of its column.
        CommitConflictError: others replaced files at every attempt; nothing was changed.
    """

    where: Filter | None = None
    partitions: Sequence[Mapping[str, object]] | None = None
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> FileIndexRewrite:
        check_writable(table.ref)
        ref = at_latest_schema(table.ref, table.checked_store)
        request = request_compaction(ref, partitions=self.partitions, where=to_predicate(self.where, ref.name))
        committer = open_committer(ref, table.store, adds_rows=False)
        return rewrite_file_indexes(committer, request.scope or WholeTable(), dry_run=self.dry_run)


@dataclass(frozen=True, slots=True)
class Rescale(Operation[TableHandle, tuple[RescaledPartition, ...]]):
    """Change the number of buckets of a queue: sets the option ``bucket``, then rewrites the partitions.

    Each partition is one commit; rows with the same bucket key keep their order, and streams that read the table do not
    deliver them again. Commits to a partition that is not rewritten yet are refused, and so are commits with the old
    number. After an interruption, repeat the call.

    Args:
        buckets: None for the current value of the option, to rewrite partitions that were written before it changed.
        partition: only this one, such as ``{"dt": "2026-01-01"}``; the option must already have the new number.
        dry_run: only return them.

    Returns:
        The partitions that had a different number.

    Raises:
        InvalidOptionError: the table is not a queue, or the number is below 1.
        CommitConflictError: others committed at every attempt to rewrite a partition.
    """

    buckets: Annotated[int | None, Named("bucket_num")] = None
    _: KW_ONLY
    partition: Annotated[Mapping[str, object] | None, Named(aliases=("partitions",), sql=MAPPINGS)] = None
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[RescaledPartition, ...]:
        check_writable(table.ref)
        ref = at_latest_schema(table.ref, table.checked_store)
        now = ref.parsed(BucketOptions).bucket
        buckets = now if self.buckets is None else self.buckets
        if now < 1 or buckets < 1:
            raise InvalidOptionError(
                f"table {ref.name}: rescale is for queues: 'bucket' is {now}, and {buckets} buckets were asked for"
            )
        if self.partition is not None and buckets != now:
            raise InvalidOptionError(
                f"table {ref.name}: set 'bucket' = '{buckets}' before single partitions get that number; it is {now}"
            )
        if buckets != now and not self.dry_run:
            place = TablePlace(name=ref.name, location=ref.location, file_io=ref.file_io, database=None, trash="")
            altered = alter_place(place, [SetOption(key="bucket", value=str(buckets))], is_rescale=True)
            ref = replace(ref, schema=altered.schema)
        committer = open_committer(ref, table.store, adds_rows=False)
        one = None if self.partition is None else partition_of_spec(ref, self.partition)
        found = rescale_partitions(
            committer, buckets=buckets, wanted=lambda data: one is None or data == one, dry_run=self.dry_run
        )
        return tuple(found)


def _compaction_rows(table: str, result: CompactionResult) -> ResultRows:
    return [
        (table, row.partition or None, row.files_in, row.bytes_in, row.files_out, row.bytes_out, row.skipped)
        for row in result.partitions
    ]


_COMPACTED: Final = (
    "table STRING, partition STRING, files_in BIGINT, bytes_in BIGINT, files_out BIGINT, bytes_out BIGINT, "
    "skipped STRING"
)


def _compacted(warehouse: Backend, operation: CompactDatabase) -> ResultRows:
    for each in operation.run(warehouse):
        if each.result is None:
            yield (each.table, None, None, None, None, None, str(each.error))
        else:
            yield from _compaction_rows(each.table, each.result)


def _manifests(table: TableHandle, operation: CompactManifests) -> ResultRows:
    done = operation.run(table)
    return [(done.manifests_before, done.rewritten, done.manifests_after)]


def _indexed(table: TableHandle, operation: RewriteFileIndex) -> ResultRows:
    done = operation.run(table)
    return [(done.partitions, done.files)]


def _rescaled(table: TableHandle, operation: Rescale) -> ResultRows:
    return [(each.directory or None, each.buckets_before, each.rows) for each in operation.run(table)]


_MODE: Final = Extra(
    "mode",
    only=("divided", "combined"),
    refusal="expects 'divided' or 'combined' for mode; tables are compacted one after the other",
)
PROCEDURES: Final = (
    Procedure(
        "compact", Compact,
        "table, partitions, order_strategy, order_by, options, where, partition_idle_time, compact_strategy",
        _COMPACTED, lambda table, operation: _compaction_rows(table.name, operation.run(table)),
        note="sorting needs Spark"
    ),
    Procedure(
        "compact_database", CompactDatabase,
        "including_databases, mode, including_tables, excluding_tables, table_options, partition_idle_time, "
        "compact_strategy",
        _COMPACTED, _compacted, extras=(_MODE,), note="tables are compacted one after another, whatever `mode` is"
    ),
    Procedure(
        "compact_manifest", CompactManifests, "table, options, dry_run",
        "manifests_before BIGINT, rewritten BIGINT, manifests_after BIGINT", _manifests
    ),
    Procedure(
        "rewrite_file_index", RewriteFileIndex, "table, where, partitions",
        "written_partitions BIGINT, written_indexes BIGINT", _indexed
    ),
    Procedure(
        "rescale", Rescale, "table, bucket_num, partition, scan_parallelism, sink_parallelism",
        "partition STRING, buckets_before BIGINT, rows BIGINT", _rescaled, each="partition",
        # Partitions are written one after another, in this process.
        extras=(Extra("scan_parallelism", INTEGER), Extra("sink_parallelism", INTEGER))
    ),
)  # fmt: skip
