"""Watermarks in the snapshots that a query writes."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.golden import LOCATIONS
from tests.spark.stream_feed import DONE, new_feed

from penstock import Catalog, Table
from penstock.format.watermark import DeclaredWatermark
from penstock.spark.watermark.query_shape import QueryShape, observe_times
from penstock.spark.watermark.wall_clock import as_instant, with_wall_clocks

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
NOON_MILLIS = 1_767_268_800_000
COLUMNS = "k INT, t TIMESTAMP(3)"
ONE_BY_ONE = {"scan.mode": "earliest", "scan.max-snapshot.count": "1"}


@pytest.fixture
def source(catalog: Catalog) -> Table:
    return catalog.create_table(
        "d.source", COLUMNS, watermark=("t", "INTERVAL '5' SECOND"), options={"bucket": "1", "bucket-key": "k"}
    )


def append(table: Table, *rows: tuple[int, int]) -> None:
    """Append rows of keys and seconds after noon."""
    times = [NOON + timedelta(seconds=seconds) for _, seconds in rows]
    table.append(pa.table({"k": pa.array([k for k, _ in rows], pa.int32()), "t": pa.array(times, pa.timestamp("ms"))}))


def write(table: Table, sdf: DataFrame, checkpoint: Path) -> None:
    table.write_stream(sdf, checkpoint=str(checkpoint), trigger=DONE).awaitTermination()


def watermarks(table: Table) -> list[tuple[int, int | None]]:
    """Rows that each APPEND added, and its watermark in seconds after noon."""
    return [
        (row["delta_record_count"], None if row["watermark"] is None else (row["watermark"] - NOON_MILLIS) // 1000)
        for row in table.snapshots().to_pylist()
        if row["commit_kind"] == "APPEND"
    ]


def test_wall_clocks_become_instants_and_back_without_a_loss(spark: SparkSession) -> None:
    texts = [
        "0001-01-01 00:00:00.000001",
        "1582-10-04 23:59:59.999999",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "2026-03-08 02:30:00.123456",  # this hour and the next one are special in the zone of the session
        "2026-11-01 01:30:00",
        "9999-12-31 23:59:59.999999",
        "+50000-01-01 00:00:00.000001",
    ]
    frame = spark.createDataFrame([(text,) for text in [*texts, None]], "text STRING")
    frame = frame.select("text", F.expr("CAST(text AS TIMESTAMP_NTZ) AS wanted"))
    frame = frame.withColumn("t.x", as_instant(F.col("wanted")))
    found = with_wall_clocks(frame, ["t.x"])
    assert [field.dataType.typeName() for field in found.schema.fields[1:]] == ["timestamp_ntz", "timestamp_ntz"]
    assert found.where("`t.x` = wanted").count() == len(texts)
    assert found.where("wanted IS NULL AND `t.x` IS NULL").count() == 1


def test_a_copy_of_what_flink_wrote_has_flinks_watermarks(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    flinks = Table.at(str(LOCATIONS["f_watermark"]))
    copy = catalog.create_table("d.copy", "order_id BIGINT, order_time TIMESTAMP(3), amount DECIMAL(10, 2)")
    write(copy, flinks.read_stream(spark, ONE_BY_ONE), tmp_path / "checkpoint")
    given = [row["watermark"] for row in flinks.snapshots().to_pylist() if row["delta_record_count"]]
    assert [row["watermark"] for row in copy.snapshots().to_pylist() if row["commit_kind"] == "APPEND"] == given
    assert len(set(given)) == 8


def test_time_goes_on_over_a_restart_and_over_batches_without_rows(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    copy = catalog.create_table("d.copy", COLUMNS)
    append(source, (0, 10))
    append(source, (1, 20))
    write(copy, source.read_stream(spark, ONE_BY_ONE).where("k % 2 = 0"), tmp_path / "checkpoint")
    append(source, (2, 18))
    append(source, (4, 31))
    write(copy, source.read_stream(spark, ONE_BY_ONE).where("k % 2 = 0"), tmp_path / "checkpoint")
    assert watermarks(copy) == [(1, 5), (0, 15), (1, 15), (1, 26)]


def test_the_slowest_source_holds_the_others(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    other = catalog.create_table("d.other", COLUMNS, watermark=("t", None))
    copy = catalog.create_table("d.copy", COLUMNS)
    both = [table.read_stream(spark, {"scan.mode": "earliest"}) for table in (source, other)]
    append(source, (0, 100))
    write(copy, both[0].union(both[1]), tmp_path / "checkpoint")
    append(other, (0, 7))
    write(copy, both[0].union(both[1]), tmp_path / "checkpoint")
    assert watermarks(copy) == [(1, None), (1, 7)]


def test_a_source_without_times_is_not_treated_as_far_as_the_others(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    silent = catalog.create_table("d.silent", COLUMNS)
    copy = catalog.create_table("d.copy", "k INT")
    for seconds in (100, 200, 300):
        append(source, (0, seconds))
        append(silent, (0, seconds - 100))
    both = [table.read_stream(spark, ONE_BY_ONE).select("k") for table in (source, silent)]
    write(copy, both[0].union(both[1]), tmp_path / "checkpoint")
    assert watermarks(copy) == [(2, None)] * 3


@pytest.mark.slow
def test_a_join_with_a_table_that_is_no_stream_keeps_no_rows(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    names = spark.createDataFrame([(0, "zero"), (0, "null")], "k INT, name STRING").groupBy("k").count()
    copy = catalog.create_table("d.copy", "k INT, t TIMESTAMP(3), count BIGINT")
    append(source, (0, 100))
    append(source, (0, 200))
    write(copy, source.read_stream(spark, ONE_BY_ONE).join(names, "k"), tmp_path / "checkpoint")
    assert watermarks(copy) == [(1, 95), (1, 195)]


def test_two_sources_that_read_one_partition_are_distinguished(spark: SparkSession) -> None:
    watermark = DeclaredWatermark(column="timestamp", delay_millis=0)
    rows = spark.readStream.format("rate").load()
    first, second = (observe_times(rows, watermark, {"a": F.expr("true"), "b": F.expr("false")}) for _ in range(2))
    names = QueryShape.of(first.union(second)).times.metrics.values()
    assert sorted(names) == [("a", "b"), ("a#1", "b#1")]
    assert list(names) == list(QueryShape.of(first.union(second)).times.metrics.values())


@pytest.mark.slow
def test_rows_that_an_aggregate_keeps_are_not_overtaken(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    counts = catalog.create_table("d.counts", "start TIMESTAMP(6) WITH LOCAL TIME ZONE, n BIGINT")
    for seconds in (1, 12, 25, 26, 41, 55):
        append(source, (0, seconds))
    rows = source.read_stream(spark, ONE_BY_ONE)
    windows = rows.groupBy(F.window("t", "10 seconds")).agg(F.count("*").alias("n"))
    write(counts, windows.select(F.col("window.start").alias("start"), "n"), tmp_path / "checkpoint")
    stream = [row for row in counts.snapshots().to_pylist() if row["commit_kind"] == "APPEND"]
    newest = -1
    found = 0
    for snapshot in stream:
        rows_of = counts.to_arrow(snapshot_id=snapshot["snapshot_id"]).to_pylist()
        # Windows are delivered once the watermark has passed their end, and not after a snapshot that had passed it.
        ends = [int(row["start"].timestamp() * 1000) + 10_000 for row in rows_of][found:]
        assert all(end > newest for end in ends)
        found += len(ends)
        newest = max(newest, snapshot["watermark"] or -1)
    assert found == 4
    assert newest > 0


def test_sparks_watermark_counts_where_no_table_of_ours_is_read(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    feed = new_feed(spark, tmp_path / "feed", 3, 3, 3)
    plain = catalog.create_table("d.plain", "n BIGINT")
    write(plain, feed.stream().select("n"), tmp_path / "plain")
    assert {mark for _, mark in watermarks(plain)} == {None}
    timed = catalog.create_table("d.timed", "n BIGINT")
    rows = feed.stream().withColumn("t", F.timestamp_seconds(F.col("n") + NOON_MILLIS // 1000))
    write(timed, rows.withWatermark("t", "1 second").select("n"), tmp_path / "timed")
    # Spark's is told from the batches before: those end at 2 and 5 seconds.
    assert watermarks(timed)[:3] == [(3, None), (3, 1), (3, 4)]


def drop_files(directory: Path, batch: int, *files: tuple[int, ...]) -> None:
    """Add a file for each task of one micro-batch, with seconds after noon."""
    directory.mkdir(exist_ok=True)
    for number, seconds in enumerate(files):
        lines = [json.dumps({"k": 1, "t": f"{NOON + timedelta(seconds=each):%Y-%m-%d %H:%M:%S}"}) for each in seconds]
        path = directory / f"{batch}-{number}.json"
        path.with_suffix(".aside").write_text("\n".join(lines))
        os.utime(path.with_suffix(".aside"), (1_700_000_000 + 10 * batch + number,) * 2)
        path.with_suffix(".aside").rename(path)


@pytest.mark.slow
@pytest.mark.parametrize("in_driver", [True, False])
def test_an_unknown_source_is_as_far_as_its_last_task(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_driver: bool
) -> None:
    if not in_driver:
        monkeypatch.setattr("penstock.spark.stream.row_writer.max_small_rows", lambda _: 0)
    target = catalog.create_table("d.target", COLUMNS, watermark=("t", "INTERVAL '5' SECOND"))
    feed = tmp_path / "feed"
    drop_files(feed, 0, (10, 300), (7, 20))
    drop_files(feed, 1, (400,), (22, 30))
    drop_files(feed, 2, (15,), (3,))
    schema = "k INT, t TIMESTAMP_NTZ"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).json(f"{feed}/*.json")
    write(target, rows.where("k = 1"), tmp_path / "checkpoint")
    assert watermarks(target) == [(4, 15), (3, 25), (2, 25)]


def test_after_a_shuffle_the_times_are_unknown_and_a_log_says_so(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = catalog.create_table("d.target", COLUMNS, watermark=("t", None))
    drop_files(tmp_path / "feed", 0, (10,), (20,))
    rows = spark.readStream.schema("k INT, t TIMESTAMP_NTZ").json(f"{tmp_path}/feed/*.json")
    write(target, rows.repartition(1), tmp_path / "checkpoint")
    assert watermarks(target) == [(2, None)]
    assert ["its snapshots get no watermark: its rows are shuffled" in record.message for record in caplog.records] == [
        True
    ]
