"""MERGE: rows of a source update, delete or insert rows of a table, matched by equal keys.

Source:
    Paimon ``spark:commands/MergeIntoPaimonTable.scala``; as in SQL, the first clause whose condition is true applies to
    a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidOptionError, NotFoundError, SchemaMismatchError
from penstock.predicate.tree import TRUE, Predicate
from penstock.table.dml.by_filter import update_places
from penstock.table.dml.change import ChangedBatch
from penstock.table.dml.match import NONE, KeyMatcher
from penstock.table.dml.values import NewValues, evaluate_all
from penstock.table.write.coercion import cast_array, find_incompatibility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from penstock.predicate.tree import BoundPredicate
    from penstock.table.ref import TableRef

SOURCE: Final = "source."
"""What the names of the source's columns begin with in expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeUpdate:
    """Set columns of a target row.

    Attributes:
        set: column to constant, or to an expression over target columns by their names and source columns by names
            such as ``source.price``; None for all columns that the source has.
        where: an expression, as in ``set``; None for every row.
    """

    set: Mapping[str, object] | None = None
    where: pc.Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeDelete:
    """Delete a target row; ``where`` as for ``MergeUpdate``."""

    where: pc.Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInsert:
    """Insert a row.

    Attributes:
        values: column to constant, or to an expression over source columns by names such as ``source.price``; other
            columns become NULL, or their default. None for all columns that the source has.
        where: an expression over source columns; None for every row.
    """

    values: Mapping[str, object] | None = None
    where: pc.Expression | None = None


MatchedClause: TypeAlias = "MergeUpdate | MergeDelete"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClauses:
    """The clauses of a MERGE; in each group the first clause whose condition is true applies to a row.

    Attributes:
        matched: for target rows with a source row.
        not_matched: for source rows without a target row.
        not_matched_by_source: for target rows without a source row.
    """

    matched: tuple[MatchedClause, ...] = ()
    not_matched: tuple[MergeInsert, ...] = ()
    not_matched_by_source: tuple[MatchedClause, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """A prepared clause; without ``values`` it deletes."""

    where: pc.Expression | None
    values: NewValues | None


class MergeRows:
    """A MERGE as a row change.

    Args:
        ref: the table.
        source: the source rows; they stay in memory.
        on: target column to source column.

    Raises:
        NotFoundError: no such column.
        SchemaMismatchError: a key of the source is not of the target's type.
        InvalidOptionError: no keys, or no clause.
    """

    only_deletes = False

    def __init__(self, ref: TableRef, source: pa.Table, on: Mapping[str, str], clauses: MergeClauses) -> None:
        if not on or not (clauses.matched or clauses.not_matched or clauses.not_matched_by_source):
            raise InvalidOptionError(f"table {ref.name}: name the columns that rows match by, and what to do with them")
        self._ref = ref
        self._schema = to_arrow_schema(ref.schema.fields)
        keys = pa.table({target: _key_column(ref, self._schema, source, target, name) for target, name in on.items()})
        self._source = source.rename_columns([f"{SOURCE}{name}" for name in source.column_names]).combine_chunks()
        self._matcher = KeyMatcher(keys, tuple(on), ref.name)
        self.probe_columns = tuple(on)
        self._matched = [self._ready(clause) for clause in clauses.matched]
        self._by_source = [self._ready(clause) for clause in clauses.not_matched_by_source]
        self._inserts = [self._ready_insert(clause) for clause in clauses.not_matched]

    @property
    def predicate(self) -> Predicate:
        """A filter for target rows that may change or match; all rows if those without a source row may change."""
        return TRUE if self._by_source else self._matcher.predicate()

    def count_hits(self, batch: pa.RecordBatch) -> int:
        """Return how many rows match, or all if the others may change."""
        if self._by_source:
            return batch.num_rows
        return int(np.count_nonzero(self._matcher.rows_of(batch) != NONE))

    def apply(self, batch: pa.RecordBatch, rest: BoundPredicate) -> ChangedBatch:
        """Update and delete rows by the clauses."""
        del rest
        found = self._matcher.rows_of(batch)
        places = np.flatnonzero(found != NONE)
        joined = self._joined(batch, places, found[places])
        deleted = np.zeros(batch.num_rows, dtype=bool)
        after, moves, updated = batch, np.zeros(batch.num_rows, dtype=bool), 0
        others = np.flatnonzero(found == NONE)
        groups = [(self._matched, joined, places)]
        if self._by_source:
            groups.append((self._by_source, batch.take(others), others))
        for clauses, rows, where in groups:
            for clause, chosen in _first_true(clauses, rows, self._ref.name):
                if clause.values is None:
                    deleted[where[chosen]] = True
                    continue
                values = clause.values.of(rows.take(chosen))
                after, moved = update_places(after, where[chosen], values, clause.values.key_names)
                moves |= moved
                updated += len(chosen)
        kept = after.filter(pa.array(~(deleted | moves)))
        return ChangedBatch(
            kept=kept,
            deleted=int(np.count_nonzero(deleted)),
            updated=updated,
            moved=after.filter(pa.array(moves)) if moves.any() else None,
            matched=np.unique(found[places]),
        )

    def new_rows(self, matched: Sequence[npt.NDArray[np.int64]]) -> pa.Table | None:
        """Return the rows to insert for source rows without a target row."""
        if not self._inserts:
            return None
        is_new = np.ones(self._source.num_rows, dtype=bool)
        for each in matched:
            is_new[each] = False
        rows = _one_batch(self._source.filter(pa.array(is_new)))
        parts = []
        for clause, chosen in _first_true(self._inserts, rows, self._ref.name):
            values = clause.values
            if values is not None:
                parts.append((chosen, pa.RecordBatch.from_pydict(values.of(rows.take(chosen)))))
        if not parts:
            return None
        added = pa.Table.from_batches([batch for _, batch in parts])
        # In the order of the source, whichever clause inserted a row.
        order = np.argsort(np.concatenate([chosen for chosen, _ in parts]), kind="stable")
        return added.take(order).select(self._schema.names)

    def _joined(
        self, batch: pa.RecordBatch, places: npt.NDArray[np.int64], sources: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        target = batch.take(places)
        source = _one_batch(self._source.take(sources))
        return pa.RecordBatch.from_arrays(
            [*target.columns, *source.columns], names=[*target.schema.names, *source.schema.names]
        )

    def _ready(self, clause: MatchedClause) -> _Clause:
        if isinstance(clause, MergeDelete):
            return _Clause(where=clause.where, values=None)
        given = self._all_columns() if clause.set is None else clause.set
        return _Clause(where=clause.where, values=NewValues(self._ref, given))

    def _ready_insert(self, clause: MergeInsert) -> _Clause:
        given = self._all_columns() if clause.values is None else clause.values
        values = {**dict.fromkeys(self._schema.names), **given}
        return _Clause(where=clause.where, values=NewValues(self._ref, values))

    def _all_columns(self) -> dict[str, object]:
        names = [name.removeprefix(SOURCE) for name in self._source.column_names]
        strangers = [name for name in names if name not in self._schema.names]
        if strangers:
            raise SchemaMismatchError(
                f"table {self._ref.name}: column '{strangers[0]}' of the source is not in the table, whose columns are "
                f"{', '.join(self._schema.names)}; name the columns to set"
            )
        return {name: pc.field(f"{SOURCE}{name}") for name in names}


def _first_true(
    clauses: Sequence[_Clause], rows: pa.RecordBatch, table: str
) -> list[tuple[_Clause, npt.NDArray[np.int64]]]:
    """Return for each clause the rows to which it applies: those to which no earlier clause applies."""
    left = np.ones(rows.num_rows, dtype=bool)
    chosen = []
    for clause in clauses:
        acts = left.copy()
        if clause.where is not None:
            answer = evaluate_all(rows, {"where": clause.where}, table)["where"]
            if not pa.types.is_boolean(answer.type):
                raise InvalidOptionError(f"table {table}: a condition of a merge is {answer.type}, not true or false")
            acts &= np.asarray(pc.fill_null(answer, pa.scalar(value=False)), dtype=bool)
        left &= ~acts
        if acts.any():
            chosen.append((clause, np.flatnonzero(acts)))
    return chosen


def _key_column(
    ref: TableRef, schema: pa.Schema, source: pa.Table, target: str, name: str
) -> pa.ChunkedArray[pa.Scalar[pa.DataType]]:
    if target not in schema.names:
        raise NotFoundError(
            f"table {ref.name}: no column '{target}' to match by; its columns are {', '.join(schema.names)}"
        )
    if name not in source.column_names:
        raise NotFoundError(
            f"table {ref.name}: the source has no column '{name}' to match by; it has {', '.join(source.column_names)}"
        )
    wanted = schema.field(target).type
    column = source.column(name)
    misfit = find_incompatibility(column.type, wanted, name)
    if misfit is None:
        try:
            return pa.chunked_array([cast_array(chunk, wanted, name) for chunk in column.chunks], wanted)
        except ValueError as error:
            misfit = str(error)
    raise SchemaMismatchError(
        f"table {ref.name}: column '{name}' of the source is {column.type}, and cannot be compared with '{target}', "
        f"which is {wanted}: {misfit}"
    )


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
