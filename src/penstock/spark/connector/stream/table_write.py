"""Streaming writes through a Spark catalog: ``writeStream.toTable``.

Each micro-batch is committed as in ``Table.write_stream``: with its lease, its notes in the checkpoint, and the event
times that the query observes. Only the rows take another way: Spark does not provide them as a DataFrame, so they go
through Spark's writers for Python.

Source:
    ``StreamingWrite`` of Spark: it is made for one micro-batch, and ``commit`` gets the id of that batch. The id of the
    query is that of the checkpoint.
"""

from __future__ import annotations

import pickle
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from penstock.datafile.types import to_arrow_schema
from penstock.errors import UnsupportedFeatureError
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.python_workers import OUTCOME, made_factory, outcomes_of, writer_source
from penstock.spark.failures import SparkFailureError
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.shared_storage import mark_storage
from penstock.spark.stream.checkpoint import Checkpoint
from penstock.spark.stream.micro_batches import StreamWrite
from penstock.spark.stream.sink import check_output_mode, join_in_background, open_batches
from penstock.spark.write.sink import collect_messages
from penstock.spark.write.task import TaskOutcome, WriteTask
from penstock.table.commit.cleanup import delete_job_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.stream.micro_batches import BegunBatch, MicroBatches
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_WRITE: Final = "org.apache.spark.sql.connector.write."
_BATCH_ID: Final = "streaming.sql.batchId"
# Spark's classes of triggers that run micro-batches, and whether such a query ends when it has read what there is.
_ENDS: Final = {"ProcessingTimeTrigger": False, "AvailableNowTrigger$": True, "OneTimeTrigger$": True}


@contextmanager
def interrupted_by_stop(bridge: Bridge) -> Iterator[None]:
    """Raise an interruption in place of an error in a query that is being stopped: Spark ends it without an error.

    ``stop`` interrupts the query's thread wherever it is, for example while it writes to the checkpoint.
    """
    try:
        yield
    except Exception:
        running = bridge.running_stream()
        if running is None or running.isActive():
            raise
        cause = bridge.java("java.io.InterruptedIOException")("the query was stopped")
        raise SparkFailureError(bridge.java("java.io.UncheckedIOException")(cause)) from None


class StreamSinks:
    """The queries that write to one loaded table, which Spark uses for all micro-batches of a query."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._open: dict[str, MicroBatches] = {}
        self._lock = threading.Lock()

    def batches_of(self, ref: TableRef) -> MicroBatches:
        """Return the batches of the running query, opened at its first batch."""
        running = self._bridge.running_stream()
        if running is None or running.trigger().getClass().getSimpleName() not in _ENDS:
            # Spark plans a query of continuous processing before it is there.
            raise UnsupportedFeatureError(
                f"table {ref.name}: toTable commits micro-batches one by one, and with this trigger Spark runs none: "
                "use the trigger processingTime, availableNow or once"
            )
        run = str(running.runId().toString())
        with self._lock:
            if run not in self._open:
                batches = self._opened(running, ref)
                # Spark may use this object for later queries, too.
                self._open = {key: each for key, each in self._open.items() if each.is_active}
                self._open[run] = batches
            return self._open[run]

    def _opened(self, running: JavaObject, ref: TableRef) -> MicroBatches:
        session = self._bridge.python_session(running.sparkSession())
        sdf = self._bridge.frame(session, running.analyzedPlan())
        request = StreamWrite(
            checkpoint=str(running.resolvedCheckpointRoot()),
            trigger={"availableNow": True} if _ENDS[running.trigger().getClass().getSimpleName()] else None,
            output_mode=str(running.outputMode().toString()).lower(),
        )
        check_output_mode(request, ref)
        # Spark has written the offsets of this batch already. Without a batch before it, nothing was written elsewhere.
        has_batches = self._bridge.local_property(_BATCH_ID) != "0"
        checkpoint = Checkpoint(session, request.checkpoint)
        batches = open_batches(sdf, ref, request, checkpoint, has_batches=has_batches)
        query = running.sparkSession().streams().get(running.id())
        join_in_background(batches, StreamingQuery(query))
        return batches


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWriteTask:
    """Writes the rows of one task of a micro-batch; Spark pickles it.

    Attributes:
        task: None for a replay, whose rows are read and not written.
        wall_clocks: columns that hold a wall clock as a time in UTC.
        new_columns: columns of the table that the rows do not have, and which become NULL.
    """

    task: WriteTask | None
    wall_clocks: tuple[str, ...]
    new_columns: tuple[DataField, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows and yield the pickled outcome."""
        outcome = TaskOutcome()
        if self.task is None:
            for _ in batches:
                pass
        else:
            outcome = self.task.run(self._fitted(batches))
        yield pa.record_batch({"outcome": pa.array([pickle.dumps(outcome)], pa.binary())})

    def _fitted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        new = to_arrow_schema(self.new_columns)
        for spark_batch in batches:
            batch = spark_batch
            for name in self.wall_clocks:
                place = batch.schema.get_field_index(name)
                micros = batch.column(place).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
                batch = batch.set_column(place, name, micros)
            for field in new:
                batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
            yield batch


class StreamTableWrite(Proxy):
    """The write of one micro-batch.

    Args:
        columns: the columns of the rows.
    """

    interfaces: ClassVar = (f"{_WRITE}streaming.StreamingWrite",)
    names_errors: ClassVar = True

    def __init__(self, bridge: Bridge, batches: MicroBatches, columns: StructType) -> None:
        super().__init__(bridge, f"stream {id(self)}")
        self._batches = batches
        self._columns = columns
        self._begun: BegunBatch | None = None

    @from_spark
    def createStreamingWriterFactory(self, info: JavaObject) -> JavaObject:
        """Begin the batch, and return the factory that creates writers on executors."""
        with interrupted_by_stop(self._bridge):
            running = self._bridge.running_stream()
            assert running is not None  # noqa: S101 - Spark calls this on the query's thread
            session = self._bridge.python_session(self._bridge.session())
            ensure_python_worker(session)
            batch_id = self._bridge.local_property(_BATCH_ID) or ""
            begun = self._batches.begin(str(running.id().toString()), int(batch_id))
            try:
                factory = self._factory(session, begun)
            except BaseException:
                # Spark calls abort only after it has got a factory.
                self._batches.give_up()
                raise
            self._begun = begun
            return factory

    def _factory(self, session: SparkSession, begun: BegunBatch) -> JavaObject:
        ref, names = begun.ref, self._columns.fieldNames()
        task = None if begun.job_id is None else WriteTask(ref=ref, job_id=begun.job_id, storage=mark_storage(ref))
        function = StreamWriteTask(
            task=task,
            wall_clocks=self._batches.wall_clocks,
            new_columns=self._batches.new_columns(ref, names),
        )
        pickled = bytearray(pickle.dumps((function, OUTCOME)))
        source = writer_source(self._bridge, session)
        return made_factory(self._bridge, "PythonStreamingWriterFactory", source, pickled, self._columns)

    @from_spark
    def commit(self, batch_id: int, messages: JavaObject) -> None:
        """Commit the rows of all tasks as one snapshot, unless the batch is already committed."""
        begun, self._begun = self._begun, None
        assert begun is not None  # noqa: S101 - Spark has created writers
        with interrupted_by_stop(self._bridge):
            try:
                files = () if begun.job_id is None else self._collected(begun.ref, begun.job_id, messages)
            except BaseException:
                self._batches.give_up()
                raise
            self._batches.commit(begun, files)

    @from_spark
    def abort(self, batch_id: int, messages: JavaObject) -> None:
        """Delete the files that the tasks of a failed job have written; after a failed commit, do nothing."""
        begun, self._begun = self._begun, None
        if begun is None:
            return
        try:
            if begun.job_id is not None:
                delete_job_files(begun.ref, begun.job_id, keep=())
        finally:
            self._batches.give_up()

    def _collected(self, ref: TableRef, job_id: str, messages: JavaObject) -> tuple[CommitMessage, ...]:
        session = self._bridge.python_session(self._bridge.session())
        speculates = session.conf.get("spark.speculation", "false") == "true"
        return collect_messages(ref, outcomes_of(messages), job_id, speculates=speculates)
