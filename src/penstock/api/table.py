"""The handle on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

from penstock.api.deferred import is_spark_object, spark_entry, with_store_options
from penstock.api.exports import library, table_html
from penstock.api.given import (
    Names,
    Options,
    check_classic,
    check_spark,
    check_trigger,
    filter_of,
    location_of,
    names_of,
    partition_of,
    texts_of,
)
from penstock.api.handle import TableHandle
from penstock.api.inspection import TableInspection
from penstock.api.maintenance import TableMaintenance
from penstock.api.namespace import MethodOf
from penstock.api.preview import TablePreview
from penstock.api.read_at import ReadAt, position_options
from penstock.api.row_changes import RowChanges
from penstock.api.rows import Rows, arrow_rows
from penstock.api.versions import TableVersions
from penstock.catalog.checks.features import check_writable
from penstock.catalog.filesystem import load_location
from penstock.clocks import to_millis
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidOptionError
from penstock.options import Side, check_keys, check_side
from penstock.predicate.parse import parse_filter
from penstock.table.actions import changes
from penstock.table.compact.local import run_here
from penstock.table.compact.precommit import merge_if_asked
from penstock.table.identity import check_same_table
from penstock.table.inspect.explain import explain_plan, plan_values
from penstock.table.read.batches import open_batches, read_arrow
from penstock.table.read.branch import at_branch
from penstock.table.read.dataset import to_dataset
from penstock.table.read.wait import WaitPolicy, shortfall, wait_for_watermark
from penstock.table.ref import TableRef
from penstock.table.store import MetadataStore
from penstock.table.stream.offset import Phase
from penstock.table.stream.tail import LocalStreamReader, PollOptions
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Mapping
    from datetime import datetime

    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate
    from penstock.table.message import CommitMessage


class Table:
    """A table at the schema it was loaded with. Get one from ``Catalog``.

    Rows go in as Spark DataFrames or Arrow, and come out as either; every method that changes rows is one commit.
    Not for use by several threads at once; each thread loads its own.

    What changes rows that are there is in ``rows``, what reads metadata in ``inspect``, what maintains the table in
    ``maintenance``, tags and rollback in ``versions``; their methods are methods of the table too.
    ``preview`` says what a change would do.
    """

    def __init__(self, ref: TableRef) -> None:
        if not isinstance(ref, TableRef):
            raise InvalidOptionError(
                f"{type(self).__name__}({ref!r}): Catalog.load_table('database.table') opens a table by its name, "
                f"{type(self).__name__}.at('<path>') by its place"
            )
        self._ref = ref
        self._handle = TableHandle(ref)

    @property
    def _store(self) -> MetadataStore:
        return self._handle.store

    @staticmethod
    def at(location: str | os.PathLike[str]) -> Table:
        """Load the table at a path or URI, without a catalog. Raises as ``Catalog.load_table``."""
        place = location_of(location)
        return Table(load_location(place, with_store_options(place, {})))

    def with_options(self, options: Options) -> Table:
        """Return the same table with options of this use, which win over the stored ones.

        Unknown keys, and keys without effect, cause a warning. With the option ``branch`` it is that branch of the
        table, at the latest schema there.

        Raises:
            NotFoundError: no such branch.
            InvalidOptionError: it would change where rows and files lie.
            UnsupportedFeatureError: reads or writes would do something else than it asks for.
        """
        given = texts_of(options)
        branch = given.pop("branch", None)
        check_keys(given, table=self.name, stacklevel=3)
        ref = self._ref if branch is None else at_branch(self._ref, branch)
        return Table(ref.with_options(given))

    # The table

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
        return self._handle.checked_store.load_latest_snapshot()

    @property
    def inspect(self) -> TableInspection:
        """What the table's metadata say."""
        return TableInspection(self._handle)

    @property
    def rows(self) -> RowChanges:
        """DELETE, UPDATE and MERGE."""
        return RowChanges(self._handle)

    @property
    def maintenance(self) -> TableMaintenance:
        """Consumers, compaction, expiration, marks, orphans."""
        return TableMaintenance(self._handle)

    @property
    def versions(self) -> TableVersions:
        """Tags, and rollback to older snapshots."""
        return TableVersions(self._handle)

    @property
    def preview(self) -> TablePreview:
        """What a change of rows or of the schema would do."""
        return TablePreview(self._handle)

    # Rows in

    def append(self, rows: Rows) -> Snapshot | None:
        """Add rows, in their order.

        Args:
            rows: with the table's columns by name in any order: a Spark DataFrame; Arrow, or what exports it, such as
                a DataFrame of pandas (without its index) or polars; or a list of dicts.

        Returns:
            The new snapshot; None when there were no rows.

        Raises:
            SchemaMismatchError: rows that do not fit; nothing is written.
            CommitConflictError: other writers won every race; nothing is visible.
            CommitUnknownError: the storage did not say whether it succeeded.
            UnsupportedFeatureError: a table that Penstock only reads.
        """
        with self._handle.committing() as committer:
            return changes.commit_append(committer, self._write(rows))

    def overwrite(self, rows: Rows, *, partition: Mapping[str, object] | str | None = None) -> Snapshot | None:
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
        spec = None if partition is None else partition_of(partition, self.name)
        scope = changes.overwrite_scope(self._ref, spec)
        with self._handle.committing() as committer:
            return changes.commit_overwrite(committer, self._write(rows), scope)

    def write_stream(
        self,
        sdf: DataFrame,
        *,
        checkpoint: str,
        trigger: Mapping[str, object] | None = None,
        output_mode: str = "append",
        query_name: str | None = None,
        options: Options | None = None,
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
            CheckpointError: the checkpoint is that of another table, of this one before it was dropped and created
                again, or of another sink. That it was set back shows in the query's first batch, which fails with it.
            LeaseHeldError: a query with this checkpoint runs already, here or in another process.
            InvalidOptionError: no streaming DataFrame, another trigger or output mode.
            UnsupportedFeatureError: output mode ``update``, or a table that Penstock only reads.
        """
        check_classic(sdf, self.name, f"sdf.writeStream.format('penstock').start('{self.location}')")
        given = texts_of(options)
        check_trigger(trigger, self.name)
        check_keys(given, table=self.name, stacklevel=3)
        check_side(given, self.name, Side.SINK, stacklevel=3)
        ref = self._ref.with_options(given)
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
        return changes.truncate(self._handle.committer())

    def drop_partitions(self, *partitions: Mapping[str, object] | str) -> Snapshot | None:
        """Remove the rows of partitions by a new snapshot.

        Args:
            partitions: each such as ``{"dt": "2026-01-01"}``, where None means NULL, or ``dt=2026-01-01``.
        """
        return changes.drop_partitions(self._handle.committer(), [partition_of(each, self.name) for each in partitions])

    # Rows out

    def to_arrow(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pa.Table:
        """Read into memory, without Spark and without a JVM.

        Args:
            columns: names in the order wanted; None for all.
            filter: such as ``"dt = '2026-01-01' AND price > 10"`` or ``penstock.col("price") > 10``.
            limit: most rows; None for all.
            options: ``scan.*`` options of this read.
            **at: the snapshot: ``snapshot_id``, ``timestamp_millis``, ``tag`` or ``watermark``, see ``ReadAt``; without
                any the latest.

        Returns:
            The rows; in a queue those of one bucket in write order.

        Raises:
            NotFoundError: no such snapshot, tag or column.
            InvalidFilterError: a filter that does not fit the table.
        """
        query = self._handle.plan(filter, options, position_options(at, "to_arrow"), with_vectors=True)
        return read_arrow(query.ref, self._store, query.plan, names_of(columns), limit)

    def to_batches(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pa.RecordBatchReader:
        """Read piece by piece: as ``to_arrow``, with files opened while the reader is consumed."""
        query = self._handle.plan(filter, options, position_options(at, "to_batches"), with_vectors=True)
        return open_batches(query.ref, self._store, query.plan, names_of(columns), limit)

    def to_pandas(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pd.DataFrame:
        """Read into a DataFrame of pandas; arguments as for ``to_arrow``."""
        library("pandas", self.name)
        frame: pd.DataFrame = self.to_arrow(columns, filter, limit=limit, options=options, **at).to_pandas()
        return frame

    def to_polars(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> pl.DataFrame:
        """Read into a DataFrame of polars; arguments as for ``to_arrow``."""
        rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
        frame: pl.DataFrame = library("polars", self.name).from_arrow(rows)
        return frame

    def to_duckdb(
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        connection: duckdb.DuckDBPyConnection | None = None,
        limit: int | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> duckdb.DuckDBPyRelation:
        """Read into memory, as a relation that DuckDB queries; other arguments as for ``to_arrow``.

        Args:
            connection: of DuckDB; None for its default one.
        """
        module = library("duckdb", self.name)
        rows = self.to_arrow(columns, filter, limit=limit, options=options, **at)
        relation: duckdb.DuckDBPyRelation = (connection or module.default_connection()).from_arrow(rows)
        return relation

    def to_dataset(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> ds.Dataset:
        """Return the files of one snapshot as a dataset of pyarrow, which DuckDB and Polars scan without a copy.

        Their filters leave out partitions and row groups, and they read only the columns that they need. Rows have no
        order. The files must be there while it is scanned, so keep the snapshot, by a tag, if expiration may run.

        Args:
            filter: leaves out files by all that the table knows, before the dataset exists; it does not filter rows.
            **at: the snapshot, as for ``to_arrow``.

        Raises:
            UnsupportedFeatureError: files that such a reader would read wrong, see the message: ``to_batches`` reads
                them.
        """
        query = self._handle.plan(filter, options, position_options(at, "to_dataset"), with_vectors=True)
        return to_dataset(query, self._store)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows of the latest snapshot piece by piece, so that polars, DuckDB and others take the table."""
        stream: object = self.to_batches().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
        return stream

    def _repr_html_(self) -> str:
        return table_html(self.name, self.location, self.schema, self.latest_snapshot)

    def to_spark(
        self,
        spark: SparkSession,
        *,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> DataFrame:
        """Return a DataFrame of exactly one snapshot, read by Spark's own readers.

        Args:
            filter: prunes partitions, buckets and files before Spark sees a list of them; as for ``to_arrow``.
            **at: the snapshot, as for ``to_arrow``.
        """
        check_spark(spark, self.name, f"spark.read.format('penstock').load('{self.location}')")
        position = position_options(at, "to_spark")
        query = self._handle.plan(filter, options, position, spark_entry().time_zone(spark), with_vectors=True)
        return spark_entry().read(spark, query, self._store, names_of(columns))

    def read_stream(
        self,
        spark: SparkSession,
        options: Options | None = None,
        *,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
    ) -> DataFrame:
        """Return a streaming DataFrame: what ``scan.mode`` begins with, then every snapshot that follows.

        In a queue each micro-batch has one Spark partition for each bucket, whose rows are in the order of the
        table's promise. The columns are those of this handle, also when the table gets others meanwhile.

        The stream has the watermark that the table declares. That column is TIMESTAMP then, its wall clock taken as
        UTC; the option ``penstock.read.watermark`` = ``false`` leaves it as it is, without a watermark.

        Args:
            options: of this stream, such as ``{"scan.mode": "latest-full", "read.stream.maxFilesPerTrigger": "100"}``.
            columns: names in the order wanted; None for all.
            filter: prunes partitions, buckets and files, and is applied to the rows; as for ``to_arrow``.

        Raises:
            InvalidOptionError: options that contradict each other, or that only a batch read has.
            NotFoundError: no such column.
            InvalidFilterError: a filter that does not fit the table.
        """
        check_spark(spark, self.name, f"spark.readStream.format('penstock').load('{self.location}')")
        given = texts_of(options)
        check_keys(given, table=self.name, stacklevel=3)
        check_side(given, self.name, Side.SOURCE, stacklevel=3)
        check_same_table(self._ref)
        return spark_entry().read_stream(
            spark, self._ref.with_options(given), names_of(columns), filter_of(filter, self.name)
        )

    def follow(  # noqa: PLR0913 - of a command too
        self,
        columns: Names | None = None,
        filter: Predicate | str | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        once: bool = False,
        interval_ms: int = 1_000,
        on_snapshot: Callable[[int, bool], None] | None = None,
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
            on_snapshot: called before the rows of a snapshot with its id, and whether these are all rows of the table.

        Raises:
            NotFoundError: no such column; while reading ``DataLossError``, when what is next has expired.
            LeaseHeldError: while reading, when another one reads as this consumer.
            InvalidOptionError: options that contradict each other, or that only a batch read has.
            InvalidFilterError: a filter that does not fit the table.
        """
        given = texts_of(options)
        check_keys(given, table=self.name, stacklevel=3)
        check_side(given, self.name, Side.SOURCE, stacklevel=3)
        condition = filter_of(filter, self.name)
        predicate = parse_filter(condition) if isinstance(condition, str) else condition
        check_same_table(self._ref)
        tail = LocalStreamReader(
            self._ref.with_options(given),
            MetadataStore(self._ref),
            columns=names_of(columns),
            predicate=predicate,
            on_snapshot=None if on_snapshot is None else lambda each, phase: on_snapshot(each, phase is Phase.FULL),
        )
        return tail.read(PollOptions(interval_ms=interval_ms, once=once), limit=limit)

    def explain(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> str:
        """Say which files a read would open, and what pruned the others; reads metadata only."""
        return explain_plan(self._handle.plan(filter, options, position_options(at, "explain")).plan)

    def explain_values(
        self,
        filter: Predicate | str | None = None,
        *,
        options: Options | None = None,
        **at: Unpack[ReadAt],
    ) -> dict[str, Any]:
        """Return what ``explain`` says as values, for programs."""
        return plan_values(self._handle.plan(filter, options, position_options(at, "explain_values")).plan)

    def wait_until(
        self,
        watermark: int | datetime,
        *,
        timeout: float | None = None,
        interval: float = 1.0,
        on_poll: Callable[[str], None] = lambda _text: None,
    ) -> Snapshot:
        """Wait until the table's latest snapshot has a watermark that has reached a point in event time.

        It has all rows of earlier event times then, but for those that come late. Read exactly that state with
        ``to_arrow(snapshot_id=...)``.

        Args:
            watermark: ms of event time, or a datetime, local without a zone. The event time of a column without a zone
                counts as UTC.
            timeout: seconds; None for as long as it takes, 0 to look once.
            interval: seconds between looks; each asks the storage three things.
            on_poll: called after each look with a text that says how far the table is.

        Returns:
            The first such snapshot that was seen.

        Raises:
            TimedOutError: it has not in time; the message says how far the table is.
            NotFoundError: the table was dropped.
            InvalidOptionError: a timeout below zero, or an interval that is not above it.
        """
        wanted = to_millis(watermark)
        return wait_for_watermark(
            self._handle.checked_store,
            wanted,
            WaitPolicy(timeout=timeout, interval=interval),
            on_poll=lambda latest: on_poll(shortfall(wanted, latest)),
        )

    # Also methods of the table

    delete = MethodOf("rows", RowChanges.delete)
    update = MethodOf("rows", RowChanges.update)
    merge = MethodOf("rows", RowChanges.merge)

    system_table = MethodOf("inspect", TableInspection.system_table)
    snapshots = MethodOf("inspect", TableInspection.snapshots)
    schemas = MethodOf("inspect", TableInspection.schemas)
    files = MethodOf("inspect", TableInspection.files)
    partitions = MethodOf("inspect", TableInspection.partitions)
    buckets = MethodOf("inspect", TableInspection.buckets)
    manifests = MethodOf("inspect", TableInspection.manifests)
    tags = MethodOf("inspect", TableInspection.tags)
    branches = MethodOf("inspect", TableInspection.branches)
    consumers = MethodOf("inspect", TableInspection.consumers)
    compaction_debt = MethodOf("inspect", TableInspection.compaction_debt)
    history = MethodOf("inspect", TableInspection.history)
    summary = MethodOf("inspect", TableInspection.summary)
    fsck = MethodOf("inspect", TableInspection.fsck)
    lag = MethodOf("inspect", TableInspection.lag)

    reset_consumer = MethodOf("maintenance", TableMaintenance.reset_consumer)
    delete_consumer = MethodOf("maintenance", TableMaintenance.delete_consumer)
    clear_consumers = MethodOf("maintenance", TableMaintenance.clear_consumers)
    compact = MethodOf("maintenance", TableMaintenance.compact)
    compact_in_background = MethodOf("maintenance", TableMaintenance.compact_in_background)
    expire_snapshots = MethodOf("maintenance", TableMaintenance.expire_snapshots)
    expire_partitions = MethodOf("maintenance", TableMaintenance.expire_partitions)
    remove_orphan_files = MethodOf("maintenance", TableMaintenance.remove_orphan_files)
    compact_manifests = MethodOf("maintenance", TableMaintenance.compact_manifests)
    remove_missing_files = MethodOf("maintenance", TableMaintenance.remove_missing_files)
    rescale = MethodOf("maintenance", TableMaintenance.rescale)
    mark_partitions_done = MethodOf("maintenance", TableMaintenance.mark_partitions_done)

    create_tag = MethodOf("versions", TableVersions.create_tag)
    replace_tag = MethodOf("versions", TableVersions.replace_tag)
    rename_tag = MethodOf("versions", TableVersions.rename_tag)
    delete_tag = MethodOf("versions", TableVersions.delete_tag)
    expire_tags = MethodOf("versions", TableVersions.expire_tags)
    create_due_tags = MethodOf("versions", TableVersions.create_due_tags)
    rollback_to = MethodOf("versions", TableVersions.rollback_to)
    rollback_to_as_latest = MethodOf("versions", TableVersions.rollback_to_as_latest)
    create_branch = MethodOf("versions", TableVersions.create_branch)
    rename_branch = MethodOf("versions", TableVersions.rename_branch)
    delete_branch = MethodOf("versions", TableVersions.delete_branch)
    fast_forward = MethodOf("versions", TableVersions.fast_forward)

    def _write(self, rows: Rows) -> tuple[CommitMessage, ...]:
        check_writable(self._ref)
        if is_spark_object(rows):
            check_classic(
                rows,
                self.name,
                f"rows.toArrow(), or rows.write.format('penstock').mode('append').save('{self.location}')",
            )
            return spark_entry().write(cast("DataFrame", rows), self._ref)
        return merge_if_asked(write_arrow(self._ref, arrow_rows(rows, self._ref)), self._ref, run_here(self._ref))
