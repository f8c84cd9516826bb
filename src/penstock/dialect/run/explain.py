"""Run ``EXPLAIN``: show which files a query opens, why other files are skipped, and Spark's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.api.lazy import lazy_spark
from penstock.dialect.outcome import Outcome
from penstock.dialect.parse.statements import Insert
from penstock.dialect.run.connectors import connector_of
from penstock.dialect.run.frames import query_frame
from penstock.dialect.run.rows import check_here
from penstock.dialect.run.sources import is_stream, safe_filter
from penstock.dialect.run.views import base_uses
from penstock.printable import mask_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.dialect.parse.query import Query
    from penstock.dialect.parse.statements import Explain
    from penstock.dialect.parse.tables import TableUse
    from penstock.dialect.state import SqlState


def explain(state: SqlState, statement: Explain) -> Outcome:
    """Explain a query, or the query of an ``INSERT``, without running it."""
    action = statement.action
    lines: list[str] = []
    if isinstance(action, Insert):
        verb = "overwrites in" if action.is_overwrite else "appends to"
        own = state.session_table(action.name)
        name = state.load(action.name).name if own is None else f"{'.'.join(own.name)}, by {connector_of(own)}"
        lines.append(f"== Target ==\n{verb} {name}")
    if action.query is not None:
        lines += _query_lines(state, action.query)
    else:
        lines.append(f"== Rows ==\n{len(action.rows or ())} of VALUES, without Spark")
    return Outcome(value=pa.table({"result": pa.array(["\n\n".join(lines)], pa.string())}), is_text=True)


def _query_lines(state: SqlState, query: Query) -> Iterator[str]:
    early = query.conditions if query.tables and not state.is_view(query.tables[0].name) else ()
    for use in base_uses(state, query):
        yield f"== {use.title} ==\n{_use_text(state, use, early, query)}"
    if state.spark is None:
        check_here(state, query)
        yield "== Plan ==\nread in this process, without Spark"
        return
    yield lazy_spark.explain_text(query_frame(state, state.spark, query))


def _use_text(state: SqlState, use: TableUse, conditions: tuple[str, ...], query: Query) -> str:
    own = state.session_table(use.name)
    if own is not None:
        how = "a stream" if is_stream(state, use) else "what is there"
        return f"read from {dict(own.options).get('connector')}: {how}"
    if state.is_catalog_table(use.name):
        return "a system table, read whole"
    table = state.load(use.name)
    if use.system is not None:
        return "a system table, read whole"
    if is_stream(state, use):
        return "read as a stream" + "".join(f", '{key}' = '{mask_value(key, value)}'" for key, value in use.options)
    if state.spark is None and query.simple is not None:
        return table.explain(query.simple.where, options=dict(use.options))
    return table.explain(safe_filter(conditions, table.schema.fields), options=dict(use.options))
