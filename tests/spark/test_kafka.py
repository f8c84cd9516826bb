"""``read_kafka`` against a real broker."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.kafka_broker import find_ports

from penstock.errors import InvalidOptionError, NotFoundError, StorageError, TableStoreError, UnsupportedFeatureError
from penstock.format.types.data_types import DataField
from penstock.format.types.ddl import parse_columns
from penstock.spark.kafka.frame import read_kafka

if TYPE_CHECKING:
    from tests.spark.kafka_broker import Kafka

FIELDS = tuple(
    DataField(id=n, name=spec.name, type=spec.type) for n, spec in enumerate(parse_columns("n BIGINT, s STRING"))
)
IMPATIENT = {"properties.default.api.timeout.ms": "2000", "properties.request.timeout.ms": "2000"}


def options_of(kafka: Kafka, topic: str, **others: str) -> dict[str, str]:
    return {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": kafka.servers,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
        **others,
    }


def numbered(*numbers: int) -> list[str]:
    return [f'{{"n": {n}, "s": "row {n}"}}' for n in numbers]


def read(kafka: Kafka, options: dict[str, str]) -> list[int]:
    """Numbers that a batch finds, sorted."""
    rows = read_kafka(kafka.spark, options, FIELDS, is_stream=False).collect()
    return sorted(row.n for row in rows)


def stream(kafka: Kafka, options: dict[str, str], checkpoint: Any) -> list[list[int]]:
    """Numbers of each micro-batch until there is nothing more, sorted."""
    batches: list[list[int]] = []
    rows = read_kafka(kafka.spark, options, FIELDS)
    query = rows.writeStream.foreachBatch(lambda df, _: batches.append(sorted(row.n for row in df.collect())))
    query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return batches


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    """A topic of two partitions: 0 to 3 in the first, 10 and 11 in the second."""
    kafka.create_topic("numbers", 2)
    kafka.produce("numbers", numbered(0, 1, 2, 3), 0)
    kafka.produce("numbers", numbered(10, 11), 1)
    return "numbers"


def test_a_batch_reads_what_is_there_and_has_only_the_declared_columns(kafka: Kafka, topic: str) -> None:
    frame = read_kafka(kafka.spark, options_of(kafka, topic), FIELDS, is_stream=False)
    assert frame.schema.simpleString() == "struct<n:bigint,s:string>"
    assert min(tuple(row) for row in frame.collect()) == (0, "row 0")
    assert read(kafka, options_of(kafka, topic)) == [0, 1, 2, 3, 10, 11]


def test_a_batch_begins_and_ends_at_offsets(kafka: Kafka, topic: str) -> None:
    start = {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "partition:0,offset:2"}
    end = {
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": "partition:0,offset:3;partition:1,offset:1",
    }
    assert read(kafka, options_of(kafka, topic, **start)) == [2, 3, 10, 11]
    assert read(kafka, options_of(kafka, topic, **end)) == [0, 1, 2, 10]
    assert read(kafka, options_of(kafka, topic, **start, **end)) == [2, 10]


def test_a_read_begins_and_ends_at_a_time(kafka: Kafka, tmp_path: Any) -> None:
    kafka.create_topic("timed")
    kafka.produce("timed", numbered(1, 2))
    time.sleep(0.05)
    between = str(time.time_ns() // 1_000_000)
    time.sleep(0.05)
    kafka.produce("timed", numbered(3))
    start = {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": between}
    end = {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": between}
    assert read(kafka, options_of(kafka, "timed", **start)) == [3]
    assert read(kafka, options_of(kafka, "timed", **end)) == [1, 2]
    assert stream(kafka, options_of(kafka, "timed", **start), tmp_path / "checkpoint") == [[3]]
    future = {**start, "scan.startup.timestamp-millis": str(time.time_ns() // 1_000_000 + 3_600_000)}
    assert not any(stream(kafka, options_of(kafka, "timed", **future), tmp_path / "later"))


def test_several_topics_are_read_by_name_and_by_pattern(kafka: Kafka) -> None:
    for number, name in enumerate(("many-a", "many-b", "many-c")):
        kafka.create_topic(name)
        kafka.produce(name, numbered(number))
    assert read(kafka, options_of(kafka, "many-a;many-c")) == [0, 2]
    options = options_of(kafka, "", **{"topic-pattern": "many-[bc]"})
    del options["topic"]
    assert read(kafka, options) == [1, 2]


def test_a_stream_goes_on_where_its_checkpoint_is_in_batches_of_the_size_asked_for(kafka: Kafka, tmp_path: Any) -> None:
    kafka.create_topic("fed")
    kafka.produce("fed", numbered(*range(5)))
    options = options_of(kafka, "fed", **{"read.stream.maxRowsPerTrigger": "2"})
    assert stream(kafka, options, tmp_path / "checkpoint") == [[0, 1], [2, 3], [4]]
    kafka.produce("fed", numbered(5))
    assert stream(kafka, options, tmp_path / "checkpoint") == [[5]]
    latest = {**options, "scan.startup.mode": "latest-offset"}
    assert not any(stream(kafka, latest, tmp_path / "new"))
    kafka.produce("fed", numbered(6))
    assert stream(kafka, latest, tmp_path / "new") == [[6]]


def test_two_queries_with_one_group_id_both_see_everything(kafka: Kafka, topic: str, tmp_path: Any) -> None:
    options = options_of(kafka, topic, **{"properties.group.id": "readers"})
    for name in ("a", "b"):
        assert stream(kafka, options, tmp_path / name) == [[0, 1, 2, 3, 10, 11]]


@pytest.mark.parametrize(
    ("others", "error", "message"),
    [
        ({"topic": "absent"}, NotFoundError, "has no topic of this name: absent; create it, or correct 'topic'"),
        ({"topic": "no topic"}, InvalidOptionError, "Kafka's client refuses its options"),
        ({"properties.request.timeout.ms": "x"}, InvalidOptionError, "Kafka's client refuses its options"),
        (
            {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "partition:7,offset:0"},
            NotFoundError,
            "topic numbers has no partition 7: it has 0, 1",
        ),
        (
            {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:1,offset:0"},
            InvalidOptionError,
            "'scan.bounded.specific-offsets' lacks these partitions of topic numbers: 0",
        ),
        ({"scan.startup.mode": "latest-offset"}, InvalidOptionError, "leaves nothing for a batch to read"),
    ],
)
def test_what_cannot_be_read_says_so_at_once(
    kafka: Kafka, topic: str, others: dict[str, str], error: type[TableStoreError], message: str
) -> None:
    with pytest.raises(error, match=f"^table shop.kafka: .*{re.escape(message)}"):
        read_kafka(kafka.spark, {**options_of(kafka, topic), **others}, FIELDS, is_stream=False, table="shop.kafka")


def test_a_stream_has_no_end(kafka: Kafka, topic: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="streams from Kafka have no end: read it as a batch"):
        read_kafka(kafka.spark, options_of(kafka, topic, **{"scan.bounded.mode": "latest-offset"}), FIELDS)


def test_a_broker_that_is_away_is_named_within_the_time_that_is_set(kafka: Kafka) -> None:
    [port] = find_ports(1)
    options = {**options_of(kafka, "numbers", **IMPATIENT), "properties.bootstrap.servers": f"127.0.0.1:{port}"}
    start = time.monotonic()
    with pytest.raises(StorageError, match=rf"^table kafka: Kafka at 127\.0\.0\.1:{port} does not answer \(") as caught:
        read_kafka(kafka.spark, options, FIELDS)
    # Kafka's own limit is 60 s.
    assert time.monotonic() - start < 30
    assert caught.value.retryable
    unknown = {**options, "properties.bootstrap.servers": "no-such-host.invalid:9092"}
    with pytest.raises(StorageError, match=r"Kafka at no-such-host\.invalid:9092 does not answer"):
        read_kafka(kafka.spark, unknown, FIELDS)
