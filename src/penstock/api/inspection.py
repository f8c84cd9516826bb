"""Inspection of a table's metadata: snapshots, files, history, the lag of readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.arguments import FLAG, FUNCTION, INTEGER, NONE, TEXT, Progress, accepts, check_limit, no_progress
from penstock.api.handle import TableMethods
from penstock.api.notebook import with_title
from penstock.table.inspect.fsck import FsckReport, check_table
from penstock.table.inspect.history.commits import DEFAULT_LIMIT
from penstock.table.inspect.history.history import history_table, load_history
from penstock.table.inspect.summary import TableSummary, summarize
from penstock.table.inspect.system import load_system_table
from penstock.table.stream.lag import measure_lag

if TYPE_CHECKING:
    import pyarrow as pa


class TableInspection(TableMethods):
    """Read-only methods for a table's metadata: ``table.inspect``."""

    @accepts(name=TEXT, snapshot_id=INTEGER | NONE, limit=INTEGER | NONE, partition_labels=FLAG)
    def system_table(
        self, name: str, *, snapshot_id: int | None = None, limit: int | None = None, partition_labels: bool = False
    ) -> pa.Table:
        """Return a system table, such as ``snapshots``, ``files``, ``partitions`` or ``compaction``.

        Warns with ``DamagedFileWarning`` about damaged snapshots, which are left out.

        Args:
            snapshot_id: for tables that describe one snapshot; None for the latest.
            limit: number of newest snapshots, or of first rows of other tables; None for all.
            partition_labels: write partitions as ``dt=2026-01-01`` in ``files``, ``buckets`` and ``manifests`` too,
                where Paimon and SQL write ``{2026-01-01}``.

        Raises:
            NotFoundError: there is no such table or snapshot.
            InvalidOptionError: a limit below zero.
        """
        store = self._handle.checked_store
        snapshot = None if snapshot_id is None else store.load_snapshot(snapshot_id)
        limit = check_limit(limit, self._handle.name)
        rows = load_system_table(
            name, self._handle.ref, store, snapshot, limit=limit, partition_labels=partition_labels
        )
        return with_title(rows, f"{name} of {self._handle.name}")

    def schemas(self) -> pa.Table:
        """All schemas, oldest first."""
        return self.system_table("schemas")

    @accepts(snapshot_id=INTEGER | NONE)
    def buckets(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Buckets of a snapshot, with rows, files and bytes."""
        return self.system_table("buckets", snapshot_id=snapshot_id)

    @accepts(snapshot_id=INTEGER | NONE)
    def manifests(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Manifests of a snapshot."""
        return self.system_table("manifests", snapshot_id=snapshot_id)

    def tags(self) -> pa.Table:
        """All tags."""
        return self.system_table("tags")

    def branches(self) -> pa.Table:
        """All branches except the main one."""
        return self.system_table("branches")

    def consumers(self) -> pa.Table:
        """All consumers and their positions."""
        return self.system_table("consumers")

    @accepts(snapshot_id=INTEGER | NONE)
    def compaction_debt(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Small files of a snapshot per partition, and which of them compact would take."""
        return self.system_table("compaction", snapshot_id=snapshot_id)

    @accepts(limit=INTEGER)
    def history(self, *, limit: int = DEFAULT_LIMIT) -> pa.Table:
        """Return the changes of each commit and the state of the table after it, oldest first; reads metadata only.

        Added and removed rows, files and bytes are counted by data files: a compaction adds the rows that it removes.

        Args:
            limit: number of newest snapshots to read; each costs three reads or more.

        Returns:
            Columns ``snapshot_id, commit_kind, commit_time, commit_user, added_rows, added_files, added_bytes,
            removed_rows, removed_files, removed_bytes, rows, files, bytes, small_files, watermark,
            event_time_lag_ms``.
        """
        history = history_table(load_history(self._handle.ref, self._handle.checked_store, limit=limit))
        return with_title(history, f"history of {self._handle.name}")

    def summary(self) -> TableSummary:
        """Return the main figures of the table; reads only metadata of the latest snapshot."""
        return summarize(self._handle.ref, self._handle.checked_store)

    @accepts(all_snapshots=FLAG, progress=FUNCTION)
    def fsck(self, *, all_snapshots: bool = False, progress: Progress = no_progress) -> FsckReport:
        """Check that all metadata can be read and that every live file exists with its recorded size; changes nothing.

        Args:
            all_snapshots: also check manifests and data files that only older snapshots and tags need.
            progress: called with the number of data files checked so far, and their bytes.
        """
        return check_table(self._handle.checked_ref, all_snapshots=all_snapshots, progress=progress)

    @accepts(checkpoints=TEXT)
    def lag(self, *checkpoints: str) -> pa.Table:
        """Return the lag of readers: one row per consumer, and per Spark query given by its checkpoint.

        Args:
            checkpoints: of streaming queries that read this table; paths or URIs.

        Returns:
            Columns ``reader, kind, next_snapshot_id, latest_snapshot_id, snapshots_behind, files_behind,
            bytes_behind, rows_behind, event_time_lag_ms, oldest_unread_ms, expired_snapshots``.

        Raises:
            NotFoundError: a checkpoint does not exist, or its query does not read this table.
        """
        rows = measure_lag(self._handle.ref, self._handle.checked_store, checkpoints)
        return with_title(rows, f"lag of readers of {self._handle.name}")
