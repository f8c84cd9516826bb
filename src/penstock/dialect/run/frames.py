"""Queries as Spark DataFrames, with the computed columns of their tables, and the columns of queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.api.lazy import lazy_spark
from penstock.dialect.parse.computed import spark_expression
from penstock.dialect.run.sources import ends_where_it_began, event_time_of, is_stream, table_frame
from penstock.dialect.run.views import base_uses, entered
from penstock.dialect.stored_views import places_of
from penstock.errors import InvalidSqlError, UnsupportedFeatureError
from penstock.format.types.ddl import ColumnSpec
from penstock.format.types.text import format_sql_type
from penstock.format.watermark import computed_columns
from penstock.table.inspect.system import ROW_TABLES

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

    from penstock.api.table import Table
    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import Path, StatementText
    from penstock.dialect.parse.statements import CreateView
    from penstock.dialect.parse.tables import TableUse, WindowCall
    from penstock.dialect.state import SqlState

_TYPES: Final = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How the tables of a query are read.

    Attributes:
        keeps_types: whether columns are annotated with their types in the table.
        within: the views that contain the query, from the outermost.
    """

    state: SqlState
    spark: SparkSession
    keeps_types: bool = False
    within: tuple[Path, ...] = ()


def query_frame(state: SqlState, spark: SparkSession, query: Query) -> DataFrame:
    """Return the rows of a query; a streaming DataFrame if one of its tables is a stream.

    Raises:
        InvalidSqlError: Spark rejects the query.
        TableStoreError: a table cannot be read.
    """
    return _query_frame(_Reading(state=state, spark=spark), query)


def typed_frame(state: SqlState, spark: SparkSession, query: Query) -> DataFrame:
    """Return the rows of a query; columns are annotated with their types in the table."""
    return _query_frame(_Reading(state=state, spark=spark, keeps_types=True), query)


def ends_at_start(state: SqlState, query: Query) -> bool:
    """Whether every stream among a query's tables ends at the data that exists when the query starts."""
    streams = [use for use in base_uses(state, query) if is_stream(state, use)]
    return bool(streams) and all(ends_where_it_began(use) for use in streams)


def _query_frame(reading: _Reading, query: Query) -> DataFrame:
    frames = [_use_frame(reading, use, query) for use in query.tables]
    if query.keyless_session is not None and any(frame.isStreaming for frame in frames):
        line, column = query.source.place(query.keyless_session)
        raise UnsupportedFeatureError(
            f"line {line}, column {column}: Spark supports session windows of a stream only by key: PARTITION BY a"
            " column after the table's name, and GROUP BY it too"
        )
    return lazy_spark.query_frame(reading.spark, frames, query)


def _use_frame(reading: _Reading, use: TableUse, query: Query) -> DataFrame:
    view = reading.state.view(use.name)
    if view is None:
        frame = _table_frame(reading, use, query)
    else:
        frame = _view_frame(replace(reading, within=entered(view, use, reading.within)), view)
    call = use.window
    if call is None:
        return frame
    check_time(query.source, call, use.title, frame)
    if call.kind != "CUMULATE":
        return frame
    return lazy_spark.cumulate_frame(
        frame, call.column, whole=call.spark_window, step=call.spark_step, step_millis=call.millis("STEP")
    )


def _view_frame(reading: _Reading, view: CreateView) -> DataFrame:
    name = ".".join(view.name[1:])
    try:
        frame = _query_frame(reading, view.query)
    except InvalidSqlError as error:
        raise InvalidSqlError(f"view {name}: {error}") from error
    if view.fields:
        return lazy_spark.view_frame(frame, places_of(view, frame.columns), view.fields)
    if not view.columns:
        return frame
    if len(frame.columns) != len(view.columns):
        raise InvalidSqlError(
            f"view {name}: it names {len(view.columns)} columns, and its query has {len(frame.columns)}:"
            f" {', '.join(frame.columns)}"
        )
    return frame.toDF(*(column for column, _ in view.columns))


def _table_frame(reading: _Reading, use: TableUse, query: Query) -> DataFrame:
    state = reading.state
    frame = table_frame(state, reading.spark, use, query.conditions)
    is_metadata = use.system is not None and use.system not in ROW_TABLES
    if is_metadata or state.is_catalog_table(use.name):
        return frame
    own = state.session_table(use.name)
    if own is None:
        table = state.load(use.name)
        frame = lazy_spark.padded_frame(with_computed_columns(frame, table, query.names), table.schema.fields)
    if reading.keeps_types:
        frame = lazy_spark.typed_frame(frame, _types(state, use))
    mark = event_time_of(state, use) if frame.isStreaming else None
    if mark is None or mark.delay_millis is None or mark.column not in frame.columns:
        return frame
    return lazy_spark.event_time_frame(frame, mark.column, mark.delay_millis)


def _types(state: SqlState, use: TableUse) -> dict[str, str]:
    """Return the types of a table's columns in DDL syntax."""
    own = state.session_table(use.name)
    if own is not None:
        return {column.name: format_sql_type(column.type) for column in own.columns}
    schema = state.load(use.name).schema
    options = schema.option_map
    computed = computed_columns(schema.fields, options)
    declared = {name: options.get(f"schema.{place}.data-type", "") for place, name in computed.items()}
    stored = {field.name: format_sql_type(field.type) for field in schema.fields}
    return {**stored, **{name: text for name, text in declared.items() if text}}


def check_time(source: StatementText, call: WindowCall, table: str, frame: DataFrame) -> None:
    """Check that the column that a window function names is a time.

    Raises:
        InvalidSqlError: there is no such column, or its type is not a time.
    """
    types = dict(frame.dtypes)
    found = next((kind for name, kind in types.items() if name.lower() == call.column.lower()), None)
    if found in _TYPES:
        return
    times = ", ".join(name for name, kind in types.items() if kind in _TYPES) or "none"
    what = (
        f"{table} has no column '{call.column}'"
        if found is None
        else f"'{call.column}' is not a time but {found.upper()}"
    )
    raise source.error(call.column_offset, f"{what}; the times of {table} are: {times}")


def with_computed_columns(frame: DataFrame, table: Table, names: Collection[str] | None) -> DataFrame:
    """Return the rows of a table with its computed columns at their positions, as Flink returns them.

    Args:
        names: the columns that are needed, in lower case; None for all.

    Raises:
        UnsupportedFeatureError: Penstock cannot evaluate a computed column that is needed.
    """
    schema, options = table.schema, table.schema.option_map
    wanted = wanted_columns(table, names)
    if not wanted:
        return frame
    columns: list[tuple[str, str | None]] = [(name, None) for name in frame.columns]
    types = {field.name: field.type for field in schema.fields if field.name in frame.columns}
    for place, name in wanted.items():
        expression = options.get(f"schema.{place}.expr")
        cure = "name the desired columns instead" if names is None else "compute it in the query"
        if expression is None:
            raise UnsupportedFeatureError(f"table {table.name}: column '{name}' is one of Flink's metadata; {cure}")
        try:
            text = spark_expression(expression, types)
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(
                f"table {table.name}: column '{name}' is computed as {expression}, and {error}, since Spark may have"
                f" other values than Flink; {cure}"
            ) from error
        columns.insert(place, (name, text))
    return lazy_spark.computed_frame(frame, columns)


def wanted_columns(table: Table, names: Collection[str] | None) -> dict[int, str]:
    """Return the computed columns of a table that are among these names, by position."""
    computed = computed_columns(table.schema.fields, table.schema.option_map)
    return {place: name for place, name in computed.items() if names is None or name.lower() in names}


# Columns of queries


def query_columns(state: SqlState, query: Query, within: tuple[Path, ...] = ()) -> tuple[ColumnSpec, ...]:
    """Return the columns of a query's rows; a column that the query passes through keeps the type in its table.

    Raises:
        UnsupportedFeatureError: Spark is needed to find the columns, and there is no session.
        InvalidSqlError: Spark rejects the query.
    """
    known = _simple_columns(state, query, within)
    if known is not None:
        return known
    if state.spark is None:
        raise UnsupportedFeatureError("the columns of this query are known to Spark only: give penstock.sql a session")
    return lazy_spark.typed_columns(typed_frame(state, state.spark, query))


def view_columns(state: SqlState, view: CreateView, within: tuple[Path, ...] = ()) -> tuple[ColumnSpec, ...]:
    """Return the columns of a view. Raises as ``query_columns``."""
    if view.fields:
        return tuple(
            ColumnSpec(name=field.name, type=field.type, description=field.description) for field in view.fields
        )
    found = query_columns(state, view.query, within)
    if not view.columns:
        return found
    if len(found) != len(view.columns):
        raise InvalidSqlError(
            f"view {'.'.join(view.name[1:])}: it names {len(view.columns)} columns, and its query has {len(found)}"
        )
    return tuple(
        replace(column, name=name, description=comment or column.description)
        for column, (name, comment) in zip(found, view.columns, strict=True)
    )


def _simple_columns(state: SqlState, query: Query, within: tuple[Path, ...]) -> tuple[ColumnSpec, ...] | None:
    if query.simple is None or query.tables[0].system is not None or query.tables[0].options:
        return None
    if state.is_catalog_table(query.tables[0].name):
        return None
    use = query.tables[0]
    view, own = state.view(use.name), state.session_table(use.name)
    if view is not None:
        columns = view_columns(state, view, entered(view, use, within))
    elif own is not None:
        columns = own.columns
    else:
        schema = state.load(use.name).schema
        if computed_columns(schema.fields, schema.option_map):
            return None
        columns = tuple(
            ColumnSpec(name=field.name, type=field.type, description=field.description) for field in schema.fields
        )
    if not query.simple.columns:
        return columns
    by_name = {column.name: column for column in columns}
    if not all(name in by_name for name, _ in query.simple.columns):
        return None  # running the query gives a better error about the missing column
    return tuple(replace(by_name[name], name=alias) for name, alias in query.simple.columns)
