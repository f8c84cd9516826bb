"""Run statements that create and drop catalogs, databases and whole tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.api.catalog import Catalog
from penstock.api.names import near_or_all
from penstock.catalog.names import DEFAULT_DATABASE
from penstock.dialect.outcome import Outcome, committed
from penstock.dialect.parse.create import EXCLUDING, INCLUDING, OVERWRITING
from penstock.dialect.parse.statements import (
    ComputedColumn,
    CreateTable,
    Insert,
    WatermarkClause,
)
from penstock.dialect.run.connectors import check_declaration
from penstock.dialect.run.frames import query_columns
from penstock.dialect.run.rows import insert
from penstock.dialect.run.show import stored_options
from penstock.dialect.state import DEFAULT_CATALOG
from penstock.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidSqlError,
    NotFoundError,
    OptionWarning,
    UnsupportedFeatureError,
    warn,
)
from penstock.format.types.data_types import DataField
from penstock.format.types.ddl import ColumnSpec
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.format.watermark import (
    EXPRESSION_KEY,
    computed_columns,
    declared_watermark,
    watermark_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.dialect.parse.reader import Path
    from penstock.dialect.parse.statements import (
        CreateCatalog,
        CreateDatabase,
        CreateTableAs,
        CreateTableLike,
        DropCatalog,
        DropDatabase,
        DropTable,
        Truncate,
        UseCatalog,
        UseDatabase,
    )
    from penstock.dialect.state import SqlState
    from penstock.format.schema import TableSchema


def create_database(state: SqlState, statement: CreateDatabase) -> Outcome:
    """Create a database."""
    catalog, database = state.full_database(statement.name)
    if statement.dropped:
        warn(
            f"database {database}: a database is a directory, which keeps no {' and no '.join(statement.dropped)}: "
            "Paimon's file-system catalog drops them too",
            OptionWarning,
        )
    state.catalog(catalog).create_database(database, if_not_exists=statement.if_not_exists)
    return Outcome(message=f"created database {database}")


def create_catalog(state: SqlState, statement: CreateCatalog) -> Outcome:
    """Register a warehouse under a name in this session."""
    if statement.name in state.catalogs:
        if statement.if_not_exists:
            return Outcome(message=f"there is a catalog {statement.name} already")
        raise AlreadyExistsError(f"catalog {statement.name} already exists in this session")
    options = dict(statement.options)
    kind, warehouse = options.pop("type", "paimon"), options.pop("warehouse", None)
    if kind != "paimon" or warehouse is None:
        raise InvalidOptionError(
            f"catalog {statement.name}: expected WITH ('type' = 'paimon', 'warehouse' = '…'), a file-system catalog; "
            "or a REST catalog, with 'metastore' = 'rest' and 'uri' = '…' too"
        )
    state.catalogs[statement.name] = Catalog(warehouse, options)
    return Outcome(message=f"catalog {statement.name} is {warehouse}")


def use_catalog(state: SqlState, statement: UseCatalog) -> Outcome:
    """Make a catalog and its default database current."""
    state.catalog(statement.name)
    state.catalog_name, state.database = statement.name, DEFAULT_DATABASE
    return Outcome(message=f"using catalog {statement.name}")


def use_database(state: SqlState, statement: UseDatabase) -> Outcome:
    """Make a database current."""
    catalog, database = state.full_database(statement.name)
    found = state.catalog(catalog).list_databases()
    if database not in found and database != DEFAULT_DATABASE:
        raise NotFoundError(
            f"there is no database {database} in catalog {catalog}; {near_or_all(database, (*found, DEFAULT_DATABASE))}"
        )
    state.catalog_name, state.database = catalog, database
    return Outcome(message=f"using database {database}")


def drop_table(state: SqlState, statement: DropTable) -> Outcome:
    """Drop a table with its files; for a session table, remove only its name."""
    path = state.full(statement.name)
    name = ".".join(path[1:])
    if state.session_tables.pop(path, None) is not None:
        return Outcome(message=f"dropped table {name} of this session")
    if state.is_view(statement.name):
        raise InvalidSqlError(f"{name} is a view: DROP VIEW {name}")
    if statement.is_temporary:
        if statement.if_exists:
            return Outcome(message=f"there is no temporary table {name}")
        raise NotFoundError(f"there is no temporary table {name}; DROP TABLE removes one of the catalog")
    catalog, full_name = state.catalog_of(statement.name)
    if not statement.if_exists and not state.exists(statement.name):
        state.load(statement.name)  # raises an error that lists the existing names
    catalog.drop_table(full_name, if_exists=statement.if_exists)
    return Outcome(message=f"dropped table {full_name}")


def drop_database(state: SqlState, statement: DropDatabase) -> Outcome:
    """Drop a database."""
    catalog, database = state.full_database(statement.name)
    found = state.catalog(catalog).list_databases()
    if not statement.if_exists and database not in found:
        raise NotFoundError(f"there is no database {database} in catalog {catalog}; {near_or_all(database, found)}")
    state.catalog(catalog).drop_database(database, if_exists=statement.if_exists, cascade=statement.cascade)
    return Outcome(message=f"dropped database {database}")


def drop_catalog(state: SqlState, statement: DropCatalog) -> Outcome:
    """Remove the name of a warehouse from this session; the warehouse itself is unchanged."""
    if statement.name in {state.catalog_name, DEFAULT_CATALOG}:
        raise InvalidSqlError(f"catalog {statement.name} is in use, or the first of the session: it cannot be dropped")
    if statement.name not in state.catalogs and statement.if_exists:
        return Outcome(message=f"there is no catalog {statement.name}")
    state.catalog(statement.name)
    del state.catalogs[statement.name]
    return Outcome(message=f"forgot catalog {statement.name}; its files stay")


def truncate(state: SqlState, statement: Truncate) -> Outcome:
    """Delete all rows."""
    table = state.load(statement.name)
    return committed(table.truncate(), f"truncated {table.name}")


# CREATE TABLE


def create_table(state: SqlState, statement: CreateTable) -> Outcome:
    """Create a table in a catalog, or, if it has a connector, in this session."""
    connector = dict(statement.options).get("connector")
    name = ".".join(statement.name)
    if connector is None and statement.is_temporary:
        raise InvalidSqlError(
            f"a temporary table needs a connector: WITH ('connector' = 'kafka', …), or make {name} a table"
        )
    if connector is not None:
        return _create_session_table(state, statement)
    if statement.metadata:
        raise InvalidSqlError(
            f"table {name}: column '{statement.metadata[0].name}': metadata is that of Kafka's records, and a table of "
            "a catalog has none: leave METADATA out, or say LIKE … (EXCLUDING METADATA)"
        )
    if state.session_table(statement.name) is not None or state.is_view(statement.name):
        raise state.exists_already(statement.name)
    catalog, full_name = state.catalog_of(statement.name)
    if not statement.if_not_exists and state.exists(statement.name):
        raise AlreadyExistsError(
            f"table {full_name} already exists; CREATE TABLE IF NOT EXISTS leaves it as it is, DROP TABLE removes it"
        )
    options, watermark = _definition_options(statement, full_name)
    catalog.create_table(
        full_name,
        statement.columns,
        partition_by=statement.partition_by,
        options=options,
        comment=statement.comment,
        watermark=watermark,
        if_not_exists=statement.if_not_exists,
    )
    return Outcome(message=f"created table {full_name}")


def _create_session_table(state: SqlState, statement: CreateTable) -> Outcome:
    name = ".".join(statement.name)
    check_declaration(statement)
    is_new = state.add_session_table(statement)
    return Outcome(message=f"created table {name} in this session" if is_new else f"there is a table {name} already")


def _definition_options(statement: CreateTable, table: str) -> tuple[dict[str, str], tuple[str, str | None] | None]:
    """Return the options, with computed columns added, and the watermark unless it is among the options too."""
    options = dict(statement.options)
    options.update(computed_options(statement.computed))
    clause = statement.watermark
    if clause is None:
        return options, None
    if clause.column not in {column.name for column in statement.computed}:
        return options, (clause.column, clause.interval)
    fields = [DataField(id=column.place, name=column.name, type=column.type) for column in statement.computed]
    return {**options, **dict(watermark_options(fields, clause.column, clause.interval, table))}, None


def computed_options(columns: tuple[ComputedColumn, ...]) -> Iterator[tuple[str, str]]:
    """Yield the options in which Flink's catalog stores computed columns."""
    for column in columns:
        yield f"schema.{column.place}.name", column.name
        yield f"schema.{column.place}.expr", column.expression
        yield f"schema.{column.place}.data-type", format_sql_type(column.type)


def create_table_as(state: SqlState, statement: CreateTableAs) -> Outcome:
    """Create a table with the columns of a query, and insert the query's rows."""
    name = ".".join(statement.table.name)
    if statement.table.is_temporary or "connector" in dict(statement.table.options):
        raise UnsupportedFeatureError(
            f"table {name}: a table with a connector is declared with its columns: CREATE TABLE, then INSERT INTO; or"
            " create a table in the catalog, without TEMPORARY and without 'connector'"
        )
    if statement.table.if_not_exists and state.exists(statement.table.name):
        return Outcome(message=f"there is a {name} already; nothing was added to it")
    found = query_columns(state, statement.query)
    table = _with_columns(statement.table, found, statement.order)
    create_table(state, table)
    given = tuple(column.name for column in found)
    outcome = insert(state, Insert(name=statement.table.name, columns=given, query=statement.query))
    return replace(outcome, message=f"created table {name}; {outcome.message}")


def _with_columns(table: CreateTable, found: Sequence[ColumnSpec], order: Sequence[str]) -> CreateTable:
    """Return the table definition with the columns of the query added."""
    name = ".".join(table.name)
    names = [column.name for column in found]
    if order:
        if sorted(order) != sorted(names):
            raise InvalidSqlError(
                f"table {name}: expected the names of the query's columns, each once: {', '.join(names)}"
            )
        by_name = {column.name: column for column in found}
        return replace(table, columns=tuple(by_name[each] for each in order))
    said = {column.name: column for column in table.columns}
    own = [column for column in table.columns if column.name not in names]
    return replace(table, columns=(*own, *(said.get(column.name, column) for column in found)))


# CREATE TABLE … LIKE


def create_table_like(state: SqlState, statement: CreateTableLike) -> Outcome:
    """Create a table with the columns of another table, and the other features that the rules include."""
    return create_table(state, _merged(statement, _definition_of(state, statement.source, statement.rules)))


def _definition_of(state: SqlState, name: Path, rules: Mapping[str, str]) -> CreateTable:
    """Return the definition of a catalog or session table, without the features that the rules exclude.

    Raises:
        UnsupportedFeatureError: it is a view; or it has a feature that CREATE TABLE cannot express here, and the rules
            do not exclude it.
        TableStoreError: as ``SqlState.load``.
    """
    own = state.session_table(name)
    table = own if own is not None else _stored(state.load(name).schema, name, rules)
    if rules["METADATA"] == EXCLUDING:
        shown = {column.name for column in table.metadata}
        table = replace(table, columns=tuple(each for each in table.columns if each.name not in shown), metadata=())
    return replace(
        table,
        computed=() if rules["GENERATED"] == EXCLUDING else table.computed,
        watermark=None if rules["WATERMARKS"] == EXCLUDING else table.watermark,
        partition_by=() if rules["PARTITIONS"] == EXCLUDING else table.partition_by,
        options=() if rules["OPTIONS"] == EXCLUDING else table.options,
    )


def _merged(statement: CreateTableLike, source: CreateTable) -> CreateTable:
    """Return the definition of the table that a ``CREATE TABLE … LIKE`` creates.

    Raises:
        InvalidSqlError: both tables define the same thing, and the rules do not say which definition is used.
    """
    table, rules = statement.table, statement.rules
    name = ".".join(table.name)
    _refuse_twice(name, "column", [each.name for each in (*source.columns, *table.columns)])
    if source.partition_by and table.partition_by:
        raise InvalidSqlError(f"table {name}: both tables have partitions; LIKE … (EXCLUDING PARTITIONS)")
    if rules["OPTIONS"] == INCLUDING:
        _refuse_twice(name, "option", [key for key, _ in (*source.options, *table.options)])
    if source.watermark is not None and table.watermark is not None and rules["WATERMARKS"] != OVERWRITING:
        raise InvalidSqlError(f"table {name}: both tables have a watermark; LIKE … (OVERWRITING WATERMARKS)")
    own = {each.name for each in table.computed}
    kept = [each for each in source.computed if rules["GENERATED"] != OVERWRITING or each.name not in own]
    _refuse_twice(name, "computed column", [each.name for each in (*kept, *table.computed)])
    offset = len(source.columns) + len(kept)
    return replace(
        table,
        columns=(*source.columns, *table.columns),
        metadata=(*source.metadata, *table.metadata),
        computed=(*_renumbered(source, kept), *(replace(each, place=each.place + offset) for each in table.computed)),
        watermark=table.watermark or source.watermark,
        partition_by=table.partition_by or source.partition_by,
        options=tuple({**dict(source.options), **dict(table.options)}.items()),
        is_temporary=table.is_temporary or source.is_temporary,
    )


def _stored(schema: TableSchema, name: Path, rules: Mapping[str, str]) -> CreateTable:
    options = schema.option_map
    computed = () if rules["GENERATED"] == EXCLUDING else tuple(_computed(schema, name))
    declared = None if rules["WATERMARKS"] == EXCLUDING else declared_watermark(options)
    clause = None
    if declared is not None:
        expression = options.get(EXPRESSION_KEY, "")
        if declared.delay_millis is None:
            raise UnsupportedFeatureError(
                f"table {'.'.join(name)}: its watermark, {expression}, can only be declared with Flink; LIKE … "
                "(EXCLUDING"
                " WATERMARKS)"
            )
        interval = expression.rpartition("` - ")[2] if "` - " in expression else None
        clause = WatermarkClause(column=declared.column, interval=interval)
    return CreateTable(
        name=name,
        columns=tuple(
            ColumnSpec(
                name=field.name, type=field.type, description=field.description, default_value=field.default_value
            )
            for field in schema.fields
        ),
        computed=computed,
        watermark=clause,
        partition_by=schema.partition_keys,
        options=tuple(stored_options(schema)),
    )


def _computed(schema: TableSchema, name: Path) -> Iterable[ComputedColumn]:
    options = schema.option_map
    for place, column in computed_columns(schema.fields, options).items():
        expression, data_type = options.get(f"schema.{place}.expr"), options.get(f"schema.{place}.data-type")
        if expression is None or data_type is None:
            raise UnsupportedFeatureError(
                f"table {'.'.join(name)}: column '{column}' is one of Flink's metadata; LIKE … (EXCLUDING GENERATED)"
            )
        yield ComputedColumn(place=place, name=column, expression=expression, type=parse_sql_type(data_type))


def _renumbered(source: CreateTable, kept: Iterable[ComputedColumn]) -> Iterable[ComputedColumn]:
    """Renumber the computed columns after some of them were removed."""
    gone = {each.place for each in source.computed} - {each.place for each in kept}
    return [replace(each, place=each.place - sum(place < each.place for place in gone)) for each in kept]


def _refuse_twice(table: str, kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidSqlError(f"table {table}: {kind} '{name}' is duplicated, here and in the table after LIKE")
        seen.add(name)
