"""Resolve the views that queries read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InvalidSqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.dialect.parse.names import Path
    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.statements import CreateView
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
