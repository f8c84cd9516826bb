"""Run DELETE, UPDATE and MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.api.lazy import lazy_spark
from penstock.dialect.outcome import Outcome
from penstock.dialect.parse.expressions import RowColumns
from penstock.dialect.parse.row_changes import parse_row_change
from penstock.dialect.parse.statements import MergeRows, Select, UpdateRows
from penstock.dialect.run.rows import select
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.table.dml.merge import SOURCE, MergeDelete, MergeInsert, MergeUpdate

if TYPE_CHECKING:
    from typing import Any

    from penstock.api.table import Table
    from penstock.dialect.parse.statements import DeleteRows, MergeClause
    from penstock.dialect.state import SqlState
    from penstock.table.dml.change import ChangeResult


def delete_rows(state: SqlState, statement: DeleteRows) -> Outcome:
    """Delete the rows for which the condition is true."""
    table = state.load(statement.name, dict(statement.options))
    return _changed(table, table.delete(statement.where))


def update_rows(state: SqlState, statement: UpdateRows) -> Outcome:
    """Set columns of the rows for which the condition is true."""
    table = state.load(statement.name, dict(statement.options))
    columns = RowColumns(table=table.name, schema=table.arrow_schema, chars=_chars(table))
    resolved = parse_row_change(statement.text, columns)
    assert isinstance(resolved, UpdateRows)  # noqa: S101 - the text is the same
    return _changed(table, table.update(dict(resolved.values), resolved.where))


def merge_rows(state: SqlState, statement: MergeRows) -> Outcome:
    """Update, delete and insert rows by those of a query."""
    table = state.load(statement.name, dict(statement.options))
    rows: Any = select(state, Select(query=statement.source)).value
    if getattr(rows, "isStreaming", False):
        raise UnsupportedFeatureError(
            f"table {table.name}: the rows of MERGE INTO come from a stream, which never ends"
        )
    source: pa.Table = rows if isinstance(rows, pa.Table) else lazy_spark.to_arrow(rows)
    fields = [field.with_name(f"{SOURCE}{field.name}") for field in source.schema]
    columns = RowColumns(table=table.name, schema=pa.schema([*table.arrow_schema, *fields]), chars=_chars(table))
    resolved = parse_row_change(statement.text, columns)
    assert isinstance(resolved, MergeRows)  # noqa: S101 - the text is the same
    result = table.merge(
        source,
        dict(resolved.on),
        matched=[_on_match(each) for each in resolved.matched],
        not_matched=[
            MergeInsert(values=dict(each.values) if each.values else None, where=each.where)
            for each in resolved.not_matched
        ],
        not_matched_by_source=[_on_match(each) for each in resolved.not_matched_by_source],
    )
    return _changed(table, result)


def _chars(table: Table) -> dict[str, int]:
    return {
        each.name: each.type.length or 1
        for each in table.schema.fields
        if isinstance(each.type, AtomicType) and each.type.root is TypeRoot.CHAR
    }


def _on_match(clause: MergeClause) -> MergeUpdate | MergeDelete:
    if clause.is_delete:
        return MergeDelete(where=clause.where)
    return MergeUpdate(set=dict(clause.values) if clause.values else None, where=clause.where)


def _changed(table: Table, result: ChangeResult) -> Outcome:
    counts = {"deleted": result.rows_deleted, "updated": result.rows_updated, "inserted": result.rows_inserted}
    text = ", ".join(f"{count} rows {what}" for what, count in counts.items() if count)
    if result.snapshot is None:
        return Outcome(message=f"no row of {table.name} was to change")
    return Outcome(value=result.snapshot, message=f"{table.name}: snapshot {result.snapshot.id}, {text}")
