"""Run statements on views: named queries that exist until the session ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.dialect.outcome import Outcome
from penstock.dialect.run.views import check_tables
from penstock.errors import InvalidSqlError, NotFoundError
from penstock.format.text.names import quoted
from penstock.printable import mask_text

if TYPE_CHECKING:
    from penstock.dialect.parse.statements import CreateView, DropView, ShowCreateView
    from penstock.dialect.state import SqlState


def create_view(state: SqlState, statement: CreateView) -> Outcome:
    """Store a query under a name; table names are resolved now."""
    path = state.full(statement.name)
    name = ".".join(path[1:])
    is_taken = state.view(path) is not None or state.session_table(path) is not None
    if is_taken or (not statement.is_temporary and state.exists(path)):
        if statement.if_not_exists:
            return Outcome(message=f"there is a {name} already")
        raise state.exists_already(path)
    repeated = {column for column, _ in statement.columns if [each for each, _ in statement.columns].count(column) > 1}
    if repeated:
        raise InvalidSqlError(f"view {name}: each column needs its own name: '{min(repeated)}' is given twice")
    tables = tuple(replace(use, name=state.full(use.name)) for use in statement.query.tables)
    view = replace(statement, name=path, query=replace(statement.query, tables=tables))
    check_tables(state, view)
    state.views[path] = view
    return Outcome(message=f"created view {name} in this session")


def drop_view(state: SqlState, statement: DropView) -> Outcome:
    """Drop a view."""
    path = state.full(statement.name)
    name = ".".join(path[1:])
    if state.views.pop(path, None) is not None:
        return Outcome(message=f"dropped view {name}")
    if state.exists(path):
        raise InvalidSqlError(f"{name} is a table: DROP TABLE {name}")
    if statement.if_exists:
        return Outcome(message=f"there is no view {name}")
    raise NotFoundError(f"there is no view {name} in this session; SHOW VIEWS lists them")


def show_create_view(state: SqlState, statement: ShowCreateView) -> Outcome:
    """Show the statement that creates an equal view."""
    view = state.view(statement.name)
    path = state.full(statement.name)
    if view is None:
        raise NotFoundError(f"there is no view {'.'.join(path[1:])} in this session; SHOW VIEWS lists them")
    kind = "TEMPORARY VIEW" if view.is_temporary else "VIEW"
    columns = ", ".join(
        quoted(column) + (f" COMMENT {_text(comment)}" if comment is not None else "")
        for column, comment in view.columns
    )
    head = f"CREATE {kind} {quoted(path[1])}.{quoted(path[2])}" + (f" ({columns})" if columns else "")
    comment = f" COMMENT {_text(view.comment)}" if view.comment is not None else ""
    text = f"{head}{comment} AS\n{view.query.source.text}"
    return Outcome(value=pa.table({"result": pa.array([mask_text(text)], pa.string())}), is_text=True)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
