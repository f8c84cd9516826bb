"""Streams of catalog tables: the source runs in the driver's process, and Spark's own reader reads the files."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.needs import needs

import penstock
from penstock.catalog.changes import AddColumn, RenameColumn
from penstock.spark.stream.progress import last_progress
from penstock.spark.versions.facts import PYTHON_SCANS
from penstock.table.stream.offset import Position

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock import Catalog, Table

BUCKETS = 4


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Catalog:
    catalog = penstock.attach(spark, tmp_path / "warehouse")
    catalog.create_database("d")
    return catalog


@pytest.fixture
def queue(catalog: Catalog) -> Table:
    """Three snapshots of 100 rows: n counts, k is the bucket key."""
    table = catalog.create_table("d.q", "n BIGINT, k INT", options={"bucket": str(BUCKETS), "bucket-key": "k"})
    for batch in range(3):
        append(table, range(100 * batch, 100 * batch + 100))
    return table


def append(table: Table, numbers: range, **more: Any) -> None:
    table.append(pa.Table.from_pylist([{"n": n, "k": n % 13, **more} for n in numbers], table.arrow_schema))


def run(frame: DataFrame, checkpoint: Path) -> tuple[StreamingQuery, dict[int, list[list[int]]]]:
    """Run a query to its end; return the numbers of each task of each batch, in their order."""
    found: dict[int, list[list[int]]] = {}

    def keep(rows: DataFrame, batch: int) -> None:
        found[batch] = [[row.n for row in part] for part in rows.rdd.glom().collect()]

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    return query, found


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait for what happens in threads of Spark's."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def flat(found: dict[int, list[list[int]]]) -> list[int]:
    return sorted(n for tasks in found.values() for task in tasks for n in task)


def failure(frame: DataFrame, checkpoint: Path) -> str:
    with pytest.raises(StreamingQueryException) as raised:
        run(frame, checkpoint)
    return str(raised.value)


def offsets(checkpoint: Path) -> list[dict[str, Any]]:
    files = sorted(
        (path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
    )
    return [json.loads(path.read_text().splitlines()[-1]) for path in files]


def test_a_queue_has_one_task_a_bucket_in_order_read_by_spark(
    spark: SparkSession, queue: Table, tmp_path: Path
) -> None:
    frame = spark.readStream.option("scan.mode", "earliest").option("maxFilesPerTrigger", "7").table("penstock.d.q")
    assert frame.isStreaming
    query, found = run(frame, tmp_path / "c")
    assert [len(tasks) for tasks in found.values()] == [BUCKETS, BUCKETS]
    assert all(task == sorted(task) for tasks in found.values() for task in tasks)
    assert flat(found) == list(range(300))
    plan = query._jsq.explainInternal(False)
    assert "MicroBatchScan" in plan
    assert "by parquet reader of Spark" in plan
    end = Position(snapshot_id=4)
    # Reports arrive after the batch.
    assert eventually(lambda: [each.position.position for each in last_progress(spark, query.id)] == [end])
    (progress,) = last_progress(spark, query.id)
    assert (progress.table, progress.snapshots_behind) == ("d.q", 0)


def test_a_checkpoint_goes_on_in_the_other_way_with_the_same_offsets(
    spark: SparkSession, queue: Table, tmp_path: Path, format_streams: None
) -> None:
    def frame(way: str, **options: str) -> DataFrame:
        reader = spark.readStream.options(**{"scan.mode": "earliest", "maxFilesPerTrigger": "5", **options})
        return reader.table("penstock.d.q") if way == "table" else reader.format("penstock").load(queue.location)

    for number, (first, second) in enumerate((("table", "path"), ("path", "table"))):
        mixed, pure = tmp_path / f"{first}-{second}", tmp_path / f"{first}-only"
        one = run(frame(first), mixed)[1]
        run(frame(first), pure)
        append(queue, range(300 + 10 * number, 310 + 10 * number))
        two = run(frame(second), mixed)[1]
        run(frame(first), pure)
        assert offsets(mixed) == offsets(pure)
        assert flat(one) + flat(two) == list(range(310 + 10 * number))
        assert min(two) == max(one) + 1


def test_a_consumer_and_bounds_work_as_for_read_stream(spark: SparkSession, queue: Table, tmp_path: Path) -> None:
    options = {"scan.mode": "earliest", "consumer-id": "c", "penstock.scan.bounded.snapshot-id": "2"}
    frame = spark.readStream.options(**options).table("penstock.d.q")
    # The query ends by itself, although its trigger does not end.
    found: dict[int, list[int]] = {}
    writer = frame.writeStream.foreachBatch(
        lambda rows, batch: found.update({batch: [row.n for row in rows.collect()]})
    )
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(processingTime="0 seconds").start()
    assert query.awaitTermination(60)
    assert sorted(n for batch in found.values() for n in batch) == list(range(200))
    assert [(row["consumer_id"], row["next_snapshot_id"]) for row in queue.inspect.consumers().to_pylist()] == [
        ("c", 3)
    ]


@needs(PYTHON_SCANS)
def test_added_columns_stay_native_and_renamed_ones_go_to_python_workers(
    spark: SparkSession, catalog: Catalog, queue: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.q")
    wider = catalog.alter_table("d.q", AddColumn(column="extra", type="INT"))
    append(wider, range(300, 310), extra=1)
    with caplog.at_level(logging.WARNING):
        assert flat(run(frame, tmp_path / "c")[1]) == list(range(310))
        assert "Python workers" not in caplog.text
        renamed = catalog.alter_table("d.q", RenameColumn(column="n", new_name="m"))
        rows = [{"m": n, "k": 1, "extra": 2} for n in range(310, 320)]
        renamed.append(pa.Table.from_pylist(rows, renamed.arrow_schema))
        query, found = run(frame, tmp_path / "c")
    assert flat(found) == list(range(310, 320))
    assert "d.q: its stream is read by Python workers" in caplog.text
    assert "a column was renamed" in query._jsq.explainInternal(False)


@needs(PYTHON_SCANS)
def test_other_formats_are_read_by_python_workers(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("d.a", "n BIGINT, k INT", options={"file.format": "avro", "bucket": "1"})
    append(table, range(50))
    assert flat(run(spark.readStream.table("penstock.d.a"), tmp_path / "c")[1]) == list(range(50))


def test_what_cannot_be_a_stream_fails_with_our_text(spark: SparkSession, queue: Table, tmp_path: Path) -> None:
    def text(name: str, **options: str) -> str:
        return failure(spark.readStream.options(**options).table("penstock.d.q"), tmp_path / name)

    assert "scan.tag-name" in text("tag", **{"scan.tag-name": "t"})
    assert "minRowsPerTrigger" in text("delay", maxTriggerDelayMs="5")
    append(queue, range(300, 301))
    begun = spark.readStream.table("penstock.d.q")
    run(begun, tmp_path / "c")
    queue.rollback_to(snapshot_id=2)
    assert "table d.q" in failure(begun, tmp_path / "c")
