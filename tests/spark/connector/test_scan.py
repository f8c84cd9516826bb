"""SELECT through the catalog: the rows of ``to_arrow``, from the files that can have them."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from tests.spark.needs import needs

from penstock.catalog.changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from penstock.spark.connector import native_reader
from penstock.spark.connector.native_reader import reader_factory
from penstock.spark.versions.facts import DELTA_OPTIONS, KEPT_CACHES, PYTHON_SCANS
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

COLUMNS = """
    id BIGINT, day STRING, boo BOOLEAN, tiny TINYINT, num INT, flo FLOAT, dou DOUBLE, dec DECIMAL(10, 2), bin BYTES,
    dat DATE, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(6), arr ARRAY<INT>, r ROW<a INT, b STRING>
"""


def _rows(day: int) -> list[dict[str, Any]]:
    moment = dt.datetime(2026, 1, 1 + day, 10, 30, 0, 123_456)  # noqa: DTZ001 - a wall clock
    return [
        {
            "id": day * 10 + number,
            "day": f"d{day}" if day else None,
            "boo": number % 2 == 0,
            "tiny": number,
            "num": None if number == 3 else day * 100,
            "flo": float("nan") if number == 1 else day + 0.5,
            "dou": day + 0.25,
            "dec": Decimal(f"{day}.{number:02}"),
            "bin": bytes([day, number]),
            "dat": dt.date(2026, 1, 1 + day) if number else dt.date(1500, 1, 1),
            "ts": moment,
            "ltz": moment.replace(tzinfo=dt.UTC),
            "arr": [number, None],
            "r": {"a": number, "b": f"x{day}"},
        }
        for number in range(4)
    ]


@pytest.fixture(scope="module")
def days(catalog: Catalog) -> Table:
    table = catalog.create_table("d.days", COLUMNS, partition_by=["day"])
    for day in range(4):
        table.append(pa.Table.from_pylist(_rows(day), table.arrow_schema))
    return table


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _opened(frame: DataFrame) -> int:
    text = frame._jdf.queryExecution().executedPlan().toString()
    return int(text.split("snapshot ")[1].split(", ")[1].split(" of ")[0])


CONDITIONS = {
    "day = 'd2'": 1,
    "day IN ('d1', 'd3', 'd9')": 2,
    "day IS NULL": 1,
    "day IS NOT NULL": 3,
    "day LIKE 'd%' AND id < 12": 1,
    "NOT (day = 'd1')": 2,
    "day <=> 'd1'": 1,
    "NOT (day <=> 'd1')": 3,
    "day > 'd1' OR num = 0": 3,
    "id = 21": 1,
    "22 <= id": 2,
    "id BETWEEN 11 AND 12": 1,
    "num IS NULL": 4,
    "dou > 2.0": 4,
    "flo > 100": 4,
    "dec = 1.03": 1,
    "bin = X'0201'": 4,
    "boo AND id > 30": 1,
    "ts >= TIMESTAMP_NTZ '2026-01-03 10:30:00.123456'": 2,
    "ltz < TIMESTAMP '2026-01-02 00:00:00Z'": 1,
    "dat = DATE '1500-01-01' AND day = 'd1'": 1,
    "r.a = 2 AND id < 20": 2,
    "arr[0] = 1": 4,
    "day = 'd7'": 0,
}


def test_rows_are_those_of_to_arrow_and_other_files_stay_closed(spark: SparkSession, days: Table) -> None:
    everything = days.to_arrow().to_pylist()
    by_id = {row["id"]: row for row in everything}
    opened: dict[str, int] = {}
    for condition in CONDITIONS:
        frame = spark.sql(f"SELECT id, day, num, dec, bin, dat, ts, arr FROM penstock.d.days WHERE {condition}")
        opened[condition] = _opened(frame)
        assert "parquet reader of Spark" in frame._jdf.queryExecution().executedPlan().toString()
        # The table that comes without any catalog's push-down is the judge.
        wanted = {row["id"] for row in days.to_spark(spark).where(condition).select("id").collect()}
        found = to_arrow(frame).to_pylist()
        assert {row["id"] for row in found} == wanted, condition
        assert all(row == {key: by_id[row["id"]][key] for key in row} for row in found), condition
    assert opened == CONDITIONS


def test_all_columns_come_as_they_are(spark: SparkSession, days: Table) -> None:
    found = to_arrow(spark.table("penstock.d.days").orderBy("id")).drop_columns(["flo"])
    wanted = days.to_arrow().sort_by("id").drop_columns(["flo"])
    assert found.to_pylist() == wanted.to_pylist()


def test_a_join_prunes_by_what_the_other_side_has(
    spark: SparkSession, days: Table, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(native_reader, "reader_factory", lambda *given: made.append(given) or reader_factory(*given))
    names = catalog.create_table("d.names", "day STRING, name STRING")
    names.append(pa.table({"day": ["d1", "d2"], "name": ["one", "two"]}))
    query = """
        SELECT /*+ BROADCAST(n) */ t.id FROM penstock.d.days t JOIN penstock.d.names n ON t.day = n.day
        WHERE n.name = 'two'
    """
    frame = spark.sql(query)
    assert sorted(row[0] for row in frame.collect()) == [20, 21, 22, 23]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan
    # The one that another session of the same table would open: what the join left of four.
    assert _partitions_read(frame, "penstock.d.days") == 1
    assert len(made) == 2  # one for each table, before and after the runtime filter


def _partitions_read(frame: DataFrame, table: str) -> int:
    """Return the tasks of a scan, after the values of a join were put into it."""
    pending = [frame._jdf.queryExecution().executedPlan()]
    while pending:
        node = pending.pop()
        kind = node.getClass().getSimpleName()
        if kind == "BatchScanExec" and node.table().name() == table:
            return int(node.inputRDD().getNumPartitions())
        if kind == "AdaptiveSparkPlanExec":
            pending.append(node.executedPlan())
        elif kind.endswith("QueryStageExec"):
            pending.append(node.plan())
        children = node.children()
        pending += [children.apply(place) for place in range(children.size())]
    raise AssertionError(f"no scan of {table}")


def test_a_frame_stays_at_its_snapshot(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.growing", "id INT")
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    frame = spark.table("penstock.d.growing")
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    assert frame.count() == 1
    assert frame.where("id > 0").count() == 1
    assert spark.table("penstock.d.growing").count() == 2
    assert spark.sql("SELECT * FROM penstock.d.growing VERSION AS OF 1").count() == 1


def test_options_of_a_read_do_not_move_a_frame(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.optioned", "id INT, v STRING")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "v": ["a"]}))
    frame = spark.read.option("source.split.target-size", "1 mb").table("penstock.d.optioned")
    past = spark.read.option("scan.version", "watermark-1").table("penstock.d.optioned")
    table.append(pa.table({"id": pa.array([2], pa.int32()), "v": ["b"]}))
    assert frame.count() == 1
    assert frame.where("id > 0").count() == 1
    with pytest.raises(PySparkException, match="no snapshot has a watermark"):
        past.count()


def test_the_options_of_spark_name_a_snapshot(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.versions", "id INT")
    first = table.append(pa.table({"id": pa.array([1], pa.int32())}))
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    table.create_tag("one", snapshot_id=1)
    assert first is not None
    moment = dt.datetime.fromtimestamp(first.time_millis / 1000 + 0.001, dt.UTC).isoformat()
    for name, value in (("versionAsOf", 1), ("versionAsOf", "one"), ("timestampAsOf", moment)):
        reader = spark.read.option(name, value)
        if DELTA_OPTIONS.is_here:
            assert reader.table("penstock.d.versions").collect() == [(1,)], (name, value)
        else:
            with pytest.raises(PySparkException, match=r"table d\.versions: .* needs Spark 4\.0 or newer"):
                reader.table("penstock.d.versions").collect()


@needs(PYTHON_SCANS)
def test_options_name_a_state_from_before_the_columns_changed(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.reshaped", "id INT, v STRING, gone INT")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "v": ["a"], "gone": pa.array([5], pa.int32())}))
    changes = (
        RenameColumn(column="v", new_name="w"),
        UpdateColumnType(column="id", type="BIGINT"),
        DropColumn(column="gone"),
        AddColumn(column="n", type="INT"),
    )
    table = catalog.alter_table("d.reshaped", *changes)
    table.append(pa.table({"id": [2], "w": ["b"], "n": pa.array([7], pa.int32())}))
    first = spark.read.option("scan.snapshot-id", "1").table("penstock.d.reshaped")
    assert first.collect() == [(1, "a", None)]
    assert first.where("w = 'a' AND n IS NULL").select("id").collect() == [(1,)]
    assert first.selectExpr("max(id)", "count(n)", "count(*)").collect() == [(1, 0, 1)]
    assert spark.sql("SELECT * FROM penstock.d.reshaped VERSION AS OF 1").collect() == [(1, "a", 5)]


def test_equal_scans_are_equal_to_spark(spark: SparkSession, days: Table) -> None:
    query = "SELECT day, count(*) AS n FROM penstock.d.days GROUP BY day"
    frame = spark.sql(f"SELECT a.n, b.n FROM ({query}) a JOIN ({query}) b ON a.day = b.day")
    assert frame.collect() == [(4, 4)] * 3
    plan = frame._jdf.queryExecution().executedPlan().toString()
    # Spark 3.5 does not find exchanges of rows in memory to be equal, which groups from metadata are.
    assert "ReusedExchange" in plan or "LocalTableScan" in plan
    cached = spark.table("penstock.d.days").cache()
    try:
        assert cached.count() == 16
        again = spark.table("penstock.d.days").where("id = 1")
        assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
    finally:
        cached.unpersist()


def test_a_cached_table_shows_the_commits_of_others_after_a_refresh(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.held", "id INT")
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    spark.sql("CACHE TABLE penstock.d.held")
    append = "import sys, penstock; penstock.Table.at(sys.argv[1]).append([{'id': 2}])"
    subprocess.run([sys.executable, "-c", append, table.location], check=True)
    assert spark.table("penstock.d.held").count() == (1 if KEPT_CACHES.is_here else 2)
    spark.sql("REFRESH TABLE penstock.d.held")
    assert spark.table("penstock.d.held").count() == 2
    spark.sql("INSERT INTO penstock.d.held VALUES (3)")
    assert spark.table("penstock.d.held").count() == 3
    spark.sql("UNCACHE TABLE penstock.d.held")


@needs(PYTHON_SCANS)
def test_what_spark_reads_wrong_comes_through_python_and_says_so(
    spark: SparkSession, catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    table = catalog.create_table("d.avro", "id INT, v STRING", options={"file.format": "avro"})
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", None]}))
    frame = spark.sql("SELECT v FROM penstock.d.avro WHERE id = 1")
    assert frame.collect() == [("a",)]
    assert (
        "by Python workers, because Spark does not read Avro" in frame._jdf.queryExecution().executedPlan().toString()
    )
    assert "table d.avro: read by Python workers" in caplog.text
    assert spark.sql("SELECT count(*) FROM penstock.d.avro").collect() == [(2,)]


def test_files_of_older_schemas_are_native_where_their_names_still_say_the_same(
    spark: SparkSession, catalog: Catalog
) -> None:
    table = catalog.create_table("d.evolved", "id INT, a STRING")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "a": ["x"]}))
    table = catalog.alter_table("d.evolved", AddColumn(column="b", type="INT"))
    table.append(pa.table({"id": pa.array([2], pa.int32()), "a": ["y"], "b": pa.array([5], pa.int32())}))
    frame = spark.sql("SELECT id, b FROM penstock.d.evolved ORDER BY id")
    assert frame.collect() == [(1, None), (2, 5)]
    assert "parquet reader of Spark" in frame._jdf.queryExecution().executedPlan().toString()
    catalog.alter_table("d.evolved", RenameColumn(column="a", new_name="c"), AddColumn(column="a", type="STRING"))
    frame = spark.sql("SELECT * FROM penstock.d.evolved ORDER BY id")
    assert [tuple(row) for row in frame.collect()] == [(1, "x", None, None), (2, "y", 5, None)]
    # Both files have the first two columns under the same names, and lack the last one.
    assert "by parquet reader of Spark, filter" in frame._jdf.queryExecution().executedPlan().toString()
    assert "parquet reader" in spark.sql("SELECT id FROM penstock.d.evolved")._jdf.queryExecution().toString()


def test_an_empty_table_has_no_rows(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("d.empty", "id INT, v STRING")
    assert spark.sql("SELECT count(*), max(id) FROM penstock.d.empty").collect() == [(0, None)]
    assert spark.table("penstock.d.empty").columns == ["id", "v"]


def test_missing_objects_are_reported_as_spark_reports_them(spark: SparkSession, catalog: Catalog) -> None:
    for name in ("penstock.d.nothing", "penstock.nowhere.t"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
            spark.table(name)
        assert "Traceback" not in str(caught.value)
    assert not spark.catalog.tableExists("penstock.d.nothing")
    assert spark.catalog.tableExists("penstock.d.days") == ("days" in catalog.list_tables("d"))


def test_names_are_listed(spark: SparkSession, days: Table) -> None:
    assert ("d",) in [tuple(row) for row in spark.sql("SHOW DATABASES IN penstock").collect()]
    assert "days" in [row.tableName for row in spark.sql("SHOW TABLES IN penstock.d").collect()]
    described = {row.col_name: row.data_type for row in spark.sql("DESCRIBE EXTENDED penstock.d.days").collect()}
    assert described["id"] == "bigint"
    assert described["Location"].endswith("/d.db/days")
