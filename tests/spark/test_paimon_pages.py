"""What Paimon's three pages on append tables say: each sentence as a user tries it, and each statement unchanged."""

from __future__ import annotations

import hashlib
import json
import socket
import socketserver
import threading
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.sql_runner import EXAMPLES, SECONDS, Sql, example, new_session, wait_for

import penstock
from penstock import Catalog, DataLossError
from penstock.dialect.parse.reader import split_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from tests.spark.kafka_broker import Kafka

    from penstock import Table

pytestmark = pytest.mark.spark

NAME = "04-kafka-bounded"
ADDRESS = ("127.0.0.1", 9092)
BOUND = datetime(2025, 11, 21)  # noqa: DTZ001 - a wall clock; the bound of the example
TEXTS = {
    "01-scalable-table": "30fa3a03601bbc4ffcfa6bb94314ea40988bc7e994a41491dc9855a6b9b9dbd7",
    "02-queue": "a104d0de4a943bc47497cd4bf81f818680e2d9362b5230c0388a11175da407cf",
    "03-watermark": "b67790ca649612e902c5c0a56fabedafe5577244feaeb31aa007d885e38adac4",
    "04-kafka-bounded": "fcc98b9c4ab5fb5d3c8b4d2aa18f96bb0fd857d19b1e00e4d4f5ccc3079dd158",
}
ROWS = """
INSERT INTO T VALUES
  (1, 'x', TIMESTAMP '2026-03-08 02:01:00'), (2, 'x', TIMESTAMP '2026-03-08 02:09:59.999'),
  (NULL, 'x', TIMESTAMP '2026-03-08 02:10:00'), (3, 'x', TIMESTAMP '2026-03-08 02:19:00'),
  (4, 'y', TIMESTAMP '2026-03-08 02:30:04.999')
"""


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


@pytest.mark.usefixtures("format_streams")
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
    assert [row["next_snapshot_id"] for row in table.inspect.consumers().to_pylist()] == [5]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert penstock.Table.at(table.location).snapshots()["snapshot_id"].to_pylist() == [4]


def test_batch_appends_to_a_queue_compact_unless_it_is_write_only(catalog: Catalog) -> None:
    kept = queue_of(catalog, 6, **{"write-only": "true"})
    assert kept.files().num_rows == 6
    catalog.drop_table("d.queue")
    table = queue_of(catalog, 6)
    assert table.files().num_rows < 6
    assert table.to_arrow()["n"].to_pylist() == list(range(6))


def test_a_table_takes_the_place_of_a_directory_that_hive_wrote(sql: Sql, tmp_path: Path) -> None:
    for day, ids in (("2026-01-01", [1, 2]), ("2026-01-02", [3])):
        (tmp_path / "old" / f"dt={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), tmp_path / "old" / f"dt={day}" / "000000_0")
    sql(f"CREATE DATABASE shop; CALL sys.migrate_table('hive', '{tmp_path}/old', 'shop.t')")
    assert sql.rows("SELECT id FROM shop.t WHERE dt = '2026-01-01'") == [(1,), (2,)]
    theirs = sql.spark.read.parquet(str(tmp_path / "old")).selectExpr("id", "CAST(dt AS STRING)")
    expected = sorted(tuple(row) for row in theirs.collect())
    assert sql.rows("SELECT id, dt FROM shop.t") == expected
    sql.catalog.attach(sql.spark, "adopted")
    attached = sql.spark.table("adopted.shop.t")
    assert sorted(tuple(row) for row in attached.collect()) == expected
    assert attached.where("dt = '2026-01-02'").select("dt").collect() == [("2026-01-02",)]
    sql("INSERT INTO shop.t VALUES (4, '2026-01-03')")
    assert sql.rows("SELECT dt, COUNT(id), COUNT(*) FROM shop.t GROUP BY dt HAVING COUNT(*) > 1") == [
        ("2026-01-01", 2, 2)
    ]
    streamed = sql.streamed("SELECT id, dt FROM shop.t /*+ OPTIONS('scan.bounded' = 'true') */")
    assert streamed == sql.rows("SELECT * FROM shop.t") == [*expected, (4, "2026-01-03")]


def at(minute: int) -> datetime:
    # An hour that the session's zone has not: the clocks go forward.
    return datetime(2026, 3, 8, 2, minute)  # noqa: DTZ001 - a wall clock


def test_the_texts_are_those_that_were_given() -> None:
    found = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in EXAMPLES.glob("*.sql")}
    assert {name: found[name] for name in TEXTS} == TEXTS


@pytest.mark.parametrize(
    ("name", "table", "options"),
    [
        ("01-scalable-table", "MyTable", {"bucket": "-1"}),
        ("02-queue", "my_table", {"bucket": "8", "bucket-key": "product_id"}),
    ],
)
def test_tables_of_both_kinds_are_made(sql: Sql, name: str, table: str, options: dict[str, str]) -> None:
    sql(example(name))
    assert sql.catalog.list_tables("default") == (table,)
    made = sql.catalog.load_table(f"default.{table}")
    assert made.schema.field_names == ("product_id", "price", "sales")
    assert {key: made.options[key] for key in options} == options
    assert sql.rows(f"INSERT INTO {table} VALUES (1, 2.5, 3); SELECT * FROM {table}") == [(1, 2.5, 3)]  # noqa: S608 - of this file


def test_windows_over_a_table_count_its_rows(sql: Sql) -> None:
    create, select = (statement.text for statement in split_script(example("03-watermark")))
    assert sql.rows(f"{create}; {ROWS}; {select}") == [(at(0), at(10), 2), (at(10), at(20), 1), (at(30), at(40), 1)]


def test_windows_over_a_stream_are_emitted_when_the_tables_watermark_has_passed_them(sql: Sql, tmp_path: Path) -> None:
    create, select = (statement.text for statement in split_script(example("03-watermark")))
    sql(f"{create}; {ROWS}")
    # Half past, less a millisecond: as late as the table says, the second window may still get rows.
    assert sql.streamed(select) == [(at(0), at(10), 2), (at(10), at(20), 1)]

    bounded = select.replace("TABLE T,", "TABLE T /*+ OPTIONS('scan.bounded' = 'true') */,")
    assert bounded != select
    # As Flink prints them: the end of a bounded input closes the last window.
    assert sql.streamed(bounded) == [(at(0), at(10), 2), (at(10), at(20), 1), (at(30), at(40), 1)]

    sql("CREATE TABLE counts (window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT)")
    sql(f"SET 'execution.checkpointing.dir' = '{tmp_path}'; SET 'execution.runtime-mode' = 'streaming'")
    query = sql(f"INSERT INTO counts {select}")
    try:
        sql("RESET 'execution.runtime-mode'")
        told = [(at(0), at(10), 2), (at(10), at(20), 1)]
        wait_for(lambda: sql.rows("SELECT * FROM counts"), told)
        sql("INSERT INTO T VALUES (5, 'late', TIMESTAMP '2026-03-08 02:11:00')")
        sql("INSERT INTO T VALUES (6, 'x', TIMESTAMP '2026-03-08 02:40:05')")
        wait_for(lambda: sql.rows("SELECT * FROM counts"), [*told, (at(30), at(40), 1)])
    finally:
        query.stop()


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
