"""What metadata answers: aggregates, limits, statistics, system tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.plans import as_sent

import penstock
from penstock.spark.versions.facts import QUERY_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table


@pytest.fixture(scope="module")
def counted(catalog: Catalog) -> Table:
    table = catalog.create_table("d.counted", "id BIGINT, num INT, day DATE, text STRING, p STRING", partition_by=["p"])
    for part in range(3):
        rows = [
            {
                "id": part * 10 + number,
                "num": number or None,
                "day": dt.date(2026, 1, 1 + part),
                "text": "x",
                "p": f"p{part}",
            }
            for number in range(4)
        ]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    return table


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_counts_and_bounds_come_from_metadata_where_they_are_exact(spark: SparkSession, counted: Table) -> None:
    columns = "count(*), count(num), min(id), max(id), min(num), max(day)"
    for where, wanted in {
        "": (12, 9, 0, 23, 1, dt.date(2026, 1, 3)),
        "WHERE p IN ('p0', 'p1')": (8, 6, 0, 13, 1, dt.date(2026, 1, 2)),
        "WHERE p = 'none'": (0, 0, None, None, None, None),
    }.items():
        frame = spark.sql(f"SELECT {columns} FROM penstock.d.counted {where}")
        assert tuple(frame.collect()[0]) == wanted, where
        assert "LocalTableScan" in _plan(frame), where
        assert "BatchScan" not in _plan(frame), where


def test_other_aggregates_read_rows(spark: SparkSession, counted: Table) -> None:
    for columns, wanted in {
        "count(*) FILTER (WHERE id > 5)": (8,),
        "max(text)": ("x",),
        "count(DISTINCT num)": (3,),
        "sum(id)": (138,),
    }.items():
        frame = spark.sql(f"SELECT {columns} FROM penstock.d.counted")
        assert tuple(frame.collect()[0]) == wanted, columns
        assert "BatchScan" in _plan(frame), columns
    frame = spark.sql("SELECT count(*) FROM penstock.d.counted WHERE id > 11")
    assert frame.collect() == [(6,)]
    grouped = spark.sql("SELECT p, count(*) FROM penstock.d.counted GROUP BY p ORDER BY p")
    assert grouped.collect() == [("p0", 4), ("p1", 4), ("p2", 4)]


def test_groups_and_bounds_of_partition_columns_come_from_metadata(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table(
        "d.grouped", "n INT, p STRING, q INT, b BOOLEAN, d DATE, x DOUBLE", partition_by=["p", "q", "b", "d", "x"]
    )
    days = [dt.date(1969, 12, 31), dt.date(2026, 1, 1), None]
    texts = ["", "ä", "a" * 40, None]
    rows = [
        {"n": n, "p": texts[n % 4], "q": n % 2 or None, "b": n % 3 == 0, "d": days[n % 3], "x": -0.0 if n % 2 else 0.0}
        for n in range(24)
    ]
    table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    spark.table("penstock.d.grouped").localCheckpoint().createOrReplaceTempView("grouped_rows")
    for query, is_known in {
        "SELECT p, count(*), min(n), max(q), max(d) FROM {} GROUP BY p": True,
        "SELECT q, b, d, count(n), min(p) FROM {} GROUP BY b, d, q HAVING count(n) > 1": True,
        "SELECT DISTINCT d, p FROM {}": True,
        "SELECT min(p), max(p), count(p), max(b), min(d) FROM {}": True,
        "SELECT p, count(*) FROM {} WHERE q = 1 GROUP BY p": True,
        "SELECT p, count(*) FROM {} WHERE p = 'none' GROUP BY p": True,
        "SELECT p, count(*) FROM {} WHERE n > 5 GROUP BY p": False,
        "SELECT x, count(*) FROM {} GROUP BY x": False,
        "SELECT upper(p), count(*) FROM {} GROUP BY upper(p)": False,
        "SELECT n, count(*) FROM {} GROUP BY n": False,
        "SELECT p, sum(n) FROM {} GROUP BY p": False,
    }.items():
        frame = spark.sql(query.format("penstock.d.grouped"))
        wanted = spark.sql(query.format("grouped_rows"))
        assert sorted(map(repr, frame.collect())) == sorted(map(repr, wanted.collect())), query
        assert ("LocalTableScan" in _plan(frame)) == is_known, query


def test_bounds_of_every_exact_type_come_from_metadata(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table(
        "d.exact",
        "b BOOLEAN, n DECIMAL(9, 2), m DECIMAL(30, 3), t TIMESTAMP(3), u TIMESTAMP(6), z TIMESTAMP_LTZ(6), "
        "f DOUBLE, s TIMESTAMP(9), c TIME(3), p DECIMAL(20, 1), q TIMESTAMP(6)",
        partition_by=["p", "q"],
    )
    texts = ["1500-03-01T01:02:03.456", "1969-12-31T23:59:59.999", None, "9999-12-30T23:59:59.001"]
    moments = [None if text is None else dt.datetime.fromisoformat(text) for text in texts]
    for day in range(3):
        rows = [
            {
                "b": n > day,
                "n": Decimal(n - 2) / 4 if n else None,
                "m": Decimal(-n).scaleb(24),
                "t": moment,
                "u": moment,
                "z": moment and moment.replace(tzinfo=dt.UTC),
                "f": n / 2,
                "c": dt.time(n, 59, 59),
                "p": Decimal(n % 2) - Decimal("0.5"),
                "q": moments[day],
            }
            for n, moment in enumerate(moments[day:])
        ]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    spark.table("penstock.d.exact").drop("c", "s").localCheckpoint().createOrReplaceTempView("exact_rows")
    bounds = ", ".join(f"min({name}), max({name}), count({name})" for name in "bnmtuzpq")
    for query, is_known in {
        f"SELECT {bounds} FROM {{}}": True,
        f"SELECT q, p, {bounds} FROM {{}} GROUP BY p, q": True,
        "SELECT DISTINCT q, p FROM {}": True,
        "SELECT min(f) FROM {}": False,
    }.items():
        frame = spark.sql(query.format("penstock.d.exact"))
        wanted = spark.sql(query.format("exact_rows"))
        assert sorted(map(repr, frame.collect())) == sorted(map(repr, wanted.collect())), query
        assert ("LocalTableScan" in _plan(frame)) == is_known, query
    assert spark.sql("SELECT min(c), max(c) FROM penstock.d.exact").collect() == [(3_599_000, 14_399_000)]
    assert "BatchScan" in _plan(spark.sql("SELECT min(s) FROM penstock.d.exact"))


def _files_of_tasks(frame: DataFrame) -> list[int]:
    """Return the number of files, or parts of files, of each task that reads."""
    partitions = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0).inputPartitions()
    return [len(as_sent(frame.sparkSession, partitions.apply(place)).files()) for place in range(partitions.size())]


def test_a_limit_opens_as_many_files_as_it_needs(spark: SparkSession, counted: Table) -> None:
    for limit, files in ((1, 1), (4, 1), (5, 2), (12, 3), (100, 3)):
        frame = spark.sql(f"SELECT id FROM penstock.d.counted LIMIT {limit}")
        assert sum(_files_of_tasks(frame)) == files
        assert len(frame.collect()) == min(limit, 12)
    assert len(spark.sql("SELECT id FROM penstock.d.counted WHERE id >= 21 LIMIT 5").collect()) == 3


def test_options_of_splits_divide_the_files_among_tasks(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.divided", "id BIGINT")
    for start in (0, 10_000):
        table.append([{"id": start + number} for number in range(10_000)])
    size = max(table.files()["file_size_in_bytes"].to_pylist())
    by_spark = spark.table("penstock.d.divided")
    assert by_spark.count() == 20_000
    halves = spark.read.option("source.split.target-size", f"{size * 2 // 3} b").option(
        "source.split.open-file-cost", "1 b"
    )
    divided = halves.table("penstock.d.divided")
    assert len(_files_of_tasks(divided)) > len(_files_of_tasks(by_spark))
    assert sum(_files_of_tasks(divided)) == 4
    assert divided.agg(F.sum("id")).first() == by_spark.agg(F.sum("id")).first()


def test_statistics_reach_the_planner(spark: SparkSession, counted: Table) -> None:
    spark.conf.set("spark.sql.cbo.planStats.enabled", "true")  # without it, Spark 4.3 asks for sizes only
    try:
        optimized = spark.table("penstock.d.counted").where("p = 'p1'")._jdf.queryExecution().optimizedPlan()
        assert optimized.stats().rowCount().get() == 4
    finally:
        spark.conf.unset("spark.sql.cbo.planStats.enabled")


def test_system_tables_are_tables(spark: SparkSession, counted: Table) -> None:
    for name in ("penstock.d.counted.snapshots", "penstock.d.`counted$snapshots`"):
        frame = spark.sql(f"SELECT snapshot_id, commit_kind FROM {name} WHERE snapshot_id > 1 ORDER BY snapshot_id")
        assert [tuple(row) for row in frame.collect()] == [(2, "APPEND"), (3, "APPEND")]
    assert spark.table("penstock.d.counted.files").count() == 3


def test_a_time_names_the_snapshot_of_then(spark: SparkSession, counted: Table) -> None:
    times = counted.snapshots()["commit_time"].to_pylist()
    text = times[1].isoformat(sep=" ", timespec="milliseconds")
    found = spark.sql(f"SELECT count(*) FROM penstock.d.counted TIMESTAMP AS OF '{text}'").collect()
    assert found == [(8,)]
    counted.create_tag("first", snapshot_id=1)
    assert spark.sql("SELECT count(*) FROM penstock.d.counted VERSION AS OF 'first'").collect() == [(4,)]
    reader = spark.read.option("incremental-between", "1,3")
    assert reader.table("penstock.d.counted").count() == 8


def test_system_tables_show_the_state_that_a_statement_names(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.at", "id INT")
    for number in range(3):
        table.append([{"id": number}])
    table.create_tag("two", snapshot_id=2)
    read = "SELECT count(*) FROM penstock.d.`at$files`"
    assert [spark.sql(f"{read}{at}").first()[0] for at in ("", " VERSION AS OF 1", " VERSION AS OF 'two'")] == [3, 1, 2]
    if QUERY_OPTIONS.is_here:
        assert spark.sql("SELECT * FROM penstock.d.`at$files` WITH (`scan.snapshot-id` = 2)").count() == 2
    with pytest.raises(PySparkException, match="shows all there is"):
        spark.sql("SELECT * FROM penstock.d.`at$tags` VERSION AS OF 1").collect()
    with pytest.raises(PySparkException, match=r"'\+I' AS rowkind, \* of the table"):
        spark.sql("SELECT * FROM penstock.d.`at$audit_log`").collect()


def test_tables_of_the_catalog_are_read_in_sys(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("d.listed", "id INT").append([{"id": 1}])
    found = spark.sql("SELECT record_count FROM penstock.sys.tables WHERE table_name = 'listed'").collect()
    assert found == [(1,)]
    assert spark.sql("SELECT value FROM penstock.sys.catalog_options").count() >= 1


def test_flinks_sql_reads_the_audit_log_on_spark(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.audited", "id INT")
    for number in range(2):
        table.append([{"id": number}])
    rows = penstock.sql(spark, catalog, "SELECT * FROM d.audited$audit_log VERSION AS OF 1")
    assert (rows.columns, rows.collect()) == (["rowkind", "id"], [("+I", 0)])
    counted = penstock.sql(spark, catalog, "SELECT count(*) FROM sys.tables WHERE table_name = 'audited'")
    assert counted.collect() == [(1,)]
