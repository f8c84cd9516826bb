"""Queries as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.deferred import spark_entry
from penstock.dialect.event_time import event_time_of
from penstock.dialect.sources import ends_where_it_began, is_stream, table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.query import Query
    from penstock.dialect.state import SqlState
    from penstock.dialect.tables import TableUse


def query_frame(state: SqlState, spark: SparkSession, query: Query) -> DataFrame:
    """Return the rows of a query; a streaming DataFrame where one of its tables is a stream."""
    frames = [_use_frame(state, spark, use, query) for use in query.tables]
    return spark_entry().sql_query(spark, frames, query.text)


def ends_at_start(state: SqlState, query: Query) -> bool:
    """Whether every stream among a query's tables ends at what is there when the query begins."""
    streams = [use for use in query.tables if is_stream(state, use)]
    return bool(streams) and all(ends_where_it_began(use) for use in streams)


def _use_frame(state: SqlState, spark: SparkSession, use: TableUse, query: Query) -> DataFrame:
    frame = table_frame(state, spark, use, query.conditions)
    mark = event_time_of(state, use) if frame.isStreaming else None
    if mark is None or mark.delay_millis is None or mark.column not in frame.columns:
        return frame
    return spark_entry().sql_event_time(frame, mark.column, mark.delay_millis)
