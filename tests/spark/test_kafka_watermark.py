"""Watermarks of what is written from Kafka: the least over a topic's partitions."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.stream_feed import DONE

from penstock.format.watermark import DeclaredWatermark
from penstock.spark.kafka.frame import read_kafka
from penstock.spark.watermark.query_shape import QueryShape

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame
    from tests.spark.kafka_broker import Kafka

    from penstock import Catalog, Table

COLUMNS = "k BIGINT, t TIMESTAMP(3)"
NOON = datetime(2026, 1, 2, 12)  # noqa: DTZ001 - a wall clock
NOON_MILLIS = 1_767_355_200_000
DAY = 86_400
WATERMARK = DeclaredWatermark(column="t", delay_millis=5_000)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("d.events", COLUMNS, options={"bucket": "2", "bucket-key": "k"})


def produce(kafka: Kafka, topic: str, partition: int, *seconds: int) -> None:
    """Append rows with times in seconds after noon."""
    values = [{"k": partition, "t": f"{NOON + timedelta(seconds=each):%Y-%m-%d %H:%M:%S}"} for each in seconds]
    kafka.produce(topic, map(json.dumps, values), partition)


def read(kafka: Kafka, table: Table, topic: str) -> DataFrame:
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka.servers,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
    }
    return read_kafka(kafka.spark, options, table._ref.schema.fields, watermark=WATERMARK)


def write(table: Table, rows: DataFrame, checkpoint: Path, **how: str) -> int | None:
    """Write what is there; return the watermark of the table, in seconds after noon."""
    table.write_stream(rows, checkpoint=str(checkpoint), trigger=DONE, **how).awaitTermination()
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return None if snapshot.watermark is None else (snapshot.watermark - NOON_MILLIS) // 1000


def test_a_partition_a_day_behind_holds_the_watermark_while_it_is_silent_too(
    kafka: Kafka, table: Table, tmp_path: Path
) -> None:
    kafka.create_topic("skewed", 3)
    checkpoint = tmp_path / "checkpoint"
    produce(kafka, "skewed", 0, 0, 10)
    produce(kafka, "skewed", 1, -DAY, -DAY + 20)
    # Nobody knows where the third one begins.
    assert write(table, read(kafka, table, "skewed"), checkpoint) is None
    produce(kafka, "skewed", 2, 7)
    assert write(table, read(kafka, table, "skewed"), checkpoint) == -DAY + 15
    # Each of these is a start of its own, and the second partition is silent for all of them.
    for step in range(2):
        produce(kafka, "skewed", 0, 100 * step)
        assert write(table, read(kafka, table, "skewed"), checkpoint) == -DAY + 15
    produce(kafka, "skewed", 1, -DAY + 90)
    assert write(table, read(kafka, table, "skewed"), checkpoint) == -DAY + 85
    produce(kafka, "skewed", 1, 500)
    assert write(table, read(kafka, table, "skewed"), checkpoint) == 2
    properties = dict(table.latest_snapshot().properties)
    assert [json.loads(name)[1:] for name in json.loads(properties["penstock.upstream-times"])] == [
        ["skewed", 0],
        ["skewed", 1],
        ["skewed", 2],
    ]


def test_a_shuffle_behind_the_source_changes_nothing(kafka: Kafka, catalog: Catalog, tmp_path: Path) -> None:
    kafka.create_topic("shuffled", 2)
    table = catalog.create_table("d.counts", "k BIGINT, n BIGINT")
    events = catalog.create_table("d.like", COLUMNS)
    for seconds in (10, 40):
        produce(kafka, "shuffled", 0, seconds)
        produce(kafka, "shuffled", 1, seconds - DAY)
        counts = read(kafka, events, "shuffled").groupBy("k").agg(F.count("*").alias("n"))
        found = write(table, counts, tmp_path / "checkpoint", output_mode="complete")
        assert found == seconds - DAY - 5


def test_a_silent_partition_is_let_go_when_it_is_idle(kafka: Kafka, table: Table, tmp_path: Path) -> None:
    kafka.create_topic("idle", 2)
    produce(kafka, "idle", 0, 10)
    idle = table.with_options({"penstock.sink.watermark-idle-timeout": "1 ms"})
    assert write(table, read(kafka, table, "idle"), tmp_path / "checkpoint") is None
    produce(kafka, "idle", 0, 20)
    produce(kafka, "idle", 1, 3)
    assert write(idle, read(kafka, table, "idle"), tmp_path / "checkpoint") == -2


def test_a_partition_that_is_new_ends_it_until_the_next_start(
    kafka: Kafka, table: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create_topic("growing", 1)
    produce(kafka, "growing", 0, 10)
    rows = read(kafka, table, "growing")
    kafka.add_partitions("growing", 2)
    produce(kafka, "growing", 1, 3)
    assert write(table, rows, tmp_path / "checkpoint") is None
    assert "partitions have appeared since the query began" in caplog.text
    # What the first one had come to is known all the same.
    produce(kafka, "growing", 1, 8)
    assert write(table, read(kafka, table, "growing"), tmp_path / "checkpoint") == 3


def test_it_is_written_in_the_driver_as_other_small_batches_are(kafka: Kafka, table: Table) -> None:
    kafka.create_topic("small")
    rows = read(kafka, table, "small")
    assert [len(names) for names in QueryShape.of(rows).times.metrics.values()] == [1]
    assert rows.columns == ["k", "t"]
