"""Streams of catalog tables: the source runs in the driver's process, and Spark's own reader reads the files."""

from __future__ import annotations

import json
import logging
import random
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from tests.spark.needs import needs

import penstock
from penstock.catalog.changes import AddColumn, RenameColumn
from penstock.spark.stream.progress import last_progress
from penstock.spark.versions.facts import PYTHON_SCANS, STREAM_PRUNING
from penstock.table.stream.offset import Position

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock import Catalog, Table

BUCKETS = 4
KEYS = 13
TASK_A_BUCKET = {"scan.parallelism": str(BUCKETS)}


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
    table.append(pa.Table.from_pylist([{"n": n, "k": n % KEYS, **more} for n in numbers], table.arrow_schema))


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


@pytest.mark.parametrize(("options", "count"), [({}, 2), (TASK_A_BUCKET, BUCKETS)])
def test_a_queue_is_read_by_spark_in_order_in_as_many_tasks_as_there_are_cores_unless_an_option_says_more(
    spark: SparkSession, queue: Table, tmp_path: Path, options: dict[str, str], count: int
) -> None:
    streams = spark.readStream.option("scan.mode", "earliest").option("maxFilesPerTrigger", "7").options(**options)
    frame = streams.table("penstock.d.q")
    assert frame.isStreaming
    query, found = run(frame, tmp_path / "c")
    assert [len(tasks) for tasks in found.values()] == [count, count]
    by_key = [[n for n in task if n % KEYS == key] for tasks in found.values() for task in tasks for key in range(KEYS)]
    assert all(numbers == sorted(numbers) for numbers in by_key)
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


def test_added_and_renamed_columns_stay_native(
    spark: SparkSession, catalog: Catalog, queue: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.q")
    wider = catalog.alter_table("d.q", AddColumn(column="extra", type="INT"))
    append(wider, range(300, 310), extra=1)
    with caplog.at_level(logging.WARNING):
        assert flat(run(frame, tmp_path / "c")[1]) == list(range(310))
        renamed = catalog.alter_table("d.q", RenameColumn(column="n", new_name="m"))
        rows = [{"m": n, "k": n % 13, "extra": 2} for n in range(310, 320)]
        renamed.append(pa.Table.from_pylist(rows, renamed.arrow_schema))
        # The running query knows the old name, and the files have the new one.
        query, found = run(frame, tmp_path / "c")
        assert flat(found) == list(range(310, 320))
        # Files of one micro-batch have both.
        whole = spark.readStream.options(**TASK_A_BUCKET).option("scan.mode", "earliest").table("penstock.d.q")
        query, found = run(whole.select(F.col("m").alias("n"), "k"), tmp_path / "d")
    assert "Python workers" not in caplog.text
    assert "columns by the names in files of 2 schemas" in query._jsq.explainInternal(False)
    assert flat(found) == list(range(320))
    assert all(task == sorted(task) for tasks in found.values() for task in tasks)


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


def plan_of(query: StreamingQuery) -> str:
    return str(query._jsq.explainInternal(False))


def numbers(frame: DataFrame, checkpoint: Path) -> tuple[list[int], str]:
    """Run a query to its end; return its numbers in order, and the plan of its last micro-batch."""
    query, found = run(frame, checkpoint)
    return flat(found), plan_of(query)


@pytest.fixture
def events(catalog: Catalog) -> Table:
    """Two snapshots, each with a file for each of four days: n counts, s is its text, v is NULL for two thirds."""
    table = catalog.create_table(
        "d.e", "n BIGINT, p INT, s STRING, v DOUBLE, w BIGINT", partition_by=["p"], options={"write-only": "true"}
    )
    for batch in range(2):
        rows = [
            {"n": n, "p": n % 4, "s": f"t{n:03}", "v": None if n % 3 else n / 2, "w": n}
            for n in range(100 * batch, 100 * batch + 100)
        ]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    return table


@needs(STREAM_PRUNING)
@pytest.mark.parametrize(
    ("condition", "files", "columns"),
    [
        ("p = 2", 2, {"n", "p"}),
        ("p IN (1, 3) AND n >= 100", 2, {"n", "p"}),
        ("w < 100 AND p <> 0", 3, {"n", "p", "w"}),
        ("s = 't005'", 4, {"n", "s"}),
        ("p = 7", 0, {"n", "p"}),
        ("v IS NULL OR v > 1000", 8, {"n", "v"}),
        ("n + p > 150", 8, {"n", "p"}),
    ],
)
def test_a_stream_reads_the_files_and_columns_that_its_query_needs(
    spark: SparkSession, events: Table, tmp_path: Path, condition: str, files: int, columns: set[str]
) -> None:
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.e")
    found, plan = numbers(frame.where(condition).select("n"), tmp_path / "c")
    expected = spark.createDataFrame(events.to_arrow().to_pylist(), frame.schema).where(condition)
    assert found == sorted(row.n for row in expected.collect())
    (scan,) = (line for line in plan.splitlines() if "MicroBatchScan" in line and "Relation" not in line)
    assert f"stream, {files} files" in scan
    assert set(re.findall(r"(\w+)#\d+", scan)) == columns


@needs(STREAM_PRUNING)
def test_a_restart_with_another_condition_goes_on_at_the_same_offsets(
    spark: SparkSession, events: Table, tmp_path: Path
) -> None:
    def frame() -> DataFrame:
        reader = spark.readStream.options(**{"scan.mode": "earliest", "maxFilesPerTrigger": "3"})
        return reader.table("penstock.d.e")

    run(frame(), tmp_path / "all")
    for name, first, second in (("a", "p = 2", "p = 3"), ("b", "w < 100", "true"), ("c", "true", "s = 't205'")):
        early, _ = numbers(frame().where(first).select("n"), tmp_path / name)
        assert early == [row.n for row in spark.table("penstock.d.e").where(first).orderBy("n").collect()]
        events.append(
            pa.Table.from_pylist([{"n": 205, "p": p, "s": "t205", "w": 205} for p in range(4)], events.arrow_schema)
        )
        late, plan = numbers(frame().where(second).select("n", "w"), tmp_path / name)
        assert late == [205] * (1 if second == "p = 3" else 4)
        assert "left by the filter" in plan or second == "true"
        run(frame(), tmp_path / "all")
        assert offsets(tmp_path / name)[-1]["position"] == offsets(tmp_path / "all")[-1]["position"]
    pruned, whole = (offsets(tmp_path / name) for name in ("a", "all"))
    assert [each["position"] for each in pruned] == [each["position"] for each in whole[: len(pruned)]]


@needs(STREAM_PRUNING)
def test_two_scans_of_one_stream_are_not_taken_for_each_other(
    spark: SparkSession, events: Table, tmp_path: Path
) -> None:
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.e")
    once = frame.where("p = 1").select("n").repartition(2)
    found, plan = numbers(once.union(frame.where("p = 2").select("w").repartition(2)), tmp_path / "c")
    assert found == sorted(n for n in range(200) if n % 4 in {1, 2})
    assert "stream, 8 files" in plan


@needs(STREAM_PRUNING)
def test_a_stream_with_state_is_pruned_below_it(spark: SparkSession, events: Table, tmp_path: Path) -> None:
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.e").where("p = 1")
    found: list[Any] = []

    def keep(rows: DataFrame, batch: int) -> None:
        found[:] = rows.collect()

    for number, (counted, expected) in enumerate(
        (
            (frame.groupBy().count(), [(50,)]),
            (frame.groupBy("v").count().where("v IS NULL").select("count"), [(34,)]),
        )
    ):
        writer = counted.writeStream.outputMode("complete").foreachBatch(keep)
        query = writer.option("checkpointLocation", str(tmp_path / str(number))).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert [tuple(row) for row in found] == expected
        assert "stream, 2 files left by the filter" in plan_of(query)


@needs(STREAM_PRUNING)
def test_python_workers_read_what_the_query_needs(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table(
        "d.avro", "n BIGINT, k INT, s STRING", partition_by=["k"], options={"file.format": "avro"}
    )
    append(table, range(100), s="x")
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.avro")
    found, plan = numbers(frame.where("k = 4 AND n > 20").select("n"), tmp_path / "c")
    assert found == [n for n in range(21, 100) if n % 13 == 4]
    assert "stream, 1 files left by the filter" in plan
    assert "by Python workers" in plan


@needs(STREAM_PRUNING)
def test_filters_below_a_watermark_prune_files_and_those_on_its_event_time_do_not(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table(
        "d.times",
        "n BIGINT, t TIMESTAMP(3), p INT",
        partition_by=["p"],
        options={"write-only": "true"},
        watermark=("t", "INTERVAL '1' SECOND"),
    )
    for hour in range(3):
        at = datetime(2026, 3, 29, hour, 30, tzinfo=UTC).replace(tzinfo=None)
        table.append(pa.Table.from_pylist([{"n": hour, "t": at, "p": hour % 2}], table.arrow_schema))
    stream = table.with_options({"scan.mode": "earliest"}).read_stream(spark)
    limit = "timestamp_micros(unix_micros(TIMESTAMP '2026-03-29 01:00:00Z'))"
    found, plan = numbers(stream.where(f"t > {limit} AND p = 0").select("n"), tmp_path / "c")
    assert found == [2]
    assert "stream, 2 files left by the filter `p` IS NOT NULL AND `p` = 0, by" in plan


CELLS = {
    "p": [None, 0, 1],
    "a": [None, -1, 0, 5],
    "f": [None, float("nan"), -0.0, 0.0, 2.5],
    "s": [None, "", "a", "ab "],
}
TESTS = (
    "p IS NULL", "p IS NOT NULL", "p = 0", "p <> 1", "p <=> NULL", "a > 0", "a IN (-1, 5)", "NOT (a < 0 OR a IS NULL)",
    "f = 0.0", "f > 2.5", "isnan(f)", "f >= 0.0 AND p = 1", "s = ''", "s LIKE 'a%'", "s > 'a'", "a + p > 0",
    "CAST(a AS STRING) = '5'", "p = 0 OR a = 5", "coalesce(p, 9) = 9", "rand() < 2 AND p = 1",
)  # fmt: skip


@needs(STREAM_PRUNING)
def test_pruned_streams_return_the_rows_of_spark(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    choose = random.Random(7)  # noqa: S311 - data of a test
    table = catalog.create_table(
        "d.cells", "n BIGINT, p INT, a INT, f DOUBLE, s STRING", partition_by=["p"], options={"write-only": "true"}
    )
    for batch in range(6):
        kept = {name: choose.sample(values, 2) for name, values in CELLS.items()}
        rows = [{"n": 10 * batch + n, **{name: choose.choice(kept[name]) for name in CELLS}} for n in range(10)]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    stream = spark.readStream.option("scan.mode", "earliest").table("penstock.d.cells")
    rows = spark.createDataFrame(table.to_arrow().to_pylist(), stream.schema)
    for number in range(12):
        condition = " AND ".join(choose.sample(TESTS, choose.choice([1, 2])))
        found, _ = numbers(stream.where(condition).select("n"), tmp_path / str(number))
        assert found == sorted(row.n for row in rows.where(condition).collect()), condition
