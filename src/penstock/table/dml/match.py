"""Finds the source row of a MERGE that matches a target row by equal keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import InvalidOptionError
from penstock.predicate.tree import FALSE, And, Compare, In, Operator, Predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny

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
    """

    def __init__(self, source: pa.Table, keys: Sequence[str], table: str) -> None:
        self._keys = tuple(keys)
        self._table = table
        columns = {name: _comparable(_one_array(source.column(name))) for name in keys}
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
        """Return the number of the source row that each target row matches, ``NONE`` for none.

        Raises:
            InvalidOptionError: a target row matches several source rows.
        """
        codes = self._codes({name: _comparable(batch.column(name)) for name in self._keys}, batch.num_rows)
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
        return And(operands=tuple(part for name in self._keys for part in _range_of(name, self._values[name])))

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


def _comparable(column: ArrowAny) -> ArrowAny:
    """Return floating point numbers with -0.0 replaced by 0.0, as the two are equal."""
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


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
