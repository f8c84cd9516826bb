"""Run ``ALTER TABLE`` statements that change a table's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.changes import RemoveOption, SetOption, UpdateColumnType
from penstock.catalog.schema_changes import inner_changes
from penstock.dialect.outcome import Outcome
from penstock.dialect.parse.computed import read_computed_columns
from penstock.format.types.data_types import DataField, DataType
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.format.watermark import EXPRESSION_KEY, ROWTIME_KEY, TYPE_KEY, computed_columns, watermark_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.catalog.changes import SchemaChange
    from penstock.dialect.parse.names import Path
    from penstock.dialect.parse.statements import AddComputed, AlterTable, AlterWatermark, ComputedColumn
    from penstock.dialect.state import SqlState
    from penstock.format.schema import TableSchema


def alter_table(state: SqlState, statement: AlterTable) -> Outcome:
    """Change a table's schema."""
    if is_absent(state, statement.name, if_exists=statement.if_exists):
        return absent(statement.name)
    catalog, name = state.altered(statement.name)
    changes: list[SchemaChange] = []
    for change in statement.changes:
        if isinstance(change, UpdateColumnType):
            changes += _type_changes(change, catalog.load_table(name).schema, name)
        else:
            changes.append(change)
    catalog.alter_table(name, *changes)
    return Outcome(message=f"altered table {name}")


def add_computed(state: SqlState, statement: AddComputed) -> Outcome:
    """Add computed columns after the other columns."""
    if is_absent(state, statement.name, if_exists=statement.if_exists):
        return absent(statement.name)
    catalog, name = state.altered(statement.name)
    schema = catalog.load_table(name).schema
    place = len(schema.fields) + len(computed_columns(schema.fields, schema.option_map))
    types = {field.name: field.type for field in schema.fields}
    options = dict(computed_options(read_computed_columns(statement.source, place, types)))
    catalog.alter_table(name, *(SetOption(key=key, value=value) for key, value in options.items()))
    return Outcome(message=f"altered table {name}")


def alter_watermark(state: SqlState, statement: AlterWatermark) -> Outcome:
    """Change or remove the watermark of a table."""
    if is_absent(state, statement.name, if_exists=statement.if_exists):
        return absent(statement.name)
    catalog, name = state.altered(statement.name)
    if statement.clause is None:
        catalog.alter_table(name, *(RemoveOption(key=key) for key in (ROWTIME_KEY, EXPRESSION_KEY, TYPE_KEY)))
    else:
        schema = catalog.load_table(name).schema
        fields = [*schema.fields, *_computed_fields(schema)]
        options = watermark_options(fields, statement.clause.column, statement.clause.interval, name)
        catalog.alter_table(name, *(SetOption(key=key, value=value) for key, value in options))
    return Outcome(message=f"altered table {name}")


def computed_options(columns: tuple[ComputedColumn, ...]) -> Iterator[tuple[str, str]]:
    """Yield the options in which Flink's catalog stores computed columns."""
    for column in columns:
        yield f"schema.{column.place}.name", column.name
        yield f"schema.{column.place}.expr", column.expression
        yield f"schema.{column.place}.data-type", format_sql_type(column.type)


def is_absent(state: SqlState, name: Path, *, if_exists: bool) -> bool:
    """Whether a statement with ``IF EXISTS`` names a table that does not exist.

    Raises:
        UnsupportedFeatureError: the name is a session table or a view, which may hide a table of the catalog.
        NotFoundError: there is no such table, and the statement has no ``IF EXISTS``.
    """
    if if_exists and not state.exists(name):
        return True
    state.check_exists(name)
    return False


def absent(name: Path) -> Outcome:
    """Return the outcome of such a statement."""
    return Outcome(message=f"there is no table {'.'.join(name)}")


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
