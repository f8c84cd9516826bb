"""Streams from a table and into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.arguments import (
    FLAG,
    FUNCTION,
    INTEGER,
    NAMES,
    NONE,
    NUMBER,
    TEXT,
    TIME,
    Filter,
    Names,
    Options,
    accepts,
    check_limit,
    check_spark,
    check_stream,
    check_trigger,
    encode_options,
    to_names,
    to_predicate,
)
from penstock.api.handle import TableMethods
from penstock.api.lazy import is_connect_object, lazy_spark
from penstock.catalog.checks.features import check_writable
from penstock.clocks import to_millis
from penstock.options import ReadOptions, Side, check_keys, check_side
from penstock.options.choices import ScanMode
from penstock.table.assumptions import check_same_table
from penstock.table.read.travel import resolve_default
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

    from penstock.format.snapshot import Snapshot


class TableStreams(TableMethods):
    """Streams from the table and into it."""

    @accepts(checkpoint=TEXT, output_mode=TEXT, query_name=TEXT | NONE)
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
        """Start a query that appends the rows of a streaming DataFrame exactly once, one snapshot per micro-batch.

        If Spark runs a micro-batch again, after a crash at any point or a lost log entry, the query finds it in the
        table and does not write it again. Batches without rows create no snapshot. Columns that are added to the table
        while the query runs are filled with NULL.

        Args:
            sdf: with the table's columns, matched by name in any order.
            checkpoint: a directory for this query alone, kept across restarts and tied to this table.
            trigger: one of ``{"processingTime": "10 seconds"}``, ``{"availableNow": True}``, ``{"once": True}``; None
                to start each batch when the previous one has ended.
            output_mode: ``append``, or ``complete``, in which each micro-batch replaces all rows.
            query_name: shown by Spark.
            options: of the write, such as ``{"target-file-size": "64 mb"}``.

        Raises:
            SchemaMismatchError: the columns do not match.
            CheckpointError: the checkpoint belongs to another table, to this one before it was dropped and recreated,
                or to another sink. If it was restored from an older copy, the query's first batch fails with this
                error.
            LeaseHeldError: a query with this checkpoint is already running, in this or another process.
            InvalidOptionError: not a streaming DataFrame, or an unknown trigger or output mode.
            UnsupportedFeatureError: output mode ``update``, or a table that Penstock only reads.
        """
        encoded = encode_options(options)
        check_trigger(trigger, self._handle.name)
        check_stream(sdf, self._handle.name)
        check_keys(encoded, table=self._handle.name)
        check_side(encoded, self._handle.name, Side.SINK)
        ref = self._handle.ref.with_options(encoded)
        check_writable(ref)
        request = lazy_spark.StreamWrite(
            checkpoint=checkpoint, trigger=trigger, output_mode=output_mode, query_name=query_name
        )
        start = lazy_spark.write_format_stream if is_connect_object(sdf) else lazy_spark.write_stream
        return start(sdf, ref, request)

    @accepts(columns=NAMES | NONE)
    def read_stream(
        self,
        spark: SparkSession,
        options: Options | None = None,
        *,
        columns: Names | None = None,
        filter: Filter | None = None,
    ) -> DataFrame:
        """Return a streaming DataFrame that starts as set by ``scan.mode`` and continues with every later snapshot.

        In a queue each Spark partition of a micro-batch holds whole buckets, each in write order. The columns are
        those of this handle, even if the table's columns change meanwhile.

        The stream has the watermark that the table declares. Its column is TIMESTAMP then, with the wall clock
        interpreted as UTC; with the option ``penstock.read.watermark`` = ``false`` its type is unchanged and there is
        no watermark.

        Args:
            options: of this stream, such as ``{"scan.mode": "latest-full", "read.stream.maxFilesPerTrigger": "100"}``.
            columns: names in the order wanted; None for all.
            filter: prunes partitions, buckets and files, and is applied to the rows; as for ``to_arrow``.

        Raises:
            InvalidOptionError: options that contradict each other, or that apply to batch reads only.
            NotFoundError: no such column.
            InvalidFilterError: a filter that does not fit the table.
        """
        check_spark(spark, self._handle.name)
        encoded = encode_options(options)
        check_keys(encoded, table=self._handle.name)
        check_side(encoded, self._handle.name, Side.SOURCE)
        check_same_table(self._handle.ref)
        read = lazy_spark.read_format_stream if is_connect_object(spark) else lazy_spark.read_stream
        return read(
            spark,
            self._handle.ref.with_options(encoded),
            to_names(columns),
            to_predicate(filter, self._handle.name),
        )

    @accepts(columns=NAMES | NONE, limit=INTEGER | NONE, once=FLAG, interval_ms=INTEGER, on_snapshot=FUNCTION | NONE)
    def follow(  # noqa: PLR0913 - of a command too
        self,
        columns: Names | None = None,
        filter: Filter | None = None,
        *,
        limit: int | None = None,
        options: Options | None = None,
        once: bool = False,
        interval_ms: int = 1_000,
        on_snapshot: Callable[[int, bool], None] | None = None,
    ) -> Generator[pa.RecordBatch]:
        """Read the table as a stream in this process, without Spark: the existing rows, then new ones.

        Rows are ordered by snapshot, then by partition, then by bucket, and within a bucket of a queue by write order.
        With the option ``consumer-id``, the position is stored in the table when the iterator advances past the last
        row of a snapshot, and only one reader may use that consumer. If the iterator is not read to its end, close it
        to release the consumer immediately.

        Args:
            columns: names in the order wanted; None for all.
            filter: as for ``to_arrow``.
            limit: most rows; None for all.
            options: of a stream, such as ``{"scan.mode": "latest"}`` or ``{"consumer-id": "nightly"}``.
            once: end when there are no more rows, instead of waiting for new ones.
            interval_ms: time between checks for new snapshots.
            on_snapshot: called before the rows of a snapshot with its id, and whether they are all rows of the table.

        Raises:
            NotFoundError: no such column; while reading, ``DataLossError`` if the next snapshot has expired.
            LeaseHeldError: while reading, if another reader uses this consumer.
            InvalidOptionError: options that contradict each other, or that apply to batch reads only.
            InvalidFilterError: a filter that does not fit the table.
        """
        encoded = encode_options(options)
        check_keys(encoded, table=self._handle.name)
        check_side(encoded, self._handle.name, Side.SOURCE)
        predicate = to_predicate(filter, self._handle.name)
        check_same_table(self._handle.ref)
        tail = LocalStreamReader(
            self._handle.ref.with_options(encoded),
            MetadataStore(self._handle.ref),
            columns=to_names(columns),
            predicate=predicate,
            on_snapshot=None if on_snapshot is None else lambda each, phase: on_snapshot(each, phase is Phase.FULL),
        )
        return tail.read(PollOptions(interval_ms=interval_ms, once=once), limit=check_limit(limit, self._handle.name))

    @accepts(watermark=TIME, timeout=NUMBER | NONE, interval=NUMBER, on_poll=FUNCTION)
    def wait_until(
        self,
        watermark: int | datetime,
        *,
        timeout: float | None = None,
        interval: float = 1.0,
        on_poll: Callable[[str], None] = lambda _text: None,
    ) -> Snapshot:
        """Wait until the watermark of the latest snapshot has reached a point in event time.

        That snapshot has all rows with earlier event times, except late ones. Read exactly this state with
        ``to_arrow(snapshot_id=...)``.

        Args:
            watermark: ms of event time, or a datetime, local without a zone. The event time of a column without a zone
                counts as UTC.
            timeout: seconds; None for no limit, 0 to check once.
            interval: seconds between checks; each sends three requests to the storage.
            on_poll: called after each check with a text about the current watermark.

        Returns:
            The first such snapshot that was found.

        Raises:
            TimedOutError: the watermark was not reached in time; the message has the current one.
            NotFoundError: the table was dropped.
            InvalidOptionError: a negative timeout, or an interval that is not positive.
        """
        wanted = to_millis(watermark)
        return wait_for_watermark(
            self._handle.checked_store,
            wanted,
            WaitPolicy(timeout=timeout, interval=interval),
            on_poll=lambda latest: on_poll(shortfall(wanted, latest)),
        )


def names_a_start(options: Mapping[str, str], table: str) -> bool:
    """Whether options set where a stream begins; otherwise it begins with all rows."""
    mode = resolve_default(ReadOptions.parse(options, table=table))
    return "scan.mode" in options or mode is not ScanMode.LATEST_FULL
