"""Streaming writes through a Spark catalog: ``writeStream.toTable``.

Each micro-batch is committed as in ``Table.write_stream``: with its lease, its notes in the checkpoint, and the event
times that the query observes. Only the rows take another way, since Spark does not provide them as a DataFrame: tasks
run the writer of Spark's own Parquet source if its files are exactly those that the table needs, else Spark's writers
for Python.

Source:
    ``StreamingWrite`` of Spark: it is made for one micro-batch, and ``commit`` gets the id of that batch. The id of the
    query is that of the checkpoint.
"""

from __future__ import annotations

import pickle
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from penstock.datafile.types import to_arrow_schema
from penstock.errors import UnsupportedFeatureError
from penstock.spark.connector.jvm.driver import places_text
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.python_workers import OUTCOME, made_factory, outcomes_of, writer_source
from penstock.spark.connector.staged_files import StagedFiles, WriterFactories, order_of_files
from penstock.spark.failures import SparkFailureError
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.shared_storage import mark_storage
from penstock.spark.stream.checkpoint import Checkpoint
from penstock.spark.stream.micro_batches import StreamWrite
from penstock.spark.stream.sink import check_output_mode, check_topics, join_in_background, open_batches
from penstock.spark.write.native_sink import why_configured, writer_text
from penstock.spark.write.sink import collect_messages, short_batches
from penstock.spark.write.task import TaskOutcome, WriteTask, delete_failed_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

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
        self._open: dict[str, OpenQuery] = {}
        self._lock = threading.Lock()

    def open(self, ref: TableRef) -> OpenQuery:
        """Return the running query, opened at its first batch."""
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
                self._open = {key: each for key, each in self._open.items() if each.batches.is_active}
                session = self._bridge.session()
                factories = WriterFactories(self._bridge, session)
                self._open[run] = OpenQuery(batches=batches, running=running, session=session, factories=factories)
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
        batch_id = int(self._bridge.local_property(_BATCH_ID) or 0)
        has_batches = batch_id != 0
        checkpoint = Checkpoint(session, request.checkpoint)
        if has_batches:
            files = f"offsets/{batch_id} of the checkpoint, and offsets/.{batch_id}.crc if it exists"
            cure = f" and delete {files}, which Spark has stored without them"
            check_topics(sdf, checkpoint, ref, checkpoint.load_offsets(batch_id - 1), cure)
        batches = open_batches(sdf, ref, request, checkpoint, has_batches=has_batches)
        query = running.sparkSession().streams().get(running.id())
        join_in_background(batches, StreamingQuery(query))
        return batches


@dataclass(frozen=True, kw_only=True)
class OpenQuery:
    """A running query.

    Attributes:
        running: its object in the JVM.
        session: its private session.
        factories: of its writers of files.
    """

    batches: MicroBatches
    running: JavaObject
    session: JavaObject
    factories: WriterFactories

    @cached_property
    def id(self) -> str:
        """The id of the query."""
        return str(self.running.id().toString())

    @cached_property
    def why_configured(self) -> str | None:
        """The reason against Spark's writer for all micro-batches: the writers have the configuration of the first."""
        return why_configured(self.session)


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
        query: whose micro-batch it is.
        ref: the table as the query has loaded it.
        columns: of the query's rows.
    """

    interfaces: ClassVar = (f"{_WRITE}streaming.StreamingWrite", "java.util.function.Function")
    names_errors: ClassVar = True

    def __init__(self, bridge: Bridge, query: OpenQuery, ref: TableRef, columns: StructType) -> None:
        self._query = query
        self._batches = batches = query.batches
        self._ref = ref
        self._columns = columns
        self._reason = lambda: "its event times are wall clocks" if batches.wall_clocks else query.why_configured
        self._order = order_of_files(ref, columns, self._reason)
        writer = writer_text(columns, ref, self._reason)
        super().__init__(bridge, f"{ref.name} {writer} {id(self)}")
        self._begun: BegunBatch | None = None
        self._staged: StagedFiles | None = None

    def exposed(self, answers: JavaObject | None = None) -> JavaObject:
        """Return the object in the JVM, with what it does without Python; see ``MicroBatchFiles.java``."""
        bridge, made = self._bridge, super().exposed(answers)
        if self._order is not None:
            return bridge.micro_batch_files.planned(self._query.session, made, places_text(self._order))
        settings = short_batches(self._ref, self._query.running.analyzedPlan(), self._query.session, bridge.jvm)
        return bridge.micro_batch_files.withSettings(made, bridge.java_map(settings)) if settings else made

    @from_spark
    def apply(self, info: JavaObject) -> JavaObject | None:
        """Begin the batch, and return the factory of writers of files; None if Python workers have to write the rows.

        They have to if the table has changed since the query has loaded it. They also read the rows of a replay.
        """
        batch = self._begin()
        with self._given_up_on_error():
            order = order_of_files(batch.ref, self._columns, self._reason)
            is_as_planned = order == self._order
            # Spark has planned the rows in this order, also for Python workers.
            self._columns = StructType([self._columns.fields[place] for place in self._order or ()])
            if batch.job_id is None or not is_as_planned:
                return None
            self._staged = StagedFiles(
                self._query.factories,
                batch.ref,
                self._columns,
                job_id=batch.job_id,
                takes=True,
            )
            return self._staged.writer_factory()

    @from_spark
    def useCommitCoordinator(self) -> bool:
        """Return that there is none: the files of only one attempt of each task are taken."""
        return False

    @from_spark
    def createStreamingWriterFactory(self, info: JavaObject) -> JavaObject:
        """Return the factory of writers in Python, after the batch has begun."""
        batch = self._begun or self._begin()
        with self._given_up_on_error():
            session = self._bridge.python_session(self._bridge.session())
            ensure_python_worker(session)
            return self._factory(session, batch)

    def _begin(self) -> BegunBatch:
        with interrupted_by_stop(self._bridge):
            batch_id = self._bridge.local_property(_BATCH_ID) or ""
            self._begun = self._batches.begin(self._query.id, int(batch_id))
            return self._begun

    @contextmanager
    def _given_up_on_error(self) -> Iterator[None]:
        """End the batch on an error: Spark calls abort only after it has got a factory."""
        try:
            with interrupted_by_stop(self._bridge):
                yield
        except BaseException:
            self._begun = None
            if self._staged is not None:
                self._staged.delete()
            self._batches.give_up()
            raise

    def _factory(self, session: SparkSession, begun: BegunBatch) -> JavaObject:
        ref, columns = begun.ref, self._columns
        task = None if begun.job_id is None else WriteTask(ref=ref, job_id=begun.job_id, storage=mark_storage(ref))
        function = StreamWriteTask(
            task=task,
            wall_clocks=self._batches.wall_clocks,
            new_columns=self._batches.new_columns(ref, columns.fieldNames()),
        )
        pickled = bytearray(pickle.dumps((function, OUTCOME)))
        source = writer_source(self._bridge, session)
        return made_factory(self._bridge, "PythonStreamingWriterFactory", source, pickled, columns)

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
            if self._staged is not None:
                self._staged.delete()
            elif begun.job_id is not None:
                delete_failed_job(begun.ref, begun.job_id)
        finally:
            self._batches.give_up()

    def _collected(self, ref: TableRef, job_id: str, messages: JavaObject) -> tuple[CommitMessage, ...]:
        if self._staged is not None:
            return self._staged.commit(messages)
        session = self._bridge.python_session(self._bridge.session())
        return collect_messages(ref, outcomes_of(messages), job_id, session)
