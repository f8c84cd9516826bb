"""What Paimon's three pages on append tables say, sentence by sentence, as a user tries it.

The statements of the pages are in ``test_sql_examples.py`` and ``test_sql_kafka.py``, with their text unchanged.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.sql_runner import SECONDS, Sql, new_session

import penstock
from penstock import Catalog, DataLossError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Table


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Iterator[Sql]:
    yield from new_session(spark, tmp_path)


@pytest.fixture
def shop(sql: Sql) -> Table:
    """Three days of ten orders, a commit each."""
    sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT, price DOUBLE, dt STRING) PARTITIONED BY (dt)")
    table = sql.catalog.load_table("shop.orders")
    for day in range(1, 4):
        ids = pa.array(range(day * 10, day * 10 + 10), pa.int64())
        table.append(pa.table({"id": ids, "price": [1.5] * 10, "dt": [f"2026-01-0{day}"] * 10}))
    return table


def queue_of(catalog: Catalog, count: int, **options: str) -> Table:
    table = catalog.create_table("d.queue", "n INT", options={"bucket": "1", "bucket-key": "n", **options})
    for n in range(count):
        table.append(pa.table({"n": pa.array([n], pa.int32())}))
    return table


def test_filters_and_columns_are_pushed_down_to_files(sql: Sql, shop: Table) -> None:
    day = "dt = '2026-01-02'"
    one_file = "after partitions: 1 partition, 1 bucket, 1 file"
    assert one_file in shop.explain(day)
    assert shop.to_arrow(columns=["id"], filter=f"{day} AND id > 25")["id"].to_pylist() == [26, 27, 28, 29]
    explained = sql("EXPLAIN SELECT id FROM shop.orders WHERE dt = '2026-01-02' AND id > 25")
    assert one_file in explained["result"][0].as_py()
    assert sql.rows("SELECT id FROM shop.orders WHERE dt = '2026-01-02' AND id > 28") == [(29,)]
    sql.catalog.attach(sql.spark, "pages")
    found = sql.spark.sql("SELECT id FROM pages.shop.orders WHERE dt = '2026-01-02' AND id > 28")
    assert [row.id for row in found.collect()] == [29]


def test_a_start_that_has_expired_fails_with_the_snapshots_that_are_there(
    spark: SparkSession, catalog: Catalog
) -> None:
    table = queue_of(catalog, 4)
    table.expire_snapshots(retain_max=2, retain_min=1)
    stream = table.read_stream(spark, {"scan.snapshot-id": "1"})
    query = stream.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException, match=r"snapshot 1, which has expired; snapshots 3 to 4 are there"):
        query.awaitTermination(SECONDS)
    with pytest.raises(DataLossError, match="snapshots 3 to 4 are there"):
        list(table.follow(options={"scan.snapshot-id": "1"}, once=True))


def test_a_queue_without_options_has_one_bucket_where_the_catalog_says_so(sql: Sql, tmp_path: Path) -> None:
    sql(f"CREATE CATALOG queues WITH ('type' = 'paimon', 'warehouse' = '{tmp_path}/q', 'table-default.bucket' = '1')")
    sql("USE CATALOG queues; CREATE TABLE events (n INT); INSERT INTO events VALUES (3); INSERT INTO events VALUES (1)")
    table = Catalog(tmp_path / "q").load_table("default.events")
    assert table.options["bucket"] == "1"
    assert table.to_arrow()["n"].to_pylist() == [3, 1]


def test_both_sinks_of_streams_compact_unless_the_table_is_write_only(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    source = queue_of(catalog, 7, **{"write-only": "true"})
    kinds = {}
    for name, options in {"sink": {}, "kept": {"write-only": "true"}}.items():
        target = catalog.create_table(f"d.{name}", "n INT", options={"bucket": "1", "bucket-key": "n", **options})
        stream = source.read_stream(spark, {"scan.mode": "earliest", "scan.max-snapshot.count": "1"})
        writer = stream.writeStream.format("penstock").option("checkpointLocation", str(tmp_path / name))
        assert writer.trigger(availableNow=True).start(target.location).awaitTermination(SECONDS)
        assert target.to_arrow()["n"].to_pylist() == list(range(7))
        kinds[name] = target.snapshots()["commit_kind"].to_pylist()
    assert kinds["kept"] == ["APPEND"] * 7
    assert kinds["sink"].count("APPEND") == 7
    assert "COMPACT" in kinds["sink"]


def test_windows_of_a_bounded_stream_are_those_of_a_batch(sql: Sql) -> None:
    sql("""CREATE TABLE clicks (k INT, t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '5' SECOND);
        INSERT INTO clicks VALUES (1, TIMESTAMP '2026-01-01 10:01:00'), (2, TIMESTAMP '2026-01-01 10:11:00')""")
    windows = "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks{}, DESCRIPTOR(t), INTERVAL '10' MINUTES))"
    grouped = f"{windows} GROUP BY window_start, window_end"
    expected = [(datetime(2026, 1, 1, 10), 1), (datetime(2026, 1, 1, 10, 10), 1)]  # noqa: DTZ001 - wall clocks
    assert sql.rows(grouped.format("")) == expected
    assert sql.streamed(grouped.format("")) == expected[:1]
    assert sql.streamed(grouped.format(" /*+ OPTIONS('scan.bounded' = 'true') */")) == expected


def test_a_job_with_a_consumer_leaves_the_position_behind_what_it_has_read(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = queue_of(catalog, 4)
    stream = table.read_stream(spark, {"consumer-id": "job", "scan.mode": "earliest"})
    query = (
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    )
    assert query.start().awaitTermination(SECONDS)
    assert [row["next_snapshot_id"] for row in table.consumers().to_pylist()] == [5]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert penstock.Table.at(table.location).snapshots()["snapshot_id"].to_pylist() == [4]
