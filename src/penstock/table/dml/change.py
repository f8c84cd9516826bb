"""What a change of rows does to the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from penstock.predicate.tree import BoundPredicate, Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBatch:
    """The rows of a batch after a change.

    Attributes:
        kept: the rows that stay in their file's bucket, changed or not, in their order.
        moved: rows that now belong to another partition or bucket; None if there are none.
        matched: numbers of the source rows that matched, for a MERGE; else None.
    """

    kept: pa.RecordBatch
    deleted: int = 0
    updated: int = 0
    moved: pa.RecordBatch | None = None
    matched: npt.NDArray[np.int64] | None = None


class RowChange(Protocol):
    """A DELETE, UPDATE or MERGE, as the rewriting of files needs it. Threads share it."""

    @property
    def predicate(self) -> Predicate:
        """Rows that do not pass it certainly stay as they are."""
        ...

    @property
    def probe_columns(self) -> tuple[str, ...]:
        """Columns that ``count_hits`` needs besides those of the predicate."""
        ...

    @property
    def only_deletes(self) -> bool:
        """Whether every hit is deleted, so that a file of hits only needs no second read."""
        ...

    def count_hits(self, batch: pa.RecordBatch) -> int:
        """Return how many rows of a batch, which has passed the predicate, may change."""
        ...

    def apply(self, batch: pa.RecordBatch, rest: BoundPredicate) -> ChangedBatch:
        """Change the rows of a batch.

        Args:
            batch: all columns of the table, in canonical form.
            rest: what the predicate says of rows of this partition.
        """
        ...

    def new_rows(self, matched: Sequence[npt.NDArray[np.int64]]) -> pa.Table | None:
        """Return the rows to insert, given what ``apply`` has matched in all files; None for none."""
        ...
