"""Write streaming DataFrames to a table: one snapshot per micro-batch, each exactly once.

Source:
    PySpark ``foreachBatch``: it runs in the driver, where ``sql.streaming.queryId`` is a local property, and is
    repeated for a batch that Spark has not recorded as done.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException, PySparkValueError
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import CheckpointError, InvalidOptionError, LeaseHeldError, UnsupportedFeatureError
from penstock.options import CommitOptions
from penstock.spark.batches import from_spark_batch
from penstock.spark.logical_plan import analyzed_plan, each_node, read_plan
from penstock.spark.stream.checkpoint import Checkpoint
from penstock.spark.stream.micro_batches import MicroBatches, QueryLease
from penstock.spark.versions.python_api import arrow_schema
from penstock.spark.watermark.query_shape import QueryShape
from penstock.spark.watermark.wall_clock import with_wall_clocks
from penstock.table.store import MetadataStore
from penstock.table.stream.checkpoint import decode_batch
from penstock.table.stream_sink.batch_log import BatchNotes, claim_checkpoint
from penstock.table.stream_sink.committer import StreamCommitter, load_first_batch
from penstock.table.write.check_rows import plan_conform

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from penstock.spark.stream.micro_batches import StreamWrite
    from penstock.table.ref import TableRef

_TRIGGERS: Final = ("processingTime", "availableNow", "once")
_SOURCE: Final = "StreamingRelationV2"
__all__ = ["TableStreamingQuery"]


def write_stream(sdf: DataFrame, ref: TableRef, request: StreamWrite) -> StreamingQuery:
    """Start a query that commits each micro-batch to a table exactly once, even if Spark runs the batch again."""
    check_request(sdf, ref, request)
    checkpoint = Checkpoint(sdf.sparkSession, request.checkpoint)
    check_topics(sdf, checkpoint, ref, checkpoint.load_newest_offsets())
    batches = open_batches(sdf, ref, request, checkpoint, has_batches=checkpoint.has_batches())
    query_id = checkpoint.load_query_id()
    if query_id is not None:
        _check_not_running(sdf.sparkSession, query_id, ref)
        batches.lease.take(query_id)
    try:
        if query_id is not None:
            batches.resume(query_id)
        query = with_request(sdf.writeStream.foreachBatch(batches.run), request).start()
    except BaseException:
        batches.lease.give_back()
        raise
    return TableStreamingQuery(query, join_in_background(batches, query), cancel=batches.cancel_compaction)


def open_batches(
    sdf: DataFrame, ref: TableRef, request: StreamWrite, checkpoint: Checkpoint, *, has_batches: bool
) -> MicroBatches:
    """Return the batches of a query that writes to a table, after checks of its rows and its checkpoint.

    Args:
        has_batches: whether the query has begun batches before.
    """
    shape = QueryShape.of(sdf, ref.schema.fields)
    if shape.keeps_rows and shape.redefines_watermark:
        raise UnsupportedFeatureError(
            f"table {ref.name}: the query puts a watermark on rows whose table declares one, and Spark runs no windows "
            "or joins over two; leave withWatermark out, or read that table with the option "
            "'penstock.read.watermark' = 'false'"
        )
    check_fits(with_wall_clocks(sdf, shape.wall_clocks).schema, ref)
    lease = QueryLease(ref)
    committer = _open_committer(ref, checkpoint, lease, is_overwrite=request.is_complete, has_batches=has_batches)
    return MicroBatches(sdf, request, checkpoint, committer, lease, shape)


def join_in_background(batches: MicroBatches, query: StreamingQuery) -> threading.Thread:
    """Start the thread that ends the background work of a query when the query has ended."""
    batches.query = query
    # Not a listener: Spark calls listeners late, and for every batch of every query.
    tail = threading.Thread(target=batches.tidy_up, name=f"end of query {query.id}", daemon=True)
    tail.start()
    return tail


def check_fits(schema: StructType, ref: TableRef) -> None:
    """Raise ``SchemaMismatchError`` if no row with these columns can be written to the table."""
    plain = arrow_schema(schema)
    batch = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in plain], schema=plain)
    plan_conform(ref.schema, from_spark_batch(batch, ref.schema.fields).schema, ref.name)


def check_request(sdf: DataFrame, ref: TableRef, request: StreamWrite) -> None:
    """Raise ``InvalidOptionError`` for a batch or a trigger that is not known, and as ``check_output_mode``."""
    if not sdf.isStreaming:
        raise InvalidOptionError(f"table {ref.name}: this DataFrame is not a stream; write it with append")
    check_output_mode(request, ref)
    trigger = request.trigger
    if trigger is not None and (len(trigger) != 1 or not trigger.keys() <= set(_TRIGGERS)):
        raise InvalidOptionError(
            f"table {ref.name}: trigger {dict(trigger)}: expected one of {', '.join(_TRIGGERS)}, such as "
            "{'processingTime': '10 seconds'}"
        )


def check_output_mode(request: StreamWrite, ref: TableRef) -> None:
    """Raise ``UnsupportedFeatureError`` for output mode ``update``, ``InvalidOptionError`` for an unknown one."""
    mode = request.output_mode.lower()
    if mode == "update":
        raise UnsupportedFeatureError(
            f"table {ref.name}: output mode 'update' changes rows that were written before, and an append table has no "
            "key to find them by; use 'append' with a watermark, or 'complete', which replaces all rows each time"
        )
    if mode not in {"append", "complete"}:
        raise InvalidOptionError(f"table {ref.name}: output mode '{request.output_mode}': expected append or complete")


def _open_committer(
    ref: TableRef, checkpoint: Checkpoint, lease: QueryLease, *, is_overwrite: bool, has_batches: bool
) -> StreamCommitter:
    notes, store = BatchNotes(checkpoint.files), MetadataStore(ref)
    query_id = None if has_batches else checkpoint.load_query_id()
    # What `format("penstock")` may have committed of this query, in a batch that Spark did not note.
    first = None if query_id is None else load_first_batch(store, query_id)
    mark = claim_checkpoint(
        ref,
        notes,
        base_id=(store.latest_snapshot_id() or 0) if first is None else first,
        has_batches=has_batches,
        accept_unknown=ref.parsed(CommitOptions).accept_unknown_batch,
    )
    return StreamCommitter(ref, notes, mark, is_overwrite=is_overwrite, ownership=lease)


def check_topics(sdf: DataFrame, checkpoint: Checkpoint, ref: TableRef, data: bytes | None, cure: str = "") -> None:
    """Check that a query still reads the topics of Kafka that the offsets of an earlier batch have.

    Spark would store offsets without them and fail; from these it could not go on even with the topics, or would read
    them from their beginning.

    Args:
        cure: what else to do before the query goes on with the topics.
    """
    left = frozenset() if data is None else decode_batch(data, checkpoint.place).topics
    if not left:
        return
    jvm: Any = sdf.sparkSession._jvm  # noqa: SLF001 - Python has no regular expressions of Java
    nodes = each_node(read_plan(analyzed_plan(sdf)))
    sources = [node.java.extraOptions() for node in nodes if node.name == _SOURCE and node.java.sourceName() == "kafka"]
    for source in sources:
        names, pattern = source.get("subscribe"), source.get("subscribePattern")
        if (names or pattern) is None or not source.getBoolean("failOnDataLoss", True):  # noqa: FBT003 - Java
            return
        matches = jvm.java.util.regex.Pattern.matches
        left = left.difference(names.split(",") if names else [each for each in left if matches(pattern, each)])
    if sources and left:
        raise CheckpointError(
            f"table {ref.name}: checkpoint {checkpoint.place} is of a query that reads the topics "
            f"{', '.join(sorted(left))}, which this one does not read; add them{cure}, or start with a new checkpoint"
        )


def _check_not_running(spark: SparkSession, query_id: str, ref: TableRef) -> None:
    if any(query.id == query_id for query in spark.streams.active):
        raise LeaseHeldError(
            f"table {ref.name}: query {query_id} runs in this session already, with the same checkpoint; stop that "
            "one, or give this one another checkpoint"
        )


def with_request(writer: DataStreamWriter, request: StreamWrite) -> DataStreamWriter:
    """Return the writer with output mode, checkpoint, name and trigger of a request."""
    writer = writer.outputMode(request.output_mode).option("checkpointLocation", request.checkpoint)
    if request.query_name is not None:
        writer = writer.queryName(request.query_name)
    # Spark's signature has one keyword for each kind of trigger.
    return writer if request.trigger is None else writer.trigger(**request.trigger)  # type: ignore[call-overload]


class TableStreamingQuery(StreamingQuery):
    """Spark's query with its background work: waiting for the query also waits for that work.

    Without it, a script could drop the table after ``awaitTermination``, or exit, while a merge is running.

    Args:
        query: the query that Spark started.
        tail: thread that ends when the query and its background work have ended.
        cancel: cancels the background work.
    """

    def __init__(self, query: StreamingQuery, tail: Thread, *, cancel: Callable[[], None]) -> None:
        super().__init__(query._jsq)  # noqa: SLF001 - the only way to one with methods of our own
        self._tail = tail
        self._cancel = cancel

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - PySpark's name
        """Wait for the end of the query as Spark does, then for its background compaction.

        Args:
            timeout: seconds for both; None for no limit.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            has_ended = super().awaitTermination(timeout)  # type: ignore[arg-type] # it takes parts of a second too
        except PySparkValueError:  # not a valid number of seconds: the query continues
            raise
        except PySparkException:
            self._tail.join()
            raise
        if deadline is None:
            self._tail.join()
            return has_ended
        if has_ended:
            self._tail.join(max(0.0, deadline - time.monotonic()))
        return bool(has_ended) and not self._tail.is_alive()

    def stop(self) -> None:
        """Stop the query as Spark does, cancel its background compaction, and wait until that has ended."""
        super().stop()
        # The tail lets the compaction finish if a query ends by itself, and a stopped query looks the same to it.
        self._cancel()
        self._tail.join()
