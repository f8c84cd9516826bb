"""The example that reads Kafka, as it stands but for the broker's address."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.kafka_broker import Kafka, running_kafka

import penstock
from penstock import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "04-kafka-bounded.sql"


@pytest.fixture(scope="module")
def kafka(spark: SparkSession) -> Iterator[Kafka]:
    with running_kafka(spark) as broker:
        yield broker


def test_the_example_fills_a_table_from_a_topic_and_reads_it(kafka: Kafka, spark: SparkSession, tmp_path: Path) -> None:
    kafka.create_topic("orders", partitions=2)
    for part in range(2):
        values = [
            json.dumps({"user": user, "product": f"p{part}", "order_time": f"2026-01-01 00:00:0{user}"})
            for user in range(5)
        ]
        kafka.produce("orders", values, partition=part)
    script = EXAMPLE.read_text("utf-8")
    assert "127.0.0.1:9092" in script
    catalog = Catalog(str(tmp_path / "warehouse"))
    before = {query.id for query in spark.streams.active}
    rows = penstock.sql(spark, catalog, script.replace("127.0.0.1:9092", kafka.servers))
    (query,) = [query for query in spark.streams.active if query.id not in before]
    try:
        query.processAllAvailable()
        assert rows.isStreaming
        assert rows.columns == ["user", "product", "order_time"]
        assert catalog.list_tables("default") == ("paimon_table",)
        table = catalog.load_table("default.paimon_table")
        deadline = time.monotonic() + 30
        while table.latest_snapshot() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        found = table.to_arrow().to_pylist()
    finally:
        query.stop()
    assert sorted((row["product"], row["user"]) for row in found) == [
        (f"p{p}", user) for p in range(2) for user in range(5)
    ]
