"""The source of a streaming query, in the driver's process.

Offsets, planning and everything else that a query observes are the same as for ``format("penstock")``, but planning
happens in the driver process, and Spark's own reader reads the files if it reads them correctly.

Source:
    Spark's ``MicroBatchStream``, ``SupportsAdmissionControl`` and ``SupportsTriggerAvailableNow``.
"""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pyspark.sql.types import StructType

from penstock.options import StreamOptions
from penstock.predicate.bind import columns_of
from penstock.spark.connector.executor_classes import executors_have_classes
from penstock.spark.connector.native_reader import native_factory
from penstock.spark.connector.proxy import Proxy, from_spark
from penstock.spark.connector.pushdown import conjunction_of, translate_nodes
from penstock.spark.connector.python_workers import python_factory, python_partitions
from penstock.spark.read.native_listing import list_native
from penstock.spark.read.native_reading import describe_reading, plan_reading
from penstock.spark.stream.session import open_session
from penstock.spark.stream.task import StreamReadTask
from penstock.spark.types import to_spark_schema
from penstock.spark.versions.facts import STREAM_PRUNING
from penstock.spark.watermark.query_shape import plan_keeps_rows
from penstock.table.inspect.explain import format_predicate
from penstock.table.read.batches import select_fields
from penstock.table.store import MetadataStore
from penstock.table.stream.align.progress import AlignmentRule
from penstock.table.stream.checkpoint import decode_end
from penstock.table.stream.limits import NO_LIMITS, limits_of
from penstock.table.stream.offset import END_OF_INPUT_MS, UNRESOLVED, decode_offset, encode_offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from penstock.predicate.tree import Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.read.native_reading import FileReader, NativeReading
    from penstock.spark.stream.session import StreamSession
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.stream.files import StreamTask

_STREAMING: Final = "org.apache.spark.sql.connector.read.streaming."
# ``latestOffset`` applies all limits of the options; Spark only needs to know that there are some.
_SOME_FILES: Final = 2**31 - 1
_LOG: Final = logging.getLogger(__name__)
_APPEND: Final = "Append"


class TableStream(Proxy):
    """Reads a table as a stream; one object for each source of a query.

    Args:
        files: reads the table with the options of the stream, and the columns that Spark expects.
        predicate: filter that skips files. Rows that Spark's reader returns are not filtered by it.
        stream_id: id by which the driver finds the query's progress.
    """

    interfaces: ClassVar = (f"{_STREAMING}MicroBatchStream", f"{_STREAMING}SupportsTriggerAvailableNow")
    names_errors: ClassVar = True

    def __init__(
        self,
        bridge: Bridge,
        files: BatchReader,
        predicate: Predicate | None = None,
        *,
        stream_id: str,
    ) -> None:
        # Spark keeps offsets by source, and two sources of one table are not the same.
        super().__init__(bridge, f"{files.ref.name} {uuid.uuid4().hex}")
        self._ref = files.ref
        self._open_session = partial(
            open_session,
            files.ref,
            files.schema,
            predicate,
            stream_id=stream_id,
            cores=lambda: files.spark.sparkContext.defaultParallelism,
        )
        self._files = files
        self._session: StreamSession | None = None
        self._input_end = InputEnd(bridge)
        self._all_available = bridge.connector("read.streaming.ReadLimit").allAvailable()
        self._offset = bridge.private("SerializedOffset")
        if STREAM_PRUNING.is_here:
            # Spark creates a source on the thread of its query, whose session is a clone of its own.
            bridge.driver.addRule(bridge.session(), bridge.stream_pruning)

    def description(self) -> str:
        """Return how the files of the last micro-batch were read, for ``explain``."""
        return f"stream, {self._files.what}by {self._files.way}"

    # SparkDataStream

    @from_spark
    def initialOffset(self) -> JavaObject:
        """Return a constant, because Spark calls this again when it replays the first batch."""
        return self._encoded(encode_offset(UNRESOLVED))

    def deserializeOffset(self, text: str) -> JavaObject:
        """Return an offset of a checkpoint."""
        return self._offset(text)

    @from_spark
    def commit(self, end: JavaObject) -> None:
        """Move the consumer; Spark calls this when the next batch begins."""
        self._open().commit(_decoded(end))

    @from_spark
    def stop(self) -> None:
        """Release the resources of the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # SupportsTriggerAvailableNow

    @from_spark
    def getDefaultReadLimit(self) -> JavaObject:
        """Return whether the options limit a micro-batch."""
        limits = limits_of(self._ref.parsed(StreamOptions))
        is_aligned = AlignmentRule.of(self._ref) is not None
        if is_aligned:
            # Spark calls this on all sources of a query before it calls latestOffset() on any of them.
            self._open().join_group()
        if limits == NO_LIMITS and not is_aligned:
            return self._all_available
        return self._bridge.connector("read.streaming.ReadLimit").maxFiles(_SOME_FILES)

    @from_spark
    def prepareForTriggerAvailableNow(self) -> None:
        """End this run with the current latest snapshot."""
        self._open().stop_at_latest()

    @from_spark
    def latestOffset(self, start: JavaObject = None, limit: JavaObject = None) -> JavaObject:
        """Return the end of the next micro-batch; ``start`` itself if there is nothing to read.

        Returns:
            None if nothing was ever committed, so that even the start is unknown: Spark would run a batch for an
            offset.
        """
        start_offset = _decoded(start)
        end = self._open().advance(start_offset, applies_limits=not limit.equals(self._all_available))
        if end == start_offset and self._input_end.is_to_close(start_offset):
            end = self._open().close_input(start_offset)
        if end == start_offset:
            return None if decode_offset(start_offset) == UNRESOLVED else start
        return self._encoded(end)

    @from_spark
    def reportLatestOffset(self) -> JavaObject:
        """Return the lag of the query, which Spark shows as the source's latest offset."""
        report = self._open().report()
        return None if report is None else self._encoded(report)

    # MicroBatchStream

    @from_spark
    def planInputPartitions(self, start: JavaObject, end: JavaObject) -> JavaObject:
        """Plan a micro-batch: in an ordered table, one partition for each bucket number that has rows.

        Args:
            start: also says which columns and rows the query needs, if ``StreamPruning.java`` has found that out.
        """
        needs = MicroBatchNeeds.of(self._files, json.loads(start.json()))
        return self._files.partitions(self._open().plan(needs.start, _decoded(end), needs.predicate), needs)

    @from_spark
    def createReaderFactory(self) -> JavaObject:
        """Return the factory of the readers of the partitions that were planned last."""
        return self._files.factory()

    # Helpers

    def _open(self) -> StreamSession:
        if self._session is None:
            self._session = self._open_session()
        return self._session

    def _encoded(self, offset: dict[str, Any]) -> JavaObject:
        return self._offset(json.dumps(offset))


def _decoded(offset: JavaObject) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(offset.json())
    return decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchNeeds:
    """What a query needs of a micro-batch.

    Attributes:
        start: the offset where it starts, decoded.
        columns: the columns to read, in Spark's types.
        predicate: skips files; None to read all of them.
    """

    start: dict[str, Any]
    columns: StructType
    predicate: Predicate | None = None

    @classmethod
    def of(cls, files: BatchReader, start: dict[str, Any] | list[Any]) -> Self:
        """Return the needs that come with an offset: all columns and rows with that of a checkpoint.

        Args:
            start: an offset, or a list of ``StreamPruning.java``.
        """
        if isinstance(start, dict):
            return cls(start=start, columns=files.schema)
        offset, names, nodes = start
        columns = StructType([files.schema[name] for name in names])
        types = {field.name: field.dataType for field in to_spark_schema(files.ref.schema.fields)}
        # The filter is about the column of the query, which may be an event time made of a wall clock.
        pushed = [
            each
            for each in translate_nodes(files.ref, nodes, pads=files.pads)
            if each is not None and all(types[name] == columns[name].dataType for name in columns_of(each.predicate))
        ]
        return cls(start=offset, columns=columns, predicate=conjunction_of(pushed))


class BatchReader:
    """Creates the partitions and then the reader factory of each batch: Spark requests both, in this order.

    The choice depends on the files of the micro-batch only, so that a replayed batch is read in the same way.

    Args:
        ref: the table, with the columns that the query started with.
        schema: the columns that Spark expects.
        pads: whether values of CHAR are padded.
    """

    def __init__(
        self, bridge: Bridge, spark: SparkSession, ref: TableRef, schema: StructType, *, pads: bool = False
    ) -> None:
        self._bridge = bridge
        self.spark = spark
        self.ref = ref
        self.schema = schema
        self._store = MetadataStore(ref)
        self.pads = pads
        self._reading: NativeReading | str = ""
        self._logged: set[str] = set()
        self._columns = schema
        self._factories: dict[tuple[tuple[tuple[FileReader, ...], bool] | None, str], JavaObject] = {}
        self.what = ""

    @property
    def way(self) -> str:
        """How the files of the last micro-batch are read."""
        return describe_reading(self._reading)

    def partitions(self, tasks: Sequence[StreamTask], needs: MicroBatchNeeds) -> JavaObject:
        """Return one partition for each task; it reads the task's files in their order."""
        splits = [split for task in tasks for split in task.splits]
        fields = select_fields(self.ref, needs.columns.fieldNames())
        has_class = partial(executors_have_classes, self._bridge)
        reading = plan_reading(self.ref, self._store, splits, fields, has_class=has_class, pads=self.pads)
        self._reading, self._columns = reading, needs.columns
        self.what = _described(splits, needs.predicate)
        if isinstance(reading, str):
            self._log("its stream is", reading)
            return python_partitions(self._bridge, tasks)
        # A task reads its files in order, so one reader reads all of them.
        native: list[StreamTask] = []
        left: list[StreamTask] = []
        for task in tasks:
            (left if reading.left and reading.divided(task.splits)[1] else native).append(task)
        files = [list_native(self.ref, task.splits, reading) for task in native]
        with self._bridge.long_text("\n\n".join(files)) as text:
            partitions = self._bridge.driver.ordered(text)
        if left:
            self._log("some files of its stream are", reading.reason)
            partitions = self._bridge.driver.joined(python_partitions(self._bridge, left), partitions)
        return partitions

    def _log(self, what: str, reason: str) -> None:
        if reason not in self._logged:
            self._logged.add(reason)
            _LOG.warning(
                "table %s: %s read by Python workers, not by Spark's own reader: %s", self.ref.name, what, reason
            )

    def factory(self) -> JavaObject:
        """Return the reader factory for the partitions that were created last."""
        # A factory holds a broadcast of the Hadoop configuration, so one serves all micro-batches of a query.
        reading = self._reading
        key = None if isinstance(reading, str) else (reading.readers, bool(reading.left)), self._columns.json()
        if key not in self._factories:
            self._factories[key] = self._python_factory() if isinstance(reading, str) else self._native_factory(reading)
        return self._factories[key]

    def _native_factory(self, reading: NativeReading) -> JavaObject:
        no_filters = self._bridge.array(self._bridge.java("org.apache.spark.sql.sources.Filter"), ())
        return native_factory(
            self._bridge, reading, self._columns, StructType([]), lambda _: no_filters, self._python_factory
        )

    def _python_factory(self) -> JavaObject:
        task = StreamReadTask(ref=self.ref, schema=self._columns, pads=self.pads)
        return python_factory(self._bridge, self.spark, task, self._columns)


def _described(splits: Sequence[DataSplit], predicate: Predicate | None) -> str:
    """Describe the files of a micro-batch and the filter that has skipped others, for ``explain``."""
    files = sum(len(split.files) for split in splits)
    text = "" if predicate is None else f" left by the filter {format_predicate(predicate)}"
    return f"{files} files{text}, "


class InputEnd:
    """Advances Spark's watermark to the end of time at the end of a bounded input, for one source of a query.

    Spark then emits the rows that it holds in state, as Flink does. A watermark is the latest event time minus a delay,
    so the last windows of a stream stay open. When all sources of a query have reached the bounds declared by their
    options, no row follows, and the watermark can advance to the end of time.

    Spark reads the watermark of a micro-batch after it has requested the offsets of the sources, and stores both before
    the micro-batch runs. So if a source sets the watermark when its offset is requested, a replay uses the same
    watermark. The source records this in its offset: because the offset is new, Spark runs a micro-batch, also as the
    first one after a restart.

    Source:
        ``MicroBatchExecution.constructNextBatch`` of Spark 4.2.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._keeps_rows: bool | None = None

    def is_to_close(self, start: dict[str, Any]) -> bool:
        """Whether the next micro-batch is the one in which the query emits its state; if so, set the watermark.

        All sources of a query return the same answer in one trigger, since it depends on previous micro-batches.

        Args:
            start: the current offset of the source.
        """
        offset = decode_offset(start)
        if not offset.ended or offset.closed is not None or self._keeps_rows is False:
            return False
        query = self._bridge.running_stream()
        if query is None:
            return False
        if self._keeps_rows is None:
            self._keeps_rows = _keeps_rows(query)
        if not self._keeps_rows or not self._have_ended(query):
            return False
        self._bridge.set_stream_watermark(query, END_OF_INPUT_MS)
        return True

    def _have_ended(self, query: JavaObject) -> bool:
        found = [None if text is None else decode_end(text) for text in self._bridge.source_offsets(query)]
        return all(offset is not None and offset.ended for offset in found)


def _keeps_rows(query: JavaObject) -> bool:
    """Whether a query emits rows only after its watermark has passed them; other output modes emit them earlier."""
    return query.outputMode().toString() == _APPEND and plan_keeps_rows(query.analyzedPlan())
