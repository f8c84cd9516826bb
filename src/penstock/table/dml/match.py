"""Finds the source row of a MERGE that a target row belongs to, by equal keys."""

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
# Up to so many values of a key column prune by each of them, more by the range that they span.
_MAX_VALUES: Final = 1_000


class KeyMatcher:
    """The keys of the source rows, made ready for look-ups. A row with a NULL in its key matches nothing.

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
        """Return a filter that every row passes which may match."""
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
            index = pc.fill_null(pc.index_in(column, value_set=values, skip_nulls=True), pa.scalar(NONE, pa.int32()))
            part = np.asarray(index, dtype=np.int64)
            codes = np.where((codes < 0) | (part < 0), NONE, codes * width + part)
            size *= width
        return codes

    def _compressed(self, name: str, codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
        """Return the place of each number among those that the source has, and how many these are.

        Args:
            name: the column that comes next; the first call for it is with the numbers of the source.
        """
        known = codes >= 0
        prefixes = self._prefixes.get(name)
        if prefixes is None:
            prefixes = self._prefixes[name] = np.unique(codes[known])
        places = np.searchsorted(prefixes, codes)
        known &= places < len(prefixes)
        known[known] = prefixes[places[known]] == codes[known]
        return np.where(known, places, NONE), max(len(prefixes), 1)


def _one_array(column: pa.ChunkedArray[pa.Scalar[pa.DataType]]) -> ArrowAny:
    combined: ArrowAny = column.combine_chunks()
    return combined


def _comparable(column: ArrowAny) -> ArrowAny:
    """Return floating point numbers with one zero only, as the two are equal."""
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
