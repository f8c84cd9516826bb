"""Streaming queries that read a table, as Spark runs them. What needs no JVM is in ``test_stream_reader``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from tests.spark.ways import STREAM_BOTH_WAYS, STREAM_FORMAT_IF_SLOW

from penstock import Catalog, Table, col
from penstock.catalog.changes import AddColumn
from penstock.errors import InvalidOptionError, NotFoundError, OptionWarning, UnsupportedFeatureError
from penstock.spark.stream.progress import (
    ProgressListener,
    StreamProgress,
    decode_offset_text,
    decode_progress,
    last_progress,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

EARLIEST: Final = {"scan.mode": "earliest"}
BUCKETS: Final = 4


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


@pytest.fixture
def queue(catalog: Catalog) -> Table:
    """Three snapshots of 100 rows: n counts, k is the bucket key, p the partition."""
    options = {"bucket": str(BUCKETS), "bucket-key": "k"}
    table = catalog.create_table("d.q", "n BIGINT, k INT, p STRING", partition_by=["p"], options=options)
    for batch in range(3):
        append(table, range(100 * batch, 100 * batch + 100))
    return table


def append(table: Table, numbers: range) -> None:
    rows = [{"n": n, "k": n % 13, "p": "xy"[n % 2]} for n in numbers]
    table.append(pa.Table.from_pylist(rows, table.arrow_schema))


class Query:
    """A query that keeps the rows of each batch."""

    def __init__(self, frame: DataFrame, checkpoint: Path, **trigger: Any) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(checkpoint))
        self.running: StreamingQuery = writer.trigger(**(trigger or {"availableNow": True})).start()

    def _keep(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = frame.toArrow().to_pylist()

    def wait(self) -> Query:
        assert self.running.awaitTermination(60), self.running.status
        return self

    def has_done(self, numbers: range) -> bool:
        """Wait until these are delivered and Spark has noted their batches as done."""
        return eventually(lambda: self.numbers == list(numbers) and self._noted() == max(self.batches))

    def _noted(self) -> int:
        last = self.running.lastProgress
        return -1 if last is None else last.batchId

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]

    @property
    def numbers(self) -> list[int]:
        return sorted(row["n"] for row in self.rows)


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait for what happens in threads of Spark's."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def failure(query: StreamingQuery) -> str:
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(60)
    return str(raised.value)


@pytest.mark.usefixtures("format_streams")
def test_both_entry_points_give_the_same_rows_with_columns_and_filter(
    spark: SparkSession, queue: Table, tmp_path: Path
) -> None:
    wanted = [{"p": "x", "n": n} for n in range(100, 300, 2)]
    reader = spark.readStream.format("penstock").options(**EARLIEST).schema("p STRING, n BIGINT")
    by_path = reader.option("filter", "p = 'x' AND n >= 100").load(queue.location)
    by_table = queue.read_stream(spark, EARLIEST, columns=["p", "n"], filter=(col("p") == "x") & (col("n") >= 100))
    expression = (pc.field("p") == "x") & (pc.field("n") >= 100)
    by_expression = queue.read_stream(spark, EARLIEST, columns=["p", "n"], filter=expression)
    assert by_table.isStreaming
    assert by_path.columns == by_table.columns == ["p", "n"]
    for place, frame in enumerate((by_path, by_table, by_expression)):
        found = Query(frame, tmp_path / f"checkpoint-{place}").wait()
        assert sorted(found.rows, key=lambda row: row["n"]) == wanted
    whole = spark.readStream.format("penstock").load(queue.location)
    assert Query(whole, tmp_path / "whole").wait().numbers == list(range(300))


def name_in(way: str, table: Table) -> str:
    """The table's name in what a stream says: the format knows only its location."""
    return table.name if way == "driver" else table.location


def check_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in the tasks: one row for each with its buckets' keys and rows; breaks where rows are out of order."""
    last: dict[Any, int] = {}
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for number, key in np.column_stack((batch["n"], batch["k"])).tolist():
            assert last.get(key, -1) < number, f"row {number} of key {key} comes after {last[key]}"
            last[key] = number
    keys = pa.array([sorted(last)], pa.list_(pa.int64()))
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows]), "keys": keys})


@STREAM_BOTH_WAYS
@pytest.mark.parametrize(("options", "count"), [({}, None), ({"scan.parallelism": str(BUCKETS - 1)}, BUCKETS - 1)])
def test_tasks_of_a_parallel_sink_see_each_bucket_whole_and_in_order(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, stream_way: str, options: dict[str, str], count: int | None
) -> None:
    table = catalog.create_table("d.o", "n BIGINT, k BIGINT", options={"bucket": str(BUCKETS), "bucket-key": "k"})
    for batch in range(3):
        numbers = pa.array(range(batch * 60_000, batch * 60_000 + 60_000), pa.int64())
        table.append(pa.table({"n": numbers, "k": pc.bit_wise_and(numbers, 31)}))
    tasks: dict[int, list[Any]] = {}

    def check(frame: DataFrame, batch: int) -> None:
        tasks[batch] = frame.mapInArrow(check_order, "rows BIGINT, keys ARRAY<BIGINT>").collect()

    frame = table.read_stream(spark, {**EARLIEST, "maxFilesPerTrigger": "7", **options})
    writer = frame.writeStream.foreachBatch(check).option("checkpointLocation", str(tmp_path / "c"))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    # A source of Python does not know how many tasks run at the same time.
    count = count or (2 if stream_way == "driver" else BUCKETS)
    assert [len(found) for found in tasks.values()] == [count, count]
    assert sum(task["rows"] for found in tasks.values() for task in found) == 180_000
    assert min(task["rows"] for task in tasks[0]) > 10_000
    for found in tasks.values():
        keys = [key for task in found for key in task["keys"]]
        assert sorted(keys) == list(range(32))  # no key in two tasks


@STREAM_BOTH_WAYS
def test_limits_cut_and_progress_says_how_far_the_query_is_behind(
    spark: SparkSession, queue: Table, tmp_path: Path, stream_way: str
) -> None:
    seen: list[StreamProgress] = []
    listener = ProgressListener(seen.append)
    spark.streams.addListener(listener)
    try:
        frame = queue.read_stream(
            spark, {"read.stream.maxRowsPerTrigger": "120", "read.stream.maxFilesPerTrigger": "9"}
        )
        query = Query(frame, tmp_path / "c").wait()
        assert query.numbers == list(range(300))
        assert all(0 < len(rows) <= 120 for rows in query.batches.values())
        assert eventually(lambda: len(seen) == len(query.batches))
        progress = query.running.recentProgress
        behind = [decode_offset_text(each["sources"][0]["latestOffset"]) for each in progress]
        last = query.running.lastProgress
        assert last is not None
        assert decode_offset_text(last["sources"][0]["latestOffset"]) == behind[-1]
        delivered = 0
        for each, rows in zip(behind, query.batches.values(), strict=True):
            delivered += len(rows)
            assert (each["rows_behind"], each["snapshot"]) == (300 - delivered, 3)
        assert [each["snapshots_behind"] for each in behind][-1] == 0
        # Spark rounds its rates in one of the two.
        decoded = [replace(each, rows_per_second=0.0) for one in progress for each in decode_progress(one)]
        assert decoded == [replace(each, rows_per_second=0.0) for each in seen]
        assert seen[-1].table == name_in(stream_way, queue)
        assert seen[0].rows_per_second > 0
        assert eventually(lambda: last_progress(spark, query.running.id) == (seen[-1],))
        assert seen[-1] in last_progress(spark)
    finally:
        spark.streams.removeListener(listener)


@pytest.mark.usefixtures("format_streams")
def test_a_running_query_sees_what_is_committed_and_a_restart_goes_on_with_new_columns(
    spark: SparkSession, queue: Table, catalog: Catalog, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "c"
    frame = spark.readStream.format("penstock").load(queue.location)
    query = Query(frame, checkpoint, processingTime="0 seconds")
    assert query.has_done(range(300))
    changed = catalog.alter_table("d.q", AddColumn(column="extra", type="INT"))
    rows = [{"n": n, "k": 1, "p": "x", "extra": 7} for n in range(300, 310)]
    changed.append(pa.Table.from_pylist(rows, changed.arrow_schema))
    assert query.has_done(range(310))
    assert set(query.rows[-1]) == {"n", "k", "p"}
    query.running.stop()
    assert query.running.exception() is None
    changed.append(pa.Table.from_pylist([{"n": 310, "k": 1, "p": "x", "extra": 8}], changed.arrow_schema))
    again = Query(spark.readStream.format("penstock").load(queue.location), checkpoint, once=True).wait()
    assert again.rows == [{"n": 310, "k": 1, "p": "x", "extra": 8}]
    begins = spark.readStream.format("penstock").options(**{"scan.mode": "from-snapshot", "scan.snapshot-id": "2"})
    text = failure(Query(begins.load(queue.location), checkpoint.with_name("inferred")).running)
    assert "the table has others since" in text
    chosen = begins.schema("n BIGINT, k INT, p STRING").load(queue.location)
    assert Query(chosen, checkpoint.with_name("chosen")).wait().numbers == list(range(100, 311))


@STREAM_FORMAT_IF_SLOW
def test_a_dropped_or_replaced_table_fails_its_queries_by_name(
    spark: SparkSession, queue: Table, catalog: Catalog, tmp_path: Path, stream_way: str
) -> None:
    frame = queue.read_stream(spark)
    query = Query(frame, tmp_path / "c", processingTime="0 seconds")
    assert query.has_done(range(300))
    catalog.drop_table("d.q")
    text = failure(query.running)
    assert f"table {name_in(stream_way, queue)}" in text
    replaced = catalog.create_table("d.q", "n BIGINT, k INT, p STRING", partition_by=["p"])
    for _ in range(4):
        append(replaced, range(10))
    text = failure(Query(frame, tmp_path / "c").running)
    assert f"table {name_in(stream_way, queue)}" in text
    assert "DataLossError" in text


def consumer_of(table: Table, name: str) -> int | None:
    found = {row["consumer_id"]: row["next_snapshot_id"] for row in table.inspect.consumers().to_pylist()}
    return found.get(name)


@pytest.mark.usefixtures("format_streams")
def test_a_consumer_is_after_the_last_batch_and_belongs_to_one_query_at_a_time(
    spark: SparkSession, queue: Table, tmp_path: Path
) -> None:
    options = {**EARLIEST, "consumer-id": "c"}
    assert Query(queue.read_stream(spark, options), tmp_path / "a").wait().numbers == list(range(300))
    assert eventually(lambda: consumer_of(queue, "c") == 4)
    append(queue, range(300, 310))
    # Another checkpoint goes on where the consumer stands; the process of the first query is gone, and with it its
    # lease (tests/faults/test_lease_processes.py).
    query = Query(queue.read_stream(spark, options), tmp_path / "b", processingTime="0 seconds")
    assert query.has_done(range(300, 310))
    text = failure(
        Query(spark.readStream.format("penstock").options(**options).load(queue.location), tmp_path / "x").running
    )
    assert "LeaseHeldError" in text
    assert "'consumer-c' is in use by process" in text
    assert query.running.isActive
    append(queue, range(310, 320))
    assert query.has_done(range(300, 320))
    # The rows are out before the batch is in Spark's log; one that is stopped between is delivered again.
    query.running.processAllAvailable()
    query.running.stop()
    assert eventually(lambda: consumer_of(queue, "c") == 6)


@pytest.mark.usefixtures("format_streams")
def test_a_name_in_sparks_catalog_is_a_stream_too(spark: SparkSession, queue: Table, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE streamed USING penstock OPTIONS (path '{queue.location}')")
    try:
        assert Query(spark.readStream.table("streamed"), tmp_path / "c").wait().numbers == list(range(300))
    finally:
        spark.sql("DROP TABLE streamed")


@pytest.mark.usefixtures("format_streams")
def test_what_cannot_be_a_stream_is_refused_where_it_is_asked_for(
    spark: SparkSession, queue: Table, tmp_path: Path
) -> None:
    for options, error, text in (
        ({"scan.tag-name": "t"}, InvalidOptionError, "table d.q: .*scan.tag-name.*from-snapshot"),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"}, InvalidOptionError, "contradict|exactly one"),
        ({"scan.mode": "latest-delta"}, UnsupportedFeatureError, "batch reads"),
        ({"maxTriggerDelayMs": "5"}, InvalidOptionError, "minRowsPerTrigger"),
    ):
        with pytest.raises(error, match=text):
            queue.read_stream(spark, options)
    with pytest.raises(NotFoundError, match="no column 'm'"):
        queue.read_stream(spark, columns=["m"])
    with pytest.raises(ValueError, match="unknown column 'm'"):
        queue.read_stream(spark, filter="m = 1")
    with pytest.warns(OptionWarning, match="'target-file-size' .* no effect on a source"):
        queue.read_stream(spark, {"target-file-size": "1 mb"})
    with pytest.warns(OptionWarning, match="maxFilesPerTriger.*maxFilesPerTrigger"):
        queue.read_stream(spark, {"read.stream.maxFilesPerTriger": "1"})
    shown = spark.readStream.format("penstock").load(f"{queue.location}$snapshots")
    assert "cannot be read as a stream" in failure(Query(shown, tmp_path / "c").running)
    with pytest.raises(AnalysisException, match="NotFoundError"):
        spark.readStream.format("penstock").load(f"{queue.location}x")
