"""The example that reads Kafka."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import SECONDS, Sql, example, new_session, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from tests.spark.kafka_broker import Kafka

pytestmark = pytest.mark.spark

NAME = "04-kafka-bounded"
ADDRESS = ("127.0.0.1", 9092)
BOUND = datetime(2025, 11, 21)  # noqa: DTZ001 - a wall clock; the bound of the example


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@contextmanager
def broker_at(address: tuple[str, int], kafka: Kafka) -> Iterator[None]:
    """Let clients find the broker at another address: it tells them its own, where they go on."""

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            host, _, port = kafka.servers.rpartition(":")
            with socket.create_connection((host, int(port))) as behind:
                back = threading.Thread(target=pump, args=(behind, self.request), daemon=True)
                back.start()
                pump(self.request, behind)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    try:
        server = Server(address, Forward)
    except OSError as error:
        pytest.skip(f"the address of the example, {address}, is taken: {error}")
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side has gone


def order(user: int, product: str, time: datetime) -> str:
    return json.dumps({"user": user, "product": product, "order_time": f"{time:%Y-%m-%d %H:%M:%S}"})


def produce(kafka: Kafka, product: str, time: datetime) -> None:
    """Add five orders to each of the two partitions, a second apart."""
    for part in range(2):
        values = [order(user, f"{product}{part}", time + timedelta(seconds=user)) for user in range(5)]
        kafka.produce("orders", values, partition=part)


def products(table: str, sql: Sql) -> list[object]:
    return sorted({row["product"] for row in sql.catalog.load_table(f"default.{table}").to_arrow().to_pylist()})


def test_the_example_fills_a_table_from_a_topic_and_reads_it_to_its_bound(kafka: Kafka, sql: Sql) -> None:
    script = example(NAME)
    kafka.create_topic("orders", partitions=2)
    produce(kafka, "early", BOUND - timedelta(hours=1))
    before = {query.id for query in sql.spark.streams.active}
    found: list[object] = []

    def keep(batch: DataFrame, _batch_id: int) -> None:
        found.extend(row["product"] for row in batch.collect())

    with broker_at(ADDRESS, kafka):
        rows = sql(script)
        (insert,) = [query for query in sql.spark.streams.active if query.id not in before]
        try:
            assert sql.catalog.list_tables("default") == ("paimon_table",)
            wait_for(lambda: products("paimon_table", sql), ["early0", "early1"])
            assert rows.dtypes == [("user", "bigint"), ("product", "string"), ("order_time", "timestamp_ntz")]
            bounded = rows.writeStream.foreachBatch(keep).start()
            wait_for(lambda: len(found), 10)
            assert bounded.isActive
            for product, time in (("last", BOUND), ("late", BOUND + timedelta(hours=1))):
                produce(kafka, product, time + timedelta(seconds=5))
                wait_for(lambda product=product: f"{product}1" in products("paimon_table", sql), True)  # noqa: FBT003
            assert bounded.awaitTermination(SECONDS)
        finally:
            insert.stop()
    # A partition that is ahead does not move the watermark: what it brought before the other followed is still read.
    assert {"early0", "early1"} <= set(found) <= {"early0", "early1", "last0"}


def test_what_the_example_fills_is_what_the_topic_holds(kafka: Kafka, sql: Sql) -> None:
    create, *_ = example(NAME).replace("127.0.0.1:9092", kafka.servers).replace("'orders'", "'whole'").split(";")
    kafka.create_topic("whole", partitions=1)
    kafka.produce("whole", [order(user, "p", BOUND) for user in range(3)])
    sql(create)
    bounded = "SELECT * FROM kafka_table /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */"
    assert sql.rows(bounded) == [(user, "p", BOUND) for user in range(3)]
