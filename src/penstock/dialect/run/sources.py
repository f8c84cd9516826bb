"""Read the tables of a query as DataFrames: one snapshot, or a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.dialect.run.connectors.declared import KAFKA, connector_of, is_endless
from penstock.dialect.run.connectors.read import connector_frame
from penstock.dialect.run.pushdown import safe_filter
from penstock.dialect.settings import read_settings
from penstock.errors import UnsupportedFeatureError
from penstock.table.inspect.system import AUDIT_LOG, INSERTION, ROW_KIND, ROW_TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState

_END_NOW: Final = "scan.bounded"
_BOUNDS: Final = frozenset(
    {
        _END_NOW,
        "scan.bounded.watermark",
        "penstock.scan.bounded.snapshot-id",
        "penstock.scan.bounded.timestamp-millis",
    }
)
# Options that only streams support.
_STREAM_OPTIONS: Final = _BOUNDS | {"consumer-id"}


def is_stream(state: SqlState, use: TableUse) -> bool:
    """Whether a table is read as a stream: by the session mode, by an option of the hint, or as an unbounded topic."""
    is_metadata = use.system is not None and use.system not in ROW_TABLES
    if is_metadata or state.is_catalog_table(use.name):
        return False
    own = state.session_table(use.name)
    if own is not None and connector_of(own) != KAFKA:
        return is_endless(own, use.options)
    if read_settings(state.settings).is_streaming or any(key in _STREAM_OPTIONS for key, _ in use.options):
        return True
    return own is not None and is_endless(own, use.options)


def ends_where_it_began(use: TableUse) -> bool:
    """Whether a stream ends at the data that exists when it starts; with any other bound it may run for long."""
    return any(key == _END_NOW and value.lower() == "true" for key, value in use.options)


def table_frame(state: SqlState, spark: SparkSession, use: TableUse, conditions: tuple[str, ...]) -> DataFrame:
    """Return the rows of a table, or of a system table.

    Args:
        conditions: conditions that every row of the query's result meets; rows that fail one may be skipped.
    """
    own = state.session_table(use.name)
    if own is not None:
        return connector_frame(state, spark, own, use, is_stream=is_stream(state, use))
    if use.system not in ROW_TABLES:
        found = system_rows(state, use)
        if found is not None:
            return spark.createDataFrame(found)
    table = state.load(use.name)
    early = safe_filter(conditions, table.schema.fields)
    if is_stream(state, use):
        # The query adds the watermark itself (``frames``), after the time column has got its annotated type.
        frame = table.read_stream(spark, {**dict(use.options), "penstock.read.watermark": "false"}, filter=early)
    else:
        frame = table.to_spark(spark, options=dict(use.options), filter=early)
    return frame.selectExpr(f"'{INSERTION}' AS {ROW_KIND}", "*") if use.system == AUDIT_LOG else frame


def system_rows(state: SqlState, use: TableUse) -> pa.Table | None:
    """Return the rows of a system table of a table or of the catalog; None for other tables."""
    if use.system is not None:
        return state.load(use.name).with_options(dict(use.options)).inspect.system_table(use.system)
    if not state.is_catalog_table(use.name):
        return None
    if use.options:
        raise UnsupportedFeatureError(
            f"{use.title} shows the catalog as it is: leave '{use.options[0][0]}' out, or its time travel"
        )
    return state.catalog_table(use.name)
