"""Read a table as a streaming DataFrame."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql.types import StructType, TimestampNTZType

from penstock.format.text.names import quoted
from penstock.format.watermark import declared_watermark
from penstock.options import ConsumerOptions, ReadOptions, StreamOptions, WatermarkOptions
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.predicate.text import format_filter
from penstock.printable import open_log
from penstock.spark.hadoop_options import why_not_by_spark
from penstock.spark.python_worker import begin_to_ensure, ensure_python_worker
from penstock.spark.stream.options import encode_reader_options
from penstock.spark.stream.progress import listen
from penstock.spark.types import nullable, to_spark_schema
from penstock.spark.watermark.wall_clock import wall_clock_field
from penstock.table.read.batches import select_fields
from penstock.table.stream.consumers import check_consumer_id
from penstock.table.stream.event_time import usable_watermark
from penstock.table.stream.limits import limits_of
from penstock.table.stream.start import check_start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.format.watermark import DeclaredWatermark
    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef

    StreamMaker: TypeAlias = Callable[[SparkSession, TableRef, StructType, Predicate | None, str], DataFrame | None]

_LOG: Final = open_log(__name__)


def read_stream(
    spark: SparkSession,
    ref: TableRef,
    columns: Sequence[str] | None = None,
    predicate: Predicate | str | None = None,
    make: StreamMaker | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the rows that match the filter, in the order that the table guarantees.

    Its columns stay those of ``ref``, even if the table changes. It has the watermark that the table declares, unless
    ``penstock.read.watermark`` is false or the watermark's column is left out. The type of that column is then
    TIMESTAMP.

    Args:
        columns: column names, in the order of the result; None for all.
        make: creates a stream that this process plans; if it returns None, Spark plans the stream in a Python process.
    """
    schema = nullable(to_spark_schema(select_fields(ref, columns)))
    _check_options(ref)
    watermark = _watermark(ref, schema.names)
    if watermark is not None:
        schema = _with_event_time(schema, watermark.column)
    if why_not_by_spark(ref.file_io) is not None:
        # Its tasks need Python, which takes as long to start as the query.
        begin_to_ensure(spark)
    stream_id = uuid.uuid4().hex
    handed = encode_reader_options(ref, stream_id=stream_id, parallelism=spark.sparkContext.defaultParallelism)
    parsed = parse_filter(predicate) if isinstance(predicate, str) else predicate
    if parsed is not None:
        bind(parsed, ref.schema.fields, ref.name)
    listen(spark).follow(stream_id, ref)
    frame = None if make is None else make(spark, ref, schema, parsed, stream_id)
    if frame is None:
        ensure_python_worker(spark)
        stream = spark.readStream.format("penstock").schema(schema).options(**handed)
        if predicate is not None:
            stream = stream.option("filter", predicate if isinstance(predicate, str) else format_filter(predicate))
        frame = stream.load()
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
    check_start(ref.parsed(ReadOptions), ref.name)
    limits_of(ref.parsed(StreamOptions))
    consumer = ref.parsed(ConsumerOptions).consumer_id
    if consumer is not None:
        check_consumer_id(consumer, ref.name)
