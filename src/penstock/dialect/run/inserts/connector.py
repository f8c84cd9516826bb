"""Insert into tables of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.lazy import lazy_spark
from penstock.dialect.outcome import Outcome
from penstock.dialect.run.connectors.declared import connector_table, fields_of
from penstock.dialect.run.frames import ends_at_start, query_frame
from penstock.dialect.run.inserts.streaming import place_for, stream_trigger
from penstock.dialect.run.inserts.target import InsertTarget, literal_rows, target_columns
from penstock.dialect.settings import read_settings
from penstock.errors import InvalidSqlError, UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.parse.statements import CreateTable, Insert
    from penstock.dialect.state import SqlState


def insert_into_connector(state: SqlState, own: CreateTable, statement: Insert) -> Outcome:
    """Insert rows into a table of a session: as a batch, or with a streaming query if the source is a stream.

    Raises:
        UnsupportedFeatureError: there is no Spark session, or the table does not support the rows.
        InvalidOptionError: the table is not a sink, or an option is invalid.
        SchemaMismatchError: the rows do not have the table's columns.
    """
    name = ".".join(own.name)
    if state.spark is None:
        raise UnsupportedFeatureError(f"table {name}: a table with a connector needs Spark: give a session")
    kept = next((column.name for column in own.metadata if not column.is_virtual), None)
    if kept is not None:
        raise UnsupportedFeatureError(
            f"table {name}: column '{kept}': metadata of records is read and not written: declare it VIRTUAL"
        )
    shown = {column.name for column in own.metadata}
    fields = tuple(field for field in fields_of(own) if field.name not in shown)
    target = InsertTarget(name=name, fields=fields, partition_keys=own.partition_by)
    frame = _rows(state, state.spark, target, statement)
    if frame.isStreaming and statement.is_overwrite:
        raise UnsupportedFeatureError(f"table {name}: a stream cannot overwrite; INSERT INTO adds its rows")
    connector = connector_table(own, statement.options)
    sink = lazy_spark.ConnectorSink(connector=connector, fields=fields, partition_by=own.partition_by, name=name)
    if not frame.isStreaming or statement.query is None:
        lazy_spark.write_connector(frame, sink, is_overwrite=statement.is_overwrite)
        return Outcome(message=f"wrote to {name}")
    lazy_spark.check_stream(frame)
    settings = read_settings(state.settings)
    query_name, checkpoint = place_for(state, settings, statement, name, statement.query.source.text)
    trigger = stream_trigger(settings, ends_at_start=ends_at_start(state, statement.query))
    start = lazy_spark.QueryStart(checkpoint=checkpoint, trigger=trigger, query_name=query_name)
    started = lazy_spark.start_connector(frame, sink, start)
    if settings.waits:
        started.awaitTermination()
    return Outcome(value=started, message=f"a query writes to {name}")


def _rows(state: SqlState, spark: SparkSession, target: InsertTarget, statement: Insert) -> DataFrame:
    columns = target_columns(target, statement)
    if statement.rows is not None:
        # Without the types, a TIMESTAMP would get a zone.
        types = lazy_spark.nullable(lazy_spark.to_spark_schema(target.fields))
        return spark.createDataFrame(literal_rows(target, statement, columns), types)
    if statement.query is None:
        raise InvalidSqlError(f"table {target.name}: there is nothing to insert")
    return lazy_spark.insert_frame(
        query_frame(state, spark, statement.query),
        target.fields,
        columns=columns,
        constants=dict(statement.partition),
        table=target.name,
    )
