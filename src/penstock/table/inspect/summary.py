"""The main figures of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeatureError
from penstock.printable import Result
from penstock.table.compact.debt import measure_debt
from penstock.table.inspect.system import load_system_table
from penstock.table.read.batches import DeletedRows
from penstock.table.read.scan import load_vector_places

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableSummary(Result):
    """The main figures of a table.

    Attributes:
        latest: the latest snapshot; None if nothing was ever committed.
        snapshots: number of snapshots.
        partitions: of the latest snapshot, as are ``rows``, ``files`` and ``bytes``; rows that deletion vectors delete
            do not count.
        small_files: number of small files, which are candidates for a merge; None for a table that Penstock does not
            compact.
        waiting_files: number of files that compact would take, with ``waiting_bytes``; None likewise.
    """

    latest: Snapshot | None
    snapshots: int
    partitions: int
    rows: int
    files: int
    bytes: int
    small_files: int | None
    waiting_files: int | None
    waiting_bytes: int | None
    tags: tuple[str, ...]
    consumers: tuple[str, ...]


def summarize(ref: TableRef, store: MetadataStore) -> TableSummary:
    """Return the main figures of a table; reads only metadata of the latest snapshot."""
    latest = store.load_latest_snapshot()
    partitions = load_system_table("partitions", ref, store)
    vectors = {} if latest is None else load_vector_places(store, latest)
    deleted = sum(map(DeletedRows(ref).count_of, vectors.values()))
    try:
        debts = measure_debt(ref, store, latest, with_history=False)
    except UnsupportedFeatureError:
        debts = None
    return TableSummary(
        latest=latest,
        snapshots=len(store.list_snapshot_ids()),
        partitions=partitions.num_rows,
        rows=_sum(partitions, "record_count") - deleted,
        files=_sum(partitions, "file_count"),
        bytes=_sum(partitions, "file_size_in_bytes"),
        small_files=None if debts is None else sum(debt.small_files for debt in debts),
        waiting_files=None if debts is None else sum(debt.waiting_files for debt in debts),
        waiting_bytes=None if debts is None else sum(debt.waiting_bytes for debt in debts),
        tags=tuple(store.list_tags()),
        consumers=tuple(store.list_consumers()),
    )


def _sum(rows: pa.Table, column: str) -> int:
    return sum(value or 0 for value in rows.column(column).to_pylist())
