"""Find the columns of a query, for tables that are created from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.api.lazy import lazy_spark
from penstock.dialect.run.frames import typed_frame
from penstock.dialect.run.views import entered
from penstock.errors import InvalidSqlError, UnsupportedFeatureError
from penstock.format.types.ddl import ColumnSpec
from penstock.format.watermark import computed_columns

if TYPE_CHECKING:
    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.reader import Path
    from penstock.dialect.parse.statements import CreateView
    from penstock.dialect.state import SqlState


def query_columns(state: SqlState, query: Query, within: tuple[Path, ...] = ()) -> tuple[ColumnSpec, ...]:
    """Return the columns of a query's rows; a column that the query passes through keeps the type in its table.

    Raises:
        UnsupportedFeatureError: Spark is needed to find the columns, and there is no session.
        InvalidSqlError: Spark rejects the query.
    """
    known = _simple_columns(state, query, within)
    if known is not None:
        return known
    if state.spark is None:
        raise UnsupportedFeatureError("the columns of this query are known to Spark only: give penstock.sql a session")
    return lazy_spark.typed_columns(typed_frame(state, state.spark, query))


def view_columns(state: SqlState, view: CreateView, within: tuple[Path, ...] = ()) -> tuple[ColumnSpec, ...]:
    """Return the columns of a view. Raises as ``query_columns``."""
    if view.fields:
        return tuple(
            ColumnSpec(name=field.name, type=field.type, description=field.description) for field in view.fields
        )
    found = query_columns(state, view.query, within)
    if not view.columns:
        return found
    if len(found) != len(view.columns):
        raise InvalidSqlError(
            f"view {'.'.join(view.name[1:])}: it names {len(view.columns)} columns, and its query has {len(found)}"
        )
    return tuple(
        replace(column, name=name, description=comment or column.description)
        for column, (name, comment) in zip(found, view.columns, strict=True)
    )


def _simple_columns(state: SqlState, query: Query, within: tuple[Path, ...]) -> tuple[ColumnSpec, ...] | None:
    if query.simple is None or query.tables[0].system is not None or query.tables[0].options:
        return None
    if state.is_catalog_table(query.tables[0].name):
        return None
    use = query.tables[0]
    view, own = state.view(use.name), state.session_table(use.name)
    if view is not None:
        columns = view_columns(state, view, entered(view, use, within))
    elif own is not None:
        columns = own.columns
    else:
        schema = state.load(use.name).schema
        if computed_columns(schema.fields, schema.option_map):
            return None
        columns = tuple(
            ColumnSpec(name=field.name, type=field.type, description=field.description) for field in schema.fields
        )
    if not query.simple.columns:
        return columns
    by_name = {column.name: column for column in columns}
    if not all(name in by_name for name, _ in query.simple.columns):
        return None  # running the query gives a better error about the missing column
    return tuple(replace(by_name[name], name=alias) for name, alias in query.simple.columns)
