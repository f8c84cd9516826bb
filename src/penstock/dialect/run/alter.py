"""Run ``ALTER TABLE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.changes import RemoveOption, SetOption, UpdateColumnType
from penstock.catalog.names import TableName
from penstock.catalog.schema_changes import inner_changes
from penstock.dialect.outcome import Outcome, committed
from penstock.dialect.parse.computed import read_computed_columns
from penstock.dialect.parse.statements import (
    AddComputed,
    AddPartitions,
    AlterTable,
    AlterWatermark,
    DropPartitions,
    RenameTable,
)
from penstock.dialect.run.ddl import computed_options
from penstock.errors import InvalidOptionError, InvalidSqlError
from penstock.format.types.data_types import DataField, DataType
from penstock.format.types.text import parse_sql_type
from penstock.format.watermark import EXPRESSION_KEY, ROWTIME_KEY, TYPE_KEY, computed_columns, watermark_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from penstock.catalog.changes import SchemaChange
    from penstock.dialect.parse.alter import Alteration
    from penstock.dialect.state import SqlState
    from penstock.format.schema import TableSchema


def alter(state: SqlState, statement: Alteration) -> Outcome:
    """Alter a table; with ``IF EXISTS`` do nothing if there is none.

    Raises:
        UnsupportedFeatureError: the name is a session table or a view, which may hide a table of the catalog.
        NotFoundError: there is no such table, and the statement has no ``IF EXISTS``.
    """
    if statement.if_exists and not state.exists(statement.name):
        return Outcome(message=f"there is no table {'.'.join(statement.name)}")
    state.check_exists(statement.name)
    return ALTERATIONS[type(statement)](state, statement)


def _rename(state: SqlState, statement: RenameTable) -> Outcome:
    """Rename a table."""
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


def _add_partitions(state: SqlState, statement: AddPartitions) -> Outcome:
    """Validate the partitions and store nothing: a partition exists once it has a row."""
    table = state.load(statement.name)
    for spec in statement.partitions:
        names = {name for name, _ in spec}
        if names != set(table.schema.partition_keys):
            keys = ", ".join(table.schema.partition_keys) or "none"
            raise InvalidOptionError(f"table {table.name}: a partition names all partition columns; they are: {keys}")
    return Outcome(message=f"partitions of {table.name} are created with their first row; nothing to do")


def _drop_partitions(state: SqlState, statement: DropPartitions) -> Outcome:
    """Delete the rows of partitions.

    Raises:
        NotFoundError: a partition has no rows, and the statement has no ``IF EXISTS``.
    """
    table = state.load(statement.name)
    specs = (dict(spec) for spec in statement.partitions)
    there = table.preview.existing_partitions(*specs, may_miss=statement.if_partitions_exist)
    if not there:
        return Outcome(message=f"{table.name} has no such partition")
    snapshot = table.drop_partitions(*there)
    return committed(snapshot, f"dropped partitions of {table.name}")


def _alter_schema(state: SqlState, statement: AlterTable) -> Outcome:
    """Change a table's schema."""
    catalog, name = state.altered(statement.name)
    changes: list[SchemaChange] = []
    for change in statement.changes:
        if isinstance(change, UpdateColumnType):
            changes += _type_changes(change, catalog.load_table(name).schema, name)
        else:
            changes.append(change)
    catalog.alter_table(name, *changes)
    return Outcome(message=f"altered table {name}")


def _add_computed(state: SqlState, statement: AddComputed) -> Outcome:
    """Add computed columns after the other columns."""
    catalog, name = state.altered(statement.name)
    schema = catalog.load_table(name).schema
    place = len(schema.fields) + len(computed_columns(schema.fields, schema.option_map))
    types = {field.name: field.type for field in schema.fields}
    options = dict(computed_options(read_computed_columns(statement.source, place, types)))
    catalog.alter_table(name, *(SetOption(key=key, value=value) for key, value in options.items()))
    return Outcome(message=f"altered table {name}")


def _alter_watermark(state: SqlState, statement: AlterWatermark) -> Outcome:
    """Change or remove the watermark of a table."""
    catalog, name = state.altered(statement.name)
    if statement.clause is None:
        catalog.alter_table(name, *(RemoveOption(key=key) for key in (ROWTIME_KEY, EXPRESSION_KEY, TYPE_KEY)))
    else:
        schema = catalog.load_table(name).schema
        fields = [*schema.fields, *_computed_fields(schema)]
        options = watermark_options(fields, statement.clause.column, statement.clause.interval, name)
        catalog.alter_table(name, *(SetOption(key=key, value=value) for key, value in options))
    return Outcome(message=f"altered table {name}")


def _computed_fields(schema: TableSchema) -> Iterator[DataField]:
    options = schema.option_map
    for place, name in computed_columns(schema.fields, options).items():
        text = options.get(f"schema.{place}.data-type")
        if text is not None:
            yield DataField(id=place, name=name, type=parse_sql_type(text))


def _type_changes(change: UpdateColumnType, schema: TableSchema, table: str) -> tuple[SchemaChange, ...]:
    old = next((field.type for field in schema.fields if field.name == change.column), None)
    new = change.type if isinstance(change.type, DataType) else parse_sql_type(change.type)
    return (change,) if old is None else inner_changes(change, old, new, table)


ALTERATIONS: Final[Mapping[type, Callable[[SqlState, Any], Outcome]]] = {
    AlterTable: _alter_schema,
    AddComputed: _add_computed,
    AlterWatermark: _alter_watermark,
    RenameTable: _rename,
    AddPartitions: _add_partitions,
    DropPartitions: _drop_partitions,
}
"""What runs each kind of ``ALTER TABLE``."""
