"""Streaming DataFrames of tables without a catalog, for ``Table.read_stream``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructType

from penstock.errors import UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.predicate.bind import bind
from penstock.printable import open_log
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.connector.proxy import PlainTable, Proxy, from_spark
from penstock.spark.connector.stream.micro_batches import BatchReader, TableStream
from penstock.spark.read.filters import to_column
from penstock.spark.types import nullable, to_spark_schema
from penstock.spark.watermark.wall_clock import as_instant

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from penstock.predicate.tree import BoundPredicate, Predicate
    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
_CONNECTOR: Final = "org.apache.spark.sql.connector."


def stream_frame(
    spark: SparkSession, ref: TableRef, schema: StructType, predicate: Predicate | None, stream_id: str
) -> DataFrame | None:
    """Return a stream that this process plans; None if the session or its version of Spark does not allow that.

    Args:
        schema: the columns of the stream. A column without a zone may be TIMESTAMP there, as an event time.
        stream_id: id by which the driver finds the query's progress.
    """
    try:
        bridge = open_bridge(spark)
    except UnsupportedFeatureError as error:
        _LOG.warning(
            'table %s: its stream is read through format("penstock"), with additional Python processes: %s',
            ref.name,
            error,
        )
        return None
    bound = None if predicate is None else bind(predicate, ref.schema.fields, ref.name)
    needed = _needed(schema, bound)
    table = StreamTable(bridge, spark, ref, needed, predicate, stream_id)
    frame = bridge.stream_frame(spark, ref.name, table.exposed(), needed)
    if bound is not None:
        frame = frame.where(to_column(bound))
    if needed.names == schema.names and needed == nullable(schema):
        return frame
    return frame.select(*(_column(field, needed) for field in schema.fields))


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
