"""The effect of a row change on the rows of a file, and the result of a change or of its dry run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.printable import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import BoundPredicate, Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedBatch:
    """The rows of a batch after a change.

    Attributes:
        kept: the rows that stay in their bucket, changed or not, in order.
        moved: rows that now belong to another partition or bucket; None if there are none.
        matched: for a MERGE, the numbers of the source rows that matched; else None.
    """

    kept: pa.RecordBatch
    deleted: int = 0
    updated: int = 0
    moved: pa.RecordBatch | None = None
    matched: npt.NDArray[np.int64] | None = None


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
            batch: all columns of the table, in canonical form.
            rest: what remains of the predicate for this partition.
        """
        ...

    def new_rows(self, matched: Sequence[npt.NDArray[np.int64]]) -> pa.Table | None:
        """Return the rows to insert, given the matches of ``apply`` in all files; None for none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a change replaces.

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
        files: the files that are replaced.
        files_added: number of new files.
    """

    snapshot: Snapshot | None
    is_dry_run: bool
    files: tuple[ChangedFile, ...] = ()
    files_added: int = 0
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
