"""Tables with files of several formats, or some that Spark reads wrong: each file is read by Spark if it can."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.deletion_vectors import delete_keys
from tests.spark.connector.readers import readers_of
from tests.spark.needs import needs
from tests.spark.plans import plan_of

from penstock.catalog.changes import AddColumn, RenameColumn, SetOption, UpdateColumnType
from penstock.spark.connector import scan
from penstock.spark.versions.facts import PYTHON_SCANS
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

COLUMNS: Final = """
    id INT, boo BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, flo FLOAT, dou DOUBLE, dec DECIMAL(10, 2),
    wide DECIMAL(30, 4), bin BYTES, str STRING, dat DATE, arr ARRAY<INT>, mp MAP<STRING, INT>, r ROW<a INT, b STRING>,
    p STRING
"""


@pytest.fixture(params=["vectorised", "row by row", "one of each"])
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """The readers that Spark has for a format; with one of each, all of them return rows."""
    if request.param == "vectorised":
        request.getfixturevalue("compiled")
    with readers_of(spark, parquet=request.param != "row by row", orc=request.param == "vectorised"):
        yield str(request.param)


def _rows(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=repr)


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "boo": number % 2 == 0,
        "tiny": number,
        "small": -number,
        "big": None if number % 10 == 3 else number << 40,
        "flo": 0.5 if number % 10 else None,
        "dou": number + 0.25,
        "dec": Decimal(f"{number}.{number:02}"),
        "wide": Decimal(number) * 10**20,
        "bin": bytes([number]),
        "str": f"text {number}",
        "dat": dt.date(2026, 1, 1 + number % 28),
        "arr": [number, None],
        "mp": {"k": number},
        "r": {"a": number, "b": None},
        "p": f"p{number % 2}",
    }


def _append(table: Table, first: int) -> None:
    rows = [_row(number) for number in range(first, first + 10)]
    table.append(pa.Table.from_pylist(rows, table.arrow_schema))


def _mixed(catalog: Catalog, name: str, *formats: str, options: dict[str, str] | None = None) -> Table:
    """A table with ten rows for each format; a column was added after the first."""
    table = catalog.create_table(
        name, COLUMNS, partition_by=["p"], options={"file.format": formats[0], **(options or {})}
    )
    for place, each in enumerate(formats):
        if place:
            changes = [SetOption(key="file.format", value=each)]
            added = [AddColumn(column="late", type="INT")] if place == 1 else []
            table = catalog.alter_table(name, *changes, *added)
        _append(table, place * 10)
    return table


CONDITIONS: Final = (
    "true",
    "p = 'p1'",
    "id IN (1, 12, 25)",
    "big IS NULL",
    "dec > 7 AND dec < 13.5",
    "str LIKE 'text 1%'",
    "late IS NULL AND boo",
    "dat >= DATE '2026-01-12' OR tiny = 3",
    "wide = 1200000000000000000000",
)


def _check(spark: SparkSession, table: Table, way: str) -> None:
    for condition in CONDITIONS:
        wanted = table.to_arrow(filter=condition)
        frame = spark.sql(f"SELECT * FROM penstock.{table.name} WHERE {condition}")
        assert _rows(to_arrow(frame)) == _rows(wanted), condition
    assert way in plan_of(spark.sql(f"SELECT * FROM penstock.{table.name}"))
    rows = table.to_arrow()
    for columns in (None, ["id", "r"]):
        frame = table.to_spark(spark, columns=columns)
        assert _rows(to_arrow(frame)) == _rows(rows if columns is None else rows.select(columns))
        assert way in plan_of(frame)
    assert spark.sql(f"SELECT count(*), sum(id), count(str) FROM penstock.{table.name} WHERE id + 1 > 0").collect() == [
        (rows.num_rows, sum(rows["id"].to_pylist()), rows.num_rows)
    ]
    assert spark.table(f"penstock.{table.name}").selectExpr("1").count() == rows.num_rows


def test_each_format_is_read_by_its_reader(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    table = _mixed(catalog, f"d.two_{reader.replace(' ', '_')}", "parquet", "orc")
    _check(spark, table, "by orc and parquet readers of Spark, filter")


@needs(PYTHON_SCANS)
@pytest.mark.parametrize(
    "reader", ["vectorised", "one of each", pytest.param("row by row", marks=pytest.mark.slow)], indirect=True
)
def test_python_workers_read_only_the_files_that_spark_does_not(
    spark: SparkSession, catalog: Catalog, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = _mixed(catalog, f"d.three_{reader.replace(' ', '_')}", "parquet", "avro", "orc")
    text = "Python workers for 2 of 6 files, because Spark does not read Avro files here; compact with 'compaction."
    _check(spark, table, f"by orc and parquet readers of Spark, and {text}")
    assert f"table {table.name}: 2 of 6 files read by Python workers, not by Spark's own reader: Spark" in caplog.text
    # A partition without Avro files has no need of Python.
    only = spark.sql(f"SELECT id FROM penstock.{table.name} WHERE id < 10")
    assert "by parquet reader of Spark, filter" in plan_of(only)
    table.compact(options={"compaction.force-rewrite-all-files": "true"})
    _check(spark, table, "by orc reader of Spark, filter")


def test_deleted_rows_of_mixed_files_are_left_out(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.deleted_{reader.replace(' ', '_')}"
    table = _mixed(catalog, name, "parquet", "orc", options={"deletion-vectors.enabled": "true"})
    delete_keys(table, "id", {0, 5, 7})
    _check(spark, table, "by orc and parquet readers of Spark, with deletion vectors, filter")


@needs(PYTHON_SCANS)
@pytest.mark.usefixtures("compiled")
def test_orc_files_with_deleted_rows_alone_are_left_to_python(spark: SparkSession, catalog: Catalog) -> None:
    name = "d.deleted_orc"
    table = _mixed(catalog, name, "parquet", "orc", options={"deletion-vectors.enabled": "true"})
    delete_keys(table, "id", {0, 5, 7, 12})
    text = "and Python workers for 1 of 4 files, because rows of its files are deleted by deletion vectors, and Spark's"
    _check(spark, table, f"by orc and parquet readers of Spark, with deletion vectors, {text}")


@needs(PYTHON_SCANS)
def test_without_the_class_python_workers_read_all(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _mixed(catalog, "d.no_class", "parquet", "orc")
    monkeypatch.setattr(scan, "executors_have_classes", lambda _: False)
    frame = spark.table("penstock.d.no_class")
    assert "by Python workers, because its files have several formats" in plan_of(frame)
    assert _rows(to_arrow(frame)) == _rows(table.to_arrow())


def _join(spark: SparkSession, name: str) -> list[Any]:
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW wanted AS SELECT * FROM VALUES ('p1', 1), ('p9', 9) AS w(p, x)")
    frame = spark.sql(
        f"SELECT /*+ BROADCAST(w) */ t.id FROM penstock.{name} t JOIN wanted w ON t.p = w.p WHERE w.x + 1 = 2"
    )
    return sorted(row.id for row in frame.collect())


@needs(PYTHON_SCANS)
@pytest.mark.parametrize("change", ["join", "update", "delete", "places", "join of both"])
def test_what_else_reads_mixed_files(spark: SparkSession, catalog: Catalog, change: str) -> None:
    name = f"d.else_{change.replace(' ', '_')}"
    table = _mixed(catalog, name, "avro", "parquet", "orc")
    ids = list(range(30))
    if change == "join":
        assert _join(spark, name) == ids[1::2]
    elif change == "join of both":
        frame = spark.sql(f"SELECT count(*) FROM penstock.{name} a JOIN penstock.{name} b ON a.p = b.p AND a.id = b.id")
        assert frame.collect() == [(30,)]
    elif change == "update":
        spark.sql(f"UPDATE penstock.{name} SET late = 7 WHERE id % 10 = 1")
        assert {row["id"]: row["late"] for row in table.to_arrow().to_pylist()} == {
            each: 7 if each % 10 == 1 else None for each in ids
        }
    elif change == "delete":
        spark.sql(f"DELETE FROM penstock.{name} WHERE id % 10 = 1 OR str = 'text 2'")
        assert sorted(table.to_arrow()["id"].to_pylist()) == [each for each in ids if each % 10 != 1 and each != 2]
    else:
        query = f"SELECT id, __paimon_row_index, count(*) OVER (PARTITION BY __paimon_file_path) FROM penstock.{name}"
        assert sorted(map(tuple, spark.sql(query).collect())) == [(each, each % 10 // 2, 5) for each in ids]


@pytest.mark.parametrize("formats", [("parquet", "orc"), pytest.param(("orc", "avro"), marks=needs(PYTHON_SCANS))])
def test_a_stream_reads_each_file_by_its_reader(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, formats: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    name = f"d.stream_{formats[1]}"
    table = _mixed(catalog, name, *formats)
    frame = spark.readStream.table(f"penstock.{name}")
    sink = frame.writeStream.format("memory").queryName(f"mixed_{formats[1]}").outputMode("append")
    query = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    assert _rows(to_arrow(spark.table(f"mixed_{formats[1]}"))) == _rows(table.to_arrow())
    text = f"table {name}: some files of its stream are read by Python workers"
    assert (text in caplog.text) is ("avro" in formats)


@needs(PYTHON_SCANS)
def test_a_queue_of_mixed_files_is_streamed_in_order(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    options = {"bucket": "2", "bucket-key": "k"}
    table = catalog.create_table("d.mixed_queue", "k INT, v INT", options=options)
    for step, each in enumerate(("parquet", "avro", "orc")):
        table = catalog.alter_table("d.mixed_queue", SetOption(key="file.format", value=each))
        table.append([{"k": k, "v": step} for k in range(8)])
    seen: list[tuple[int, int]] = []

    def collect(frame: DataFrame, _: int) -> None:
        seen.extend((row.k, row.v) for row in frame.collect())

    query = spark.readStream.table("penstock.d.mixed_queue").writeStream.foreachBatch(collect)
    query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert len(seen) == 24
    assert all([v for key, v in seen if key == k] == [0, 1, 2] for k in range(8))


@needs(PYTHON_SCANS)
def test_files_with_a_type_that_spark_converts_otherwise_are_left_to_python_alone(
    spark: SparkSession, catalog: Catalog
) -> None:
    table = catalog.create_table("d.texts", "id INT, n STRING")
    table.append([{"id": 1, "n": " 7"}, {"id": 2, "n": None}])
    table = catalog.alter_table("d.texts", RenameColumn(column="n", new_name="m"))
    table.append([{"id": 4, "m": "5"}])
    everything: Callable[[], list[dict[str, Any]]] = lambda: _rows(to_arrow(spark.table("penstock.d.texts")))  # noqa: E731 - twice
    assert everything() == _rows(table.to_arrow())
    table = catalog.alter_table("d.texts", UpdateColumnType(column="m", type="DOUBLE", allow_explicit=True))
    table.append([{"id": 3, "m": 2.5}])
    assert "and Python workers for 2 of 3 files, because column 'm' is STRING in" in plan_of(
        spark.table("penstock.d.texts")
    )
    assert everything() == _rows(table.to_arrow())
    frame = spark.sql("SELECT id FROM penstock.d.texts WHERE m > 2")
    assert sorted(row.id for row in frame.collect()) == [1, 3, 4]


@needs(PYTHON_SCANS)
def test_filters_see_nanoseconds_that_spark_does_not_have(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.nanos", "id INT")
    table.append([{"id": 1}])
    table = catalog.alter_table("d.nanos", AddColumn(column="t", type="TIMESTAMP(9)"))
    nanos = pa.array([1_767_225_600_123_456_789, 1_767_225_600_123_456_001], pa.timestamp("ns"))
    table.append(pa.table({"id": pa.array([2, 3], pa.int32()), "t": nanos}))
    for condition, wanted in (
        ("t IS NULL OR t > TIMESTAMP '2026-01-01 00:00:00.1234561'", [1, 2]),
        ("id = 1 OR t <> TIMESTAMP '2026-01-01 00:00:00.123456789'", [1, 3]),
    ):
        assert sorted(table.to_arrow(["id"], filter=condition)["id"].to_pylist()) == wanted
        assert sorted(row.id for row in table.to_spark(spark, filter=condition).collect()) == wanted


@needs(PYTHON_SCANS)
@pytest.mark.parametrize("column", ["VARIANT", "a`b"])
def test_orc_files_without_a_column_that_orc_cannot_name_are_left_to_python(
    spark: SparkSession, catalog: Catalog, column: str
) -> None:
    name = f"d.lacking_{column[0].lower()}"
    table = catalog.create_table(name, "id INT, s STRING", options={"file.format": "orc"})
    table.append([{"id": 1, "s": "x"}])
    new, kind = ("v", "VARIANT") if column == "VARIANT" else (column, "INT")
    changes = [SetOption(key="file.format", value="parquet"), AddColumn(column=new, type=kind)]
    table = catalog.alter_table(name, *changes)
    value = "parse_json('[1]')" if column == "VARIANT" else "5"
    spark.sql(f"INSERT INTO penstock.{name} SELECT 2, 'y', {value}")
    quoted = new.replace("`", "``")
    found = spark.sql(f"SELECT id, `{quoted}` IS NULL FROM penstock.{name} ORDER BY id")
    assert [tuple(row) for row in found.collect()] == [(1, True), (2, False)]
    assert [row.id for row in spark.sql(f"SELECT id FROM penstock.{name} ORDER BY id").collect()] == [1, 2]
