"""Tables of Kafka records: written, and what is refused."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import TYPE_CHECKING

import pytest
from tests.spark.sql_runner import SECONDS, Sql, new_session

from penstock.errors import InvalidOptionError, InvalidSqlError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.spark.kafka_broker import Kafka

pytestmark = pytest.mark.spark


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


def test_rows_are_written_to_a_topic_and_read_back_with_their_metadata(kafka: Kafka, sql: Sql) -> None:
    kafka.create_topic("written", partitions=1)
    options = f"""'connector' = 'kafka', 'topic' = 'written', 'properties.bootstrap.servers' = '{kafka.servers}'"""
    sql(f"""CREATE TABLE k (id BIGINT, name STRING, t TIMESTAMP(3), place BIGINT METADATA FROM 'offset' VIRTUAL,
        topic STRING METADATA VIRTUAL, `partition` INT METADATA VIRTUAL,
        at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, headers MAP<STRING, BYTES> METADATA VIRTUAL,
        kind STRING METADATA FROM 'timestamp-type' VIRTUAL)
        WITH ({options}, 'format' = 'json')""")
    with pytest.raises(InvalidOptionError, match=r"'scan.startup.mode' is not set"):
        sql("SELECT * FROM k")
    sql("INSERT INTO k VALUES (1, 'one', TIMESTAMP '2026-01-01 10:00:00.5'), (2, NULL, NULL)")
    sql("""CREATE VIEW v AS
        SELECT * FROM k
        /*+ OPTIONS('scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset') */""")
    found = sql.rows("SELECT id, name, t, place, topic, `partition`, headers, kind FROM v")
    time = datetime(2026, 1, 1, 10, 0, 0, 500_000)  # noqa: DTZ001 - a wall clock
    of_all = ("written", 0, {}, "CreateTime")
    # Two tasks write at once.
    places = dict(sql.rows("SELECT id, place FROM v"))
    assert sorted(places.values()) == [0, 1]
    assert sorted(found) == [(1, "one", time, places[1], *of_all), (2, None, None, places[2], *of_all)]
    assert sql.rows("SELECT count(*) FROM v WHERE at > current_timestamp() - INTERVAL '10' MINUTE") == [(2,)]

    # From a table, as a stream, in another format.
    sql("CREATE TABLE t (id BIGINT, name STRING); INSERT INTO t VALUES (3, 'a;b'), (4, NULL)")
    kafka.create_topic("lines", partitions=1)
    lines = options.replace("written", "lines")
    sql(f"CREATE TABLE c (id BIGINT, name STRING) WITH ({lines}, 'format' = 'csv', 'csv.field-delimiter' = ';')")
    query = sql("INSERT INTO c SELECT * FROM t /*+ OPTIONS('scan.bounded' = 'true') */")
    assert query.awaitTermination(SECONDS)
    sql(f"CREATE TABLE r (line STRING) WITH ({lines}, 'format' = 'raw', 'scan.startup.mode' = 'earliest-offset')")
    found = sql.rows("SELECT line FROM r /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */")
    assert sorted(found) == [('3;"a;b"',), ("4;",)]


def test_what_kafka_cannot_take_or_show_is_refused(kafka: Kafka, sql: Sql) -> None:
    options = f"""'connector' = 'kafka', 'topic' = 'none', 'properties.bootstrap.servers' = '{kafka.servers}',
        'format' = 'json'"""
    sql(f"CREATE TABLE k (id BIGINT) WITH ({options}, 'sink.delivery-guarantee' = 'exactly-once')")
    with pytest.raises(UnsupportedFeatureError, match="Spark's sink has no transactions"):
        sql("INSERT INTO k VALUES (1)")
    sql(f"CREATE TABLE m (id BIGINT, at TIMESTAMP(3) METADATA FROM 'timestamp') WITH ({options})")
    with pytest.raises(UnsupportedFeatureError, match=r"column 'at': .*declare it VIRTUAL"):
        sql("INSERT INTO m VALUES (1)")
    sql(
        f"CREATE TABLE o (id BIGINT, at BIGINT METADATA FROM 'ofset') WITH ({options}, "
        "'scan.startup.mode' = 'latest-offset')"
    )
    with pytest.raises(InvalidOptionError, match="no metadata 'ofset': did you mean 'offset'"):
        sql("SET 'execution.runtime-mode' = 'streaming'; SELECT * FROM o")
    with pytest.raises(InvalidSqlError, match=r"a table of a catalog has none: .*EXCLUDING METADATA"):
        sql("CREATE TABLE p LIKE o (EXCLUDING OPTIONS)")
    sql("CREATE TABLE p LIKE o (EXCLUDING OPTIONS EXCLUDING METADATA)")
    assert sql.catalog.load_table("default.p").schema.field_names == ("id",)


def test_keys_are_written_and_read_back(kafka: Kafka, sql: Sql) -> None:
    kafka.create_topic("keyed", partitions=1)
    options = f"""'connector' = 'kafka', 'topic' = 'keyed', 'properties.bootstrap.servers' = '{kafka.servers}',
        'scan.startup.mode' = 'earliest-offset'"""
    keyed = "'key.format' = 'json', 'value.format' = 'csv'"
    sql(f"""CREATE TABLE k (k_id BIGINT, id STRING, k_day DATE, n INT, place BIGINT METADATA FROM 'offset' VIRTUAL)
        WITH ({options}, {keyed}, 'key.fields' = 'k_id;k_day', 'key.fields-prefix' = 'k_',
        'value.fields-include' = 'EXCEPT_KEY')""")
    sql("INSERT INTO k VALUES (1, 'a', DATE '2026-01-01', 5)")
    sql("INSERT INTO k VALUES (2, 'b', NULL, 6)")
    bound = "/*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */"
    rows = sql.rows(f"SELECT * FROM k {bound}")  # noqa: S608 - our own
    assert rows == [(1, "a", date(2026, 1, 1), 5, 0), (2, "b", None, 6, 1)]
    # What Kafka has, as another reader sees it.
    records = sql.spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    stored = records.option("subscribe", "keyed").load().orderBy("offset").selectExpr("string(key)", "string(value)")
    assert [json.loads(row.key) for row in stored.collect()] == [{"id": 1, "day": "2026-01-01"}, {"id": 2, "day": None}]
    assert [row.value for row in stored.collect()] == ["a,5", "b,6"]

    # A record without a key gives no row, as in Flink; with ALL, all columns come from the value.
    sql(f"CREATE TABLE plain (id STRING, n INT) WITH ({options}, 'format' = 'csv')")
    sql("INSERT INTO plain VALUES ('c', 7)")
    assert sql.rows(f"SELECT * FROM k {bound}") == rows  # noqa: S608 - our own
    sql(f"CREATE TABLE every (id STRING, n INT) WITH ({options}, {keyed}, 'key.fields' = 'n')")
    sql("INSERT INTO every VALUES ('d', 8)")
    assert sql.rows(f"SELECT * FROM plain {bound}")[-1] == ("d", 8)  # noqa: S608 - our own
    assert sql.rows(f"SELECT * FROM every {bound} WHERE n = 8") == [("d", 8)]  # noqa: S608 - our own
    with pytest.raises(InvalidOptionError, match="names 'x'"):
        sql(
            f"CREATE TABLE bad (id INT, at BIGINT METADATA FROM 'offset' VIRTUAL) "
            f"WITH ({options}, {keyed}, 'key.fields' = 'x')"
        )
    with pytest.raises(UnsupportedFeatureError, match="an append table has no keys"):
        sql("CREATE TABLE up (id INT) WITH ('connector' = 'upsert-kafka', 'topic' = 'keyed')")
