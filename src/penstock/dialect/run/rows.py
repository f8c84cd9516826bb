"""Run ``SELECT`` and ``INSERT``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.lazy import lazy_spark
from penstock.datafile.types import to_arrow_type
from penstock.dialect.outcome import Outcome, committed
from penstock.dialect.run.frames import ends_at_start, query_frame, wanted_columns
from penstock.dialect.run.inserts import (
    InsertTarget,
    arrow_rows,
    insert_into_connector,
    literal_rows,
    place_for,
    stream_trigger,
    target_columns,
)
from penstock.dialect.run.query_columns import view_columns
from penstock.dialect.run.sources import is_stream, system_rows
from penstock.dialect.run.views import entered
from penstock.dialect.settings import read_settings
from penstock.dialect.stored_views import places_of
from penstock.errors import InvalidSqlError, UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.api.table import Table
    from penstock.dialect.parse.query import Query, SimpleSelect
    from penstock.dialect.parse.reader import Path
    from penstock.dialect.parse.statements import CreateView, Insert, Select
    from penstock.dialect.state import SqlState


def select(state: SqlState, statement: Select) -> Outcome:
    """Run a query: on Spark if there is a session, else in this process if the query is simple enough."""
    if state.spark is not None:
        frame = query_frame(state, state.spark, statement.query)
        return Outcome(value=frame, ends_at_start=ends_at_start(state, statement.query))
    return Outcome(value=_select_here(state, statement.query))


def insert(state: SqlState, statement: Insert) -> Outcome:
    """Insert rows: in one commit, or with a streaming query if the source is a stream."""
    if statement.place_in_set == 0:
        state.has_named_query = False
    own = state.session_table(statement.name)
    if own is not None:
        return insert_into_connector(state, own, statement)
    table = state.load(statement.name, dict(statement.options) or None)
    target = InsertTarget.of(table)
    columns = target_columns(target, statement)
    if statement.rows is not None:
        return _write(table, statement, literal_rows(target, statement, columns))
    if statement.query is None:
        raise InvalidSqlError(f"table {table.name}: there is nothing to insert")
    if state.spark is None:
        rows = _select_here(state, statement.query)
        return _write(table, statement, arrow_rows(target, statement, columns, rows))
    frame = query_frame(state, state.spark, statement.query)
    shaped = lazy_spark.insert_frame(
        frame, table.schema.fields, columns=columns, constants=dict(statement.partition), table=table.name
    )
    if frame.isStreaming:
        if statement.is_overwrite:
            raise UnsupportedFeatureError(f"table {table.name}: a stream cannot overwrite; INSERT INTO adds its rows")
        return _start(state, table, statement, statement.query, shaped)
    return _write(table, statement, shaped)


def check_here(state: SqlState, query: Query) -> SimpleSelect:
    """Return a query that runs without Spark.

    Raises:
        UnsupportedFeatureError: the query needs Spark.
    """
    is_ours = all(state.session_table(use.name) is None and not is_stream(state, use) for use in query.tables)
    if query.simple is None or not is_ours:
        raise UnsupportedFeatureError(
            "this query needs Spark: give penstock.sql a session, or the command --spark 'local[2]'; without it there"
            " is SELECT of columns of one table with WHERE and LIMIT, of one snapshot"
        )
    return query.simple


def _select_here(state: SqlState, query: Query, within: tuple[Path, ...] = ()) -> pa.Table:
    simple = check_here(state, query)
    use = query.tables[0]
    columns = [name for name, _ in simple.columns] or None
    view = state.view(use.name)
    if view is not None:
        rows = _select_here(state, view.query, entered(view, use, within))
        if view.fields:
            rows = _of_stored_view(view, rows)
        else:
            rows = rows.rename_columns([column.name for column in view_columns(state, view)])
        rows = _chosen(rows, use.last_name, simple)
    elif (found := system_rows(state, use)) is not None:
        rows = _chosen(found, use.title, simple)
    else:
        table = state.load(use.name)
        computed = wanted_columns(table, query.names)
        if computed:
            raise UnsupportedFeatureError(
                f"table {table.name}: computed columns ({', '.join(computed.values())}) need Spark: give a session, or"
                f" name the columns that are stored: {', '.join(table.schema.field_names)}"
            )
        rows = table.to_arrow(columns, simple.where, limit=simple.limit, options=dict(use.options))
    return rows.rename_columns([alias for _, alias in simple.columns]) if columns else rows


def _of_stored_view(view: CreateView, rows: pa.Table) -> pa.Table:
    """Return the columns of a view of a catalog; casts are left to Spark."""
    found = rows.select(list(places_of(view, rows.column_names)))
    for column, field in zip(found.columns, view.fields, strict=True):
        if column.type != to_arrow_type(field.type):
            raise UnsupportedFeatureError(
                f"view {'.'.join(view.name[1:])}: column '{field.name}' has another type than when the view was"
                " created, and casting it needs Spark: give a session, or create the view again"
            )
    return found.rename_columns([field.name for field in view.fields])


def _chosen(rows: pa.Table, name: str, simple: SimpleSelect) -> pa.Table:
    """Apply the columns and the limit of a query without conditions to rows in memory."""
    if simple.where is not None:
        raise UnsupportedFeatureError(f"WHERE on {name} needs Spark; leave it out, or give a session")
    for column, _ in simple.columns:
        if column not in rows.column_names:
            raise InvalidSqlError(f"{name} has no column '{column}'; it has {', '.join(rows.column_names)}")
    chosen = rows.select([column for column, _ in simple.columns]) if simple.columns else rows
    return chosen if simple.limit is None else chosen.slice(0, simple.limit)


def _write(table: Table, statement: Insert, rows: pa.Table | DataFrame) -> Outcome:
    if not statement.is_overwrite:
        return committed(table.append(rows), f"appended to {table.name}")
    partition = dict(statement.partition) or None
    return committed(table.overwrite(rows, partition=partition), f"overwrote in {table.name}")


def _start(state: SqlState, table: Table, statement: Insert, query: Query, rows: DataFrame) -> Outcome:
    lazy_spark.check_stream(rows)
    settings = read_settings(state.settings)
    query_name, checkpoint = place_for(state, settings, statement, table.name, query.source.text)
    started = table.write_stream(
        rows,
        checkpoint=checkpoint,
        trigger=stream_trigger(settings, ends_at_start=ends_at_start(state, query)),
        query_name=query_name,
    )
    if settings.waits:
        started.awaitTermination()
    return Outcome(value=started, message=f"a query adds to {table.name}")
