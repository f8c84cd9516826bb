"""Streams from a table and into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.deferred import spark_entry
from penstock.api.given import (
    Names,
    Options,
    check_classic,
    check_spark,
    check_trigger,
    filter_of,
    limit_of,
    names_of,
    texts_of,
)
from penstock.catalog.checks.features import check_writable
from penstock.clocks import to_millis
from penstock.options import Side, check_keys, check_side
from penstock.predicate.parse import parse_filter
from penstock.table.identity import check_same_table
from penstock.table.read.wait import WaitPolicy, shortfall, wait_for_watermark
from penstock.table.store import MetadataStore
from penstock.table.stream.offset import Phase
from penstock.table.stream.tail import LocalStreamReader, PollOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.api.handle import TableHandle
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate


class TableStreams:
    """Streams from the table and into it: ``table.streams``."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

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
        check_classic(sdf, self._table.name, f"sdf.writeStream.format('penstock').start('{self._table.ref.location}')")
        given = texts_of(options)
        check_trigger(trigger, self._table.name)
        check_keys(given, table=self._table.name, stacklevel=3)
        check_side(given, self._table.name, Side.SINK, stacklevel=3)
        ref = self._table.ref.with_options(given)
        check_writable(ref)
        return spark_entry().write_stream(
            sdf,
            ref,
            checkpoint=checkpoint,
            trigger=trigger,
            output_mode=output_mode,
            query_name=query_name,
        )

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
        check_spark(spark, self._table.name, f"spark.readStream.format('penstock').load('{self._table.ref.location}')")
        given = texts_of(options)
        check_keys(given, table=self._table.name, stacklevel=3)
        check_side(given, self._table.name, Side.SOURCE, stacklevel=3)
        check_same_table(self._table.ref)
        return spark_entry().read_stream(
            spark, self._table.ref.with_options(given), names_of(columns), filter_of(filter, self._table.name)
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
        check_keys(given, table=self._table.name, stacklevel=3)
        check_side(given, self._table.name, Side.SOURCE, stacklevel=3)
        condition = filter_of(filter, self._table.name)
        predicate = parse_filter(condition) if isinstance(condition, str) else condition
        check_same_table(self._table.ref)
        tail = LocalStreamReader(
            self._table.ref.with_options(given),
            MetadataStore(self._table.ref),
            columns=names_of(columns),
            predicate=predicate,
            on_snapshot=None if on_snapshot is None else lambda each, phase: on_snapshot(each, phase is Phase.FULL),
        )
        return tail.read(PollOptions(interval_ms=interval_ms, once=once), limit=limit_of(limit, self._table.name))

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
            self._table.checked_store,
            wanted,
            WaitPolicy(timeout=timeout, interval=interval),
            on_poll=lambda latest: on_poll(shortfall(wanted, latest)),
        )
