"""Run ``SHOW``, ``DESCRIBE``, ``EXPLAIN``, ``CALL``, ``SET`` and ``RESET``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.api.lazy import is_connect_object, lazy_spark
from penstock.api.procedures import PROCEDURES, call
from penstock.dialect.outcome import Outcome, rows
from penstock.dialect.parse.statements import Insert
from penstock.dialect.run.connectors import connector_of
from penstock.dialect.run.frames import query_frame, view_columns
from penstock.dialect.run.rows import check_here
from penstock.dialect.run.sources import is_stream, safe_filter
from penstock.dialect.run.views import base_uses
from penstock.errors import InvalidSqlError
from penstock.format.text.names import quoted
from penstock.format.text.partitions import value_text
from penstock.format.types.data_types import with_nullability
from penstock.format.types.text import format_sql_type, format_string
from penstock.format.watermark import EXPRESSION_KEY, ROWTIME_KEY, computed_columns
from penstock.printable import mask_options, mask_value
from penstock.table.read.scan import plan_scan
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import Path
    from penstock.dialect.parse.statements import (
        Call,
        CreateTable,
        Describe,
        Explain,
        ResetSetting,
        SetSetting,
        ShowCreateTable,
        ShowNames,
        ShowPartitions,
    )
    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState
    from penstock.format.schema import TableSchema
    from penstock.format.types.ddl import ColumnSpec

_TEXT: Final[pa.DataType] = pa.string()
_COLUMNS: Final = pa.schema(
    {
        "name": _TEXT,
        "type": _TEXT,
        "null": pa.bool_(),
        "partition_key": pa.bool_(),
        "extras": _TEXT,
        "watermark": _TEXT,
        "comment": _TEXT,
    }
)
_HEADERS: Final = {
    "catalogs": "catalog name",
    "databases": "database name",
    "tables": "table name",
    "views": "view name",
}
# Options in which Flink's catalog stores computed columns and watermarks.
_HIDDEN: Final = re.compile(r"schema\.(?:\d+|watermark\.0)\..+")


def show_names(state: SqlState, statement: ShowNames) -> Outcome:
    """List names."""
    what = statement.what
    if what.startswith("current"):
        kind = what.split()[1]
        value = state.catalog_name if kind == "catalog" else state.database
        return _names(f"current {kind} name", [value])
    if what == "procedures":
        return _procedures(statement)
    if what == "catalogs":
        found = sorted(state.catalogs)
    elif what == "databases":
        found = list(state.catalog(statement.within[0] if statement.within else state.catalog_name).list_databases())
    elif what == "views":
        found = _views(state, statement.within)
    else:
        found = _tables(state, statement)
    if statement.like is not None:
        found = [name for name in found if like_matches(statement.like, name) != statement.is_negated]
    return _names(_HEADERS[what], found)


def describe(state: SqlState, statement: Describe) -> Outcome:
    """List the columns of a table."""
    view, own = state.view(statement.name), state.session_table(statement.name)
    found: Iterable[tuple[object, ...]]
    if view is not None:
        found = (_described_column(column, None) for column in view_columns(state, view))
    elif own is not None:
        found = _described_own(own)
    else:
        found = _described(state.load(statement.name).schema)
    like = statement.like
    return rows(
        _COLUMNS,
        [row for row in found if like is None or like_matches(like, str(row[0])) != statement.is_negated],
    )


def show_create_table(state: SqlState, statement: ShowCreateTable) -> Outcome:
    """Show the statement that creates an equal table."""
    table = state.load(statement.name)
    _, database, name = state.full(statement.name)
    text = _ddl(table.schema, f"{quoted(database)}.{quoted(name)}")
    return Outcome(value=pa.table({"result": pa.array([text], _TEXT)}), is_text=True)


def show_partitions(state: SqlState, statement: ShowPartitions) -> Outcome:
    """List the partitions that have rows."""
    table = state.load(statement.name)
    strangers = [name for name, _ in statement.spec if name not in table.schema.partition_keys]
    if strangers:
        keys = ", ".join(table.schema.partition_keys) or "none: it is not partitioned"
        raise InvalidSqlError(f"table {table.name}: '{strangers[0]}' is not a partition column; they are: {keys}")
    ref = table._ref  # noqa: SLF001 - with its branch and its storage, which no public way gives
    store = MetadataStore(ref)
    fields = ref.schema.partition_fields
    found = []
    for partition in (
        plan_scan(store, ref, store.load_latest_snapshot(), with_vectors=True).partitions if fields else ()
    ):
        values = zip(fields, partition.values, strict=True)
        texts = {field.name: None if value is None else value_text(field, value) for field, value in values}
        if all(texts.get(name) == text for name, text in statement.spec):
            found.append("/".join(f"{name}={'NULL' if text is None else text}" for name, text in texts.items()))
    return _names("partition name", found)


def set_setting(state: SqlState, statement: SetSetting) -> Outcome:
    """Store a setting, or show all settings."""
    if statement.key is None:
        return rows(pa.schema({"key": _TEXT, "value": _TEXT}), sorted(mask_options(state.settings.items()).items()))
    state.put_setting(statement.key, statement.value)
    return Outcome(message=f"set {statement.key} = {mask_value(statement.key, statement.value)}")


def reset_setting(state: SqlState, statement: ResetSetting) -> Outcome:
    """Reset a setting, or all settings."""
    keys = list(state.settings) if statement.key is None else [statement.key]
    for key in keys:
        state.drop_setting(key)
    return Outcome(message=f"forgot {statement.key or 'all settings'}")


def stored_options(schema: TableSchema) -> Iterator[tuple[str, str]]:
    """Yield the options of a table, without those in which Flink stores watermarks and computed columns."""
    return ((key, value) for key, value in schema.options if not _HIDDEN.fullmatch(key))


def call_procedure(state: SqlState, statement: Call) -> Outcome:
    """Run a procedure. Raises ``NotFoundError`` for a catalog that is not there, and as ``call``."""
    arguments = ((each.name, each.value) for each in statement.arguments)
    names = state.at_catalog(statement.catalog)
    # Without a JVM here, procedures run in this process.
    spark = None if is_connect_object(state.spark) else state.spark
    return Outcome(value=call(names, spark, statement.procedure, arguments))


def _procedures(statement: ShowNames) -> Outcome:
    found: list[tuple[object, ...]] = [
        (f"sys.{name}", ", ".join(procedure.parameters))
        for name, procedure in sorted(PROCEDURES.items())
        if statement.like is None or like_matches(statement.like, name) != statement.is_negated
    ]
    return rows(pa.schema({"procedure name": _TEXT, "arguments": _TEXT}), found)


def _tables(state: SqlState, statement: ShowNames) -> list[str]:
    catalog, database = state.full_database(statement.within or (state.database,))
    databases = state.catalog(catalog).list_databases()
    is_empty_default = database not in databases and database == state.database
    stored = () if is_empty_default else state.catalog(catalog).list_tables(database)
    own = [path[2] for path in state.session_tables if path[:2] == (catalog, database)]
    return sorted({*stored, *own, *_views(state, statement.within)})


def _views(state: SqlState, within: Path) -> list[str]:
    return list(state.view_names(within or (state.database,)))


def _names(header: str, names: list[str]) -> Outcome:
    return Outcome(value=pa.table({header: pa.array(names, _TEXT)}))


def like_matches(pattern: str, text: str) -> bool:
    """Whether a text matches a ``LIKE`` pattern: ``%`` matches any number of characters, ``_`` matches one.

    Takes at most ``len(pattern) * len(text)`` steps, because backtracking is needed only to the last ``%``.
    """
    place = at = 0
    star = tried = -1
    while at < len(text):
        letter = pattern[place] if place < len(pattern) else None
        if letter == "%":
            star, tried, place = place, at, place + 1
        elif letter in {"_", text[at]}:
            place, at = place + 1, at + 1
        elif star >= 0:
            tried += 1
            place, at = star + 1, tried
        else:
            return False
    return all(letter == "%" for letter in pattern[place:])


def _described(schema: TableSchema) -> Iterator[tuple[object, ...]]:
    options = schema.option_map
    rowtime, watermark = options.get(ROWTIME_KEY), options.get(EXPRESSION_KEY)
    computed = computed_columns(schema.fields, options)
    fields = iter(schema.fields)
    for place in range(len(schema.fields) + len(computed)):
        if place in computed:
            name, extras = computed[place], f"AS {options.get(f'schema.{place}.expr', '')}"
            kind, comment, nullable = options.get(f"schema.{place}.data-type", ""), None, True
        else:
            field = next(fields)
            name, extras, comment = field.name, None, field.description or None
            kind, nullable = format_sql_type(with_nullability(field.type, nullable=True)), field.type.nullable
        mark = watermark if name == rowtime else None
        yield name, kind, nullable, name in schema.partition_keys, extras, mark, comment


def _described_own(table: CreateTable) -> Iterator[tuple[object, ...]]:
    clause = table.watermark
    for column in table.columns:
        is_rowtime = clause is not None and clause.column == column.name
        mark = quoted(column.name) if is_rowtime else None
        if clause is not None and is_rowtime and clause.interval is not None:
            mark = f"{mark} - {clause.interval}"
        yield _described_column(column, mark, is_partition_key=column.name in table.partition_by)


def _described_column(
    column: ColumnSpec, watermark: str | None, *, is_partition_key: bool = False
) -> tuple[object, ...]:
    kind = format_sql_type(with_nullability(column.type, nullable=True))
    return column.name, kind, column.type.nullable, is_partition_key, None, watermark, column.description


def _ddl(schema: TableSchema, name: str) -> str:
    options = schema.option_map
    lines = [f"  {line}" for line in _ddl_columns(schema, options)]
    text = f"CREATE TABLE {name} (\n" + ",\n".join(lines) + "\n)"
    if schema.comment:
        text += f" COMMENT {format_string(schema.comment)}"
    if schema.partition_keys:
        text += f" PARTITIONED BY ({', '.join(quoted(key) for key in schema.partition_keys)})"
    shown = [
        f"  {format_string(key)} = {format_string(mask_value(key, value))}" for key, value in stored_options(schema)
    ]
    return text + (" WITH (\n" + ",\n".join(shown) + "\n)" if shown else "")


def _ddl_columns(schema: TableSchema, options: Mapping[str, str]) -> Iterator[str]:
    computed = computed_columns(schema.fields, options)
    fields = iter(schema.fields)
    for place in range(len(schema.fields) + len(computed)):
        if place in computed:
            yield f"{quoted(computed[place])} AS {options.get(f'schema.{place}.expr', '')}"
            continue
        field = next(fields)
        default = "" if field.default_value is None else f" DEFAULT {format_string(field.default_value)}"
        comment = f" COMMENT {format_string(field.description)}" if field.description else ""
        yield f"{quoted(field.name)} {format_sql_type(field.type)}{default}{comment}"
    if ROWTIME_KEY in options:
        yield f"WATERMARK FOR {quoted(options[ROWTIME_KEY])} AS {options.get(EXPRESSION_KEY, '')}"


# EXPLAIN


def explain(state: SqlState, statement: Explain) -> Outcome:
    """Explain a query, or the query of an ``INSERT``, without running it."""
    action = statement.action
    lines: list[str] = []
    if isinstance(action, Insert):
        verb = "overwrites in" if action.is_overwrite else "appends to"
        own = state.session_table(action.name)
        name = state.load(action.name).name if own is None else f"{'.'.join(own.name)}, by {connector_of(own)}"
        lines.append(f"== Target ==\n{verb} {name}")
    if action.query is not None:
        lines += _query_lines(state, action.query)
    else:
        lines.append(f"== Rows ==\n{len(action.rows or ())} of VALUES, without Spark")
    return Outcome(value=pa.table({"result": pa.array(["\n\n".join(lines)], pa.string())}), is_text=True)


def _query_lines(state: SqlState, query: Query) -> Iterator[str]:
    early = query.conditions if query.tables and not state.is_view(query.tables[0].name) else ()
    for use in base_uses(state, query):
        yield f"== {use.title} ==\n{_use_text(state, use, early, query)}"
    if state.spark is None:
        check_here(state, query)
        yield "== Plan ==\nread in this process, without Spark"
        return
    yield lazy_spark.explain_text(query_frame(state, state.spark, query))


def _use_text(state: SqlState, use: TableUse, conditions: tuple[str, ...], query: Query) -> str:
    own = state.session_table(use.name)
    if own is not None:
        how = "a stream" if is_stream(state, use) else "what is there"
        return f"read from {dict(own.options).get('connector')}: {how}"
    if state.is_catalog_table(use.name):
        return "a system table, read whole"
    table = state.load(use.name)
    if use.system is not None:
        return "a system table, read whole"
    if is_stream(state, use):
        return "read as a stream" + "".join(f", '{key}' = '{mask_value(key, value)}'" for key, value in use.options)
    if state.spark is None and query.simple is not None:
        return table.explain(query.simple.where, options=dict(use.options))
    return table.explain(safe_filter(conditions, table.schema.fields), options=dict(use.options))
