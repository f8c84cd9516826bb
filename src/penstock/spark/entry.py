"""Functions of this package that ``penstock.api`` calls."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from penstock.spark.compact.job import SparkMerger
from penstock.spark.compact.sort import sort_compact
from penstock.spark.connector.attach import attach
from penstock.spark.connector.frame import batch_frame
from penstock.spark.connector.procedures import ProcedureSource
from penstock.spark.connector.stream.frame import stream_frame
from penstock.spark.external.files import read_files
from penstock.spark.external.generated import read_generated
from penstock.spark.external.iceberg import read_iceberg
from penstock.spark.external.sinks import ConnectorSink, QueryStart, start_connector, write_connector
from penstock.spark.hadoop_options import hadoop_store_options
from penstock.spark.kafka.frame import read_kafka
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.session import activate, is_connect, open_session
from penstock.spark.ship import ship
from penstock.spark.source import PenstockDataSource
from penstock.spark.sql.frames import (
    check_stream,
    computed_frame,
    explain_text,
    insert_frame,
    query_frame,
    set_conf,
    typed_columns,
    typed_frame,
    view_frame,
)
from penstock.spark.sql.windows import cumulate_frame, event_time_frame
from penstock.spark.stream.frame import read_stream
from penstock.spark.stream.request import StreamWrite
from penstock.spark.stream.sink import write_stream
from penstock.spark.types import from_spark_schema, nullable, to_spark_schema
from penstock.spark.write.sink import write_dataframe
from penstock.table.compact.precommit import merge_if_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from penstock.catalog.warehouse import Warehouse
    from penstock.format.types.data_types import DataField
    from penstock.format.types.ddl import ColumnSpec
    from penstock.format.watermark import DeclaredWatermark
    from penstock.io.object_store.settings import StoreSettings
    from penstock.options.connectors import ConnectorTable, DatagenTable, FilesystemTable
    from penstock.predicate.tree import Predicate
    from penstock.spark.sql.frames import SqlText
    from penstock.table.compact.job import CompactionResult, Execute
    from penstock.table.compact.sort import SortJob
    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.message import CommitMessage
    from penstock.table.read.query import Query
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


class SparkEntry:
    """Functions that take or return PySpark objects; has no instances."""

    @staticmethod
    def columns_of(schema: StructType) -> tuple[ColumnSpec, ...]:
        """Return the columns of a new table with Spark's schema; see ``from_spark_schema``."""
        return from_spark_schema(schema)

    @staticmethod
    def read_iceberg(spark: SparkSession, metadata: str) -> DataFrame:
        """Return the rows of an Iceberg table; see ``spark.external.iceberg``."""
        return read_iceberg(spark, metadata)

    @staticmethod
    def register(spark: SparkSession) -> None:
        """Register the format with a session, and make it the active one of this thread."""
        if not is_connect(spark):  # there, the server chooses the Python
            ensure_python_worker(spark)
        spark.dataSource.register(PenstockDataSource)
        activate(spark)

    @staticmethod
    def ship(spark: SparkSession) -> tuple[str, ...]:
        """Send packages that the executors lack; see ``ship``."""
        return ship(spark)

    @staticmethod
    def hadoop_store_options(settings: StoreSettings) -> dict[str, str]:
        """Return the Spark session's settings for a bucket or container as catalog options."""
        return hadoop_store_options(settings)

    @staticmethod
    def time_zone(spark: SparkSession) -> str | None:
        """Return the time zone of a session."""
        return spark.conf.get("spark.sql.session.timeZone")

    @staticmethod
    def attach(
        spark: SparkSession,
        warehouse: Warehouse,
        name: str,
        parameters: Mapping[str, tuple[str, ...]] | None = None,
        run: Callable[[SparkSession, str, Mapping[str, str]], pa.Table] | None = None,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        """Add a warehouse to a session as a catalog; see ``attach`` and ``ProcedureSource``."""
        procedures = None
        if parameters and run:
            procedures = ProcedureSource(parameters=parameters, run=run, elsewhere=elsewhere or {})
        attach(spark, warehouse, name, procedures)

    @staticmethod
    def write(df: DataFrame, ref: TableRef) -> tuple[CommitMessage, ...]:
        """Write rows without committing them; see ``write_dataframe``."""
        return merge_if_asked(write_dataframe(df, ref), ref, SparkMerger(spark=df.sparkSession, ref=ref).execute)

    @staticmethod
    def collect(df: DataFrame) -> pa.Table:
        """Return the rows of a DataFrame, in the memory of this process."""
        return df.toArrow()

    @staticmethod
    def read(spark: SparkSession, query: Query, store: MetadataStore, columns: Sequence[str] | None) -> DataFrame:
        """Return a planned read as a DataFrame; see ``batch_frame``."""
        return batch_frame(spark, query, store, columns)

    @staticmethod
    def read_stream(
        spark: SparkSession, ref: TableRef, columns: Sequence[str] | None, predicate: Predicate | str | None
    ) -> DataFrame:
        """Return the table as a streaming DataFrame; see ``read_stream``."""
        return read_stream(spark, ref, columns, predicate, make=stream_frame)

    @staticmethod
    def write_stream(
        sdf: DataFrame,
        ref: TableRef,
        *,
        checkpoint: str,
        trigger: Mapping[str, object] | None,
        output_mode: str,
        query_name: str | None,
    ) -> StreamingQuery:
        """Start a query that writes to the table; see ``write_stream``."""
        request = StreamWrite(checkpoint=checkpoint, trigger=trigger, output_mode=output_mode, query_name=query_name)
        return write_stream(sdf, ref, request)

    @staticmethod
    def merge_on(spark: SparkSession, ref: TableRef) -> Execute:
        """Return the function that runs merges on the executors; see ``SparkMerger``."""
        return SparkMerger(spark=spark, ref=ref).execute

    @staticmethod
    def merge_in_background(
        spark: SparkSession, ref: TableRef
    ) -> tuple[Callable[[CompactTask, TableRef], MergedFiles], Callable[[], None]]:
        """Return two functions: one runs a merge on the executors, one cancels running merges; see ``SparkMerger``."""
        ensure_python_worker(spark)
        merger = SparkMerger(spark=spark, ref=ref)
        return merger.merge_at, merger.cancel

    @staticmethod
    def sort_compact(spark: SparkSession, job: SortJob, on_done: Callable[[MergedFiles], None]) -> CompactionResult:
        """Sort the partitions of a plan, and commit them; see ``sort_compact``."""
        return sort_compact(spark, job, on_done=on_done)

    @staticmethod
    def sql_query(spark: SparkSession, frames: Sequence[DataFrame], query: SqlText) -> DataFrame:
        """Return the rows of a query over DataFrames; see ``query_frame``."""
        return query_frame(spark, frames, query)

    @staticmethod
    def sql_set(spark: SparkSession, key: str, value: str) -> None:
        """Set a key of the session; see ``set_conf``."""
        set_conf(spark, key, value)

    @staticmethod
    def sql_event_time(frame: DataFrame, column: str, delay_millis: int) -> DataFrame:
        """Return a stream with a watermark; see ``event_time_frame``."""
        return event_time_frame(frame, column, delay_millis)

    @staticmethod
    def sql_cumulate(frame: DataFrame, column: str, *, whole: str, step: str, step_millis: int) -> DataFrame:
        """Return rows with their CUMULATE windows; see ``cumulate_frame``."""
        return cumulate_frame(frame, column, whole=whole, step=step, step_millis=step_millis)

    @staticmethod
    def sql_typed(frame: DataFrame, types: Mapping[str, str]) -> DataFrame:
        """Return a DataFrame marked with the types that a table declares; see ``typed_frame``."""
        return typed_frame(frame, types)

    @staticmethod
    def sql_view(frame: DataFrame, places: Sequence[int], fields: Sequence[DataField]) -> DataFrame:
        """Return the rows of a view of a catalog; see ``view_frame``."""
        return view_frame(frame, places, fields)

    @staticmethod
    def sql_columns(frame: DataFrame) -> tuple[ColumnSpec, ...]:
        """Return the columns of a new table for such rows; see ``typed_columns``."""
        return typed_columns(frame)

    @staticmethod
    def sql_explain(frame: DataFrame) -> str:
        """Return Spark's plan of a query; see ``explain_text``."""
        return explain_text(frame)

    @staticmethod
    def sql_computed(frame: DataFrame, columns: Sequence[tuple[str, str | None]]) -> DataFrame:
        """Return columns of a DataFrame and computed columns; see ``computed_frame``."""
        return computed_frame(frame, columns)

    @staticmethod
    def sql_check_stream(frame: DataFrame) -> None:
        """Check that Spark can run a streaming query; see ``check_stream``."""
        check_stream(frame)

    @staticmethod
    def sql_jobs(spark: SparkSession) -> AbstractContextManager[Callable[[], None]]:
        """Yield a function that cancels the jobs of the block; see ``cancellable_jobs``."""
        return cancellable_jobs(spark)

    @staticmethod
    def sql_rows(spark: SparkSession, rows: pa.Table) -> DataFrame:
        """Return rows in memory as a DataFrame."""
        return spark.createDataFrame(rows)

    @staticmethod
    def sql_literals(spark: SparkSession, rows: pa.Table, fields: Sequence[DataField]) -> DataFrame:
        """Return rows in memory as a DataFrame with the given types; otherwise a TIMESTAMP would get a zone."""
        return spark.createDataFrame(rows, nullable(to_spark_schema(fields)))

    @staticmethod
    def sql_first_column(frame: DataFrame, name: str, value: str) -> DataFrame:
        """Return rows preceded by a column with a constant string."""
        return frame.selectExpr(f"'{value}' AS {name}", "*")

    @staticmethod
    def sql_insert(
        frame: DataFrame,
        fields: Sequence[DataField],
        *,
        columns: Sequence[str],
        constants: Mapping[str, str | None],
        table: str,
    ) -> DataFrame:
        """Return rows with the columns of a table; see ``insert_frame``."""
        return insert_frame(frame, fields, columns=columns, constants=constants, table=table)

    @staticmethod
    def read_kafka(  # noqa: PLR0913 - what a table of Kafka declares
        spark: SparkSession,
        options: Mapping[str, str],
        fields: Sequence[DataField],
        *,
        is_stream: bool,
        table: str,
        watermark: DeclaredWatermark | None,
        metadata: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """Return the records of topics as a DataFrame; see ``read_kafka``."""
        return read_kafka(
            spark, options, fields, is_stream=is_stream, table=table, watermark=watermark, metadata=metadata
        )

    @staticmethod
    def read_files(
        spark: SparkSession,
        given: FilesystemTable,
        fields: Sequence[DataField],
        partition_by: Sequence[str],
        *,
        table: str,
    ) -> DataFrame:
        """Return the rows of files; see ``read_files``."""
        return read_files(spark, given, fields, partition_by, table=table)

    @staticmethod
    def read_generated(
        spark: SparkSession, given: DatagenTable, fields: Sequence[DataField], *, table: str
    ) -> DataFrame:
        """Return generated rows; see ``read_generated``."""
        return read_generated(spark, given, fields, table=table)

    @staticmethod
    def connector_sink(
        connector: ConnectorTable, fields: Sequence[DataField], *, partition_by: Sequence[str], table: str
    ) -> ConnectorSink:
        """Return the sink for the rows of an ``INSERT``; see ``ConnectorSink``."""
        return ConnectorSink(connector=connector, fields=fields, partition_by=partition_by, name=table)

    @staticmethod
    def write_connector(rows: DataFrame, sink: ConnectorSink, *, is_overwrite: bool) -> None:
        """Write rows as a batch; see ``write_connector``."""
        write_connector(rows, sink, is_overwrite=is_overwrite)

    @staticmethod
    def start_connector(
        rows: DataFrame,
        sink: ConnectorSink,
        *,
        checkpoint: str,
        trigger: Mapping[str, object] | None,
        query_name: str | None,
    ) -> StreamingQuery:
        """Start a query that writes a stream; see ``start_connector``."""
        return start_connector(rows, sink, QueryStart(checkpoint=checkpoint, trigger=trigger, query_name=query_name))

    @staticmethod
    def open_session(master: str, conf: Mapping[str, str] | None = None, *, shows_start: bool = True) -> SparkSession:
        """Return the session of this process; start one if there is none. See ``session.open_session``."""
        return open_session(master, conf or {}, shows_start=shows_start)


@contextmanager
def cancellable_jobs(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Yield a function that cancels only the jobs that this thread starts in the block; any thread may call it."""
    context = spark.sparkContext
    tag = f"penstock-sql-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield partial(context.cancelJobsWithTag, tag)
    finally:
        context.removeJobTag(tag)
