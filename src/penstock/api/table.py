"""The handle on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from penstock.api.deferred import is_spark_object, spark_entry
from penstock.catalog.features import check_writable
from penstock.catalog.filesystem import load_location
from penstock.datafile.types import to_arrow_schema
from penstock.errors import SchemaMismatchError
from penstock.options import check_keys
from penstock.table import changes
from penstock.table.explain import explain_plan
from penstock.table.fsck import Report, check_table
from penstock.table.query import Query, plan_query
from penstock.table.read import open_batches, read_arrow
from penstock.table.rollback import RollbackPlan, apply_rollback, plan_rollback
from penstock.table.store import MetadataStore
from penstock.table.system import load_system_table
from penstock.table.tags import create_tag, delete_tag
from penstock.table.write import write_arrow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.predicate.tree import Predicate
    from penstock.spec.schema import TableSchema
    from penstock.spec.snapshot import Snapshot
    from penstock.table.commit import TableCommitter
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

Rows: TypeAlias = "DataFrame | pa.Table | pa.RecordBatch | pa.RecordBatchReader"


class Table:
    """A table at the schema it was loaded with. Get one from ``Catalog``.

    Rows go in as Spark DataFrames or Arrow, and come out as either; every method that changes rows is one commit.
    Not for use by several threads at once; each thread loads its own.
    """

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._store = MetadataStore(ref)
        self._open_committer: TableCommitter | None = None

    @staticmethod
    def at(location: str) -> Table:
        """Load the table at a path or URI, without a catalog. Raises as ``Catalog.load_table``."""
        return Table(load_location(location))

    def __repr__(self) -> str:
        return f"Table({self.name!r}, location={self.location!r}, schema_id={self.schema.id})"

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

    def with_options(self, options: Mapping[str, str]) -> Table:
        """Return the same table with options of this use, which win over the stored ones; unknown keys warn."""
        check_keys(options, table=self.name)
        return Table(self._ref.with_options(options))

    def latest_snapshot(self) -> Snapshot | None:
        """Load the latest snapshot; None when nothing was ever committed."""
        return self._store.load_latest_snapshot()

    # Rows in

    def append(self, rows: Rows) -> Snapshot | None:
        """Add rows, in their order.

        Args:
            rows: a Spark DataFrame or Arrow, with the table's columns by name in any order.

        Returns:
            The new snapshot; None when there were no rows.

        Raises:
            SchemaMismatchError: rows that do not fit; nothing is written.
            CommitConflictError: other writers won every race; nothing is visible.
            CommitUnknownError: the storage did not say whether it landed.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        return changes.commit_append(self._committer(), self._write(rows))

    def overwrite(self, rows: Rows, *, partition: Mapping[str, object] | None = None) -> Snapshot | None:
        """Put rows in the place of others.

        Args:
            rows: as for ``append``.
            partition: the partitions to replace, such as ``{"dt": "2026-01-01"}``, ``{}`` for the whole table; None
                for what the option ``dynamic-partition-overwrite`` says: the partitions that the rows are in (the
                default), or everything.

        Returns:
            The new snapshot; None when no partition was to be replaced.

        Raises:
            InvalidOptionError: it names something else than partition columns, or rows lie outside of it.
            TableStoreError: as ``append``.
        """
        scope = changes.overwrite_scope(self._ref, partition)
        return changes.commit_overwrite(self._committer(), self._write(rows), scope)

    def truncate(self) -> Snapshot | None:
        """Remove all rows by a new snapshot."""
        return changes.truncate(self._committer())

    def drop_partitions(self, *partitions: Mapping[str, object]) -> Snapshot | None:
        """Remove the rows of partitions by a new snapshot.

        Args:
            partitions: each such as ``{"dt": "2026-01-01"}``; None means NULL.
        """
        return changes.drop_partitions(self._committer(), partitions)

    # Rows out

    def to_arrow(  # noqa: PLR0913 - one keyword for each way to name a snapshot
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_id: int | None = None,
        timestamp_millis: int | None = None,
        tag: str | None = None,
        watermark: int | None = None,
    ) -> pa.Table:
        """Read into memory, without Spark and without a JVM.

        Args:
            columns: names in the order wanted; None for all.
            filter: such as ``"dt = '2026-01-01' AND price > 10"`` or ``penstock.col("price") > 10``.
            limit: most rows; None for all.
            options: ``scan.*`` options of this read.
            snapshot_id: read this snapshot; at most one of this and the following may be given, else the latest.
            timestamp_millis: read the newest snapshot committed at or before it, ms since 1970-01-01 UTC.
            tag: read the snapshot with that name.
            watermark: read the first snapshot whose watermark (ms of event time) has reached it.

        Returns:
            The rows; in a queue those of one bucket in write order.

        Raises:
            NotFoundError: no such snapshot, tag or column.
            InvalidFilterError: a filter that does not fit the table.
        """
        query = self._query(filter, options, _position(snapshot_id, timestamp_millis, tag, watermark))
        return read_arrow(query.ref, self._store, query.plan, columns, limit)

    def to_batches(  # noqa: PLR0913 - one keyword for each way to name a snapshot
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_id: int | None = None,
        timestamp_millis: int | None = None,
        tag: str | None = None,
        watermark: int | None = None,
    ) -> pa.RecordBatchReader:
        """Read piece by piece: as ``to_arrow``, with files opened while the reader is consumed."""
        query = self._query(filter, options, _position(snapshot_id, timestamp_millis, tag, watermark))
        return open_batches(query.ref, self._store, query.plan, columns, limit)

    def to_spark(  # noqa: PLR0913 - one keyword for each way to name a snapshot
        self,
        spark: SparkSession,
        *,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,
        options: Mapping[str, str] | None = None,
        snapshot_id: int | None = None,
        timestamp_millis: int | None = None,
        tag: str | None = None,
        watermark: int | None = None,
    ) -> DataFrame:
        """Return a DataFrame of exactly one snapshot, read by Spark's own readers.

        Args:
            filter: prunes partitions, buckets and files before Spark sees a list of them; as for ``to_arrow``.
            snapshot_id: this and the others: as for ``to_arrow``.
        """
        query = self._query(filter, options, _position(snapshot_id, timestamp_millis, tag, watermark))
        return spark_entry().read(spark, query, self._store, columns)

    def explain(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Mapping[str, str] | None = None,
        snapshot_id: int | None = None,
        timestamp_millis: int | None = None,
        tag: str | None = None,
        watermark: int | None = None,
    ) -> str:
        """Say which files a read would open, and what pruned the others; reads metadata only."""
        return explain_plan(self._query(filter, options, _position(snapshot_id, timestamp_millis, tag, watermark)).plan)

    # Metadata

    def system_table(self, name: str, *, snapshot_id: int | None = None) -> pa.Table:
        """Return a system table: snapshots, schemas, options, files, partitions, buckets, manifests, tags, consumers.

        Args:
            snapshot_id: for those that speak of one snapshot; None for the latest.
        """
        snapshot = None if snapshot_id is None else self._store.load_snapshot(snapshot_id)
        return load_system_table(name, self._ref, self._store, snapshot)

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

    def fsck(self, *, all_snapshots: bool = False) -> Report:
        """Check that all metadata can be read and that every live file is there with its size; changes nothing.

        Args:
            all_snapshots: of every snapshot and tag, not only of the latest snapshot.
        """
        return check_table(self._ref, self._store, all_snapshots=all_snapshots)

    # Tags and rollback

    def create_tag(self, name: str, *, snapshot_id: int | None = None, time_retained: str | None = None) -> None:
        """Give a snapshot a name that keeps it from expiring.

        Args:
            snapshot_id: None for the latest.
            time_retained: such as ``7 d``; None for ever.

        Raises:
            AlreadyExistsError: the table has a tag of that name.
            NotFoundError: there is no such snapshot.
        """
        create_tag(self._store, name, snapshot_id=snapshot_id, time_retained=time_retained)

    def delete_tag(self, name: str) -> None:
        """Delete a tag. Raises ``NotFoundError``."""
        delete_tag(self._store, name)

    def rollback_to(
        self, *, snapshot_id: int | None = None, tag: str | None = None, dry_run: bool = False
    ) -> RollbackPlan:
        """Make an older snapshot the latest; what came after it is gone. No writer may commit meanwhile.

        Args:
            dry_run: only return what would go.

        Raises:
            NotFoundError: there is no such snapshot or tag.
            InvalidOptionError: not exactly one target.
        """
        plan = plan_rollback(self._store, snapshot_id=snapshot_id, tag=tag)
        if not dry_run:
            apply_rollback(self._store, plan)
        return plan

    def _query(
        self, filter: Predicate | str | None, options: Mapping[str, str] | None, position: Mapping[str, str]
    ) -> Query:
        given = {**(options or {}), **position}
        check_keys(given, table=self.name)
        return plan_query(self._ref.with_options(given), self._store, filter)

    def _write(self, rows: Rows) -> tuple[CommitMessage, ...]:
        check_writable(self._ref)
        if isinstance(rows, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
            return write_arrow(self._ref, rows)
        if is_spark_object(rows):
            return spark_entry().write(rows, self._ref)
        raise SchemaMismatchError(
            f"table {self.name}: cannot take rows from a {type(rows).__name__}: give a Spark DataFrame, a pyarrow "
            "Table, RecordBatch or RecordBatchReader; pyarrow.Table.from_pandas and from_pylist make one"
        )

    def _committer(self) -> TableCommitter:
        check_writable(self._ref)
        if self._open_committer is None:
            self._open_committer = changes.open_committer(self._ref, self._store)
        return self._open_committer


def _position(
    snapshot_id: int | None, timestamp_millis: int | None, tag: str | None, watermark: int | None
) -> dict[str, str]:
    given = {
        "scan.snapshot-id": snapshot_id,
        "scan.timestamp-millis": timestamp_millis,
        "scan.tag-name": tag,
        "scan.watermark": watermark,
    }
    return {key: str(value) for key, value in given.items() if value is not None}
