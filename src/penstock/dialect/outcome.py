"""The result of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.format.snapshot import Snapshot

Value: TypeAlias = "pa.Table | DataFrame | StreamingQuery | Snapshot | None"
"""Rows of a query, of ``SHOW`` or of ``CALL``; the query that a streaming insert has started; the snapshot that a
change of rows has committed, or None if it changed nothing; None for all other statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a statement.

    Attributes:
        message: text for users if there are no rows.
        is_text: whether the value is one row with one text of several lines.
        ends_at_start: whether the rows are a stream that ends at the data that existed when the stream started.
    """

    value: Value = None
    message: str | None = None
    ends_at_start: bool = False
    is_text: bool = False


def rows(schema: pa.Schema, values: list[tuple[object, ...]]) -> Outcome:
    """Return rows as the result of a statement."""
    columns = [pa.array([row[place] for row in values], field.type) for place, field in enumerate(schema)]
    return Outcome(value=pa.Table.from_arrays(columns, schema=schema))


def committed(snapshot: Snapshot | None, done: str) -> Outcome:
    """Return the result of a statement that changes rows.

    Args:
        done: text of the message, such as ``appended to shop.orders``.
    """
    if snapshot is None:
        return Outcome(message=f"{done}: nothing to commit")
    return Outcome(
        value=snapshot,
        message=f"{done}: snapshot {snapshot.id}, {snapshot.delta_record_count or 0:+} rows,"
        f" {snapshot.total_record_count} in all",
    )
