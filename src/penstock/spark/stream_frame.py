"""A table as a streaming DataFrame."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from penstock.options import ConsumerOptions, ReadOptions, StreamOptions
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.predicate.text import format_filter
from penstock.spark.progress import listen
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.stream_options import hand_over
from penstock.spark.types import to_spark_schema
from penstock.table.consumers import check_consumer_id
from penstock.table.read import select_fields
from penstock.table.stream.limits import limits_of
from penstock.table.stream.start import check_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.predicate.tree import Predicate
    from penstock.table.ref import TableRef


def read_stream(
    spark: SparkSession,
    ref: TableRef,
    columns: Sequence[str] | None = None,
    predicate: Predicate | str | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the rows that pass, in the order that the table promises.

    Its columns stay those of ``ref``, whatever becomes of the table.

    Args:
        columns: names in the order wanted; None for all.

    Raises:
        InvalidOptionError: options that contradict each other, or that only a batch read has.
        NotFoundError: no such column.
        InvalidFilterError: a filter that does not fit the table.
        UnsupportedFeatureError: a mode that only a batch read has; or tasks would run with a Python without Penstock.
    """
    schema = to_spark_schema(select_fields(ref, columns))
    _check_options(ref)
    ensure_python_worker(spark)
    reader = uuid.uuid4().hex
    handed = hand_over(ref, reader=reader, parallelism=spark.sparkContext.defaultParallelism)
    stream = spark.readStream.format("penstock").schema(schema).options(**handed)
    if predicate is not None:
        parsed = parse_filter(predicate) if isinstance(predicate, str) else predicate
        bind(parsed, ref.schema.fields, ref.name)
        stream = stream.option("filter", predicate if isinstance(predicate, str) else format_filter(predicate))
    listen(spark).follow(reader, ref)
    return stream.load()


def _check_options(ref: TableRef) -> None:
    """Complain where the user stands rather than in the query's first trigger."""
    check_start(ReadOptions.parse(ref.options, table=ref.name), ref.name)
    limits_of(StreamOptions.parse(ref.options, table=ref.name))
    consumer = ConsumerOptions.parse(ref.options, table=ref.name).consumer_id
    if consumer is not None:
        check_consumer_id(consumer, ref.name)
