"""Sort compaction on Spark: read a partition's files natively, range-partition the rows, write new files."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.errors import NotFoundError, TableStoreError
from penstock.format.manifest.entry import FileKey, FileKind, ManifestEntry
from penstock.format.row.row import decode_row
from penstock.options import CommitOptions, CompactOptions, SortOptions, WriteOptions
from penstock.spark.compact.job import failed_job, spark_cause
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.read.frame import to_frame
from penstock.spark.versions.python_api import to_arrow, with_binary_column
from penstock.spark.write.sink import write_dataframe
from penstock.table.actions.changes import open_committer
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.committer import new_commit_user
from penstock.table.compact.commit import has_lost_race
from penstock.table.compact.curve import Ranks, hilbert_keys, zorder_keys
from penstock.table.compact.job import CompactionResult, merge_in_threads, run_compaction
from penstock.table.compact.sort import OrderStrategy, count_ranges, sorted_message
from penstock.table.compact.task import MergedFiles
from penstock.table.read.prune import NO_FILTER
from penstock.table.read.scan import Funnel, ScanPartition, ScanPlan
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.datafile.types import ArrowAny
    from penstock.format.snapshot import Snapshot
    from penstock.table.compact.sort import SortJob
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

POOL: Final = "penstock-compaction"
_KEY: Final = "key"
_TIE: Final = "tie"
# Each partition runs jobs on all cores, but a small partition leaves most cores idle: so sort a few at a time.
_PARTITIONS_AT_ONCE: Final = 3
# Ranks are computed by sorting each batch of 10,000 rows with the sample: a larger sample costs more than it gains.
_MAX_SAMPLES: Final = 16_384
_MIN_SAMPLES: Final = 4_096
# Files end at the end of a range. A range is cut into several files only if many rows are equal, or wide.
_SLACK: Final = 2


def sort_compact(
    spark: SparkSession, job: SortJob, *, on_done: Callable[[MergedFiles], None] = lambda _: None
) -> CompactionResult:
    """Sort the partitions of a plan, and commit each one; if it lost a race, its result has the error.

    Args:
        on_done: called for each partition when its files are written.
    """
    ensure_python_worker(spark)
    sorter = SparkSorter(spark=spark, job=job)
    committer = open_committer(job.ref, adds_rows=False)
    options = job.ref.parsed(CommitOptions)
    return run_compaction(
        job.plan,
        committer,
        sorter.execute,
        commit_user=new_commit_user(options.user_prefix),
        kind=job.kind,
        on_done=on_done,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSorter:
    """Sorts partitions of one table. Thread-safe.

    Attributes:
        tag: tag of its Spark jobs, by which they are cancelled.
    """

    spark: SparkSession
    job: SortJob
    tag: str = field(default_factory=lambda: f"{POOL}-{uuid.uuid4()}")

    def execute(self, tasks: Sequence[CompactTask]) -> Iterator[MergedFiles]:
        """Run tasks, a few at a time; yield each result when it is done."""
        options = self.job.ref.parsed(CompactOptions)
        threads = min(options.max_tasks or _PARTITIONS_AT_ONCE, _PARTITIONS_AT_ONCE)
        yield from merge_in_threads(tasks, self.sort, threads=threads, ref=self.job.ref, cancel=self.cancel)

    def cancel(self) -> None:
        """Cancel the running jobs."""
        self.spark.sparkContext.cancelJobsWithTag(self.tag)

    def sort(self, task: CompactTask) -> MergedFiles:
        """Rewrite the files of a task in the order of the job; nothing is committed."""
        started = time.perf_counter()
        context = self.spark.sparkContext
        context.addJobTag(self.tag)
        context.setLocalProperty("spark.scheduler.pool", POOL)
        context.setLocalProperty("spark.job.description", f"{self.job.ref.name}: sorting {len(task.files)} files")
        message, error = None, None
        try:
            message = self._write(task)
        except Exception as failure:
            if not has_lost_race(task, self.job.ref, MetadataStore(self.job.ref)):
                if isinstance(failure, Py4JError | PySparkException):
                    raise failed_job(self.job.ref, f"sorts {len(task.files)} files", failure) from failure
                raise
            # A file has expired meanwhile; Spark reports that as a Java stack trace.
            error = NotFoundError(f"table {self.job.ref.name}: a file to sort is missing: {spark_cause(failure)}")
        return MergedFiles(task=task, message=message, error=error, seconds=time.perf_counter() - started)

    def _write(self, task: CompactTask) -> CommitMessage:
        ref = self.job.ref
        options = ref.parsed(WriteOptions)
        ranges = count_ranges(task, options.target_file_bytes)
        rows = sum(file.row_count for file in task.files)
        frame = sort_frame(self._read(task), self.job, ranges=ranges, rows=rows)
        # Another shuffle would destroy the order of rows.
        target = for_existing_rows(ref, keep_lengths=False).with_options(
            {
                "partition.sink-strategy": "none",
                "target-file-size": f"{_SLACK * options.target_file_bytes} b",
                "write-buffer-for-append": "false",
            }
        )
        if task.total_buckets > 0:
            # A partition may have another number of them than the table.
            own = ("bucket", str(task.total_buckets))
            target = replace(target, dynamic_options=(*target.dynamic_options, own))
        messages = write_dataframe(frame, target, file_rows=max(1, _SLACK * rows // ranges))
        try:
            return sorted_message(task, messages, ref)
        except TableStoreError:
            delete_new_files(ref, messages)
            raise

    def _read(self, task: CompactTask) -> DataFrame:
        ref = for_existing_rows(self.job.ref)
        return to_frame(self.spark, ref, MetadataStore(ref), _as_plan(task, ref, self.job.plan.snapshot))


def sort_frame(frame: DataFrame, job: SortJob, *, ranges: int, rows: int) -> DataFrame:
    """Return the rows in ``ranges`` Spark partitions, sorted within and, unless the job is local, across partitions.

    Args:
        rows: approximate number of rows.
    """
    names = list(frame.columns)
    # Names with a dot, and names that differ in case only, do not work in expressions.
    plain = frame.toDF(*(f"c{place}" for place in range(len(names))))
    columns = [f"c{names.index(name)}" for name in job.order.columns]
    if job.order.strategy is OrderStrategy.ORDER:
        keyed, keys = plain, columns
    else:
        keyed, keys = _with_curve(plain, columns, job, ranges=ranges, rows=rows), [_KEY]
    # The tie-breaker spreads many equal rows over several ranges, and makes their order deterministic.
    keyed = keyed.withColumn(_TIE, F.monotonically_increasing_id())
    keys.append(_TIE)
    parts = keyed.coalesce(ranges) if job.is_local else keyed.repartitionByRange(ranges, *keys)
    return parts.sortWithinPartitions(*keys).drop(_KEY, _TIE).toDF(*names)


def _with_curve(frame: DataFrame, columns: list[str], job: SortJob, *, ranges: int, rows: int) -> DataFrame:
    options = job.ref.parsed(SortOptions)
    wanted = min(max(ranges * options.sample_magnification, _MIN_SAMPLES), _MAX_SAMPLES)
    few = frame.select(*columns)
    if rows > wanted:
        few = few.sample(wanted / rows, seed=0)
    sample = to_arrow(few).combine_chunks()
    ranks = tuple(Ranks.of(_whole(column)) for column in sample.columns)
    task = CurveTask(strategy=job.order.strategy, ranks=ranks)
    return with_binary_column(frame, _KEY, task.keys, columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveTask:
    """Computes the position of each row on a curve, to be compared as unsigned bytes.

    Attributes:
        ranks: ranks of each column, in the order of the arguments.
    """

    strategy: OrderStrategy
    ranks: tuple[Ranks, ...]

    # PySpark reads these type hints at run time, when pa.Array takes no parameters.
    def keys(self, *columns: pa.Array) -> pa.Array:  # type: ignore[type-arg] # see above
        """Return the keys of a batch; for ``arrow_udf``."""
        to_keys = zorder_keys if self.strategy is OrderStrategy.ZORDER else hilbert_keys
        # Timestamps have another zone in a task than on the driver; the numbers are the same.
        cast_columns = [values.cast(ranks.bounds.type) for ranks, values in zip(self.ranks, columns, strict=True)]
        keys = to_keys([ranks.spread(values) for ranks, values in zip(self.ranks, cast_columns, strict=True)])
        width = pa.binary(keys.dtype.itemsize)
        return pa.Array.from_buffers(width, len(keys), [None, pa.py_buffer(keys.tobytes())]).cast(pa.binary())


def _whole(column: ArrowAny) -> ArrowAny:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _as_plan(task: CompactTask, ref: TableRef, snapshot: Snapshot | None) -> ScanPlan:
    """Return a scan plan of exactly the task's files."""
    entries = tuple(
        ManifestEntry(
            kind=FileKind.ADD,
            partition=task.partition,
            bucket=task.bucket,
            total_buckets=task.total_buckets,
            file=file,
        )
        for file in task.files
    )
    partition = ScanPartition(
        data=task.partition,
        values=decode_row(task.partition, [each.type for each in ref.schema.partition_fields]),
        created_millis=0,
        rest=NO_FILTER,
        entries=entries,
    )
    return ScanPlan(
        snapshot=snapshot,
        predicate=NO_FILTER,
        partitions=(partition,),
        funnel=Funnel(),
        vectors={FileKey(task.partition, task.bucket, name): place for name, place in task.vectors},
    )
