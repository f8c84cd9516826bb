"""Run ``CREATE TABLE … AS SELECT`` and ``CREATE TABLE … LIKE``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.dialect.outcome import Outcome
from penstock.dialect.parse.statements import Insert
from penstock.dialect.run.ddl import create_table
from penstock.dialect.run.definition import definition_of, merged
from penstock.dialect.run.query_columns import query_columns
from penstock.dialect.run.rows import insert
from penstock.errors import InvalidSqlError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.dialect.parse.statements import CreateTable, CreateTableAs, CreateTableLike
    from penstock.dialect.state import SqlState
    from penstock.format.types.ddl import ColumnSpec


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


def create_table_like(state: SqlState, statement: CreateTableLike) -> Outcome:
    """Create a table with the columns of another table, and the other features that the rules include."""
    return create_table(state, merged(statement, definition_of(state, statement.source, statement.rules)))


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
