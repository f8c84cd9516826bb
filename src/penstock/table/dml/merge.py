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

from penstock.datafile.conform import make_batch
from penstock.datafile.filter import row_mask
from penstock.datafile.types import from_arrow_schema, is_char, to_arrow_schema
from penstock.errors import InvalidFilterError, InvalidOptionError, NotFoundError, SchemaMismatchError
from penstock.format.types.data_types import DataField
from penstock.predicate.bind import bind, columns_of
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import FALSE, NODES, TRUE, And, BoundPredicate, Compare, In, Operator, Predicate
from penstock.table.dml.by_filter import update_places
from penstock.table.dml.change import ChangedBatch, some
from penstock.table.dml.values import NewValues, evaluate_all
from penstock.table.write.coercion import cast_array, find_incompatibility

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.table.ref import TableRef


NONE: Final = -1
# Up to this many values of a key column are used for pruning individually, more as a range.
_MAX_VALUES: Final = 1_000
# From so many values on, a search in their order takes less time than a hash table for each batch of target rows.
_MANY_VALUES: Final = 200_000


class KeyMatcher:
    """The keys of the source rows, prepared for lookups. A row with a NULL in its key matches nothing.

    Args:
        source: the source rows.
        keys: columns of source and target, in equal types.
        table: name for messages.
        chars: the keys that are CHAR, whose values are equal if they differ only in blanks at the end.
    """

    def __init__(self, source: pa.Table, keys: Sequence[str], table: str, chars: Collection[str] = ()) -> None:
        self._keys = tuple(keys)
        self._chars = chars
        self._table = table
        columns = {name: self._comparable(name, _one_array(source.column(name))) for name in keys}
        self._values = {name: pc.unique(column.drop_null()) for name, column in columns.items()}
        self._in_order: dict[str, npt.NDArray[np.int64]] = {
            name: np.sort(_numbers(values))
            for name, values in self._values.items()
            if len(values) >= _MANY_VALUES and _is_number(values.type)
        }
        # Where a number for all combinations of values would have more than 64 bits: by column, the numbers that the
        # columns before it have in the source.
        self._prefixes: dict[str, npt.NDArray[np.int64]] = {}
        codes = self._codes(columns, source.num_rows)
        known = np.flatnonzero(codes >= 0)
        order = known[np.argsort(codes[known], kind="stable")]
        self._sorted, self._rows = codes[order], order
        self._has_twins = bool(np.any(self._sorted[1:] == self._sorted[:-1]))

    def rows_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the number of the source row that each target row matches, ``NONE`` for none."""
        codes = self._codes({name: self._comparable(name, batch.column(name)) for name in self._keys}, batch.num_rows)
        found = np.full(batch.num_rows, NONE, dtype=np.int64)
        if not len(self._sorted):
            return found
        first = np.searchsorted(self._sorted, codes)
        inside = (codes >= 0) & (first < len(self._sorted))
        inside[inside] = self._sorted[first[inside]] == codes[inside]
        found[inside] = self._rows[first[inside]]
        if self._has_twins:
            self._check_single(codes[inside], first[inside])
        return found

    def predicate(self) -> Predicate:
        """Return a filter that every possibly matching row satisfies."""
        if not len(self._sorted):
            return FALSE
        keys = [name for name in self._keys if name not in self._chars]
        return And(operands=tuple(part for name in keys for part in _range_of(name, self._values[name])))

    def _comparable(self, name: str, column: ArrowAny) -> ArrowAny:
        """Return values that differ where they are not equal: -0.0 as 0.0, and CHAR without blanks at the end."""
        if name in self._chars:
            return pc.utf8_rtrim(column, " ")
        return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column

    def _check_single(self, codes: npt.NDArray[np.int64], first: npt.NDArray[np.int64]) -> None:
        if np.any(np.searchsorted(self._sorted, codes, side="right") - first > 1):
            raise InvalidOptionError(
                f"table {self._table}: a row matches several rows of the source by {', '.join(self._keys)}, so it is "
                "unclear what it becomes; nothing was changed: leave one row for each key in the source"
            )

    def _codes(self, columns: dict[str, ArrowAny], rows: int) -> npt.NDArray[np.int64]:
        """Return a number for each row's key, the same for equal keys; ``NONE`` for a key that no source row has."""
        codes = np.zeros(rows, dtype=np.int64)
        size = 1
        for name, column in columns.items():
            values = self._values[name]
            width = max(len(values), 1)
            if size * width > np.iinfo(np.int64).max:
                codes, size = self._compressed(name, codes)
            part = self._places(name, column)
            codes = np.where((codes < 0) | (part < 0), NONE, codes * width + part)
            size *= width
        return codes

    def _compressed(self, name: str, codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
        """Return the place of each number among those that the source has, and how many these are.

        Args:
            name: the column that comes next; the first call for it is with the numbers of the source.
        """
        prefixes = self._prefixes.get(name)
        if prefixes is None:
            prefixes = self._prefixes[name] = np.unique(codes[codes >= 0])
        return _places_among(prefixes, codes, codes >= 0), max(len(prefixes), 1)

    def _places(self, name: str, column: ArrowAny) -> npt.NDArray[np.int64]:
        """Return a number for each value of a column, the same for equal values; ``NONE`` where the source lacks it."""
        values = self._in_order.get(name)
        if values is not None:
            return _places_among(values, _numbers(column), np.asarray(column.is_valid()))
        index = pc.index_in(column, value_set=self._values[name], skip_nulls=True)
        return np.asarray(pc.fill_null(index, pa.scalar(NONE, pa.int32())), dtype=np.int64)


def _places_among(
    values: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], is_valid: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the places of numbers among values in ascending order; ``NONE`` for others, and where it is not valid."""
    places = np.searchsorted(values, wanted)
    found = is_valid & (places < len(values))
    found[found] = values[places[found]] == wanted[found]
    return np.where(found, places, NONE)


def _is_number(kind: pa.DataType) -> bool:
    """Whether ``_numbers`` takes a type: whole numbers, and what is stored as such."""
    return pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)


def _numbers(column: ArrowAny) -> npt.NDArray[np.int64]:
    """Return the values of an array as they are stored, 0 for NULL."""
    stored = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    array: ArrowAny = column if pa.types.is_signed_integer(column.type) else column.view(stored)
    return np.asarray(array.cast(pa.int64()).fill_null(0))


def _one_array(column: pa.ChunkedArray[pa.Scalar[pa.DataType]]) -> ArrowAny:
    combined: ArrowAny = column.combine_chunks()
    return combined


def _range_of(name: str, values: ArrowAny) -> tuple[Predicate, ...]:
    types = pa.types
    kind = values.type
    if not (types.is_integer(kind) or types.is_string(kind) or types.is_date(kind) or types.is_decimal(kind)):
        return ()
    if len(values) <= _MAX_VALUES:
        return (In(column=name, values=tuple(values.to_pylist())),)
    least, most = pc.min_max(values).values()
    return (
        Compare(column=name, operator=Operator.GE, value=least.as_py()),
        Compare(column=name, operator=Operator.LE, value=most.as_py()),
    )


SOURCE: Final = "source."
"""What the names of the source's columns begin with in expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeUpdate:
    """Set columns of a target row.

    Attributes:
        set: column to constant, or to an expression over target columns by their names and source columns by names
            such as ``source.price``; None for all columns that the source has.
        where: a condition as text or ``penstock.col``, or an expression as in ``set``; None for every row.
    """

    set: Mapping[str, object] | None = None
    where: Predicate | str | pc.Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeDelete:
    """Delete a target row; ``where`` as for ``MergeUpdate``."""

    where: Predicate | str | pc.Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInsert:
    """Insert a row.

    Attributes:
        values: column to constant, or to an expression over source columns by names such as ``source.price``; other
            columns become NULL, or their default. None for all columns that the source has.
        where: as for ``MergeUpdate``, over source columns; None for every row.
    """

    values: Mapping[str, object] | None = None
    where: Predicate | str | pc.Expression | None = None


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

    where: BoundPredicate | pc.Expression | None
    values: NewValues | None


class MergeRows:
    """A MERGE as a row change.

    Args:
        ref: the table.
        source: the source rows; they stay in memory.
        on: target column to source column.
    """

    only_deletes = False

    def __init__(self, ref: TableRef, source: pa.Table, on: Mapping[str, str], clauses: MergeClauses) -> None:
        if not on or not (clauses.matched or clauses.not_matched or clauses.not_matched_by_source):
            raise InvalidOptionError(f"table {ref.name}: name the columns that rows match by, and what to do with them")
        self._ref = ref
        self._schema = to_arrow_schema(ref.schema.fields)
        keys = pa.table({target: _key_column(ref, self._schema, source, target, name) for target, name in on.items()})
        self._source = source.rename_columns([f"{SOURCE}{name}" for name in source.column_names]).combine_chunks()
        chars = {field.name for field in ref.schema.fields if is_char(field.type)}
        self._matcher = KeyMatcher(keys, tuple(on), ref.name, chars)
        self.probe_columns = tuple(on)
        source_names = self._source.column_names
        self._matched = [self._ready(clause, (*self._schema.names, *source_names)) for clause in clauses.matched]
        self._by_source = [self._ready(clause, self._schema.names) for clause in clauses.not_matched_by_source]
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
        updated, moves = deleted.copy(), deleted.copy()
        after = batch
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
                updated[where[chosen]] = True
        return ChangedBatch(
            after=after,
            deleted=some(deleted),
            updated=some(updated),
            moved=some(moves),
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

    def _ready(self, clause: MatchedClause, names: Sequence[str]) -> _Clause:
        where = self._condition(clause.where, names)
        if isinstance(clause, MergeDelete):
            return _Clause(where=where, values=None)
        given = self._all_columns() if clause.set is None else clause.set
        if not given:
            raise InvalidOptionError(
                f"table {self._ref.name}: an update clause of a merge sets no column: name columns in 'set', or leave "
                "it out for all columns of the source"
            )
        return _Clause(where=where, values=NewValues(self._ref, given))

    def _ready_insert(self, clause: MergeInsert) -> _Clause:
        given = self._all_columns() if clause.values is None else clause.values
        values = {**dict.fromkeys(self._schema.names), **given}
        where = self._condition(clause.where, self._source.column_names)
        return _Clause(where=where, values=NewValues(self._ref, values))

    def _condition(
        self, where: Predicate | str | pc.Expression | None, names: Sequence[str]
    ) -> BoundPredicate | pc.Expression | None:
        """Return a condition over some columns of target and source, ready to be evaluated."""
        if where is None or isinstance(where, pc.Expression):
            return where
        condition = parse_filter(where) if isinstance(where, str) else where
        if not isinstance(condition, NODES):
            raise InvalidFilterError(
                f'table {self._ref.name}: where of a merge: expected text such as "{SOURCE}price > 10", '
                f"penstock.col('{SOURCE}price') > 10, or an expression of pyarrow.compute, not a "
                f"{type(where).__module__}.{type(where).__name__}"
            )
        used = frozenset(columns_of(condition))
        types = {field.name: field.type for field in self._ref.schema.fields}
        of_source = pa.schema([field for field in self._source.schema if field.name in used])
        types |= {column.name: column.type for column in from_arrow_schema(of_source)}
        fields = [DataField(id=place, name=name, type=types[name]) for place, name in enumerate(names) if name in types]
        return bind(condition, fields, self._ref.name)

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
            answer = _answers(clause.where, rows, table)
            acts &= np.asarray(pc.fill_null(answer, pa.scalar(value=False)), dtype=bool)
        left &= ~acts
        if acts.any():
            chosen.append((clause, np.flatnonzero(acts)))
    return chosen


def _answers(where: BoundPredicate | pc.Expression, rows: pa.RecordBatch, table: str) -> ArrowAny:
    if isinstance(where, BoundPredicate):
        schema = to_arrow_schema(where.fields)
        arrays = [cast_array(rows.column(field.name), field.type, field.name) for field in schema]
        return row_mask(make_batch(arrays, schema, rows.num_rows), where)
    answer = evaluate_all(rows, {"where": where}, table)["where"]
    if not pa.types.is_boolean(answer.type):
        raise InvalidOptionError(f"table {table}: a condition of a merge is {answer.type}, not true or false")
    return answer


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
