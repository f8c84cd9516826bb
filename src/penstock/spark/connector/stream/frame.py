"""Streaming DataFrames of tables without a catalog, for ``Table.read_stream``."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructType, TimestampNTZType

from penstock.format.text.names import quoted
from penstock.format.watermark import declared_watermark
from penstock.options import ConsumerOptions, StreamOptions, WatermarkOptions
from penstock.predicate.bind import bind
from penstock.printable import open_log
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.connector.proxy import PlainTable, Proxy, from_spark
from penstock.spark.connector.stream.micro_batches import BatchReader, TableStream
from penstock.spark.hadoop_options import why_not_by_spark
from penstock.spark.python_worker import begin_to_ensure
from penstock.spark.read.filters import to_column
from penstock.spark.stream.progress import listen
from penstock.spark.types import nullable, to_spark_schema
from penstock.spark.watermark.wall_clock import as_instant, wall_clock_field
from penstock.table.read.batches import select_fields
from penstock.table.store import MetadataStore
from penstock.table.stream.align.membership import check_alignment
from penstock.table.stream.consumers import check_consumer_id
from penstock.table.stream.event_time import usable_watermark
from penstock.table.stream.limits import limits_of
from penstock.table.stream.start import check_start, read_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from penstock.format.watermark import DeclaredWatermark
    from penstock.predicate.tree import BoundPredicate, Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
_CONNECTOR: Final = "org.apache.spark.sql.connector."


def read_stream(
    spark: SparkSession,
    ref: TableRef,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the rows that match the filter, in the order that the table guarantees.

    Its columns stay those of ``ref``, even if the table changes. It has the watermark that the table declares, unless
    ``penstock.read.watermark`` is false or the watermark's column is left out. The type of that column is then
    TIMESTAMP.

    Args:
        spark: a session with a JVM, which Spark Connect does not have.
        columns: column names, in the order of the result; None for all.
    """
    schema = nullable(to_spark_schema(select_fields(ref, columns)))
    _check_options(ref)
    check_alignment(ref, MetadataStore(ref))
    watermark = _watermark(ref, schema.names)
    if watermark is not None:
        schema = _with_event_time(schema, watermark.column)
    bound = None if predicate is None else bind(predicate, ref.schema.fields, ref.name)
    bridge = open_bridge(spark)
    if why_not_by_spark(ref.file_io) is not None:
        # Its tasks need Python, which takes as long to start as the query.
        begin_to_ensure(spark)
    listen(spark).follow(stream_id := uuid.uuid4().hex, ref)
    needed = _needed(schema, bound)
    table = StreamTable(bridge, spark, ref, needed, predicate, stream_id)
    frame = bridge.stream_frame(spark, ref.name, table.exposed(), needed)
    if bound is not None:
        frame = frame.where(to_column(bound))
    if needed.names != schema.names or needed != schema:
        frame = frame.select(*(_column(field, needed) for field in schema.fields))
    if watermark is None:
        return frame
    return frame.withWatermark(quoted(watermark.column), f"{watermark.delay_millis} milliseconds")


def _watermark(ref: TableRef, columns: Sequence[str]) -> DeclaredWatermark | None:
    if not ref.parsed(WatermarkOptions).read_watermark:
        return None
    usable, declared = usable_watermark(ref), declared_watermark(ref.schema.option_map)
    if usable is None and declared is not None:
        _LOG.warning(
            "table %s: its watermark on '%s' is an expression of Flink's that is not evaluated here, so this stream "
            "has none; put one on with withWatermark, or say that none is wanted: 'penstock.read.watermark' = 'false'",
            ref.name,
            declared.column,
        )
    return usable if usable is not None and usable.column in columns else None


def _with_event_time(schema: StructType, column: str) -> StructType:
    """Return the schema with the event time as TIMESTAMP, the only type that Spark keeps watermarks for."""
    return StructType(
        [
            wall_clock_field(field) if field.name == column and isinstance(field.dataType, TimestampNTZType) else field
            for field in schema.fields
        ]
    )


def _check_options(ref: TableRef) -> None:
    """Raise errors of options here, not only in the first trigger of the query."""
    check_start(read_options(ref), ref.name)
    limits_of(ref.parsed(StreamOptions))
    consumer = ref.parsed(ConsumerOptions).consumer_id
    if consumer is not None:
        check_consumer_id(consumer, ref.name)


def _needed(schema: StructType, bound: BoundPredicate | None) -> StructType:
    """Return the columns to read: those of the stream, and those of the filter with the types that it compares."""
    if bound is None:
        return nullable(schema)
    compared = {field.name: field for field in to_spark_schema(bound.fields).fields}
    fields = [compared.pop(field.name, field) for field in schema.fields]
    return nullable(StructType([*fields, *compared.values()]))


def _column(field: StructField, needed: StructType) -> Column:
    column = F.col(quoted(field.name))
    is_event_time = needed[field.name].dataType != field.dataType
    return (as_instant(column) if is_event_time else column).alias(field.name, metadata=field.metadata)


class StreamTable(PlainTable):
    """A table as the source of one streaming DataFrame; each query on it gets its own source.

    The source detects a table that was dropped and recreated.
    """

    interfaces: ClassVar = (f"{_CONNECTOR}catalog.SupportsRead", f"{_CONNECTOR}read.ScanBuilder")
    capability: ClassVar = "MICRO_BATCH_READ"

    def __init__(
        self,
        bridge: Bridge,
        spark: SparkSession,
        ref: TableRef,
        schema: StructType,
        predicate: Predicate | None,
        stream_id: str,
    ) -> None:
        super().__init__(bridge, f"{ref.name} {stream_id}", ref.name, schema)
        self._spark = spark
        self._ref = ref
        self._predicate = predicate
        self._stream_id = stream_id

    @from_spark
    def newScanBuilder(self, options: JavaObject) -> JavaObject:
        """Return this object as the builder of a scan: the options are already known."""
        return self

    @from_spark
    def build(self) -> JavaObject:
        """Return the scan of one query."""
        files = BatchReader(self._bridge, self._spark, self._ref, self._schema)
        stream = TableStream(self._bridge, files, self._predicate, stream_id=self._stream_id)
        return StreamScan(self._bridge, stream, self._schema)


class StreamScan(Proxy):
    """The scan of one streaming query."""

    interfaces: ClassVar = (f"{_CONNECTOR}read.Scan",)

    def __init__(self, bridge: Bridge, stream: TableStream, schema: StructType) -> None:
        super().__init__(bridge, stream.toString())
        self._stream = stream
        self._schema = schema

    @from_spark
    def readSchema(self) -> JavaObject:
        """Return the columns of the rows."""
        return self._bridge.schema(self._schema)

    def description(self) -> str:
        """Describe the scan, for ``explain``."""
        return self._stream.description()

    @from_spark
    def toMicroBatchStream(self, location: str) -> JavaObject:
        """Return the source; its checkpoint has a place for it, which is not used."""
        return self._stream
