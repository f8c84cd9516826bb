"""The handle on a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from penstock.api.deferred import is_spark_object, spark_entry
from penstock.catalog.features import check_writable
from penstock.catalog.filesystem import load_location
from penstock.datafile.types import to_arrow_schema
from penstock.errors import SchemaMismatchError
from penstock.options import PartitionExpireOptions, Side, check_keys, check_side
from penstock.predicate.parse import parse_filter
from penstock.table import changes
from penstock.table.consumers import delete_consumer, reset_consumer
from penstock.table.expire import Expiration, SnapshotExpirer
from penstock.table.expire_partitions import ExpiredPartition, drop_expired_partitions, find_expired_partitions
from penstock.table.expire_tags import delete_tag, expire_tags
from penstock.table.explain import explain_plan
from penstock.table.fsck import Report, check_table
from penstock.table.orphans import OrphanReport, remove_orphan_files
from penstock.table.query import Query, plan_query
from penstock.table.read import open_batches, read_arrow
from penstock.table.rollback import RollbackPlan, apply_rollback, plan_rollback
from penstock.table.store import MetadataStore
from penstock.table.stream.lag import measure_lag
from penstock.table.stream.tail import Tail, Waiting
from penstock.table.system import load_system_table
from penstock.table.tags import create_tag
from penstock.table.write import write_arrow

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.predicate.tree import Predicate
    from penstock.spec.schema import TableSchema
    from penstock.spec.snapshot import Snapshot
    from penstock.table.commit import TableCommitter
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

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

    def write_stream(
        self,
        sdf: DataFrame,
        *,
        checkpoint: str,
        trigger: Mapping[str, object] | None = None,
        output_mode: str = "append",
        query_name: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StreamingQuery:
        """Start a query that adds the rows of a streaming DataFrame: one snapshot a micro-batch, each exactly once.

        A micro-batch that Spark runs again, after a crash at any point or a lost entry of its log, finds itself in
        the table. Batches without rows make no snapshot. Columns that the table gets while the query runs are filled
        with NULL.

        Args:
            sdf: with the table's columns by name in any order.
            checkpoint: a directory of the query's own, kept over restarts; it stays with this table.
            trigger: one of ``{"processingTime": "10 seconds"}``, ``{"availableNow": True}``, ``{"once": True}``; None
                for one batch after the other.
            output_mode: ``append``, or ``complete``, where each micro-batch replaces all rows.
            query_name: shown by Spark.
            options: of the write, such as ``{"target-file-size": "64 mb"}``.

        Raises:
            SchemaMismatchError: columns that do not fit.
            CheckpointError: the checkpoint is that of another table, of this one before it was dropped and made anew,
                or of another sink. That it was set back shows in the query's first batch, which fails with it.
            LeaseHeldError: a query with this checkpoint runs already, here or in another process.
            InvalidOptionError: no streaming DataFrame, another trigger or output mode.
            UnsupportedFeatureError: output mode ``update``, or a table that Penstock only reads.
        """
        check_keys(options or {}, table=self.name)
        check_side(options or {}, self.name, Side.SINK)
        ref = self._ref.with_options(options or {})
        check_writable(ref)
        return spark_entry().write_stream(
            sdf,
            ref,
            checkpoint=checkpoint,
            trigger=trigger,
            output_mode=output_mode,
            query_name=query_name,
        )

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

    def read_stream(
        self,
        spark: SparkSession,
        options: Mapping[str, str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,
    ) -> DataFrame:
        """Return a streaming DataFrame: what ``scan.mode`` begins with, then every snapshot that follows.

        In a queue each micro-batch has one Spark partition for each bucket, whose rows are in the order of the
        table's promise. The columns are those of this handle, also when the table gets others meanwhile.

        Args:
            options: of this stream, such as ``{"scan.mode": "latest-full", "read.stream.maxFilesPerTrigger": "100"}``.
            columns: names in the order wanted; None for all.
            filter: prunes partitions, buckets and files, and is applied to the rows; as for ``to_arrow``.

        Raises:
            InvalidOptionError: options that contradict each other, or that only a batch read has.
            NotFoundError: no such column.
            InvalidFilterError: a filter that does not fit the table.
        """
        check_keys(options or {}, table=self.name)
        check_side(options or {}, self.name, Side.SOURCE)
        return spark_entry().read_stream(spark, self._ref.with_options(options or {}), columns, filter)

    def follow(
        self,
        columns: Sequence[str] | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
        once: bool = False,
        interval_ms: int = 1_000,
    ) -> Generator[pa.RecordBatch]:
        """Read the table as a stream in this process, without Spark: what is there, then whatever is added.

        Snapshot comes after snapshot, in a snapshot partition after partition, in a partition bucket after bucket; in
        a bucket of a queue the order of writes holds. With the option ``consumer-id`` the position is kept in the table
        when more is asked for behind the last row of a snapshot, and only one may read as that consumer. Close the
        iterator when it is not read to its end, so that the consumer is free at once.

        Args:
            columns: names in the order wanted; None for all.
            filter: as for ``to_arrow``.
            limit: most rows; None for all.
            options: of a stream, such as ``{"scan.mode": "latest"}`` or ``{"consumer-id": "nightly"}``.
            once: end where nothing more is there, instead of waiting for it.
            interval_ms: between looks that found nothing.

        Raises:
            NotFoundError: no such column; while reading ``DataLossError``, when what is next has expired.
            LeaseHeldError: while reading, when another one reads as this consumer.
            InvalidOptionError: options that contradict each other, or that only a batch read has.
            InvalidFilterError: a filter that does not fit the table.
        """
        given = options or {}
        check_keys(given, table=self.name)
        check_side(given, self.name, Side.SOURCE)
        predicate = parse_filter(filter) if isinstance(filter, str) else filter
        tail = Tail(self._ref.with_options(given), MetadataStore(self._ref), columns=columns, predicate=predicate)
        return tail.read(Waiting(interval_ms=interval_ms, once=once), limit=limit)

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
        return measure_lag(self._ref, self._store, checkpoints)

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
        """Delete a tag; what only it kept of an expired snapshot goes too. Raises ``NotFoundError``."""
        delete_tag(self._ref, self._store, name)

    # Consumers

    def reset_consumer(self, consumer_id: str, next_snapshot: int) -> None:
        """Make a consumer go on at a snapshot, forwards or backwards; makes it if there is none.

        Args:
            next_snapshot: the first one that it reads; from the earliest to the one after the latest.

        Raises:
            NotFoundError: that snapshot has expired, or is further ahead.
            LeaseHeldError: a query reads as this consumer.
        """
        reset_consumer(self._store, consumer_id, next_snapshot)

    def delete_consumer(self, consumer_id: str) -> None:
        """Delete a consumer, so that what it has not read may expire.

        Raises:
            NotFoundError: there is no such consumer.
            LeaseHeldError: a query reads as it.
        """
        delete_consumer(self._store, consumer_id)

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

    # Housekeeping

    def expire_snapshots(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: datetime | int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
    ) -> Expiration:
        """Let old snapshots go, with the files that nothing else reads.

        What a consumer has not read stays, and so do the files of tags. Commits do this by themselves, unless the
        option ``write-only`` is set.

        Args:
            retain_max: newest snapshots beyond which all go whatever their age; None for what the option
                ``snapshot.num-retained.max`` says.
            retain_min: newest snapshots that stay whatever their age; None for ``snapshot.num-retained.min``.
            older_than: states of the table since then stay readable, in ms since 1970-01-01 UTC or as a datetime
                (local without a zone); None for now less ``snapshot.time-retained``.
            max_deletes: snapshots at most; None for all.
            dry_run: only find what would go.

        Returns:
            What went, and what keeps the rest.

        Raises:
            InvalidOptionError: arguments that contradict each other.
            FormatError: what a tag or consumer needs cannot be read; nothing that it may need was deleted.
            StorageError: not everything could be deleted; doing it again goes on.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        check_writable(self._ref)
        expirer = SnapshotExpirer(self._ref, self._store)
        rules = expirer.rules(
            retain_max=retain_max, retain_min=retain_min, older_than=_to_millis(older_than), max_deletes=max_deletes
        )
        return expirer.run(rules, dry_run=dry_run)

    def expire_tags(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Delete tags that have outlived the ``time_retained`` they were made with; commits do this by themselves.

        Args:
            dry_run: only find them.

        Returns:
            Their names.
        """
        check_writable(self._ref)
        return expire_tags(self._ref, self._store, dry_run=dry_run)

    def expire_partitions(
        self, *, expiration_time: str | None = None, dry_run: bool = False
    ) -> tuple[ExpiredPartition, ...]:
        """Drop the partitions that have outlived ``partition.expiration-time``, the oldest first.

        How old a partition is, the options ``partition.expiration-strategy``, ``partition.timestamp-pattern`` and
        ``partition.timestamp-formatter`` say; a partition whose values are no time stays. At most
        ``partition.expiration-max-num`` go. Rows that come to them meanwhile stay.

        Args:
            expiration_time: such as ``7 d``; None for what the option says.
            dry_run: only find them.

        Raises:
            InvalidOptionError: no expiration time, no partition columns, or a pattern that does not fit them.
            CommitConflictError: others replaced some of the files meanwhile; do it again.
        """
        check_writable(self._ref)
        given = {} if expiration_time is None else {"partition.expiration-time": expiration_time}
        options = PartitionExpireOptions.parse(self._ref.options, given, table=self.name)
        found = find_expired_partitions(self._ref, self._store, options=options)
        if not dry_run:
            drop_expired_partitions(self._committer(), found, batch_size=options.batch_size)
        return found

    def remove_orphan_files(
        self, *, older_than: datetime | int | None = None, dry_run: bool = True, allow_recent: bool = False
    ) -> OrphanReport:
        """Find files that stopped jobs left and nothing uses; delete them when told so.

        Args:
            older_than: files last changed up to then go, in ms since 1970-01-01 UTC or as a datetime (local without a
                zone); None for a day ago. It has to lie further back than any job takes from its first file to its
                commit, since files that are not committed yet look like orphans.
            dry_run: only find them.
            allow_recent: take ``older_than`` also where it is less than an hour ago; nobody may write then.

        Raises:
            InvalidOptionError: ``older_than`` is too recent, or in the future.
            FormatError: metadata are damaged or missing, so nobody can say what is used; nothing was deleted.
            StorageError: something cannot be listed or read, or be deleted.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        check_writable(self._ref)
        return remove_orphan_files(
            self._ref, older_than_millis=_to_millis(older_than), dry_run=dry_run, allow_recent=allow_recent
        )

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


def _to_millis(moment: datetime | int | None) -> int | None:
    if not isinstance(moment, datetime):
        return moment
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
