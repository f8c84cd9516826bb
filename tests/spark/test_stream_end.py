"""Queries that end by themselves, behind the bound of what they read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.golden import LOCATIONS
from tests.spark.ways import STREAM_FORMAT_IF_SLOW

from penstock import Catalog, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
ALL_THE_TIME = {"processingTime": "0 seconds"}
SECONDS = 60
INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"


@pytest.fixture(autouse=True)
def told_at_once(spark: SparkSession) -> Iterator[None]:
    """Spark says only every ten seconds that a query idles."""
    spark.conf.set(INTERVAL, "500")
    yield
    spark.conf.unset(INTERVAL)


@pytest.fixture
def source(catalog: Catalog) -> Table:
    """Five commits of a row."""
    table = catalog.create_table(
        "d.source",
        "n INT, t TIMESTAMP(3)",
        watermark=("t", None),
        options={"bucket": "1", "bucket-key": "n", "write-only": "true"},
    )
    for n in range(5):
        append(table, n)
    return table


def append(table: Table, n: int) -> None:
    times = pa.array([NOON + timedelta(seconds=10 * n)], pa.timestamp("ms"))
    table.append(pa.table({"n": pa.array([n], pa.int32()), "t": times}))


def stream(source: Table, spark: SparkSession, **options: str) -> DataFrame:
    given = {"scan.mode": "earliest", "scan.max-snapshot.count": "1"}
    return source.read_stream(spark, given | {"penstock.scan.bounded.snapshot-id": "3"} | options)


def check_ended(query: StreamingQuery) -> None:
    assert query.awaitTermination(SECONDS)
    assert query.exception() is None


def numbers(table: Table) -> list[int]:
    return sorted(table.to_arrow(columns=["n"])["n"].to_pylist())


def done(checkpoint: Path) -> tuple[int, int]:
    """Batches that were begun, and that were done."""
    offsets, commits = (list((checkpoint / name).glob("[0-9]*")) for name in ("offsets", "commits"))
    return len(offsets), len(commits)


@STREAM_FORMAT_IF_SLOW
def test_a_query_ends_and_stays_ended(spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path) -> None:
    copy = catalog.create_table("d.copy", "n INT, t TIMESTAMP(3)")
    checkpoint = tmp_path / "checkpoint"
    check_ended(copy.write_stream(stream(source, spark), checkpoint=str(checkpoint), trigger=ALL_THE_TIME))
    assert numbers(copy) == [0, 1, 2]
    begun = done(checkpoint)
    assert begun[0] == begun[1]
    append(source, 9)
    check_ended(copy.write_stream(stream(source, spark), checkpoint=str(checkpoint), trigger=ALL_THE_TIME))
    assert numbers(copy) == [0, 1, 2]
    assert done(checkpoint) == begun


@STREAM_FORMAT_IF_SLOW
def test_a_query_into_another_sink_ends_too(spark: SparkSession, source: Table, tmp_path: Path) -> None:
    writer = stream(source, spark).writeStream.format("memory").queryName("ended").trigger(processingTime="0 seconds")
    check_ended(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
    assert sorted(row.n for row in spark.table("ended").collect()) == [0, 1, 2]
    spark.catalog.dropTempView("ended")


@STREAM_FORMAT_IF_SLOW
@pytest.mark.slow
def test_a_query_goes_on_while_one_of_its_sources_does(spark: SparkSession, source: Table, tmp_path: Path) -> None:
    endless = source.read_stream(spark, {"scan.mode": "earliest"})
    writer = stream(source, spark).union(endless).writeStream.format("noop").trigger(processingTime="0 seconds")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        assert not query.awaitTermination(3)
    finally:
        query.stop()


def test_windows_of_a_bounded_stream_are_all_there_at_its_end(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    flinks = Table.at(str(LOCATIONS["f_watermark"]))
    options = {"scan.mode": "earliest", "scan.max-snapshot.count": "1", "scan.bounded.watermark": "1704067285000"}
    rows = flinks.read_stream(spark, options)
    counts = rows.groupBy(F.window("order_time", "20 seconds")).agg(F.count("*").alias("n"))
    table = catalog.create_table("d.counts", "n BIGINT")
    query = table.write_stream(counts.select("n"), checkpoint=str(tmp_path / "checkpoint"), trigger=ALL_THE_TIME)
    check_ended(query)
    batch = flinks.to_arrow(snapshot_id=3)["order_time"].cast(pa.int64()).to_pylist()
    windows = [millis - millis % 20_000 for millis in batch]
    # The last ones are open as the watermark says: the end of the input closes them.
    assert max(windows) + 20_000 > max(batch) - 5_000
    assert numbers(table) == sorted(windows.count(start) for start in set(windows))


def windows_of(sdf: DataFrame) -> DataFrame:
    return sdf.groupBy(F.window("t", "20 seconds")).agg(F.count("*").cast("int").alias("n")).select("n")


def test_windows_wait_for_the_end_of_every_source_and_a_restart_delivers_what_is_left(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    target = catalog.create_table("d.counts", "n INT")
    checkpoint = str(tmp_path / "checkpoint")

    def both() -> DataFrame:
        return windows_of(stream(source, spark).union(stream(source, spark, **{"scan.max-snapshot.count": "2"})))

    # One micro-batch with all rows, so that the query stops with its sources ended and its windows open.
    check_ended(target.write_stream(both(), checkpoint=checkpoint, trigger={"once": True}))
    assert numbers(target) == []
    check_ended(target.write_stream(both(), checkpoint=checkpoint, trigger={"availableNow": True}))
    assert numbers(target) == [2, 4]
    found = target.latest_snapshot()
    assert found is not None
    # The event time of the last row, not the time to which Spark's own watermark has moved.
    assert found.watermark == 1767268820000
    check_ended(target.write_stream(both(), checkpoint=checkpoint, trigger=ALL_THE_TIME))
    assert numbers(target) == [2, 4]


def test_windows_stay_open_where_no_bound_is_declared_and_then_another_bound_goes_on(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    target = catalog.create_table("d.counts", "n INT")
    checkpoint = str(tmp_path / "checkpoint")
    without = windows_of(source.read_stream(spark, {"scan.mode": "earliest"}))
    check_ended(target.write_stream(without, checkpoint=checkpoint, trigger={"availableNow": True}))
    assert numbers(target) == [2, 2]
    append(source, 5)
    bounded = windows_of(stream(source, spark, **{"penstock.scan.bounded.snapshot-id": "6"}))
    append(source, 9)
    check_ended(target.write_stream(bounded, checkpoint=checkpoint, trigger=ALL_THE_TIME))
    assert numbers(target) == [2, 2, 2]

    later = windows_of(stream(source, spark, **{"penstock.scan.bounded.snapshot-id": "7"}))
    query = target.write_stream(later, checkpoint=checkpoint, trigger={"availableNow": True})
    with pytest.raises(StreamingQueryException, match=r"'penstock.scan.bounded.snapshot-id' = '6'.*new checkpoint"):
        query.awaitTermination(SECONDS)
    assert numbers(target) == [2, 2, 2]


@STREAM_FORMAT_IF_SLOW
def test_a_query_that_keeps_no_rows_ends_without_another_micro_batch(
    spark: SparkSession, catalog: Catalog, source: Table, tmp_path: Path
) -> None:
    copy = catalog.create_table("d.copy", "n INT, t TIMESTAMP(3)")
    checkpoint = tmp_path / "checkpoint"
    check_ended(copy.write_stream(stream(source, spark), checkpoint=str(checkpoint), trigger={"availableNow": True}))
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert '"ended": true' in newest.read_text()
    assert "closed" not in newest.read_text()
