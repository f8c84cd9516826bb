"""Queries that end by themselves, behind the bound of what they read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.golden import LOCATIONS

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
        "d.source", "n INT, t TIMESTAMP(3)", watermark=("t", None), options={"bucket": "1", "bucket-key": "n"}
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


def test_a_query_into_another_sink_ends_too(spark: SparkSession, source: Table, tmp_path: Path) -> None:
    writer = stream(source, spark).writeStream.format("memory").queryName("ended").trigger(processingTime="0 seconds")
    check_ended(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
    assert sorted(row.n for row in spark.table("ended").collect()) == [0, 1, 2]


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
    latest = max(batch) - 5_000
    windows = [millis - millis % 20_000 for millis in batch]
    expected = sorted(windows.count(start) for start in set(windows) if start + 20_000 <= latest)
    assert len(expected) > 2
    assert numbers(table) == expected
