"""The handle on a table."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, cast

from penstock.api.arguments import (
    INTEGER,
    LOCATION,
    NONE,
    PARTITION,
    Options,
    accepts,
    add_session_store_options,
    encode_options,
    to_location,
    to_partition,
)
from penstock.api.handle import TableHandle
from penstock.api.inspection import TableInspection
from penstock.api.lazy import is_connect_object, is_spark_object, lazy_spark
from penstock.api.maintenance import TableMaintenance, TableVersions
from penstock.api.notebook import SAMPLE_ROWS, table_html
from penstock.api.operations.compaction import Compact
from penstock.api.operations.declaration import method
from penstock.api.operations.rollback import RollbackTo
from penstock.api.operations.snapshots import ExpireSnapshots, RemoveOrphanFiles
from penstock.api.operations.tags import CreateTag
from penstock.api.preview import TablePreview
from penstock.api.reads import TableReads
from penstock.api.row_changes import RowChanges
from penstock.api.rows import Rows, arrow_rows
from penstock.api.streams import TableStreams
from penstock.catalog.checks.features import check_writable
from penstock.catalog.place import load_location
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidOptionError
from penstock.options import check_keys, check_values
from penstock.table.actions import changes
from penstock.table.compact.local import run_here
from penstock.table.compact.write import TableWrite, compact_appended
from penstock.table.read.branch import at_branch
from penstock.table.ref import TableRef
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.compact.job import Execute
    from penstock.table.message import CommitMessage
    from penstock.table.store import MetadataStore


class Table(TableReads, TableStreams, RowChanges):
    """A table with the schema it was loaded with. Get one from ``Catalog``.

    Rows are written and returned as Spark DataFrames or Arrow data; every method that changes rows makes one commit. A
    ``Table`` is not thread-safe; load one per thread.

    Its methods read, write, change and stream rows, and do the upkeep that every table needs. All others are in a
    namespace: ``inspect`` for metadata, ``maintenance``, ``versions`` for tags and branches; ``preview`` returns the
    effect of a change without making it.
    """

    compact = method(Compact)
    expire_snapshots = method(ExpireSnapshots)
    remove_orphan_files = method(RemoveOrphanFiles)
    create_tag = method(CreateTag)
    rollback_to = method(RollbackTo)

    def __init__(self, ref: TableRef) -> None:
        if not isinstance(ref, TableRef):
            raise InvalidOptionError(
                f"{type(self).__name__}({ref!r}): Catalog.load_table('database.table') opens a table by its name, "
                f"{type(self).__name__}.at('<path>') by its place"
            )
        super().__init__(TableHandle(ref))
        self._ref = ref

    @property
    def _store(self) -> MetadataStore:
        return self._handle.store

    @staticmethod
    @accepts(location=LOCATION)
    def at(location: str | os.PathLike[str]) -> Table:
        """Load the table at a path or URI, without a catalog. Raises as ``Catalog.load_table``."""
        place = to_location(location)
        return Table(load_location(place, add_session_store_options(place, {})))

    def with_options(self, options: Options) -> Table:
        """Return a handle of the same table with other options, which override the stored ones.

        Unknown keys, and keys without effect, cause a warning. With the option ``branch`` it is a handle of that
        branch, with its latest schema.

        Raises:
            NotFoundError: no such branch.
            InvalidOptionError: a value is not valid for its key, or an option would change where rows and files are
                stored.
            UnsupportedFeatureError: reads or writes do not support an option that changes their result.
        """
        encoded = encode_options(options)
        branch = encoded.pop("branch", None)
        check_keys(encoded, table=self.name)
        check_values(encoded, self.name)
        ref = self._ref if branch is None else at_branch(self._ref, branch)
        return Table(ref.with_options(encoded))

    # The table

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, location={self.location!r}, schema_id={self.schema.id})"

    @property
    def name(self) -> str:
        """``database.table``, or the location if the table was loaded without a catalog."""
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
        """Stored options, overridden by those of this handle."""
        return self._ref.options

    def latest_snapshot(self) -> Snapshot | None:
        """Load the latest snapshot; None if nothing was ever committed."""
        return self._handle.checked_store.load_latest_snapshot()

    @property
    def inspect(self) -> TableInspection:
        """System tables, history, consistency, the lag of readers."""
        return TableInspection(self._handle)

    @property
    def maintenance(self) -> TableMaintenance:
        """Consumers, partitions, buckets, and repair of metadata."""
        return TableMaintenance(self._handle)

    @property
    def versions(self) -> TableVersions:
        """Tags, branches, and a rollback that retains later snapshots."""
        return TableVersions(self._handle)

    @property
    def preview(self) -> TablePreview:
        """Previews of row and schema changes."""
        return TablePreview(self._handle)

    # Metadata

    def snapshots(self) -> pa.Table:
        """All snapshots, oldest first."""
        return self.inspect.system_table("snapshots")

    @accepts(snapshot_id=INTEGER | NONE)
    def files(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Data files of a snapshot."""
        return self.inspect.system_table("files", snapshot_id=snapshot_id)

    @accepts(snapshot_id=INTEGER | NONE)
    def partitions(self, *, snapshot_id: int | None = None) -> pa.Table:
        """Partitions of a snapshot, with rows, files and bytes."""
        return self.inspect.system_table("partitions", snapshot_id=snapshot_id)

    # Writing

    def append(self, rows: Rows) -> Snapshot | None:
        """Append rows in order.

        In a queue that is not ``write-only``, the call then merges small files of the buckets that received rows, if
        there are enough of them, and commits the merges as a separate snapshot. If that fails, it issues a warning.

        Args:
            rows: with the table's columns, matched by name in any order: a Spark DataFrame; Arrow data, or an object
                that exports it, such as a pandas (without its index) or polars DataFrame; or a list of dicts.

        Returns:
            The new snapshot; None if there were no rows.

        Raises:
            SchemaMismatchError: the rows do not match the table; nothing is written.
            CommitConflictError: other writers won every race; nothing is visible.
            CommitUnknownError: the storage did not say whether it succeeded.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        if is_connect_object(rows):
            check_writable(self._ref)
            return lazy_spark.append_rows(cast("DataFrame", rows), self._ref, self._handle.store)
        with self._showing("appending to", rows):
            with self._handle.committing() as committer:
                messages = self._write(rows)
                snapshot = changes.commit_append(committer, messages)
            compact_appended(committer, messages, partial(_merge_on, rows))
        return snapshot

    @accepts(partition=PARTITION | NONE)
    def overwrite(self, rows: Rows, *, partition: Mapping[str, object] | str | None = None) -> Snapshot | None:
        """Replace rows by new ones.

        Args:
            rows: as for ``append``.
            partition: the partitions to replace, such as ``{"dt": "2026-01-01"}``, ``{}`` for the whole table; None to
                follow the option ``dynamic-partition-overwrite``: replace the partitions that the rows belong to (the
                default), or everything.

        Returns:
            The new snapshot; None if no partition was replaced.

        Raises:
            InvalidOptionError: ``partition`` has other columns than partition columns, or rows outside of it.
            TableStoreError: as ``append``.
        """
        spec = None if partition is None else to_partition(partition, self.name)
        if is_connect_object(rows):
            check_writable(self._ref)
            return lazy_spark.overwrite_rows(cast("DataFrame", rows), self._ref, self._handle.store, spec)
        scope = changes.overwrite_scope(self._ref, spec)
        with self._showing("overwriting", rows), self._handle.committing() as committer:
            return changes.commit_overwrite(committer, self._write(rows), scope)

    def truncate(self) -> Snapshot | None:
        """Remove all rows in a new snapshot."""
        return changes.truncate(self._handle.committer())

    @accepts(partitions=PARTITION)
    def drop_partitions(self, *partitions: Mapping[str, object] | str) -> Snapshot | None:
        """Remove the rows of partitions in a new snapshot, even if there are none, as Paimon's API does.

        Args:
            partitions: each such as ``{"dt": "2026-01-01"}``, where None means NULL, or ``dt=2026-01-01``.
        """
        return changes.drop_partitions(self._handle.committer(), [to_partition(each, self.name) for each in partitions])

    # Reading

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the latest snapshot as a stream of batches, so that polars, DuckDB and others accept the table."""
        stream: object = self.to_batches().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
        return stream

    def _repr_html_(self) -> str:
        def load_sample() -> tuple[int, int, pa.Table]:
            plan = self._handle.plan(None, None, {}, with_vectors=True).plan
            size = sum(entry.file.file_size for partition in plan.partitions for entry in partition.entries)
            return plan.file_count, size, self.to_arrow(limit=SAMPLE_ROWS)

        return table_html(self.name, self.location, self.schema, self.latest_snapshot, load_sample)

    def _showing(self, doing: str, rows: Rows) -> AbstractContextManager[object]:
        if is_spark_object(rows):
            return nullcontext()
        total = getattr(rows, "num_rows", None)
        # Not of everything with a length: DuckDB would run the query for it.
        if type(rows).__module__.partition(".")[0] in {"builtins", "pandas", "polars"} and hasattr(rows, "__len__"):
            total = len(cast("Sequence[object]", rows))
        return self._handle.progress(doing, "written", total)

    def _write(self, rows: Rows) -> tuple[CommitMessage, ...]:
        check_writable(self._ref)
        if is_spark_object(rows):
            messages = lazy_spark.write_dataframe(cast("DataFrame", rows), self._ref)
        else:
            messages = write_arrow(self._ref, arrow_rows(rows, self._ref))
        return TableWrite(ref=self._ref, merge_on=partial(_merge_on, rows)).merge(messages)


def _merge_on(rows: Rows, ref: TableRef) -> Execute:
    """Return the function that merges files where the rows were written: on the executors or in this process."""
    if not is_spark_object(rows):
        return run_here(ref)
    return lazy_spark.SparkMerger(spark=cast("DataFrame", rows).sparkSession, ref=ref).execute
