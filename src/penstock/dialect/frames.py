"""Queries as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.deferred import spark_entry
from penstock.dialect.event_time import event_time_of
from penstock.dialect.sources import ends_where_it_began, is_stream, table_frame
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.query import Query
    from penstock.dialect.state import SqlState
    from penstock.dialect.tables import TableUse


def query_frame(state: SqlState, spark: SparkSession, query: Query) -> DataFrame:
    """Return the rows of a query; a streaming DataFrame where one of its tables is a stream."""
    frames = [_use_frame(state, spark, use, query) for use in query.tables]
    if query.keyless_session is not None and any(frame.isStreaming for frame in frames):
        line, column = query.source.place(query.keyless_session)
        raise UnsupportedFeatureError(
            f"line {line}, column {column}: Spark makes sessions of a stream by key only: PARTITION BY a column behind"
            " the table's name, and GROUP BY it too"
        )
    return spark_entry().sql_query(spark, frames, query.text)


def ends_at_start(state: SqlState, query: Query) -> bool:
    """Whether every stream among a query's tables ends at what is there when the query begins."""
    streams = [use for use in query.tables if is_stream(state, use)]
    return bool(streams) and all(ends_where_it_began(use) for use in streams)


def _use_frame(state: SqlState, spark: SparkSession, use: TableUse, query: Query) -> DataFrame:
    frame = table_frame(state, spark, use, query.conditions)
    mark = event_time_of(state, use) if frame.isStreaming else None
    if mark is not None and mark.delay_millis is not None and mark.column in frame.columns:
        frame = spark_entry().sql_event_time(frame, mark.column, mark.delay_millis)
    call = use.cumulate
    if call is None:
        return frame
    return spark_entry().sql_cumulate(
        frame, call.column, whole=call.spark_window, step=call.spark_step, step_millis=call.millis("STEP")
    )
