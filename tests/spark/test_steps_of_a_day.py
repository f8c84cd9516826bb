"""Sixty steps of a user's day, one feature each, on the version of Spark that is installed.

``make test-matrix`` runs them on the other versions. The steps follow each other: later ones read the tables of earlier
ones. A step that needs what a version does not have is refused there.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from tests.spark.plans import BY_SPARK, plan_of

import penstock
from penstock.spark.versions.facts import (
    CREATE_LIKE,
    DELTA_OPTIONS,
    OMITTED_DEFAULTS,
    PROCEDURES,
    PYTHON_SCANS,
    PYTHON_SOURCES,
    PYTHON_WRITES,
    SCHEMA_EVOLUTION,
    SHOW_COLUMNS,
    VARIANT,
    VIEWS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table
    from penstock.spark.versions.facts import Feature

_ORDERS: Final = "order_id BIGINT, product_id BIGINT, price DOUBLE, order_time TIMESTAMP(3), dt STRING"
_DAYS: Final = "id BIGINT, day STRING, n INT, v DOUBLE, dat DATE"
_QUEUE: Final = {"bucket": "4", "bucket-key": "product_id"}
_TYPES: Final = (
    "id BIGINT, boo BOOLEAN, tiny TINYINT, sm SMALLINT, num INT, flo FLOAT, dou DOUBLE, dec DECIMAL(10,2), bin BYTES, "
    "dat DATE, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(6), arr ARRAY<INT>, r ROW<a INT, b STRING>, m MAP<STRING, INT>, "
    "tm TIME, ch CHAR(3), vc VARCHAR(5)"
)
_SECONDS: Final = 60


@dataclass
class Day:
    """What the steps share."""

    spark: SparkSession
    catalog: Catalog
    folder: str
    _names: Iterator[int] = field(default_factory=lambda: iter(range(1_000)))

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return [tuple(row) for row in self.spark.sql(statement).collect()]

    def one(self, statement: str) -> Any:
        """Return the only value of a query."""
        [[value]] = self.sql(statement)
        return value

    @property
    def days(self) -> Table:
        """The table that most steps read and change."""
        return self.catalog.load_table("shop.days")

    def checkpoint(self) -> str:
        """Return a new directory for a checkpoint."""
        return f"{self.folder}/checkpoint-{next(self._names)}"

    def rows_of_stream(self, stream: DataFrame) -> int:
        """Run a stream to its end and return the number of its rows."""
        name = f"stream_{next(self._names)}"
        query = stream.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        assert query.awaitTermination(_SECONDS)
        return self.spark.table(name).count()


Step = tuple["Callable[[Day], None]", "Feature | None"]
STEPS: Final[list[Step]] = []


def step(feature: Feature | None = None) -> Callable[[Callable[[Day], None]], Callable[[Day], None]]:
    """Declare a step, and what it needs of Spark."""

    def declare(function: Callable[[Day], None]) -> Callable[[Day], None]:
        STEPS.append((function, feature))
        return function

    return declare


@pytest.fixture(scope="module")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """Return the day of a warehouse that is attached as ``penstock``."""
    folder = tmp_path_factory.mktemp("day")
    return Day(spark, penstock.attach(spark, folder / "warehouse"), str(folder))


@step()
def tables_are_made_in_python(day: Day) -> None:
    day.catalog.create_database("shop", if_not_exists=True)
    day.catalog.create_table("shop.orders", _ORDERS, partition_by=["dt"], options=_QUEUE)
    days = day.catalog.create_table("shop.days", _DAYS, partition_by=["day"])
    for number in range(4):
        rows = {
            "id": pa.array([number * 10 + each for each in range(4)], pa.int64()),
            "day": [f"d{number}"] * 4,
            "n": pa.array([number * 100] * 4, pa.int32()),
            "v": [number + 0.5] * 4,
            "dat": pa.array([dt.date(2026, 1, 1 + number)] * 4),
        }
        days.append(pa.table(rows))
    assert days.to_arrow().num_rows == 16


@step()
def values_are_inserted(day: Day) -> None:
    day.sql(
        "INSERT INTO penstock.shop.orders VALUES (4, 8, 2.5D, TIMESTAMP_NTZ '2026-01-02 10:00:00', '2026-01-02'), "
        "(5, 9, 3.5D, TIMESTAMP_NTZ '2026-01-02 10:00:00', '2026-01-03')"
    )
    assert day.one("SELECT count(*) FROM penstock.shop.orders") == 2


@step()
def a_filter_prunes_files(day: Day) -> None:
    frame = day.spark.sql("SELECT id FROM penstock.shop.days WHERE day = 'd2' AND id > 20")
    assert "1 of 4 files" in plan_of(frame)
    assert BY_SPARK in plan_of(frame)
    assert sorted(row[0] for row in frame.collect()) == [21, 22, 23]


@step()
def aggregates_come_from_metadata(day: Day) -> None:
    frame = day.spark.sql("SELECT count(*), min(id), max(id) FROM penstock.shop.days")
    assert frame.collect() == [(16, 0, 33)]
    assert "LocalTableScan" in plan_of(frame)


@step()
def a_limit_ends_early(day: Day) -> None:
    assert len(day.sql("SELECT id FROM penstock.shop.days LIMIT 3")) == 3


@step()
def a_join_prunes_partitions(day: Day) -> None:
    day.catalog.create_table("shop.names", "day STRING, name STRING").append(
        pa.table({"day": ["d1", "d2"], "name": ["one", "two"]})
    )
    frame = day.spark.sql(
        "SELECT /*+ BROADCAST(n) */ t.id FROM penstock.shop.days t JOIN penstock.shop.names n ON t.day = n.day "
        "WHERE n.name = 'two'"
    )
    assert sorted(row[0] for row in frame.collect()) == [20, 21, 22, 23]
    assert "dynamicpruning" in plan_of(frame)


@step()
def queries_travel_in_time(day: Day) -> None:
    day.days.create_tag("two", snapshot_id=2)
    assert day.one("SELECT count(*) FROM penstock.shop.days VERSION AS OF 2") == 8
    assert day.one("SELECT count(*) FROM penstock.shop.days VERSION AS OF 'two'") == 8
    assert day.one("SELECT count(*) FROM penstock.shop.days TIMESTAMP AS OF now()") == 16


@step()
def options_travel_in_time(day: Day) -> None:
    assert day.spark.read.option("scan.snapshot-id", 1).table("penstock.shop.days").count() == 4


@step(DELTA_OPTIONS)
def options_of_others_travel_in_time(day: Day) -> None:
    assert day.spark.read.option("versionAsOf", 3).table("penstock.shop.days").count() == 12


@step()
def changes_between_snapshots_are_read(day: Day) -> None:
    assert day.spark.read.option("incremental-between", "1,3").table("penstock.shop.days").count() == 8


@step()
def system_tables_are_read(day: Day) -> None:
    assert day.spark.table("penstock.shop.days.snapshots").count() == 4
    assert day.spark.table("penstock.shop.`days$files`").count() == 4


@step()
def names_are_shown(day: Day) -> None:
    assert ("shop",) in day.sql("SHOW NAMESPACES IN penstock")
    assert {row[1] for row in day.sql("SHOW TABLES IN penstock.shop")} >= {"orders", "days"}
    for statement in ("DESCRIBE TABLE EXTENDED", "SHOW CREATE TABLE", "SHOW TBLPROPERTIES"):
        assert day.sql(f"{statement} penstock.shop.orders")
    assert day.sql("DESCRIBE NAMESPACE penstock.shop")


@step(SHOW_COLUMNS)
def columns_are_shown(day: Day) -> None:
    assert [row[0] for row in day.sql("SHOW COLUMNS IN penstock.shop.days")] == ["id", "day", "n", "v", "dat"]


@step()
def the_catalog_is_the_current_one(day: Day) -> None:
    day.spark.catalog.setCurrentCatalog("penstock")
    day.sql("USE penstock.shop")
    assert day.one("SELECT count(*) FROM days") == 16
    day.sql("USE spark_catalog.default")


@step()
def tables_are_made_in_sql(day: Day) -> None:
    day.sql("CREATE DATABASE IF NOT EXISTS penstock.s2")
    day.sql("CREATE TABLE penstock.s2.sales (id BIGINT, dt STRING) PARTITIONED BY (dt) TBLPROPERTIES ('bucket' = '-1')")
    day.sql("CREATE TABLE penstock.s2.b (k BIGINT, v STRING) CLUSTERED BY (k) INTO 4 BUCKETS")
    assert day.catalog.load_table("s2.b").options["bucket"] == "4"


@step()
def a_query_is_inserted(day: Day) -> None:
    day.sql("INSERT INTO penstock.s2.sales SELECT id, concat('d', id % 3) FROM range(9)")
    assert day.one("SELECT count(*) FROM penstock.s2.sales") == 9


@step()
def a_named_partition_is_replaced(day: Day) -> None:
    day.sql("INSERT OVERWRITE penstock.s2.sales PARTITION (dt = 'd2') VALUES (30), (31)")
    assert day.one("SELECT count(*) FROM penstock.s2.sales") == 8


@step()
def columns_are_inserted_by_name(day: Day) -> None:
    day.sql("INSERT INTO penstock.s2.sales (dt, id) VALUES ('d9', 90)")
    day.sql("INSERT INTO penstock.s2.sales BY NAME SELECT 'd9' AS dt, 91L AS id")
    assert sorted(day.sql("SELECT id FROM penstock.s2.sales WHERE dt = 'd9'")) == [(90,), (91,)]


@step(PYTHON_WRITES)
def partitions_of_the_rows_are_replaced(day: Day) -> None:
    day.spark.sql("SELECT 77L AS id, 'd1' AS dt").writeTo("penstock.s2.sales").overwritePartitions()
    assert day.sql("SELECT id FROM penstock.s2.sales WHERE dt = 'd1'") == [(77,)]


@step()
def matching_partitions_are_replaced(day: Day) -> None:
    day.sql("INSERT INTO penstock.s2.sales REPLACE WHERE dt = 'd1' SELECT 78L, 'd1'")
    assert day.sql("SELECT id FROM penstock.s2.sales WHERE dt = 'd1'") == [(78,)]


@step()
def frames_are_appended_by_name(day: Day) -> None:
    rows = day.spark.range(3).selectExpr("id", "'w' AS dt")
    rows.writeTo("penstock.s2.sales").append()
    rows.write.mode("append").saveAsTable("penstock.s2.sales")
    rows.write.insertInto("penstock.s2.sales")
    assert day.one("SELECT count(*) FROM penstock.s2.sales WHERE dt = 'w'") == 9


@step()
def rows_are_deleted_by_filters(day: Day) -> None:
    day.sql("DELETE FROM penstock.s2.sales WHERE dt = 'd0'")
    day.sql("DELETE FROM penstock.s2.sales WHERE id = 78")
    assert day.one("SELECT count(*) FROM penstock.s2.sales WHERE dt = 'd0' OR id = 78") == 0


@step()
def rows_are_deleted_by_functions(day: Day) -> None:
    day.sql("DELETE FROM penstock.s2.sales WHERE length(dt) = 1 AND id % 2 = 0")
    assert day.sql("SELECT id FROM penstock.s2.sales WHERE dt = 'w'") == [(1,)] * 3


@step()
def rows_are_deleted_by_queries(day: Day) -> None:
    before = day.one("SELECT count(*) FROM penstock.s2.sales")
    day.sql("DELETE FROM penstock.s2.sales WHERE id IN (SELECT id FROM range(31, 32))")
    assert day.one("SELECT count(*) FROM penstock.s2.sales WHERE id = 31") == 0
    assert day.one("SELECT count(*) FROM penstock.s2.sales") == before - 1


@step()
def rows_are_updated(day: Day) -> None:
    day.sql("UPDATE penstock.shop.days SET v = v + 1 WHERE id % 2 = 1 AND day = 'd1'")
    assert day.sql("SELECT id, v FROM penstock.shop.days WHERE day = 'd1' ORDER BY id") == [
        (10, 1.5),
        (11, 2.5),
        (12, 1.5),
        (13, 2.5),
    ]


@step()
def rows_of_several_partitions_are_updated(day: Day) -> None:
    day.sql("UPDATE penstock.shop.days SET n = n + 1 WHERE id % 10 = 3")
    rows = day.sql("SELECT id, n FROM penstock.shop.days ORDER BY id")
    assert rows == [(10 * d + i, 100 * d + (i == 3)) for d in range(4) for i in range(4)]


@step()
def rows_are_merged(day: Day) -> None:
    day.sql("CREATE TABLE penstock.s2.fixes (id BIGINT, v DOUBLE)")
    day.sql("INSERT INTO penstock.s2.fixes VALUES (10, 100D), (99, 9D), (20, -1D)")
    day.sql(
        "MERGE INTO penstock.shop.days t USING penstock.s2.fixes s ON t.id = s.id "
        "WHEN MATCHED AND s.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, day, n, v, dat) VALUES (s.id, 'd9', 0, s.v, NULL)"
    )
    ids = [10 * d + i for d in range(4) for i in range(4) if (d, i) != (2, 0)]
    assert [row[0] for row in day.sql("SELECT id FROM penstock.shop.days ORDER BY id")] == [*ids, 99]
    assert day.sql("SELECT id, v FROM penstock.shop.days WHERE id IN (10, 99) ORDER BY id") == [(10, 100.0), (99, 9.0)]


@step()
def rows_without_a_match_are_deleted(day: Day) -> None:
    day.sql(
        "MERGE INTO penstock.shop.days t USING penstock.s2.fixes s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND t.day = 'd3' THEN DELETE"
    )
    assert day.one("SELECT count(*) FROM penstock.shop.days") == 12
    assert day.one("SELECT count(*) FROM penstock.shop.days WHERE day = 'd3'") == 0


@step()
def a_merge_without_a_match_changes_no_row(day: Day) -> None:
    before = sorted(day.sql("SELECT * FROM penstock.shop.days"), key=str)
    day.sql(
        "MERGE INTO penstock.shop.days t USING penstock.s2.fixes s ON t.id = s.id + 100000 "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    assert sorted(day.sql("SELECT * FROM penstock.shop.days"), key=str) == before


@step(SCHEMA_EVOLUTION)
def a_merge_adds_columns(day: Day) -> None:
    day.catalog.create_table("s2.evolving", "id BIGINT, v DOUBLE").append([{"id": 10, "v": 1.0}])
    day.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO penstock.s2.evolving t USING (SELECT 10L AS id, 2D AS v, 'new' AS note) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    )
    assert day.sql("SELECT * FROM penstock.s2.evolving") == [(10, 2.0, "new")]


@step()
def partitions_are_dropped(day: Day) -> None:
    assert ("dt=w",) in day.sql("SHOW PARTITIONS penstock.s2.sales")
    day.sql("ALTER TABLE penstock.s2.sales DROP PARTITION (dt = 'w')")
    day.sql("TRUNCATE TABLE penstock.s2.sales PARTITION (dt = 'd9')")
    assert day.one("SELECT count(*) FROM penstock.s2.sales WHERE dt IN ('w', 'd9')") == 0
    day.sql("TRUNCATE TABLE penstock.s2.sales")
    assert day.one("SELECT count(*) FROM penstock.s2.sales") == 0


@step()
def columns_and_options_are_altered(day: Day) -> None:
    for change in (
        "ADD COLUMN note STRING",
        "ALTER COLUMN note SET DEFAULT 'none'",
        "RENAME COLUMN note TO remark",
        "SET TBLPROPERTIES ('snapshot.num-retained.max' = '70')",
        "ALTER COLUMN remark COMMENT 'c'",
        "RENAME TO s2.sales2",
    ):
        day.sql(f"ALTER TABLE penstock.s2.sales {change}")
    day.sql("ALTER TABLE penstock.s2.sales2 RENAME TO s2.sales")
    assert day.spark.table("penstock.s2.sales").columns == ["id", "dt", "remark"]


@step()
def a_default_is_inserted(day: Day) -> None:
    day.sql("INSERT INTO penstock.s2.sales (id, dt, remark) VALUES (41, 'd3', DEFAULT)")
    assert day.sql("SELECT remark FROM penstock.s2.sales WHERE id = 41") == [("none",)]


@step(OMITTED_DEFAULTS)
def a_column_with_a_default_is_omitted(day: Day) -> None:
    day.sql("INSERT INTO penstock.s2.sales (id, dt) VALUES (40, 'd3')")
    assert day.sql("SELECT remark FROM penstock.s2.sales WHERE id = 40") == [("none",)]


@step()
def tables_are_made_of_queries(day: Day) -> None:
    day.sql("CREATE TABLE penstock.s2.totals AS SELECT day, count(*) AS n FROM penstock.shop.days GROUP BY day")
    day.sql("CREATE OR REPLACE TABLE penstock.s2.totals AS SELECT day, n, n * 2 AS twice FROM penstock.s2.totals")
    assert day.spark.table("penstock.s2.totals").columns == ["day", "n", "twice"]
    assert day.spark.table("penstock.s2.totals").where("twice = 2 * n").count() == 4
    day.sql("REPLACE TABLE penstock.s2.totals (a INT)")
    assert day.spark.table("penstock.s2.totals").columns == ["a"]


@step()
def tables_are_made_of_frames(day: Day) -> None:
    day.spark.range(5).writeTo("penstock.s2.saved2").using("penstock").create()
    day.spark.range(2).writeTo("penstock.s2.saved2").using("penstock").createOrReplace()
    assert day.spark.table("penstock.s2.saved2").count() == 2


@step(PYTHON_SOURCES)
def tables_are_saved(day: Day) -> None:
    day.spark.range(5).write.format("penstock").saveAsTable("penstock.s2.saved")
    assert day.spark.table("penstock.s2.saved").count() == 5


@step(CREATE_LIKE)
def tables_are_made_like_others(day: Day) -> None:
    day.sql("CREATE TABLE penstock.s2.liked LIKE penstock.shop.days")
    assert day.spark.table("penstock.s2.liked").columns == day.spark.table("penstock.shop.days").columns


@step(VIEWS)
def views_are_made_and_read(day: Day) -> None:
    day.sql("CREATE VIEW penstock.s2.recent (n) AS SELECT id FROM penstock.shop.days WHERE day = 'd2'")
    assert day.spark.table("penstock.s2.recent").count() == 3
    assert [row[1] for row in day.sql("SHOW VIEWS IN penstock.s2")] == ["recent"]
    day.sql("DROP VIEW penstock.s2.recent")


@step(PROCEDURES)
def procedures_merge_files(day: Day) -> None:
    assert day.sql("CALL penstock.sys.compact(table => 'shop.days')")


@step(PROCEDURES)
def procedures_make_tags(day: Day) -> None:
    day.sql("CALL penstock.sys.create_tag('shop.days', 'tagged')")
    assert "tagged" in day.days.inspect.tags()["tag_name"].to_pylist()


@step()
def tables_are_cached(day: Day) -> None:
    day.sql("CACHE TABLE penstock.shop.days")
    assert day.one("SELECT count(*) FROM penstock.shop.days") == 12
    day.days.append([{"id": 500, "day": "d2", "n": None, "v": None, "dat": None}])
    assert day.one("SELECT count(*) FROM penstock.shop.days") == 13
    day.sql("DELETE FROM penstock.shop.days WHERE id = 500")
    assert day.one("SELECT count(*) FROM penstock.shop.days") == 12
    day.sql("REFRESH TABLE penstock.shop.days")
    day.sql("UNCACHE TABLE penstock.shop.days")


@step()
def tables_are_streams(day: Day) -> None:
    assert day.rows_of_stream(day.spark.readStream.option("scan.mode", "earliest").table("penstock.shop.orders")) == 2


@step(PYTHON_WRITES)
def streams_are_written_by_name(day: Day) -> None:
    day.sql("CREATE TABLE penstock.s2.copy (id BIGINT, day STRING)")
    rows = day.spark.readStream.table("penstock.shop.days").select("id", "day")
    writer = rows.writeStream.option("checkpointLocation", day.checkpoint()).trigger(availableNow=True)
    assert writer.toTable("penstock.s2.copy").awaitTermination(_SECONDS)
    assert day.one("SELECT count(*) FROM penstock.s2.copy") == 12


@step()
def streams_have_several_batches(day: Day) -> None:
    table = day.catalog.create_table("shop.multi", "id BIGINT", options={"scan.mode": "earliest"})
    copy = day.catalog.create_table("shop.multi_copy", "id BIGINT")
    for number in range(3):
        table.append([{"id": number}])
    stream = table.with_options({"read.stream.maxFilesPerTrigger": "1"}).read_stream(day.spark)
    query = copy.write_stream(stream, checkpoint=day.checkpoint(), trigger={"processingTime": "200 milliseconds"})
    _wait_for(copy, 3)
    table.append([{"id": 9}])
    _wait_for(copy, 4)
    query.stop()
    assert copy.to_arrow()["id"].to_pylist() == [0, 1, 2, 9]


@step()
def queues_are_copied_by_streams(day: Day) -> None:
    copy = day.catalog.create_table("shop.orders_copy", _ORDERS, partition_by=["dt"], options=_QUEUE)
    stream = day.catalog.load_table("shop.orders").read_stream(day.spark)
    copy.write_stream(stream, checkpoint=day.checkpoint(), trigger={"availableNow": True}).awaitTermination()
    assert copy.to_arrow().num_rows == 2


@step()
def scalable_tables_are_copied_by_streams(day: Day) -> None:
    copy = day.catalog.create_table("shop.days_copy", _DAYS, partition_by=["day"])
    stream = day.days.read_stream(day.spark)
    copy.write_stream(stream, checkpoint=day.checkpoint(), trigger={"availableNow": True}).awaitTermination()
    assert copy.to_arrow().sort_by("id") == day.days.to_arrow().sort_by("id")


@step()
def windows_are_counted(day: Day) -> None:
    events = day.catalog.create_table("shop.events", "id BIGINT, t TIMESTAMP(3)")
    times = [dt.datetime(2026, 1, 1, 10, minute) for minute in range(10)]  # noqa: DTZ001 - the type has no zone
    events.append(pa.table({"id": pa.array(range(10), pa.int64()), "t": pa.array(times, pa.timestamp("ms"))}))
    stream = events.read_stream(day.spark).withColumn("tt", F.col("t").cast("timestamp"))
    counts = stream.withWatermark("tt", "1 minute").groupBy(F.window("tt", "2 minutes")).count()
    writer = counts.writeStream.format("memory").queryName("windows").outputMode("append").trigger(availableNow=True)
    assert writer.start().awaitTermination(_SECONDS)
    assert day.spark.table("windows").count() == 4


@step()
def batches_of_streams_are_functions(day: Day) -> None:
    seen = []

    def count_days(frame: DataFrame, _: int) -> None:
        seen.append(frame.sparkSession.sql("SELECT count(*) FROM penstock.shop.days").first()[0])  # type: ignore[index]

    stream = day.catalog.load_table("shop.orders").read_stream(day.spark)
    assert stream.writeStream.foreachBatch(count_days).trigger(availableNow=True).start().awaitTermination(_SECONDS)
    assert seen == [12]


@step(PYTHON_SOURCES)
def the_format_reads(day: Day) -> None:
    penstock.register(day.spark)
    location = day.days.location
    frame = day.spark.read.format("penstock").load(location)
    assert (frame.count(), frame.where("day = 'd2'").count()) == (12, 3)
    assert day.spark.read.format("penstock").load(f"{location}$snapshots").count() >= 4
    assert day.spark.read.format("penstock").option("versionAsOf", 2).load(location).count() == 8


@step(PYTHON_SOURCES)
def the_format_writes(day: Day) -> None:
    table = day.catalog.create_table("shop.f1", "id BIGINT, dt STRING", partition_by=["dt"])
    rows = day.spark.range(10).selectExpr("id", "'a' AS dt")
    rows.write.format("penstock").mode("append").save(table.location)
    assert table.to_arrow().num_rows == 10
    rows.limit(3).write.format("penstock").mode("overwrite").save(table.location)
    assert table.to_arrow().num_rows == 3


@step(PYTHON_SOURCES)
def streams_of_the_format_are_refused_with_the_call_to_use(day: Day) -> None:
    stream = day.spark.readStream.format("penstock").load(day.days.location)
    with pytest.raises(Exception, match="read_stream"):
        day.rows_of_stream(stream)


@step()
def tables_are_frames(day: Day) -> None:
    assert day.days.to_spark(day.spark, filter="day = 'd2'").count() == 3
    frame = day.days.to_spark(day.spark).where("day = 'd2'")
    assert "1 of" in plan_of(frame)
    assert frame.count() == 3


@step()
def frames_are_appended(day: Day) -> None:
    rows = day.spark.range(10).selectExpr("id", "concat('p', id % 2) AS dt")
    for name, options, keys in (("a1", {}, ["dt"]), ("a2", {"bucket": "2", "bucket-key": "id"}, [])):
        table = day.catalog.create_table(f"shop.{name}", "id BIGINT, dt STRING", partition_by=keys, options=options)
        table.append(rows)
        assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(10))


@step()
def files_are_merged_on_executors(day: Day) -> None:
    table = day.catalog.load_table("shop.a1")
    for number in range(6):
        table.append([{"id": number, "dt": "p0"}])
    before = table.to_arrow().sort_by([("id", "ascending"), ("dt", "ascending")])
    table.compact(day.spark, strategy="full")
    assert table.to_arrow().sort_by([("id", "ascending"), ("dt", "ascending")]) == before


@step()
def rows_are_sorted_on_executors(day: Day) -> None:
    table = day.catalog.load_table("shop.a1")
    before = sorted(table.to_arrow()["id"].to_pylist())
    table.compact(day.spark, order_strategy="zorder", order_by=["id"])
    assert sorted(table.to_arrow()["id"].to_pylist()) == before


@step()
def penstock_runs_sql(day: Day) -> None:
    found = penstock.sql(day.spark, day.catalog, "SELECT day, count(*) AS c FROM shop.days GROUP BY day")
    assert found is not None
    penstock.sql(day.spark, day.catalog, "INSERT INTO shop.a1 SELECT id, day FROM shop.days")
    assert day.catalog.load_table("shop.a1").to_arrow().num_rows == 28


@step(PYTHON_SCANS)
def other_formats_are_read(day: Day) -> None:
    for file_format, by_spark in (("orc", True), ("avro", False)):
        options = {"file.format": file_format}
        table = day.catalog.create_table(f"shop.{file_format}t", "id BIGINT, s STRING", options=options)
        table.append([{"id": 1, "s": "x"}, {"id": 2, "s": "y"}])
        frame = day.spark.table(f"penstock.shop.{file_format}t").where("id = 2")
        assert frame.collect() == [(2, "y")]
        assert (BY_SPARK in plan_of(frame)) == by_spark


@step(PYTHON_SCANS)
def all_types_come_and_go(day: Day) -> None:
    table = day.catalog.create_table("shop.types", _TYPES)
    row = {
        "id": 1,
        "boo": True,
        "tiny": 1,
        "sm": 2,
        "num": 3,
        "flo": 1.5,
        "dou": 2.5,
        "dec": Decimal("1.25"),
        "bin": b"ab",
        "dat": dt.date(2026, 1, 1),
        "ts": dt.datetime(2026, 1, 1, 1, 2, 3, 4),  # noqa: DTZ001 - the type has no zone
        "ltz": dt.datetime(2026, 1, 1, 1, 2, 3, 4, dt.UTC),
        "arr": [1, None],
        "r": {"a": 1, "b": "x"},
        "m": [("k", 1)],
        "tm": dt.time(1, 2, 3),
        "ch": "abc",
        "vc": "vv",
    }
    table.append([row])
    day.sql("INSERT INTO penstock.shop.types SELECT * FROM penstock.shop.types")
    assert table.to_arrow().to_pylist() == [row, row]


@step(VARIANT)
def variants_are_inserted(day: Day) -> None:
    day.catalog.create_table("shop.va", "id BIGINT, v VARIANT")
    day.sql("""INSERT INTO penstock.shop.va SELECT 1L, parse_json('{"a": 1}')""")
    assert day.sql("SELECT id, to_json(v) FROM penstock.shop.va") == [(1, '{"a":1}')]


@step()
def files_of_older_columns_are_read(day: Day) -> None:
    table = day.catalog.create_table("shop.evo", "id INT, s STRING")
    table.append([{"id": 1, "s": "x"}])
    for change in ("RENAME COLUMN s TO z", "ALTER COLUMN id TYPE BIGINT", "ADD COLUMN c DOUBLE"):
        day.sql(f"ALTER TABLE penstock.shop.evo {change}")
    assert day.sql("SELECT * FROM penstock.shop.evo WHERE id = 1") == [(1, "x", None)]


@step()
def errors_have_one_line(day: Day) -> None:
    for statement in (
        "INSERT INTO penstock.shop.days SELECT 1L, 'a', 1, 1D, DATE '2026-01-01', 5",
        "SELECT * FROM penstock.shop.days VERSION AS OF 99",
        "DELETE FROM penstock.shop.orders WHERE rand() > 2",
    ):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - of several classes
            day.sql(statement)
        assert "\tat " not in str(raised.value), statement


@step()
def a_session_on_one_machine_needs_no_packages(day: Day) -> None:
    assert penstock.ship(day.spark) == ()


@step()
def databases_are_dropped(day: Day) -> None:
    day.sql("DROP TABLE penstock.s2.b")
    day.sql("DROP DATABASE penstock.s2 CASCADE")
    assert "s2" not in day.catalog.list_databases()


def _wait_for(table: Table, rows: int) -> None:
    end = time.monotonic() + _SECONDS
    while table.to_arrow().num_rows < rows and time.monotonic() < end:
        time.sleep(0.2)
    assert table.to_arrow().num_rows == rows


@pytest.mark.parametrize(("function", "feature"), STEPS, ids=[function.__name__ for function, _ in STEPS])
def test_step(day: Day, function: Callable[[Day], None], feature: Feature | None) -> None:
    if feature is None or feature.is_here:
        function(day)
        return
    with pytest.raises(Exception, match="needs Spark" if feature.refusal == "refused" else None) as raised:
        function(day)
    assert not isinstance(raised.value, AssertionError), "an answer that is wrong is no refusal"
