"""Run ``SELECT`` and ``INSERT``: into tables, connectors and streams."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from penstock.api.arguments import check_classic
from penstock.api.lazy import is_connect_object, lazy_spark
from penstock.datafile.conform import with_padding
from penstock.datafile.python_values import python_array
from penstock.datafile.types import to_arrow_schema, to_arrow_type
from penstock.dialect.outcome import Outcome, committed
from penstock.dialect.run.connectors import connector_table, fields_of
from penstock.dialect.run.frames import ends_at_start, query_frame, view_columns, wanted_columns
from penstock.dialect.run.sources import is_stream, system_rows
from penstock.dialect.run.views import entered
from penstock.dialect.settings import read_settings
from penstock.dialect.stored_views import places_of
from penstock.errors import InvalidSqlError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.format.types.text import format_sql_type
from penstock.table.write.imports import constant_array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.api.table import Table
    from penstock.datafile.types import ArrowAny
    from penstock.dialect.parse.query import Query, SimpleSelect
    from penstock.dialect.parse.reader import Path
    from penstock.dialect.parse.statements import CreateTable, CreateView, Insert, Select
    from penstock.dialect.settings import Settings
    from penstock.dialect.state import SqlState
    from penstock.format.types.data_types import DataField

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_EXAMPLES: Final = {
    TypeRoot.DATE: "2026-01-31",
    TypeRoot.TIME: "10:00:00",
    TypeRoot.TIMESTAMP: "2026-01-31 10:00:00",
    TypeRoot.TIMESTAMP_LTZ: "2026-01-31 10:00:00Z",
}


def select(state: SqlState, statement: Select) -> Outcome:
    """Run a query: on Spark if there is a session, else in this process if the query is simple enough."""
    if state.spark is not None:
        frame = query_frame(state, state.spark, statement.query)
        return Outcome(value=frame, ends_at_start=ends_at_start(state, statement.query))
    return Outcome(value=_select_here(state, statement.query))


def check_here(state: SqlState, query: Query) -> SimpleSelect:
    """Return a query that runs without Spark.

    Raises:
        UnsupportedFeatureError: the query needs Spark.
    """
    is_ours = all(state.session_table(use.name) is None and not is_stream(state, use) for use in query.tables)
    if query.simple is None or not is_ours:
        raise UnsupportedFeatureError(
            "this query needs Spark: give penstock.sql a session, or the command --spark 'local[2]'; without it there"
            " is SELECT of columns of one table with WHERE and LIMIT, of one snapshot; in Python, DuckDB runs any query"
            " on Table.to_duckdb()"
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
        rows = _padded(table, table.to_arrow(columns, simple.where, limit=simple.limit, options=dict(use.options)))
    return rows.rename_columns([alias for _, alias in simple.columns]) if columns else rows


def _padded(table: Table, rows: pa.Table) -> pa.Table:
    batches = [with_padding(batch, table.schema.fields) for batch in rows.to_batches()]
    return pa.Table.from_batches(batches, rows.schema)


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


# INSERT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The target of an ``INSERT``: a table of a catalog or of the session."""

    name: str
    fields: Sequence[DataField]
    partition_keys: Sequence[str]

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return a table of a catalog as a target."""
        return cls(name=table.name, fields=table.schema.fields, partition_keys=table.schema.partition_keys)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return to_arrow_schema(self.fields)


def insert(state: SqlState, statement: Insert) -> Outcome:
    """Insert rows: in one commit, or with a streaming query if the source is a stream."""
    if statement.place_in_set == 0:
        state.has_named_query = False
    own = state.session_table(statement.name)
    if own is not None:
        return _insert_into_connector(state, own, statement)
    table = state.load(statement.name, dict(statement.options) or None)
    target = _Target.of(table)
    columns = _target_columns(target, statement)
    if statement.rows is not None:
        return _write(table, statement, _literal_rows(target, statement, columns))
    if statement.query is None:
        raise InvalidSqlError(f"table {table.name}: there is nothing to insert")
    if state.spark is None:
        rows = _select_here(state, statement.query)
        return _write(table, statement, _arrow_rows(target, statement, columns, rows))
    frame = query_frame(state, state.spark, statement.query)
    shaped = lazy_spark.insert_frame(
        frame, table.schema.fields, columns=columns, constants=dict(statement.partition), table=table.name
    )
    if frame.isStreaming:
        if statement.is_overwrite:
            raise UnsupportedFeatureError(f"table {table.name}: a stream cannot overwrite; INSERT INTO adds its rows")
        started = _start(state, statement, statement.query, shaped, table.name, partial(table.write_stream, shaped))
        return Outcome(value=started, message=f"a query adds to {table.name}")
    return _write(table, statement, shaped)


def _insert_into_connector(state: SqlState, own: CreateTable, statement: Insert) -> Outcome:
    """Insert rows into a table of a session: as a batch, or with a streaming query if the source is a stream.

    Raises:
        UnsupportedFeatureError: there is no Spark session, or the table does not support the rows.
        InvalidOptionError: the table is not a sink, or an option is invalid.
        SchemaMismatchError: the rows do not have the table's columns.
    """
    name = ".".join(own.name)
    if state.spark is None:
        raise UnsupportedFeatureError(f"table {name}: a table with a connector needs Spark: give a session")
    check_classic(state.spark, name, "df.write and df.writeStream for data outside of the catalog")
    kept = next((column.name for column in own.metadata if not column.is_virtual), None)
    if kept is not None:
        raise UnsupportedFeatureError(
            f"table {name}: column '{kept}': metadata of records is read and not written: declare it VIRTUAL"
        )
    shown = {column.name for column in own.metadata}
    fields = tuple(field for field in fields_of(own) if field.name not in shown)
    target = _Target(name=name, fields=fields, partition_keys=own.partition_by)
    frame = _connector_rows(state, state.spark, target, statement)
    if frame.isStreaming and statement.is_overwrite:
        raise UnsupportedFeatureError(f"table {name}: a stream cannot overwrite; INSERT INTO adds its rows")
    connector = connector_table(own, statement.options)
    sink = lazy_spark.ConnectorSink(connector=connector, fields=fields, partition_by=own.partition_by, name=name)
    if not frame.isStreaming or statement.query is None:
        lazy_spark.write_connector(frame, sink, is_overwrite=statement.is_overwrite)
        return Outcome(message=f"wrote to {name}")
    started = _start(
        state,
        statement,
        statement.query,
        frame,
        name,
        lambda **how: lazy_spark.start_connector(frame, sink, lazy_spark.QueryStart(**how)),
    )
    return Outcome(value=started, message=f"a query writes to {name}")


def _connector_rows(state: SqlState, spark: SparkSession, target: _Target, statement: Insert) -> DataFrame:
    columns = _target_columns(target, statement)
    if statement.rows is not None:
        # Without the types, a TIMESTAMP would get a zone.
        types = lazy_spark.nullable(lazy_spark.to_spark_schema(target.fields))
        return lazy_spark.from_arrow(spark, _literal_rows(target, statement, columns), types)
    if statement.query is None:
        raise InvalidSqlError(f"table {target.name}: there is nothing to insert")
    return lazy_spark.insert_frame(
        query_frame(state, spark, statement.query),
        target.fields,
        columns=columns,
        constants=dict(statement.partition),
        table=target.name,
    )


def _write(table: Table, statement: Insert, rows: pa.Table | DataFrame) -> Outcome:
    if not statement.is_overwrite:
        return committed(table.append(rows), f"appended to {table.name}")
    partition = dict(statement.partition) or None
    return committed(table.overwrite(rows, partition=partition), f"overwrote in {table.name}")


def _target_columns(target: _Target, statement: Insert) -> tuple[str, ...]:
    """Return the target columns in the order of the inserted values. Raises ``SchemaMismatchError``."""
    names = target.names
    constants = {name for name, _ in statement.partition}
    strangers = sorted(constants - set(target.partition_keys))
    if strangers:
        keys = ", ".join(target.partition_keys) or "none"
        raise SchemaMismatchError(f"table {target.name}: '{strangers[0]}' is not a partition column; they are: {keys}")
    for field in target.fields:
        # Spark reads times without a zone in its session's.
        if field.name in constants and "LOCAL TIME ZONE" not in format_sql_type(field.type):
            _constant(target, field, dict(statement.partition)[field.name])
    if not statement.columns:
        return tuple(name for name in names if name not in constants)
    for place, name in enumerate(statement.columns):
        if name not in names or name in constants or name in statement.columns[:place]:
            raise SchemaMismatchError(
                f"table {target.name}: '{name}' cannot be among the columns to insert; there are {', '.join(names)}"
            )
    return statement.columns


def _literal_rows(target: _Target, statement: Insert, columns: tuple[str, ...]) -> pa.Table:
    """Return the rows of ``VALUES``. Raises ``SchemaMismatchError``."""
    for number, row in enumerate(statement.rows or (), start=1):
        if len(row) != len(columns):
            raise SchemaMismatchError(
                f"table {target.name}: row {number} has {len(row)} values, and {len(columns)} are to be written:"
                f" {', '.join(columns)}"
            )
    fields = {field.name: field for field in target.fields}
    given = {
        name: python_array([row[place] for row in statement.rows or ()], fields[name], target.name)
        for place, name in enumerate(columns)
    }
    return _completed(target, statement, given, len(statement.rows or ()))


def _arrow_rows(target: _Target, statement: Insert, columns: tuple[str, ...], rows: pa.Table) -> pa.Table:
    """Return the rows of a query, matched by position. Raises ``SchemaMismatchError``."""
    if rows.num_columns != len(columns):
        raise SchemaMismatchError(
            f"table {target.name}: the query has {rows.num_columns} columns, and {len(columns)} are to be written:"
            f" {', '.join(columns)}"
        )
    return _completed(target, statement, dict(zip(columns, rows.columns, strict=True)), rows.num_rows)


def _completed(target: _Target, statement: Insert, given: dict[str, ArrowAny], count: int) -> pa.Table:
    """Add the partition values of the statement, and NULL for columns that are not inserted."""
    constants = dict(statement.partition)
    arrays: list[ArrowAny] = []
    for field in target.fields:
        if field.name in given:
            arrays.append(given[field.name])
        else:
            arrays.append(_constant(target, field, constants.get(field.name), count))
    return pa.table(dict(zip(target.names, arrays, strict=True)))


def _constant(target: _Target, field: DataField, text: str | None, count: int = 0) -> ArrowAny:
    """Return a partition value of the statement as a column. Raises ``SchemaMismatchError``."""
    try:
        return constant_array(field, text, count)
    except SchemaMismatchError as error:
        example = _EXAMPLES.get(field.type.root) if isinstance(field.type, AtomicType) else None
        cure = f"; write a text such as '{example}'" if example else ""
        raise SchemaMismatchError(
            f"table {target.name}: PARTITION ({field.name} = '{text}'): '{text}' is not a value of its type "
            f"{format_sql_type(field.type)}{cure}"
        ) from error


def _start(
    state: SqlState,
    statement: Insert,
    query: Query,
    frame: DataFrame,
    table: str,
    start: Callable[..., StreamingQuery],
) -> StreamingQuery:
    """Start a streaming insert, and wait for its end if the settings say so.

    Args:
        start: takes ``checkpoint``, ``trigger`` and ``query_name``.
    """
    lazy_spark.check_stream(frame)
    settings = read_settings(state.settings)
    if settings.checkpoints is None and is_connect_object(frame):
        raise UnsupportedFeatureError(
            f"table {table}: a query of Spark Connect needs a checkpoint directory that its server can reach: SET "
            "'execution.checkpointing.dir' = '<uri>'"
        )
    query_name, checkpoint = place_for(state, settings, statement, table, query.source.text)
    trigger = _stream_trigger(settings, ends_at_start=ends_at_start(state, query))
    started = start(checkpoint=checkpoint, trigger=trigger, query_name=query_name)
    if settings.waits:
        started.awaitTermination()
    return started


def _stream_trigger(settings: Settings, *, ends_at_start: bool) -> dict[str, object] | None:
    """Return the trigger of a streaming insert; None to run micro-batches without a pause."""
    # A query with another bound waits for rows that are not written yet, and ends at the bound.
    if ends_at_start:
        return {"availableNow": True}
    return None if settings.interval_ms is None else {"processingTime": f"{settings.interval_ms} milliseconds"}


def place_for(state: SqlState, settings: Settings, statement: Insert, table: str, query: str) -> tuple[str | None, str]:
    """Return name and checkpoint directory of a streaming insert; without a name in the settings, None.

    If the settings name a checkpoint directory, the checkpoint is a sub-directory of it. Its name is the query's name,
    or else it is derived from the target and the query's text, so that the same statement resumes where it stopped.
    Without one, it is a temporary directory, which is deleted when the process ends.

    Queries of one statement set run at the same time: the first one has the name, and the others have their targets
    after it.
    """
    words = " ".join(query.split())
    own = f"{table}-{zlib.crc32(words.encode()):08x}"
    name = settings.name
    if name is not None and statement.place_in_set is not None:
        name = f"{name}-{own}" if state.has_named_query else name
        state.has_named_query = True
    if settings.checkpoints is None:
        folder = tempfile.mkdtemp(prefix="penstock-sql-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return name, folder
    return name, f"{settings.checkpoints.rstrip('/')}/{_UNSAFE.sub('_', name or own)}"
