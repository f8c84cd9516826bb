"""DELETE and UPDATE: changes of the rows that match a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.filter import row_mask
from penstock.table.dml.change import ChangedBatch, some
from penstock.table.dml.values import differs, put_values
from penstock.table.row_tracking import renumbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.predicate.tree import BoundPredicate, Predicate
    from penstock.table.dml.change import Rows
    from penstock.table.dml.values import NewValues


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRows:
    """Delete the rows for which the filter is true, but not those for which it is unknown."""

    predicate: Predicate
    probe_columns: tuple[str, ...] = ()
    only_deletes: bool = True

    def count_hits(self, batch: pa.RecordBatch) -> int:
        """Return the number of rows, which have all passed the filter."""
        return batch.num_rows

    def apply(self, batch: pa.RecordBatch, rest: BoundPredicate) -> ChangedBatch:
        """Remove the rows that match."""
        return ChangedBatch(after=batch, deleted=some(_true_rows(batch, rest)))

    def new_rows(self, matched: Sequence[npt.NDArray[np.int64]]) -> pa.Table | None:
        """Insert nothing."""
        del matched
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRows:
    """Set columns of the rows for which the filter is true."""

    predicate: Predicate
    values: NewValues
    probe_columns: tuple[str, ...] = ()
    only_deletes: bool = False

    def count_hits(self, batch: pa.RecordBatch) -> int:
        """Return the number of rows, which have all passed the filter."""
        return batch.num_rows

    def apply(self, batch: pa.RecordBatch, rest: BoundPredicate) -> ChangedBatch:
        """Set the columns where the filter is true."""
        hits = _true_rows(batch, rest)
        places: npt.NDArray[np.int64] = np.flatnonzero(hits)
        if not len(places):
            return ChangedBatch(after=batch)
        values = self.values.of(batch.filter(pa.array(hits)))
        after, moves = update_places(batch, places, values, self.values.key_names)
        return ChangedBatch(after=after, updated=hits, moved=some(moves))

    def new_rows(self, matched: Sequence[npt.NDArray[np.int64]]) -> pa.Table | None:
        """Insert nothing."""
        del matched
        return None


def _true_rows(batch: pa.RecordBatch, rest: BoundPredicate) -> Rows:
    hits: Any = pc.coalesce(row_mask(batch, rest), pa.scalar(value=False))
    rows: Rows = hits.to_numpy(zero_copy_only=False)
    return rows


def update_places(
    batch: pa.RecordBatch,
    places: npt.NDArray[np.int64],
    values: dict[str, ArrowAny],
    key_names: Sequence[str],
) -> tuple[pa.RecordBatch, npt.NDArray[np.bool_]]:
    """Set columns of some rows; return all rows, and which of them move because their partition or bucket key changed.

    With row tracking, the rows keep their ids and get the sequence number of the commit.

    Args:
        key_names: columns among the values that determine partition or bucket.
    """
    after = put_values(batch, places, values | renumbered(batch, len(places)))
    moves = np.zeros(batch.num_rows, dtype=bool)
    for name in key_names:
        moves |= differs(batch.column(name), after.column(name))
    return after, moves
