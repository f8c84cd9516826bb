"""Expected rows of a table, in plain Python that shares no code with filters and readers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.support.differential.case import COMPARISONS, LIKES, First, FuzzColumn, FuzzCondition, FuzzLeaf, Row
from tests.support.differential.kinds import arrow_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(slots=True)
class FuzzTable:
    """The state of a case.

    Attributes:
        formats: of its files.
        columns: current columns.
        partition_by: names of partition columns.
        past: columns before a change of name or type; files still have these.
        is_indexed: whether its files got another index, or lost theirs.
    """

    formats: list[str]
    columns: list[FuzzColumn]
    rows: list[Row] = field(default_factory=list)
    past: list[FuzzColumn] = field(default_factory=list)
    partition_by: tuple[str, ...] = ()
    is_indexed: bool = False

    def __str__(self) -> str:
        return f"{' '.join(self.formats)} ({', '.join(f'{each.quoted} {each.sql}' for each in self.columns)})"

    @property
    def arrow_schema(self) -> pa.Schema:
        """Its columns with the types of the fuzzer's values."""
        return pa.schema([(column.name, arrow_of(column.sql)) for column in self.columns])

    def column(self, key: int) -> FuzzColumn:
        """Return a column by its key."""
        return next(each for each in self.columns if each.key == key)

    def change(self, key: int, *, name: str | None = None, sql: str | None = None) -> None:
        """Rename or widen a column."""
        place = [each.key for each in self.columns].index(key)
        old = self.columns[place]
        self.past.append(old)
        self.columns[place] = replace(old, name=name or old.name, sql=sql or old.sql)

    def update(self, key: int, value: Any, condition: FuzzCondition) -> None:
        """Set a column of the rows that match the condition."""
        self.rows = [{**row, key: value} if holds(condition, row) else row for row in self.rows]

    def remove(self, condition: FuzzCondition) -> None:
        """Remove the rows that match the condition."""
        self.rows = [row for row in self.rows if not holds(condition, row)]

    def drop(self, values: Row) -> None:
        """Remove the rows of partitions, where NaN is a value, and the zeros are two."""
        wanted = {key: repr(value) for key, value in values.items()}
        self.rows = [row for row in self.rows if wanted != {key: repr(row.get(key)) for key in wanted}]

    def expected(self, condition: FuzzCondition | None) -> list[dict[str, Any]]:
        """Return the rows that match the condition."""
        return [
            {column.name: row.get(column.key) for column in self.columns}
            for row in self.rows
            if condition is None or holds(condition, row)
        ]

    def first(self, order: First) -> list[dict[str, Any]]:
        """Return the first rows of an order, with the column that it is by."""
        values = [row.get(order.column) for row in self.rows]
        return [{self.column(order.column).name: values[place]} for place in first_places(values, order)]

    def values(self, family: str) -> Iterator[Any]:
        """Yield all non-null values of columns whose SQL type starts with ``family``."""
        for column in self.columns:
            if column.sql.startswith(family):
                yield from (row[column.key] for row in self.rows if row.get(column.key) is not None)


def first_places(values: Sequence[Any], order: First) -> list[int]:
    """Return the places of the first values of an order."""
    nulls = [place for place, value in enumerate(values) if value is None]
    others = [place for place, value in enumerate(values) if value is not None]
    # Texts are sorted by their bytes.
    keys = [value.encode() if isinstance(value, str) else value for value in values]
    others.sort(key=lambda place: keys[place], reverse=order.descends)
    return (nulls + others if order.nulls_first else others + nulls)[: order.count]


def holds(condition: FuzzCondition, row: Row) -> bool | None:
    """Evaluate the condition as SQL does: true, false or unknown (None)."""
    if isinstance(condition, FuzzLeaf):
        return _leaf_holds(condition, row.get(condition.column))
    parts = [holds(part, row) for part in condition.parts]
    if condition.operator == "NOT":
        return None if parts[0] is None else not parts[0]
    decisive = condition.operator == "OR"
    return decisive if decisive in parts else None if None in parts else not decisive


def _leaf_holds(leaf: FuzzLeaf, value: Any) -> bool | None:
    if leaf.operator.startswith("IS"):
        return (value is None) == (leaf.operator == "IS NULL")
    if value is None:
        return None
    if leaf.operator in COMPARISONS:
        return _compare(value, leaf.operator, leaf.values[0])
    if leaf.operator in LIKES:
        return (re.fullmatch(leaf.values[0], value, re.DOTALL) is not None) == (leaf.operator == "LIKE")
    found = any(each is not None and _compare(value, "=", each) for each in leaf.values)
    if not found and None in leaf.values:
        return None
    return found == (leaf.operator == "IN")


def _compare(value: Any, operator: str, literal: Any) -> bool:
    is_nan = value != value  # noqa: PLR0124 - only NaN is not itself
    match operator:
        case "=":
            return not is_nan and bool(value == literal)
        case "<>":
            return is_nan or bool(value != literal)
        case "<":
            return not is_nan and bool(value < literal)
        case "<=":
            return not is_nan and bool(value <= literal)
        case ">":
            return is_nan or bool(value > literal)
        case _:
            return is_nan or bool(value >= literal)
