"""Streaming DataFrames to a table: one snapshot a micro-batch, each exactly once.

Source:
    PySpark ``foreachBatch``: it runs in the driver, where ``sql.streaming.queryId`` is a local property, and again for
    a batch that Spark does not know to be done.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.catalog.features import check_writable
from penstock.errors import InvalidOptionError, LeaseHeldError, UnsupportedFeatureError
from penstock.options import CommitOptions, WatermarkOptions, WriteOptions
from penstock.spark.batches import from_spark_batch
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.event_time import keeps_rows_for_watermark, redefines_watermark
from penstock.spark.observed_times import ObservedTimes
from penstock.spark.query_lease import QueryLease
from penstock.spark.row_writer import RowWriter
from penstock.spark.stream_compaction import StreamCompaction
from penstock.spark.stream_door import QUERY_ID
from penstock.spark.stream_query import TableStreamingQuery
from penstock.spark.task_times import task_times
from penstock.spark.types import to_spark_type
from penstock.spark.wall_clock import wall_clocks_for, with_wall_clocks
from penstock.spark.write_progress import WriteProgress, note_write
from penstock.table.batch_notes import BatchNotes
from penstock.table.check_rows import plan_conform
from penstock.table.checkpoint_claim import claim_checkpoint
from penstock.table.identity import digest_of
from penstock.table.store import MetadataStore
from penstock.table.stream.checkpoint import decode_batch
from penstock.table.stream.event_time import usable_watermark
from penstock.table.stream_commit import Batch, StreamCommitter
from penstock.table.stream_watermark import NOTHING_OBSERVED, SinkWatermark, tells_no_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from penstock.spark.row_writer import Written
    from penstock.table.ref import TableRef
    from penstock.table.stream.checkpoint import BatchEnds

_TRIGGERS: Final = ("processingTime", "availableNow", "once")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWrite:
    """How a query writes to a table.

    Attributes:
        checkpoint: the query's own directory, as Spark takes it.
        trigger: one of ``{"processingTime": "10 seconds"}``, ``{"availableNow": True}``, ``{"once": True}``; None for
            one batch after the other.
        output_mode: ``append``, or ``complete``, where each batch takes the place of all rows.
        query_name: shown by Spark.
    """

    checkpoint: str
    trigger: Mapping[str, object] | None = None
    output_mode: str = "append"
    query_name: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether each batch takes the place of all rows."""
        return self.output_mode.lower() == "complete"


def write_stream(sdf: DataFrame, ref: TableRef, request: StreamWrite) -> StreamingQuery:
    """Start a query that commits each micro-batch to a table once, however often Spark runs it.

    Raises:
        SchemaMismatchError: columns that do not fit the table.
        CheckpointError: the checkpoint is that of another table or sink.
        LeaseHeldError: a query with this checkpoint runs already.
        InvalidOptionError: no streaming DataFrame, another trigger or output mode.
        UnsupportedFeatureError: output mode ``update``.
    """
    _check_request(sdf, ref, request)
    waits = keeps_rows_for_watermark(sdf)
    if waits and redefines_watermark(sdf):
        raise UnsupportedFeatureError(
            f"table {ref.name}: the query puts a watermark on rows whose table declares one, and Spark runs no windows "
            "or joins over two; leave withWatermark out, or read that table with the option "
            "'penstock.read.watermark' = 'false'"
        )
    wall_clocks = wall_clocks_for(sdf, ref.schema.fields)
    check_fits(with_wall_clocks(sdf, wall_clocks).schema, ref)
    spark = sdf.sparkSession
    checkpoint = Checkpoint(spark, request.checkpoint)
    committer = _open_committer(ref, checkpoint, is_overwrite=request.is_complete)
    batches = _MicroBatches(sdf, ref, request, checkpoint, committer, wall_clocks)
    query_id = checkpoint.load_query_id()
    if query_id is not None:
        _check_not_running(spark, query_id, ref)
        batches.lease.take(query_id)
    try:
        query = _with_request(sdf.writeStream.foreachBatch(batches.run), request).start()
    except BaseException:
        batches.lease.give_back()
        raise
    batches.query = query
    # Not a listener: those hear of it late, and of every batch of every query.
    tail = threading.Thread(target=batches.tidy_up, name=f"end of query {query.id}", daemon=True)
    tail.start()
    return TableStreamingQuery(query, tail, cancel=batches.cancel_compaction)


def check_fits(schema: StructType, ref: TableRef) -> None:
    """Raise ``SchemaMismatchError`` where rows of these columns cannot be written, whatever they are."""
    plain = to_arrow_schema(schema, timezone="UTC")
    batch = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in plain], schema=plain)
    plan_conform(ref.schema, from_spark_batch(batch, ref.schema.fields).schema, ref.name)


def _check_request(sdf: DataFrame, ref: TableRef, request: StreamWrite) -> None:
    if not sdf.isStreaming:
        raise InvalidOptionError(f"table {ref.name}: this DataFrame is no stream; write it with append")
    mode = request.output_mode.lower()
    if mode == "update":
        raise UnsupportedFeatureError(
            f"table {ref.name}: output mode 'update' changes rows that were written before, and an append table has no "
            "key to find them by; use 'append' with a watermark, or 'complete', which replaces all rows each time"
        )
    if mode not in {"append", "complete"}:
        raise InvalidOptionError(f"table {ref.name}: output mode '{request.output_mode}': expected append or complete")
    trigger = request.trigger
    if trigger is not None and (len(trigger) != 1 or not trigger.keys() <= set(_TRIGGERS)):
        raise InvalidOptionError(
            f"table {ref.name}: trigger {dict(trigger)}: expected one of {', '.join(_TRIGGERS)}, such as "
            "{'processingTime': '10 seconds'}"
        )


def _open_committer(ref: TableRef, checkpoint: Checkpoint, *, is_overwrite: bool) -> StreamCommitter:
    notes = BatchNotes(checkpoint.files)
    mark = claim_checkpoint(
        ref,
        notes,
        base_id=MetadataStore(ref).latest_snapshot_id() or 0,
        has_batches=checkpoint.has_batches(),
        accept_unknown=CommitOptions.parse(ref.options, table=ref.name).accept_unknown_batch,
    )
    return StreamCommitter(ref, notes, mark, is_overwrite=is_overwrite)


def _check_not_running(spark: SparkSession, query_id: str, ref: TableRef) -> None:
    if any(query.id == query_id for query in spark.streams.active):
        raise LeaseHeldError(
            f"table {ref.name}: query {query_id} runs in this session already, with the same checkpoint; stop that "
            "one, or give this one a checkpoint of its own"
        )


def _with_request(writer: DataStreamWriter, request: StreamWrite) -> DataStreamWriter:
    writer = writer.outputMode(request.output_mode).option("checkpointLocation", request.checkpoint)
    if request.query_name is not None:
        writer = writer.queryName(request.query_name)
    # Spark's own signature has one keyword for each kind.
    return writer if request.trigger is None else writer.trigger(**request.trigger)  # type: ignore[call-overload]


class _MicroBatches:
    """What runs in the driver for each micro-batch."""

    def __init__(
        self,
        sdf: DataFrame,
        ref: TableRef,
        request: StreamWrite,
        checkpoint: Checkpoint,
        committer: StreamCommitter,
        wall_clocks: tuple[str, ...],
    ) -> None:
        self.query: StreamingQuery | None = None
        self.lease = QueryLease(ref)
        self._spark = sdf.sparkSession
        self._checkpoint = checkpoint
        self._committer = committer
        self._observed = ObservedTimes.of(sdf)
        self._times = None if self._observed.metrics else task_times(sdf, ref)
        self._rows = RowWriter(sdf)
        self._watermark = SinkWatermark(
            table=ref.name,
            waits_for_spark=keeps_rows_for_watermark(sdf),
            is_wanted=usable_watermark(ref) is not None,
        )
        # What each batch replaces need not be merged.
        self._compaction = None if request.is_complete else StreamCompaction(sdf.sparkSession)
        # Whether the query ends by itself.
        self._is_to_finish = request.trigger is not None and "processingTime" not in request.trigger
        self._wall_clocks = wall_clocks
        self._first_ids = frozenset(field.id for field in ref.schema.fields)

    def run(self, df: DataFrame, batch_id: int) -> None:
        """Write and commit a batch: the function for ``foreachBatch``."""
        try:
            self._run(df, batch_id)
        except Exception:
            if self._is_stopping():
                raise _interrupted() from None
            raise

    def tidy_up(self) -> None:
        """Wait for the query's end, then let another process run it."""
        has_failed = True
        if self.query is not None:
            # How it ended is for those to hear who ask the query.
            with suppress(PySparkException, Py4JError):
                self.query.awaitTermination()
                has_failed = False
        self.lease.give_back()
        if self._compaction is not None:
            self._compaction.end(is_at_once=has_failed or not self._is_to_finish)

    def cancel_compaction(self) -> None:
        """End the compaction beside the query at once."""
        if self._compaction is not None:
            self._compaction.end(is_at_once=True)

    def _run(self, df: DataFrame, batch_id: int) -> None:
        query_id = cast("str", df.sparkSession.sparkContext.getLocalProperty(QUERY_ID))
        ref = self._committer.load_ref()
        self.lease.take(query_id)
        check_writable(ref)
        offsets = self._checkpoint.load_offsets(batch_id)
        batch = Batch(commit_user=query_id, id=batch_id, digest=digest_of(offsets))
        job_id = self._committer.begin(batch)
        self._watermark.restore(self._committer.upstream_times)
        ends = decode_batch(offsets, f"{self._checkpoint.place}/offsets/{batch_id}")
        self._is_to_finish |= all(source is not None and source.ended for source in ends.sources)
        if job_id is None:
            # Aggregates and the like move on in the checkpoint only when their rows are read to the end.
            df.write.format("noop").mode("overwrite").save()
            return
        rows = with_wall_clocks(self._with_new_columns(df, ref), self._wall_clocks)
        times = self._times if tells_no_times(ends) else None
        written = self._rows.write(rows, ref, job_id, times)
        batch = self._timed(batch, ends, written, ref)
        self.lease.check()
        snapshot = self._committer.commit(batch, written.messages)
        if self._compaction is not None and not WriteOptions.parse(ref.options, table=ref.name).write_only:
            self._compaction.note_commit(ref, query_id)
        files = [file for message in written.messages for file in message.new_files]
        progress = WriteProgress(
            query_id=query_id,
            batch_id=batch_id,
            table=ref.name,
            snapshot_id=None if snapshot is None else snapshot.id,
            watermark=batch.watermark,
            rows=sum(file.row_count for file in files),
            files=len(files),
            bytes=sum(file.file_size for file in files),
            compaction=None,
        )
        compaction = self._compaction
        note_write(query_id, lambda: replace(progress, compaction=None if compaction is None else compaction.state))

    def _timed(self, batch: Batch, ends: BatchEnds, written: Written, ref: TableRef) -> Batch:
        """Return the batch with the watermark behind it."""
        self._watermark.idle_timeout_ms = WatermarkOptions.parse(ref.options, table=ref.name).upstream_idle_timeout_ms
        # Of the session where the query was made: a batch's own is a clone, and knows no queries.
        query = self._spark.streams.get(batch.commit_user) if self._observed.metrics else None
        observed = NOTHING_OBSERVED if query is None else self._observed.read(query)
        if written.least_of_tasks is not None:
            observed = replace(observed, least_of_tasks=written.least_of_tasks)
        watermark = self._watermark.of(ends, observed)
        return replace(batch, watermark=watermark, upstream_times=self._watermark.encode())

    def _with_new_columns(self, df: DataFrame, ref: TableRef) -> DataFrame:
        """Add the columns that the table got since the query began, all null."""
        new = [
            F.lit(None).cast(to_spark_type(field.type)).alias(field.name)
            for field in ref.schema.fields
            if field.id not in self._first_ids and field.type.nullable and field.name not in df.columns
        ]
        return df.select("*", *new) if new else df

    def _is_stopping(self) -> bool:
        return self.query is not None and not self.query.isActive


def _interrupted() -> Exception:
    """Return what Spark knows for the end of a batch whose query was stopped.

    Spark looks for this in the text of the error by a pattern that overflows its stack on a long trace, and then
    prints a thousand lines instead of ending the query quietly.
    """
    kind: type[Exception] = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    return kind("An error occurred while calling foreachBatch.\n: java.lang.InterruptedException")
