"""Run statements about catalogs, databases and whole tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.catalog import Catalog
from penstock.catalog.names import TableName
from penstock.dialect.outcome import Outcome, committed
from penstock.dialect.run.alter import absent, computed_options, is_absent
from penstock.dialect.run.connectors.declared import check_declaration
from penstock.dialect.state import DEFAULT_CATALOG, DEFAULT_DATABASE, near_or_all
from penstock.errors import AlreadyExistsError, InvalidOptionError, InvalidSqlError, NotFoundError, OptionWarning, warn
from penstock.format.types.data_types import DataField
from penstock.format.watermark import watermark_options

if TYPE_CHECKING:
    from penstock.dialect.parse.statements import (
        AddPartitions,
        CreateCatalog,
        CreateDatabase,
        CreateTable,
        DropCatalog,
        DropDatabase,
        DropPartitions,
        DropTable,
        RenameTable,
        Truncate,
        UseCatalog,
        UseDatabase,
    )
    from penstock.dialect.state import SqlState


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
    database = state.full(statement.name)[1]
    if database == DEFAULT_DATABASE:
        # As in Flink, every catalog has a default database; Penstock creates it on first use.
        catalog.create_database(database, if_not_exists=True)
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


def rename_table(state: SqlState, statement: RenameTable) -> Outcome:
    """Rename a table."""
    if is_absent(state, statement.name, if_exists=statement.if_exists):
        return absent(statement.name)
    catalog, source = state.catalog_of(statement.name)
    own, new = state.full(statement.name), statement.new_name
    # A new name without a database keeps the table in its own database.
    target_catalog, database, table = (*own[: len(own) - len(new)], *new)
    if target_catalog != own[0]:
        raise InvalidSqlError(
            f"cannot rename {source} to {'.'.join(new)}: a table stays in its catalog, which is {own[0]};"
            " CREATE TABLE … AS SELECT copies it to another"
        )
    target = str(TableName(database=database, table=table))
    catalog.rename_table(source, target)
    return Outcome(message=f"renamed {source} to {target}")


def add_partitions(state: SqlState, statement: AddPartitions) -> Outcome:
    """Validate the partitions and store nothing: a partition exists once it has a row."""
    if is_absent(state, statement.name, if_exists=statement.if_exists):
        return absent(statement.name)
    table = state.load(statement.name)
    for spec in statement.partitions:
        names = {name for name, _ in spec}
        if names != set(table.schema.partition_keys):
            keys = ", ".join(table.schema.partition_keys) or "none"
            raise InvalidOptionError(f"table {table.name}: a partition names all partition columns; they are: {keys}")
    return Outcome(message=f"partitions of {table.name} are created with their first row; nothing to do")


def drop_partitions(state: SqlState, statement: DropPartitions) -> Outcome:
    """Delete the rows of partitions.

    Raises:
        NotFoundError: a partition has no rows, and the statement has no ``IF EXISTS``.
    """
    if is_absent(state, statement.name, if_exists=statement.if_exists):
        return absent(statement.name)
    table = state.load(statement.name)
    specs = (dict(spec) for spec in statement.partitions)
    there = table.preview.existing_partitions(*specs, may_miss=statement.if_partitions_exist)
    if not there:
        return Outcome(message=f"{table.name} has no such partition")
    snapshot = table.drop_partitions(*there)
    return committed(snapshot, f"dropped partitions of {table.name}")


def truncate(state: SqlState, statement: Truncate) -> Outcome:
    """Delete all rows."""
    table = state.load(statement.name)
    return committed(table.truncate(), f"truncated {table.name}")


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
