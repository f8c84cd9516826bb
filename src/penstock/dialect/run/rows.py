"""Run ``SELECT`` and ``INSERT``."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zlib
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.api.deferred import spark_entry
from penstock.dialect.outcome import Outcome, committed
from penstock.dialect.parse.literals import literal_column
from penstock.dialect.run.computed_frames import wanted_columns
from penstock.dialect.run.frames import ends_at_start, query_frame
from penstock.dialect.run.query_columns import view_columns
from penstock.dialect.run.sources import is_stream, system_rows
from penstock.dialect.run.views import entered
from penstock.dialect.settings import read_settings
from penstock.errors import InvalidSqlError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.api.table import Table
    from penstock.datafile.types import ArrowAny
    from penstock.dialect.parse.names import Path
    from penstock.dialect.parse.query import Query, SimpleSelect
    from penstock.dialect.parse.statements import Insert, Select
    from penstock.dialect.settings import Settings
    from penstock.dialect.state import SqlState


_UNSAFE: Final = re.compile(r"[^\w.-]+")


def select(state: SqlState, statement: Select) -> Outcome:
    """Run a query: on Spark if there is a session, else in this process if the query is simple enough."""
    if state.spark is not None:
        frame = query_frame(state, state.spark, statement.query)
        return Outcome(value=frame, ends_at_start=ends_at_start(state, statement.query))
    return Outcome(value=_select_here(state, statement.query))


def insert(state: SqlState, statement: Insert) -> Outcome:
    """Insert rows: in one commit, or with a streaming query if the source is a stream."""
    table = state.load(statement.name, dict(statement.options) or None)
    columns = _target_columns(table, statement)
    if statement.rows is not None:
        return _write(table, statement, _literal_rows(table, statement, columns))
    if statement.query is None:
        raise InvalidSqlError(f"table {table.name}: there is nothing to insert")
    if state.spark is None:
        rows = _select_here(state, statement.query)
        return _write(table, statement, _arrow_rows(table, statement, columns, rows))
    frame = query_frame(state, state.spark, statement.query)
    shaped = spark_entry().sql_insert(
        frame, table.schema.fields, columns=columns, constants=dict(statement.partition), table=table.name
    )
    if frame.isStreaming:
        if statement.is_overwrite:
            raise UnsupportedFeatureError(f"table {table.name}: a stream cannot overwrite; INSERT INTO adds its rows")
        return _start(state, table, statement.query, shaped)
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
        names = [column.name for column in view_columns(state, view)]
        rows = _chosen(rows.rename_columns(names), use.last_name, simple)
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


def _chosen(rows: pa.Table, name: str, simple: SimpleSelect) -> pa.Table:
    """Apply the columns and the limit of a query without conditions to rows in memory."""
    if simple.where is not None:
        raise UnsupportedFeatureError(f"WHERE on {name} needs Spark; leave it out, or give a session")
    for column, _ in simple.columns:
        if column not in rows.column_names:
            raise InvalidSqlError(f"{name} has no column '{column}'; it has {', '.join(rows.column_names)}")
    chosen = rows.select([column for column, _ in simple.columns]) if simple.columns else rows
    return chosen if simple.limit is None else chosen.slice(0, simple.limit)


def _target_columns(table: Table, statement: Insert) -> tuple[str, ...]:
    """Return the target columns in the order of the inserted values."""
    names = table.schema.field_names
    constants = {name for name, _ in statement.partition}
    strangers = sorted(constants - set(table.schema.partition_keys))
    if strangers:
        keys = ", ".join(table.schema.partition_keys) or "none"
        raise SchemaMismatchError(f"table {table.name}: '{strangers[0]}' is no partition column; they are: {keys}")
    if not statement.columns:
        return tuple(name for name in names if name not in constants)
    for place, name in enumerate(statement.columns):
        if name not in names or name in constants or name in statement.columns[:place]:
            raise SchemaMismatchError(
                f"table {table.name}: '{name}' cannot be among the columns to insert; there are {', '.join(names)}"
            )
    return statement.columns


def _literal_rows(table: Table, statement: Insert, columns: tuple[str, ...]) -> pa.Table:
    schema = table.arrow_schema
    for number, row in enumerate(statement.rows or (), start=1):
        if len(row) != len(columns):
            raise SchemaMismatchError(
                f"table {table.name}: row {number} has {len(row)} values, and {len(columns)} are to be written:"
                f" {', '.join(columns)}"
            )
    kinds = {field.name: format_sql_type(field.type) for field in table.schema.fields}
    given = {
        name: literal_column([row[place] for row in statement.rows or ()], schema.field(name), kinds[name], table.name)
        for place, name in enumerate(columns)
    }
    return _completed(table, statement, given, len(statement.rows or ()))


def _arrow_rows(table: Table, statement: Insert, columns: tuple[str, ...], rows: pa.Table) -> pa.Table:
    if rows.num_columns != len(columns):
        raise SchemaMismatchError(
            f"table {table.name}: the query has {rows.num_columns} columns, and {len(columns)} are to be written:"
            f" {', '.join(columns)}"
        )
    return _completed(table, statement, dict(zip(columns, rows.columns, strict=True)), rows.num_rows)


def _completed(table: Table, statement: Insert, given: dict[str, ArrowAny], count: int) -> pa.Table:
    """Add the partition values of the statement, and NULL for columns that are not inserted."""
    constants = dict(statement.partition)
    arrays: list[ArrowAny] = []
    for field in table.arrow_schema:
        if field.name in given:
            arrays.append(given[field.name])
        else:
            text = pa.array([constants.get(field.name)] * count, pa.string())
            arrays.append(text.cast(field.type))
    return pa.table(dict(zip(table.schema.field_names, arrays, strict=True)))


def _write(table: Table, statement: Insert, rows: pa.Table | DataFrame) -> Outcome:
    if not statement.is_overwrite:
        return committed(table.append(rows), f"appended to {table.name}")
    partition = dict(statement.partition) or None
    return committed(table.overwrite(rows, partition=partition), f"overwrote in {table.name}")


def _start(state: SqlState, table: Table, query: Query, rows: DataFrame) -> Outcome:
    spark_entry().sql_check_stream(rows)
    settings = read_settings(state.settings)
    started = table.write_stream(
        rows,
        checkpoint=checkpoint_for(settings, table.name, query.source.text),
        trigger=_trigger(settings, ends_at_start=ends_at_start(state, query)),
        query_name=settings.name,
    )
    if settings.waits:
        started.awaitTermination()
    return Outcome(value=started, message=f"a query adds to {table.name}")


def _trigger(settings: Settings, *, ends_at_start: bool) -> dict[str, object] | None:
    # A query with another bound waits for rows that are not written yet, and ends by itself at the bound.
    if ends_at_start:
        return {"availableNow": True}
    return None if settings.interval_ms is None else {"processingTime": f"{settings.interval_ms} milliseconds"}


def checkpoint_for(settings: Settings, table: str, query: str) -> str:
    """Return the checkpoint directory of a streaming insert.

    If the settings name a checkpoint directory, the result is a sub-directory of it. Its name is the query's name, or
    else it is derived from the target and the query's text, so that the same statement resumes where it stopped.
    Without one, the result is a temporary directory, which is deleted when the process ends.
    """
    if settings.checkpoints is None:
        folder = tempfile.mkdtemp(prefix="penstock-sql-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    words = " ".join(query.split())
    name = settings.name or f"{table}-{zlib.crc32(words.encode()):08x}"
    return f"{settings.checkpoints.rstrip('/')}/{_UNSAFE.sub('_', name)}"
