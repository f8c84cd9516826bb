"""Conversion of views of a catalog to views of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.stored_view import SPARK, view_names
from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import StatementText
from penstock.dialect.parse.statements import CreateView
from penstock.errors import InvalidSqlError, UnsupportedFeatureError
from penstock.format.lexer import SPARK_SQL

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from penstock.catalog.stored_view import View, ViewNames
    from penstock.dialect.parse.reader import Path


def view_of_catalog(view: View, path: Path, catalogs: Container[str]) -> CreateView:
    """Return a view of a catalog as a view of the session, with the full names of the tables that it reads.

    Args:
        path: catalog in the session, database and view.
        catalogs: names of the catalogs of the session.

    Raises:
        InvalidSqlError: its text cannot be parsed here.
        UnsupportedFeatureError: it reads a catalog that the session does not have.
    """
    source = StatementText(text=view.text_for(SPARK), lexer=SPARK_SQL)
    try:
        query = parse_query(source)
    except (InvalidSqlError, UnsupportedFeatureError) as error:
        raise InvalidSqlError(f"view {'.'.join(path[1:])}: {error}; {_instead(path)}") from error
    names = view_names(view, path[1])
    tables = tuple(replace(use, name=_full(use.name, names, path, catalogs)) for use in query.tables)
    return CreateView(
        name=path,
        query=replace(query, tables=tables),
        columns=tuple((field.name, field.description) for field in view.fields),
        comment=view.comment,
        fields=view.fields,
        query_columns=names.columns,
    )


def places_of(view: CreateView, found: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of a catalog view's columns among the columns of its query.

    Args:
        found: names of the query's columns.

    Raises:
        InvalidSqlError: the columns of the query have changed since the view was created.
    """
    wanted = view.query_columns or tuple(found)
    at = {name: [place for place, each in enumerate(found) if each.lower() == name.lower()] for name in wanted}
    places = tuple(each.pop(0) for each in (at[name] for name in wanted) if each)
    if len(places) != len(view.columns):
        raise InvalidSqlError(
            f"view {'.'.join(view.name[1:])}: its query has other columns than when it was created: {', '.join(found)};"
            " create it again"
        )
    return places


def _full(name: Path, names: ViewNames, path: Path, catalogs: Container[str]) -> Path:
    keeper = path[0]
    catalog, *_ = name if len(name) > 2 else (names.catalog,)
    if catalog is None or catalog == names.stored_in:
        catalog = keeper
    elif catalog not in catalogs or (catalog == keeper and names.stored_in is not None):
        raise UnsupportedFeatureError(
            f"view {'.'.join(path[1:])} reads a table of the catalog '{catalog}' of the Spark session where it was"
            f" created, which is not known here; {_instead(path)}"
        )
    return (catalog, *(*names.namespace[-1:], *name)[-2:])


def _instead(path: Path) -> str:
    _, database, view = path
    return f"read it by penstock.attach(spark, …), then spark.table('penstock.{database}.{view}')"
