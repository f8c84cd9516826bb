"""The effect of a row change on the rows of a file, and the result of a change or of its dry run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.printable import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import BoundPredicate, Predicate


Rows: TypeAlias = "npt.NDArray[np.bool_]"
"""Whether something is true of each row of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBatch:
    """The rows of a batch after a change.

    Attributes:
        after: all rows, in order, those that are deleted included.
        deleted: which rows are deleted; None for none, as for the others.
        updated: which rows are updated.
        moved: which of these now belong to another partition or bucket.
        matched: for a MERGE, the numbers of the source rows that matched; else None.
    """

    after: pa.RecordBatch
    deleted: Rows | None = None
    updated: Rows | None = None
    moved: Rows | None = None
    matched: npt.NDArray[np.int64] | None = None

    def kept(self) -> pa.RecordBatch:
        """Return the rows that stay in their bucket, changed or not."""
        gone = self._any(self.deleted, self.moved)
        return self.after if gone is None else self.after.filter(pa.array(~gone))

    def rows_of(self, rows: Rows | None) -> pa.RecordBatch | None:
        """Return some of the rows; None for none."""
        return None if rows is None else self.after.filter(pa.array(rows))

    def only_updated(self) -> ChangedBatch:
        """Return the updated rows alone."""
        updated, moved = self.updated, self.moved
        after = self.after if updated is None else self.after.filter(pa.array(updated))
        return ChangedBatch(after=after, moved=moved if moved is None or updated is None else some(moved[updated]))

    def old_places(self) -> npt.NDArray[np.int64]:
        """Return the positions of the rows that are deleted or updated."""
        changed = self._any(self.deleted, self.updated)
        return np.empty(0, np.int64) if changed is None else np.flatnonzero(changed)

    @staticmethod
    def _any(first: Rows | None, second: Rows | None) -> Rows | None:
        return first if second is None else second if first is None else first | second


def count_rows(rows: Rows | None) -> int:
    """Return the number of rows of a batch of which a change says so."""
    return 0 if rows is None else int(np.count_nonzero(rows))


def some(rows: Rows) -> Rows | None:
    """Return the rows, or None if there are none."""
    return rows if rows.any() else None


class RowChange(Protocol):
    """A DELETE, UPDATE or MERGE as applied to the rows of files. Shared by threads."""

    @property
    def predicate(self) -> Predicate:
        """A filter; rows that do not match it are certainly unchanged."""
        ...

    @property
    def probe_columns(self) -> tuple[str, ...]:
        """Columns that ``count_hits`` needs in addition to those of the predicate."""
        ...

    @property
    def only_deletes(self) -> bool:
        """Whether every matching row is deleted, so that a file with only matching rows need not be read again."""
        ...

    def count_hits(self, batch: pa.RecordBatch) -> int:
        """Return how many rows of a batch that matches the predicate may change."""
        ...

    def apply(self, batch: pa.RecordBatch, rest: BoundPredicate) -> ChangedBatch:
        """Change the rows of a batch.

        Args:
            batch: all columns of the table, in canonical form; those of the filter if the change only deletes.
            rest: what remains of the predicate for this partition.
        """
        ...

    def new_rows(self, matched: Sequence[npt.NDArray[np.int64]]) -> pa.Table | None:
        """Return the rows to insert, given the matches of ``apply`` in all files; None for none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a change replaces, or whose rows it deletes by a deletion vector.

    Attributes:
        partition: such as ``dt=2026-01-01``; empty in a table without partitions.
        rows: in the file before.
    """

    partition: str
    bucket: int
    file_name: str
    rows: int
    deleted: int
    updated: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChangeResult(Result):
    """The result of a DELETE, UPDATE or MERGE; with ``is_dry_run``, its expected result.

    Attributes:
        snapshot: None if there was nothing to change, and for a dry run.
        files: the files that are replaced, or get a deletion vector.
        files_added: number of new files.
    """

    snapshot: Snapshot | None
    is_dry_run: bool
    files: tuple[ChangedFile, ...] = ()
    files_added: int = 0
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
