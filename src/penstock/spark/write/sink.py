"""Write DataFrames to data files, without a shuffle unless the table's options require one."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import IntegerType, LongType, StructType

from penstock.errors import TableStoreError
from penstock.format.row.murmur import hash_bytes
from penstock.format.schema import types_within
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.options import SinkStrategy, WriteOptions
from penstock.printable import mask_locations
from penstock.spark.batches import from_spark_batch
from penstock.spark.logical_plan import analyzed_plan
from penstock.spark.native_settings import batch_settings
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.session import described_jobs
from penstock.spark.shared_storage import check_files_arrived, mark_storage
from penstock.spark.watermark.query_shape import observes_rows
from penstock.spark.write.native_sink import in_clone, write_natively
from penstock.spark.write.task import OUTCOME_SCHEMA, TaskOutcome, WriteTask, delete_failed_job
from penstock.table.commit.cleanup import delete_job_files, delete_new_files
from penstock.table.write.assign import Assigner
from penstock.table.write.check_rows import conform_batch, plan_conform
from penstock.table.write.rolling import plan_buckets
from penstock.table.write.writer import new_job_id, warn_too_many_writers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.write.native_sink import StreamRows
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.write.assign import Group, Ids
_CHANNEL: Final = "__penstock_channel"
_ORDER: Final = "__penstock_order"
# Bits for the position of a row in its task; the task's index takes the bits above.
_ORDER_BITS: Final = 40
# Of a plan: rows of an RDD, which may be computed in any way.
_OTHER_ROWS: Final = "LogicalRDD"
_LARGE: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.BLOB, TypeRoot.VARIANT})


def write_dataframe(
    df: DataFrame,
    ref: TableRef,
    job_id: str | None = None,
    *,
    file_rows: int | None = None,
    is_staged: bool = False,
    query: StreamRows | None = None,
) -> tuple[CommitMessage, ...]:
    """Write the rows of a DataFrame to data files of a table; nothing is committed.

    Args:
        job_id: from ``new_job_id``; None to create one.
        file_rows: approximate number of rows that reach the target file size, if the caller knows it.
        is_staged: the table may have no schema on storage yet.
        query: of which the rows are a micro-batch.

    Returns:
        Messages in the order of the DataFrame: one Spark partition after another, each in its own order.
    """
    job_id = job_id or new_job_id()
    with described_jobs(df.sparkSession.sparkContext, f"{mask_locations(ref.name)}: writing rows"):
        native = write_natively(df, ref, job_id, file_rows, query)
        if native is not None:
            return native
        whole = df if query is None else query.rows
        return _write_by_python(_in_short_batches(df, whole, ref), ref, job_id, is_staged=is_staged)


def _write_by_python(df: DataFrame, ref: TableRef, job_id: str, *, is_staged: bool) -> tuple[CommitMessage, ...]:
    ensure_python_worker(df.sparkSession)
    names = tuple(df.columns)
    task = WriteTask(ref=ref, job_id=job_id, storage=mark_storage(ref, is_staged=is_staged), names=names)
    # mapInArrow looks up columns by name, which fails for names with a dot and for duplicate names.
    plain = df.toDF(*(f"c{number}" for number in range(len(names))))
    try:
        rows = distribute(plain, ref, names).mapInArrow(task, OUTCOME_SCHEMA).collect()
    except BaseException:
        # The messages of finished tasks are lost, so find their files by the job id.
        delete_failed_job(ref, job_id)
        raise
    return collect_messages(ref, [pickle.loads(row.outcome) for row in rows], job_id, df.sparkSession)  # noqa: S301 - our own tasks wrote it


def _in_short_batches(df: DataFrame, query: DataFrame, ref: TableRef) -> DataFrame:
    """Return the DataFrame in a session with ``short_batches``; unchanged if it observes metrics of its own."""
    java_frame: Any = df._jdf  # noqa: SLF001 - Python has no other way to it
    plan = analyzed_plan(query)
    settings = short_batches(ref, plan, java_frame.sparkSession(), df.sparkSession._jvm)  # noqa: SLF001 - see above
    return in_clone(df, settings) if settings and not observes_rows(str(plan.toString())) else df


def short_batches(ref: TableRef, plan: Any, session: Any, jvm: Any) -> dict[str, str]:  # noqa: ANN401 - objects of the JVM
    """Return the settings with which a query hands rows to Python in batches limited by rows, not by bytes.

    Empty if the query calls Python functions, or may call them: those would get the short batches too; and if the table
    has binary values, which may be images or documents: a batch of 2 GB cannot be handed over.

    Args:
        plan: of the query, analyzed.
    """
    types = (inner for field in ref.schema.fields for inner in types_within(field.type))
    if any(isinstance(each, AtomicType) and each.root in _LARGE for each in types):
        return {}
    calls_python = plan.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF())
    if calls_python or _OTHER_ROWS in str(plan.toString()):
        return {}
    return batch_settings(session)


def collect_messages(
    ref: TableRef, outcomes: Iterable[TaskOutcome], job_id: str, spark: SparkSession | None
) -> tuple[CommitMessage, ...]:
    """Join the messages of a job's tasks; delete the files of other attempts.

    Args:
        outcomes: in task order.
        spark: the session; None in a process without it.
    """
    outcomes = tuple(outcomes)
    messages = tuple(message for outcome in outcomes for message in outcome.messages)
    error = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if error is None:
        check_files_arrived(ref, messages)
    kept = {file.file_name for message in messages for file in message.new_files if error is None}
    if _is_tried_again(outcomes, spark):
        delete_failed_job(ref, job_id, kept)
    elif spark is not None and spark.conf.get("spark.speculation", "false") == "true":
        delete_job_files(ref, job_id, keep=kept)
    if error is not None:
        delete_new_files(ref, messages)
        raise error
    warn_too_many_writers(ref, messages, tasks=sum(bool(outcome.messages) for outcome in outcomes))
    return messages


def _is_tried_again(outcomes: tuple[TaskOutcome, ...], spark: SparkSession | None) -> bool:
    """Whether a task has failed and was tried again, alone or with its stage; tasks of the first time may still end."""
    if any(outcome.attempt > 0 for outcome in outcomes):
        return True
    if spark is None:
        return False
    stages = {outcome.stage_id for outcome in outcomes if outcome.stage_id is not None}
    found = (spark.sparkContext.statusTracker().getStageInfo(stage) for stage in stages)
    return any(stage is not None and stage.currentAttemptId > 0 for stage in found)


def distribute(df: DataFrame, ref: TableRef, names: tuple[str, ...]) -> DataFrame:
    """Return the DataFrame unchanged, or shuffled by bucket if ``partition.sink-strategy`` is set.

    After the shuffle, one task has all rows of a partition and bucket, in their original order. Without it, each task
    writes to all buckets of its rows, which is faster, but creates up to tasks x buckets files.

    Args:
        names: names of the table's columns, in the order of the columns of ``df``.

    Source:
        Option ``partition.sink-strategy``; Paimon ``flink:sink/RowDataHashPartitionChannelComputer.java``.
    """
    strategy = ref.parsed(WriteOptions).sink_strategy
    if strategy is SinkStrategy.NONE:
        return df
    routed = StructType(list(df.schema.fields)).add(_CHANNEL, IntegerType()).add(_ORDER, LongType())
    return (
        df.mapInArrow(RouteTask(ref=ref, names=names), routed)
        .repartition(F.col(_CHANNEL))
        .sortWithinPartitions(_ORDER)
        .drop(_CHANNEL, _ORDER)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTask:
    """Adds two columns to each row: the channel of its (partition, bucket), and its position in the DataFrame."""

    ref: TableRef
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Route the rows of a task; all rows of a batch that does not fit the table get channel 0."""
        assigner = Assigner(self.ref.schema, plan_buckets(self.ref))
        context = TaskContext.get()
        order = (context.partitionId() if context is not None else 0) << _ORDER_BITS
        plan = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            try:
                named = from_spark_batch(batch.rename_columns(list(self.names)), self.ref.schema.fields)
                plan = plan or plan_conform(self.ref.schema, named.schema, self.ref.name)
                channels = _channels(assigner, assigner.assign(conform_batch(named, plan)), batch.num_rows)
            except TableStoreError:
                # The task that writes these rows gets the same error and reports it to the user.
                channels = np.zeros(batch.num_rows, dtype=np.int32)
            places = np.arange(order, order + batch.num_rows, dtype=np.int64)
            order += batch.num_rows
            yield batch.append_column(_CHANNEL, pa.array(channels)).append_column(_ORDER, pa.array(places))


def _channels(assigner: Assigner, groups: int | Ids, num_rows: int) -> Ids:
    """Return the channel of each row: the same number in all tasks for one (partition, bucket)."""
    channels = np.array([_channel(group) for group in assigner.groups], dtype=np.int32)
    return np.full(num_rows, channels[groups], dtype=np.int32) if isinstance(groups, int) else channels[groups]


def _channel(group: Group) -> int:
    # Consecutive buckets of a partition get consecutive numbers, as in Paimon.
    return ((hash_bytes(group.partition) & 0x3FFFFFFF) + group.bucket) & 0x7FFFFFFF
