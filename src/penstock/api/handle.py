"""What a table says of itself: the part of its handle that neither moves rows nor changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.checks.features import check_writable
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidOptionError
from penstock.table.actions import changes
from penstock.table.identity import check_same_table
from penstock.table.inspect.fsck import FsckReport, check_table
from penstock.table.inspect.history.commits import DEFAULT_LIMIT
from penstock.table.inspect.history.history import load_history
from penstock.table.inspect.history.stored import history_table
from penstock.table.inspect.system import load_system_table
from penstock.table.ref import TableRef
from penstock.table.store import MetadataStore
from penstock.table.stream.lag import measure_lag

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter


class TableHandle:
    """A table at the schema it was loaded with; ``Table`` is the whole handle."""

    def __init__(self, ref: TableRef) -> None:
        if not isinstance(ref, TableRef):
            raise InvalidOptionError(
                f"{type(self).__name__}({ref!r}): Catalog.load_table('database.table') opens a table by its name, "
                f"{type(self).__name__}.at('<path>') by its place"
            )
        self._ref = ref
        # For what checks by itself that it is still the same table: plans and commits.
        self._store = MetadataStore(ref)
        self._open_committer: TableCommitter | None = None

    @property
    def _checked_store(self) -> MetadataStore:
        """The table's metadata, after a look that the table is still there; ``NotFoundError`` where it is not."""
        check_same_table(self._ref)
        return self._store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, location={self.location!r}, schema_id={self.schema.id})"

    @property
    def name(self) -> str:
        """``database.table``, or the location where no catalog was asked."""
        return self._ref.name

    @property
    def location(self) -> str:
        """The table's directory."""
        return self._ref.location

    @property
    def schema(self) -> TableSchema:
        """Columns, keys and stored options."""
        return self._ref.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as ``to_arrow`` returns them."""
        return to_arrow_schema(self._ref.schema.fields)

    @property
    def options(self) -> Mapping[str, str]:
        """Stored options with those of this use on top."""
        return self._ref.options

    def latest_snapshot(self) -> Snapshot | None:
        """Load the latest snapshot; None when nothing was ever committed."""
        return self._checked_store.load_latest_snapshot()

    def system_table(self, name: str, *, snapshot_id: int | None = None) -> pa.Table:
        """Return a system table, such as ``snapshots``, ``files``, ``partitions`` or ``compaction``.

        Args:
            snapshot_id: for those that speak of one snapshot; None for the latest.
        """
        store = self._checked_store
        snapshot = None if snapshot_id is None else store.load_snapshot(snapshot_id)
        return load_system_table(name, self._ref, store, snapshot)

    def snapshots(self) -> pa.Table:
        """All snapshots, oldest first."""
        return self.system_table("snapshots")

    def schemas(self) -> pa.Table:
        """All schemas, oldest first."""
        return self.system_table("schemas")

    def files(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Data files of a snapshot."""
        return self.system_table("files", snapshot_id=snapshot_id)

    def partitions(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Partitions of a snapshot, with rows, files and bytes."""
        return self.system_table("partitions", snapshot_id=snapshot_id)

    def buckets(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Buckets of a snapshot, with rows, files and bytes."""
        return self.system_table("buckets", snapshot_id=snapshot_id)

    def manifests(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Manifests of a snapshot."""
        return self.system_table("manifests", snapshot_id=snapshot_id)

    def tags(self) -> pa.Table:
        """All tags."""
        return self.system_table("tags")

    def consumers(self) -> pa.Table:
        """All consumers and their positions."""
        return self.system_table("consumers")

    def compaction_debt(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Small files of a snapshot, partition by partition, and what a full compaction would merge of them."""
        return self.system_table("compaction", snapshot_id=snapshot_id)

    def history(self, *, limit: int = DEFAULT_LIMIT) -> pa.Table:
        """Return what each commit did and what the table held after it, oldest first; reads metadata only.

        Rows, files and bytes that were added and removed are those of data files: a merge adds what it removes.

        Args:
            limit: newest snapshots to look at; each costs three reads or more.

        Returns:
            Columns ``snapshot_id, commit_kind, commit_time, commit_user, added_rows, added_files, added_bytes,
            removed_rows, removed_files, removed_bytes, rows, files, bytes, small_files, watermark,
            event_time_lag_ms``.
        """
        return history_table(load_history(self._ref, self._checked_store, limit=limit))

    def fsck(self, *, all_snapshots: bool = False) -> FsckReport:
        """Check that all metadata can be read and that every live file is there with its size; changes nothing.

        Args:
            all_snapshots: of every snapshot and tag, not only of the latest snapshot.
        """
        return check_table(self._ref, self._checked_store, all_snapshots=all_snapshots)

    def lag(self, *checkpoints: str) -> pa.Table:
        """Measure how far readers are behind: a row for each consumer, and for each Spark query by its checkpoint.

        Args:
            checkpoints: of streaming queries that read this table; paths or URIs.

        Returns:
            Columns ``reader, kind, next_snapshot_id, latest_snapshot_id, snapshots_behind, files_behind,
            bytes_behind, rows_behind, event_time_lag_ms, oldest_unread_ms, expired_snapshots``.

        Raises:
            NotFoundError: a checkpoint that does not exist, or of a query that does not read this table.
        """
        return measure_lag(self._ref, self._checked_store, checkpoints)

    def _committer(self) -> TableCommitter:
        check_writable(self._ref)
        if self._open_committer is None:
            self._open_committer = changes.open_committer(self._ref, self._store)
        return self._open_committer
