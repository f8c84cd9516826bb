"""Tables of a query as DataFrames: of one snapshot, or as streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.api.deferred import spark_entry
from penstock.dialect.settings import read_settings
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.query import Query
    from penstock.dialect.state import SqlState
    from penstock.dialect.tables import TableUse

# What only a stream can do.
_STREAM_OPTIONS: Final = frozenset(
    {
        "scan.bounded",
        "scan.bounded.watermark",
        "penstock.scan.bounded.snapshot-id",
        "penstock.scan.bounded.timestamp-millis",
        "consumer-id",
    }
)


def query_frame(state: SqlState, spark: SparkSession, query: Query) -> DataFrame:
    """Return the rows of a query; a streaming DataFrame where one of its tables is a stream."""
    frames = [_frame(state, spark, use) for use in query.tables]
    return spark_entry().sql_query(spark, frames, query.text)


def is_stream(state: SqlState, use: TableUse) -> bool:
    """Whether a table is read as a stream: the session's mode says so, or an option that only a stream has."""
    if use.system is not None:
        return False
    return read_settings(state.settings).is_streaming or any(key in _STREAM_OPTIONS for key, _ in use.options)


def _frame(state: SqlState, spark: SparkSession, use: TableUse) -> DataFrame:
    if state.session_table(use.name) is not None:
        raise no_connector(use)
    table = state.load(use.name)
    if use.system is not None:
        return spark_entry().sql_rows(spark, table.system_table(use.system))
    if is_stream(state, use):
        return table.read_stream(spark, dict(use.options))
    return table.to_spark(spark, options=dict(use.options))


def no_connector(use: TableUse) -> UnsupportedFeatureError:
    """Return the error that says that a table behind a connector cannot be read."""
    return UnsupportedFeatureError(
        f"table {'.'.join(use.name)} can be declared, but rows cannot be read from its connector: read it with Spark,"
        " and give the DataFrame to Table.write_stream"
    )
