"""What tests need of Kafka: the JARs, topics with the partitions that a test wants, rows in the partition it wants."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.interop.conftest import IS_REQUIRED, EngineMissing
from tests.support.kafka_broker import BrokerError, fetch_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

SCRIPT: Final = Path(__file__).parents[2] / "scripts" / "kafka"


@cache
def _fetch(use: str) -> tuple[Path, ...] | str:
    """Return the JARs, or why they cannot be had: nobody has to try in vain for long but once."""
    try:
        return fetch_all(use)
    except BrokerError as error:
        return str(error)


def fetched_jars(use: str) -> tuple[Path, ...]:
    """Return the JARs, or skip the test that asks for them."""
    found = _fetch(use)
    if isinstance(found, tuple):
        return found
    if IS_REQUIRED:
        pytest.fail(f"PENSTOCK_REQUIRE_INTEROP=1, but {found}", pytrace=False)
    raise EngineMissing(found)


@dataclass(frozen=True, slots=True)
class Kafka:
    """A broker, seen through the JVM of a session that has the connector."""

    spark: SparkSession
    servers: str

    def create_topic(self, name: str, partitions: int = 1) -> None:
        jvm: Any = self.spark._jvm
        with self._admin() as admin:
            topics = jvm.java.util.ArrayList()
            topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, jvm.java.lang.Short("1")))
            admin.createTopics(topics).all().get()

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Let a topic have so many."""
        jvm: Any = self.spark._jvm
        with self._admin() as admin:
            wanted = jvm.java.util.HashMap()
            wanted.put(topic, jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(partitions))
            admin.createPartitions(wanted).all().get()

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        jvm: Any = self.spark._jvm
        settings = jvm.java.util.Properties()
        settings.setProperty("bootstrap.servers", self.servers)
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            yield admin
        finally:
            admin.close()

    def produce(self, topic: str, values: Iterable[str | bytes | None], partition: int = 0) -> None:
        """Append values to a partition, in order."""
        rows = [(value.encode() if isinstance(value, str) else value, partition) for value in values]
        frame = self.spark.createDataFrame(rows, "value BINARY, partition INT").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", self.servers).option("topic", topic).save()


@contextmanager
def running_kafka(spark: SparkSession) -> Iterator[Kafka]:
    """Run a broker that the session has the connector for; or skip the tests that ask for it."""
    fetched_jars("broker")
    for jar in fetched_jars("connector"):
        spark.sql(f"ADD JAR '{jar}'")
    with subprocess.Popen([SCRIPT, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        line = broker.stdout.readline()
        assert line, "the broker did not start; its reason is on standard error"
        yield Kafka(spark, json.loads(line)["servers"])
        broker.stdin.close()
