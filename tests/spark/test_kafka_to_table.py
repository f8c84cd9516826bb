"""From Kafka into a queue: every record once and in order, whatever happens to the query."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.needs import needs
from tests.spark.stream_feed import DONE, commits

from penstock import Catalog, CheckpointError, Table, attach
from penstock.spark.kafka.frame import read_kafka
from penstock.spark.versions.facts import PYTHON_WRITES
from penstock.table.stream_sink.committer import StreamCommitter

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark.kafka_broker import Kafka


COLUMNS = "`user` BIGINT, product STRING, order_time TIMESTAMP(3)"
NOON = datetime(2026, 1, 2, 12)  # noqa: DTZ001 - a wall clock
# Users of a partition, rows of each, and how far their events are behind.
PARTITIONS = {0: ((1, 2, 3), 80, timedelta()), 1: ((4, 5), 15, timedelta(days=1)), 2: ((6,), 3, timedelta(hours=1))}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", COLUMNS, options={"bucket": "2", "bucket-key": "user"})


def produce(kafka: Kafka, topic: str, part: int) -> list[tuple[int, str, datetime]]:
    """Produce one part of the rows; those of a user are in one partition, in the order of the result."""
    rows: list[tuple[int, str, datetime]] = []
    for partition, (users, count, behind) in PARTITIONS.items():
        found = [
            (users[n % len(users)], f"part {part} row {n}", NOON - behind + timedelta(milliseconds=n + 1))
            for n in range(count)
        ]
        values = [
            json.dumps({"product": product, "user": user, "order_time": f"{time}"[:23], "more": partition})
            for user, product, time in found
        ]
        kafka.produce(topic, values, partition)
        rows += found
    return rows


def run(kafka: Kafka, table: Table, topic: str, checkpoint: Path) -> None:
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka.servers,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
        "read.stream.maxRowsPerTrigger": "50",
    }
    rows = read_kafka(kafka.spark, options, table._ref.schema.fields)
    table.write_stream(rows, checkpoint=str(checkpoint), trigger=DONE).awaitTermination()


@pytest.mark.parametrize("when", ["before", "after"])
def test_records_of_skewed_partitions_arrive_once_and_in_order_over_a_restart(
    kafka: Kafka, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    topic, checkpoint = f"orders-{when}", tmp_path / "checkpoint"
    kafka.create_topic(topic, 3)
    produced = produce(kafka, topic, 1)
    original = StreamCommitter.commit

    def dies(self: StreamCommitter, batch: Any, messages: Any) -> Any:
        if batch.id != 1:
            return original(self, batch, messages)
        if when == "after":
            original(self, batch, messages)
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(StreamCommitter, "commit", dies)
        with pytest.raises(StreamingQueryException, match="killed"):
            run(kafka, table, topic, checkpoint)
    assert len(commits(table)) == (1 if when == "before" else 2)
    produced += produce(kafka, topic, 2)
    run(kafka, table, topic, checkpoint)
    run(kafka, table, topic, checkpoint)

    found = [tuple(row.values()) for row in table.to_arrow().to_pylist()]
    for user in range(1, 7):
        assert [row for row in found if row[0] == user] == [row for row in produced if row[0] == user]
    assert len(found) == len(produced) == 196
    assert sum(rows for _, _, rows in commits(table)) == 196
    assert [kind for _, kind, _ in commits(table)] == ["APPEND"] * len(commits(table))


def test_a_record_in_error_stops_the_query_and_names_it_and_the_table_has_what_came_before(
    kafka: Kafka, table: Table, tmp_path: Path
) -> None:
    kafka.create_topic("broken")
    kafka.produce("broken", ['{"user": 1, "product": "a", "order_time": "2026-01-02 12:00:00"}'])
    run(kafka, table, "broken", tmp_path / "checkpoint")
    kafka.produce("broken", ['{"user": 2, "product": "b"}', "no json"])
    with pytest.raises(StreamingQueryException, match="Kafka topic broken, partition 0, offset 2 is no JSON object"):
        run(kafka, table, "broken", tmp_path / "checkpoint")
    assert table.to_arrow().to_pylist() == [{"user": 1, "product": "a", "order_time": NOON}]


def test_a_query_that_reads_other_topics_is_refused_before_spark_forgets_the_old_ones(
    kafka: Kafka, table: Table, tmp_path: Path
) -> None:
    for number, topic in enumerate(("old", "other")):
        kafka.create_topic(topic)
        kafka.produce(topic, [f'{{"user": {number}, "product": "{topic}"}}'])
    run(kafka, table, "old", tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="reads the topics old, which this one does not read"):
        run(kafka, table, "other", tmp_path / "checkpoint")
    kafka.produce("old", ['{"user": 2, "product": "old"}'])
    run(kafka, table, "old", tmp_path / "checkpoint")
    assert sorted(table.to_arrow()["user"].to_pylist()) == [0, 2]
    run(kafka, table, "other;old", tmp_path / "checkpoint")
    assert sorted(table.to_arrow()["user"].to_pylist()) == [0, 1, 2]
    with pytest.raises(CheckpointError, match="reads the topics old, which"):
        run(kafka, table, "other", tmp_path / "checkpoint")


@needs(PYTHON_WRITES)
def test_a_query_of_to_table_is_refused_before_rows_and_goes_on_when_the_stored_offsets_are_deleted(
    kafka: Kafka, tmp_path: Path
) -> None:
    catalog, checkpoint = attach(kafka.spark, tmp_path / "attached"), tmp_path / "checkpoint"
    catalog.create_database("d")
    table = catalog.create_table("d.t", "value STRING")

    def run_to_table(topics: str) -> None:
        rows = kafka.spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
        rows = rows.option("subscribe", topics).option("startingOffsets", "earliest").load()
        writer = rows.selectExpr("CAST(value AS STRING) AS value").writeStream.trigger(availableNow=True)
        writer.option("checkpointLocation", str(checkpoint)).toTable("penstock.d.t").awaitTermination()

    for topic in ("kept", "left"):
        kafka.create_topic(topic)
        kafka.produce(topic, [f"{topic} 1"])
    run_to_table("kept,left")
    for topic in ("kept", "left"):
        kafka.produce(topic, [f"{topic} 2"])
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"topics left, which .* and delete offsets/1 of"):
            run_to_table("kept")
    assert len(commits(table)) == 1
    for name in ("1", ".1.crc"):
        (checkpoint / "offsets" / name).unlink(missing_ok=True)
    run_to_table("kept,left")
    assert sorted(table.to_arrow()["value"].to_pylist()) == ["kept 1", "kept 2", "left 1", "left 2"]


def test_more_digits_than_a_column_has_are_cut(kafka: Kafka, table: Table, tmp_path: Path) -> None:
    kafka.create_topic("precise")
    kafka.produce("precise", ['{"user": 1, "order_time": "2026-01-02 12:00:00.123456"}'])
    run(kafka, table, "precise", tmp_path / "checkpoint")
    assert table.to_arrow()["order_time"].to_pylist() == [NOON.replace(microsecond=123000)]
