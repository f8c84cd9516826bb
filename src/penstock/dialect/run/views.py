"""Views: statements about them, and those that queries read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.stored_view import SPARK
from penstock.dialect.outcome import Outcome
from penstock.errors import InvalidSqlError, NotFoundError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.format.types.text import format_string
from penstock.printable import mask_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import Path
    from penstock.dialect.parse.statements import CreateView, DropView, ShowCreateView
    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState


def base_uses(state: SqlState, query: Query, within: tuple[Path, ...] = ()) -> Iterator[TableUse]:
    """Yield the tables that a query reads; a view is replaced by the tables that it reads."""
    for use in query.tables:
        view = state.view(use.name)
        if view is None:
            yield use
        else:
            yield from base_uses(state, view.query, entered(view, use, within))


def entered(view: CreateView, use: TableUse, within: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the chain of views for the query of a view: the surrounding views, and the view itself.

    Raises:
        InvalidSqlError: the view reads itself, or it is used with a hint, time travel or as a system table.
    """
    name = ".".join(view.name[1:])
    if view.name in within:
        raise _reads_itself(view)
    if use.options or use.system is not None:
        raise InvalidSqlError(
            f"{name} is a view: hints, time travel and $ belong to the tables in its query; SHOW CREATE VIEW shows it"
        )
    return (*within, view.name)


def check_tables(state: SqlState, view: CreateView) -> None:
    """Check that the tables that a view reads exist.

    Raises:
        InvalidSqlError: the view reads itself.
        NotFoundError: a table does not exist.
    """
    for use in base_uses(state, view.query):
        if state.full(use.name) == view.name:
            raise _reads_itself(view)
    for use in view.query.tables:
        if not state.exists(use.name):
            state.load(use.name)  # raises an error that lists the existing names


def _reads_itself(view: CreateView) -> InvalidSqlError:
    return InvalidSqlError(
        f"view {'.'.join(view.name[1:])} reads itself; its name must differ from the names in its query"
    )


def create_view(state: SqlState, statement: CreateView) -> Outcome:
    """Store a query under a name; table names are resolved now."""
    path = state.full(statement.name)
    name = ".".join(path[1:])
    if statement.replaces:
        _check_replaceable(state, statement)
    elif _is_taken(state, statement):
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
    return Outcome(message=f"created view {name} in this session; Catalog.create_view creates one that others see")


def drop_view(state: SqlState, statement: DropView) -> Outcome:
    """Drop a view."""
    path = state.full(statement.name)
    name = ".".join(path[1:])
    if state.views.pop(path, None) is not None:
        return Outcome(message=f"dropped view {name}")
    if not statement.is_temporary and state.stored_view(path) is not None:
        catalog, full_name = state.catalog_of(path)
        catalog.drop_view(full_name)
        return Outcome(message=f"dropped view {name} of the catalog")
    if state.exists(path) and not state.is_view(path):
        raise InvalidSqlError(f"{name} is a table: DROP TABLE {name}")
    if statement.if_exists:
        return Outcome(message=f"there is no view {name}")
    raise _missing(name)


def show_create_view(state: SqlState, statement: ShowCreateView) -> Outcome:
    """Show the statement that creates an equal view."""
    path = state.full(statement.name)
    view, stored = state.views.get(path), state.stored_view(path)
    if stored is not None:
        pairs = tuple((field.name, field.description) for field in stored.fields)
        return _definition("VIEW", path, pairs, stored.comment, stored.text_for(SPARK))
    if view is None:
        raise _missing(".".join(path[1:]))
    kind = "TEMPORARY VIEW" if view.is_temporary else "VIEW"
    return _definition(kind, path, view.columns, view.comment, view.query.source.text)


def _definition(
    kind: str, path: Path, named: Sequence[tuple[str, str | None]], remark: str | None, query: str
) -> Outcome:
    columns = ", ".join(
        quoted(column) + (f" COMMENT {format_string(comment)}" if comment is not None else "")
        for column, comment in named
    )
    head = f"CREATE {kind} {quoted(path[1])}.{quoted(path[2])}" + (f" ({columns})" if columns else "")
    comment = f" COMMENT {format_string(remark)}" if remark is not None else ""
    text = f"{head}{comment} AS\n{query}"
    return Outcome(value=pa.table({"result": pa.array([mask_text(text)], pa.string())}), is_text=True)


def _is_taken(state: SqlState, statement: CreateView) -> bool:
    path = state.full(statement.name)
    if path in state.views or state.session_table(path) is not None:
        return True
    return not statement.is_temporary and state.exists(path)


def _check_replaceable(state: SqlState, statement: CreateView) -> None:
    path = state.full(statement.name)
    if path in state.views:
        return
    if not statement.is_temporary and state.stored_view(path) is not None:
        _, database, name = path
        raise UnsupportedFeatureError(
            f"view {database}.{name} is kept by the catalog, and penstock.sql creates views of its session: replace it"
            f" by Catalog.create_view('{database}.{name}', …, replace=True), or through penstock.attach, with Spark's"
            f" CREATE OR REPLACE VIEW penstock.{database}.{name}; a TEMPORARY VIEW would hide it here"
        )
    if _is_taken(state, statement):
        raise state.exists_already(path)


def _missing(name: str) -> NotFoundError:
    return NotFoundError(f"there is no view {name} in this session or its catalog; SHOW VIEWS lists them")
