"""The past states of a case, and what readers are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.support.differential.case import condition_sql, leaves_of
from tests.support.differential.spark_sql import to_spark_sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.support.differential.case import FuzzCondition, FuzzLeaf, Read, Row
    from tests.support.differential.model import FuzzTable

    from penstock import Table

# Options by which a state is named, and the changes after it.
_STATES: Final = {"snapshot": "scan.snapshot-id", "tag": "scan.tag-name", "time": "scan.timestamp-millis"}
_CHANGES: Final = {
    "snapshot": "incremental-between",
    "tag": "incremental-between",
    "time": "incremental-between-timestamp",
}


class State(NamedTuple):
    """What a step left.

    Attributes:
        table: the table then.
        added: rows that an append added.
    """

    snapshot_id: int
    time_millis: int
    table: FuzzTable
    added: Sequence[Row] | None


class Query(NamedTuple):
    """What all readers are asked for.

    Attributes:
        table: a state of the table, or its changes.
        leaf: condition; None for all rows.
        options: of the read, which name the state.
    """

    table: FuzzTable
    leaf: FuzzCondition | None
    options: dict[str, str]

    def __str__(self) -> str:
        return f"{self.table} filter {self.text} {self.options or ''}"

    @property
    def text(self) -> str | None:
        """The condition as Penstock's filter; None for all rows."""
        if self.leaf is None:
            return None
        return condition_sql(self.leaf, lambda each: each.to_sql(self.table.column(each.column)))

    @property
    def is_filter(self) -> bool:
        """Whether Penstock's filters have the condition."""
        return all(leaf.is_filter for leaf in self.leaves)

    @property
    def is_of_spark(self) -> bool:
        """Whether Spark has the condition."""
        return self.leaf is None or self.condition is not None

    @property
    def leaves(self) -> Iterable[FuzzLeaf]:
        """The conditions on one column."""
        return () if self.leaf is None else leaves_of(self.leaf)

    @property
    def condition(self) -> str | None:
        """The condition in Spark SQL; None if there is none, or none for Spark."""
        return None if self.leaf is None else to_spark_sql(self.leaf, self.table.column)

    @property
    def kind(self) -> str:
        """What is counted."""
        return f"{'read' if self.leaf is None else 'filtered'}{' in the past' if self.options else ''}"


class History:
    """The states of a table.

    Args:
        has_vectors: whether rows may be deleted by vectors.
    """

    def __init__(self, *, has_vectors: bool) -> None:
        self._has_vectors = has_vectors
        self._states: list[State] = []
        self._tags: set[str] = set()

    def note(self, table: Table, model: FuzzTable, added: Sequence[Row] | None) -> None:
        """Note the state after a step; if that made no snapshot, it is the one before.

        Args:
            added: rows that an append added; None for another change.
        """
        snapshot = table.latest_snapshot()
        assert snapshot is not None
        if self._states and self._states[-1].snapshot_id == snapshot.id:
            self._states.append(self._states[-1])
            return
        state = replace(model, formats=[*model.formats], columns=[*model.columns], rows=[*model.rows])
        self._states.append(State(snapshot.id, snapshot.time_millis, state, added))

    def note_vectors(self, rows: list[Row]) -> None:
        """Note that rows of the latest snapshot were deleted, which is the same snapshot."""
        self._states[-1].table.rows = rows
        self._has_vectors = True

    def query(self, table: Table, model: FuzzTable, step: Read) -> Query | None:
        """Return what a step asks for; None if nothing has changed in between, or the state lacks a column."""
        if step.until is None:
            return Query(model, step.leaf, {})
        until = self._state(step.until, step.by)
        if step.since is None:
            query = Query(until.table, step.leaf, {_STATES[step.by]: self._named(table, until, step.by)})
        else:
            since, by = self._state(step.since, step.by), step.by
            changes = {each.snapshot_id: each for each in self._states}
            changes = {key: changes[key] for key in changes if since.snapshot_id < key <= until.snapshot_id}
            if not changes:
                return None
            # Between tags, files are compared: those of other changes have other rows, too; vectors are refused.
            if by == "tag" and (self._has_vectors or any(each.added is None for each in changes.values())):
                by = "snapshot"
            rows = [row for each in changes.values() for row in each.added or ()]
            between = ",".join(self._named(table, each, by) for each in (since, until))
            query = Query(replace(model, rows=rows), step.leaf, {_CHANGES[by]: between})
        keys = {column.key for column in query.table.columns}
        return query if all(leaf.column in keys for leaf in query.leaves) else None

    def _state(self, number: int, by: str) -> State:
        """Return a state; by its time, the newest one of that time."""
        state = self._states[number]
        if by != "time":
            return state
        return next(each for each in reversed(self._states) if each.time_millis <= state.time_millis)

    def _named(self, table: Table, state: State, by: str) -> str:
        """Return a name of a state in options of a read, a tag or snapshot id or time."""
        if by == "tag":
            tag = f"tag{state.snapshot_id}"
            if tag not in self._tags:
                self._tags.add(tag)
                table.create_tag(tag, snapshot_id=state.snapshot_id)
            return tag
        return str(state.time_millis if by == "time" else state.snapshot_id)
