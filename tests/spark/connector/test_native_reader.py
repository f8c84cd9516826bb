"""Which reader a scan gets, and that the rows are those of ``to_arrow`` with each."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.connector.readers import reader
from tests.spark.needs import needs
from tests.spark.plans import plan_of

from penstock.catalog.changes import (
    AddColumn,
    DropColumn,
    RenameColumn,
    UpdateColumnNullability,
    UpdateColumnType,
)
from penstock.io.local import LocalFileIO
from penstock.spark.connector import scan
from penstock.spark.versions.facts import PYTHON_SCANS, PYTHON_SOURCES
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

__all__ = ["reader"]


def _opened(frame: DataFrame) -> int:
    return int(plan_of(frame).split("snapshot ")[1].split(", ")[1].split(" of ")[0])


def _rows(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=repr)


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_rows_of_a_partition_are_found_without_its_column(
    spark: SparkSession, catalog: Catalog, reader: str, file_format: str
) -> None:
    name = f"some_{file_format}_{reader[:3]}"
    table = catalog.create_table(
        f"d.{name}",
        "v BIGINT, s STRING, p INT, q STRING",
        partition_by=["p", "q"],
        options={"file.format": file_format},
    )
    numbers = range(4_000)
    q = [f"q{n % 2}" for n in numbers]
    table.append(
        pa.table(
            {"v": numbers, "s": list(map(str, numbers)), "p": [n % 4 for n in numbers], "q": q}, table.arrow_schema
        )
    )
    frame = spark.table(f"penstock.d.{name}")
    for condition in (
        "p = 1",
        "p = 1 AND q = 'q1'",
        "p IN (1, 3) AND v >= 7",
        "q <> 'q0' AND p < 3",
        "p = 1 OR q = 'q0'",
    ):
        found = frame.where(condition).select("s")
        assert f"{file_format} reader of Spark" in plan_of(found)
        expected = table.to_arrow(columns=["s"], filter=condition)["s"].to_pylist()
        assert sorted(row.s for row in found.collect()) == sorted(expected), condition
        assert frame.where(condition).selectExpr("sum(v)", "count(s)").first()[1] == len(expected) > 0


def test_orc_is_read_by_spark(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"orc_{reader[:3]}"
    columns = """
        id BIGINT, boo BOOLEAN, tiny TINYINT, small SMALLINT, num INT, flo FLOAT, dou DOUBLE, dec DECIMAL(10, 2),
        bin BYTES, str STRING, dat DATE, arr ARRAY<INT>, mp MAP<STRING, INT>, r ROW<a INT, b STRING>, p STRING
    """
    table = catalog.create_table(f"d.{name}", columns, partition_by=["p"], options={"file.format": "orc"})
    for part in range(3):
        rows = [
            {
                "id": part * 10 + number,
                "boo": number % 2 == 0,
                "tiny": number,
                "small": -number,
                "num": None if number == 3 else part,
                "flo": float("nan") if number == 1 else 0.5,
                "dou": part + 0.25,
                "dec": Decimal(f"{part}.{number:02}"),
                "bin": bytes([part, number]),
                "str": f"text {number}",
                "dat": dt.date(2026, 1, 1 + part),
                "arr": [number, None],
                "mp": {"k": number},
                "r": {"a": number, "b": f"x{part}"},
                "p": f"p{part}" if part else None,
            }
            for number in range(4)
        ]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    table = catalog.alter_table(f"d.{name}", AddColumn(column="late", type="INT"))
    everything = {row["id"]: row for row in table.to_arrow().drop_columns(["flo"]).to_pylist()}
    for condition, files in {
        "true": 3,
        "p = 'p1'": 1,
        "p IS NULL": 1,
        "dat >= DATE '2026-01-02'": 2,
        "id IN (1, 21)": 2,
        "flo > 100": 3,
        "dec < 1": 1,
        "str LIKE 'text 1%' AND boo = false": 3,
        "num IS NULL": 3,
        "late IS NULL AND tiny = 2": 3,
        "r.a = 1": 3,
    }.items():
        frame = spark.sql(f"SELECT * FROM penstock.d.{name} WHERE {condition}")
        assert "by orc reader of Spark" in plan_of(frame), condition
        assert _opened(frame) == files, condition
        found = to_arrow(frame.drop("flo")).to_pylist()
        wanted = {row.id for row in table.to_spark(spark).where(condition).select("id").collect()}
        assert {row["id"] for row in found} == wanted, condition
        assert all(row == everything[row["id"]] for row in found), condition
    assert spark.sql(f"SELECT count(*) FROM penstock.d.{name} WHERE id > 10").collect() == [(7,)]


@needs(PYTHON_SCANS)
def test_orc_that_spark_reads_wrong_comes_through_python(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.old_dates", "id INT, d DATE, t TIMESTAMP(3)", options={"file.format": "orc"})
    table.append(
        pa.table(
            {
                "id": pa.array([1], pa.int32()),
                "d": [dt.date(1500, 1, 1)],
                "t": pa.array([0], pa.timestamp("ms")),
            }
        )
    )
    for columns, reason in {"d": "dates before 1582-10-15", "t": "column 't' has type TIMESTAMP"}.items():
        frame = spark.sql(f"SELECT {columns} FROM penstock.d.old_dates")
        assert reason in plan_of(frame)
        assert to_arrow(frame)[columns].to_pylist() == table.to_arrow()[columns].to_pylist()
    assert "orc reader" in plan_of(spark.sql("SELECT id FROM penstock.d.old_dates"))
    catalog.alter_table("d.old_dates", RenameColumn(column="id", new_name="key"))
    frame = spark.sql("SELECT key FROM penstock.d.old_dates WHERE key = 1")
    assert "orc reader" in plan_of(frame)
    assert frame.collect() == [(1,)]


@pytest.fixture(scope="module", params=["parquet", "orc"])
def renamed(catalog: Catalog, request: pytest.FixtureRequest) -> Table:
    """A table whose columns a and b have changed names with each other; c was dropped and made anew."""
    name = f"d.renamed_{request.param}"
    columns = "id INT, a STRING, b STRING, c INT, r ROW<x INT>"
    table = catalog.create_table(name, columns, options={"file.format": request.param})
    table.append(
        pa.table(
            {
                "id": pa.array([1, 2], pa.int32()),
                "a": ["a1", "a2"],
                "b": ["b1", None],
                "c": pa.array([7, 8], pa.int32()),
                "r": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])),
            }
        )
    )
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        catalog.alter_table(name, RenameColumn(column=old, new_name=new))
    table = catalog.alter_table(name, DropColumn(column="c"), AddColumn(column="c", type="INT"))
    rows = {"id": [3], "b": ["a3"], "a": ["b3"], "r": [{"x": 3}], "c": [9]}
    table.append(pa.Table.from_pydict(rows, table.arrow_schema))
    return table


def test_renamed_columns_are_read_by_their_names_in_files(spark: SparkSession, renamed: Table, reader: str) -> None:
    everything = {row["id"]: row for row in renamed.to_arrow().to_pylist()}
    assert everything[1] == {"id": 1, "b": "a1", "a": "b1", "r": {"x": 1}, "c": None}
    for condition, ids in {
        "true": [1, 2, 3],
        "a = 'b1'": [1],
        "b = 'a2'": [2],
        "a IS NULL": [2],
        "c IS NULL": [1, 2],
        "c = 9": [3],
        "c = 7": [],
        "b LIKE 'a%' AND id > 1": [2, 3],
    }.items():
        frame = spark.sql(f"SELECT * FROM penstock.{renamed.name} WHERE {condition}")
        assert " reader of Spark" in plan_of(frame), (condition, reader)
        assert sorted(to_arrow(frame).to_pylist(), key=repr) == sorted((everything[each] for each in ids), key=repr)
    assert "files of 2 schemas" in plan_of(spark.sql(f"SELECT a FROM penstock.{renamed.name}"))
    assert "schemas" not in plan_of(spark.sql(f"SELECT id FROM penstock.{renamed.name}"))


def test_a_plan_made_before_the_reader_was_switched_off_reads_right(spark: SparkSession, renamed: Table) -> None:
    frame = spark.table(f"penstock.{renamed.name}")
    assert "files of 2 schemas" in plan_of(frame)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert _rows(to_arrow(frame)) == _rows(renamed.to_arrow())
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@needs(PYTHON_SCANS)
def test_renamed_columns_come_through_python_where_executors_load_no_class(
    spark: SparkSession, renamed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "executors_have_classes", lambda _: False)
    frame = spark.sql(f"SELECT a, b FROM penstock.{renamed.name}")
    assert "Python workers, because a column was renamed" in plan_of(frame)
    assert _rows(to_arrow(frame)) == _rows(renamed.to_arrow(["a", "b"]))


WIDENED = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"),
    "SMALLINT": ("INT", "BIGINT"),
    "INT": ("BIGINT",),
    "FLOAT": ("DOUBLE",),
    "VARCHAR(3)": ("VARCHAR(9)",),
    # Decimals of files are INT32, INT64 or bytes, and become each wider one.
    "DECIMAL(6, 2)": ("DECIMAL(8, 2)", "DECIMAL(14, 2)", "DECIMAL(14, 6)", "DECIMAL(30, 2)", "DECIMAL(38, 10)"),
    "DECIMAL(14, 2)": ("DECIMAL(16, 2)", "DECIMAL(16, 4)", "DECIMAL(25, 2)", "DECIMAL(30, 9)"),
    "DECIMAL(22, 2)": ("DECIMAL(25, 2)", "DECIMAL(30, 9)"),
}


def _value(kind: str, number: int) -> str | Decimal | int:
    return str(number) if "CHAR" in kind else Decimal(number) if "DECIMAL" in kind else number


@pytest.mark.parametrize("reader", ["vectorised", pytest.param("row by row", marks=pytest.mark.slow)], indirect=True)
def test_widened_columns_are_read_by_spark(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    pairs = [(old, new) for old, news in WIDENED.items() for new in news]
    name = f"d.widened_{reader[:3]}"
    columns = ", ".join(f"c{place} {old}" for place, (old, _) in enumerate(pairs))
    table = catalog.create_table(name, f"id INT, {columns}")
    # The first file has dictionaries; in the second one all values differ.
    for first, step in ((0, 0), (1000, 1)):
        ids = list(range(first, first + 200))
        whole = [number * step % 100 - 50 if number % 7 else None for number in ids]
        arrays = {
            f"c{place}": [None if each is None else _value(old, each) for each in whole]
            for place, (old, _) in enumerate(pairs)
        }
        table.append(pa.Table.from_pydict({"id": ids, **arrays}, table.arrow_schema))
    changes = [UpdateColumnType(column=f"c{place}", type=new) for place, (_, new) in enumerate(pairs)]
    table = catalog.alter_table(name, *changes)
    row: dict[str, Any] = {"id": [9999]}
    for place, (_, new) in enumerate(pairs):
        row[f"c{place}"] = ["12345"] if "CHAR" in new else [1e300] if new == "DOUBLE" else [_value(new, 20_000)]
    table.append(pa.Table.from_pydict(row, table.arrow_schema))
    frame = spark.sql(f"SELECT * FROM penstock.{name}")
    assert "parquet reader of Spark" in plan_of(frame)
    assert _rows(to_arrow(frame)) == _rows(table.to_arrow())
    for place, (_, new) in enumerate(pairs):
        for value in ("'-50'", "'12345'") if "CHAR" in new else ("-50", "20000", "49"):
            query = f"SELECT id FROM penstock.{name} WHERE c{place} = {value}"
            wanted = table.to_arrow(["id"], filter=f"c{place} = {value}")
            assert _rows(to_arrow(spark.sql(query))) == _rows(wanted), (query, reader)
    # A type to which Spark's reader does not widen.
    table = catalog.alter_table(name, UpdateColumnType(column="c0", type="STRING", allow_explicit=True))
    frame = spark.sql(f"SELECT c0 FROM penstock.{name}")
    assert "parquet reader of Spark, values of older types converted" in plan_of(frame)
    assert _rows(to_arrow(frame)) == _rows(table.to_arrow(["c0"]))


def test_a_renamed_column_and_a_widened_decimal_are_read_by_spark(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.prices", "item STRING, price DECIMAL(10, 2)")
    table.append([{"item": "a", "price": Decimal("1.25")}, {"item": "b", "price": Decimal("-2.50")}])
    spark.sql("ALTER TABLE penstock.d.prices ALTER COLUMN price TYPE DECIMAL(14, 2)")
    spark.sql("ALTER TABLE penstock.d.prices RENAME COLUMN item TO sku")
    spark.sql("INSERT INTO penstock.d.prices VALUES ('a', 123456789012.75)")
    frame = spark.sql("SELECT sku, sum(price) AS total FROM penstock.d.prices WHERE price > -2.5 GROUP BY sku")
    assert "parquet reader of Spark" in plan_of(frame)
    assert frame.collect() == [("a", Decimal("123456789014.00"))]


def test_null_among_bytes_is_no_filter_that_spark_cannot_log(spark: SparkSession, catalog: Catalog) -> None:
    catalog.create_table("d.bytes", "b BYTES").append(pa.table({"b": pa.array([b"", b"x", None], pa.binary())}))
    found = spark.table("penstock.d.bytes").where("b IN (X'', X'ff', NULL)").collect()
    assert [bytes(row.b) for row in found] == [b""]


def test_bucket_keys_prune_and_joins_prune_by_them(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.queue", "k INT, v INT", options={"bucket": "8", "bucket-key": "k"})
    table.append(pa.table({"k": pa.array(range(64), pa.int32()), "v": pa.array(range(64), pa.int32())}))
    assert _opened(spark.sql("SELECT v FROM penstock.d.queue WHERE k = 5")) == 1
    assert _opened(spark.sql("SELECT v FROM penstock.d.queue WHERE k IN (5, 6)")) <= 2
    keys = catalog.create_table("d.keys", "k INT, name STRING")
    keys.append(pa.table({"k": pa.array([5, 9], pa.int32()), "name": ["five", "nine"]}))
    frame = spark.sql(
        "SELECT /*+ BROADCAST(n) */ q.v FROM penstock.d.queue q JOIN penstock.d.keys n ON q.k = n.k "
        "WHERE n.name = 'five'"
    )
    assert frame.collect() == [(5,)]
    assert "dynamicpruning" in plan_of(frame)


def test_statistics_count_the_columns_that_are_read(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.wide", "id INT, a STRING, b STRING, c STRING")
    table.append(pa.table({"id": pa.array([1], pa.int32()), "a": ["x"], "b": ["y"], "c": ["z"]}))
    sizes = [
        spark.sql(f"SELECT {columns} FROM penstock.d.wide")._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
        for columns in ("*", "id")
    ]
    assert int(str(sizes[1])) * 5 < int(str(sizes[0]))


@needs(PYTHON_SCANS)
def test_digits_that_spark_cuts_off_hide_no_rows(spark: SparkSession, catalog: Catalog) -> None:
    fine = catalog.create_table("d.fine", "id INT, at TIMESTAMP(9), part TIMESTAMP(9)", partition_by=["part"])
    moment = 1_704_067_200_123_456_000
    for number, nanos in enumerate((moment - 1, moment, moment + 789, moment + 1_001)):
        at = pa.array([nanos], pa.timestamp("ns"))
        fine.append(pa.table({"id": pa.array([number], pa.int32()), "at": at, "part": at}))
    spark.sql("CREATE TABLE penstock.d.micros (at TIMESTAMP_NTZ)")
    spark.sql("INSERT INTO penstock.d.micros VALUES (TIMESTAMP_NTZ '2024-01-01 00:00:00.123456')")
    literal = "TIMESTAMP_NTZ '2024-01-01 00:00:00.123456'"
    conditions = [f"{sign} {literal}" for sign in ("=", "<=>", "<>", "<", "<=", ">", ">=")]
    conditions += [f"IN ({literal}, NULL)", f"NOT IN ({literal})", f"BETWEEN {literal} AND {literal}", "IS NOT NULL"]
    for condition in conditions:
        for column in ("at", "part"):
            found = spark.sql(f"SELECT id FROM penstock.d.fine WHERE {column} {condition}")
            # An expression that is not pushed down, so that Spark decides alone.
            wanted = spark.sql(f"SELECT id FROM penstock.d.fine WHERE coalesce({column} {condition}, id < 0)")
            assert sorted(found.collect()) == sorted(wanted.collect()), (column, condition)
    assert _opened(spark.sql(f"SELECT id FROM penstock.d.fine WHERE part = {literal}")) == 2
    joined = spark.sql(
        "SELECT id FROM penstock.d.fine f JOIN penstock.d.micros m ON f.part = m.at "
        "WHERE m.at > TIMESTAMP_NTZ '2000-01-01 00:00:00'"
    )
    assert sorted(joined.collect()) == [(1,), (2,)]


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize(
    "way",
    [
        pytest.param("catalog", marks=needs(PYTHON_SCANS)),
        "to_spark",
        pytest.param("format", marks=needs(PYTHON_SOURCES)),
        pytest.param("read_stream", marks=needs(PYTHON_SCANS)),
    ],
)
def test_nulls_from_before_a_column_became_not_null_are_read_and_found(
    spark: SparkSession, catalog: Catalog, file_format: str, way: str
) -> None:
    name = f"d.tightened_{file_format}_{way}"
    options = {"file.format": file_format, "alter-column-null-to-not-null.disabled": "false"}
    table = catalog.create_table(name, "id INT, a INT, st ROW<x INT>, arr ARRAY<INT>", options=options)
    old = [
        {"id": 1, "a": None, "st": None, "arr": None},
        {"id": 2, "a": 5, "st": {"x": 1}, "arr": [1]},
        {"id": 3, "a": None, "st": {"x": None}, "arr": [None]},
    ]
    table.append(pa.Table.from_pylist(old, table.arrow_schema))
    paths = ("a", "st", ("st", "x"), "arr", ("arr", "element"))
    table = catalog.alter_table(name, *(UpdateColumnNullability(column=path, nullable=False) for path in paths))

    def frame() -> DataFrame:
        match way:
            case "catalog":
                return spark.table(f"penstock.{name}")
            case "to_spark":
                return table.to_spark(spark)
            case "format":
                return spark.read.format("penstock").load(table.location)
            case _:
                sink = table.read_stream(spark).writeStream.format("memory").queryName(f"tightened_{file_format}")
                sink.trigger(availableNow=True).start().awaitTermination()
                return spark.table(f"tightened_{file_format}")

    rows = frame()
    assert sorted((row.asDict(recursive=True) for row in rows.collect()), key=lambda row: row["id"]) == old
    found = {text: rows.where(text).count() for text in ("a IS NULL", "a IS NOT NULL", "st IS NULL", "st.x IS NULL")}
    assert found == {"a IS NULL": 2, "a IS NOT NULL": 1, "st IS NULL": 1, "st.x IS NULL": 2}


@pytest.mark.parametrize("is_slow", [False, True])
def test_row_groups_are_read_in_pieces_but_of_stores_that_answer_requests_side_by_side(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, *, is_slow: bool
) -> None:
    monkeypatch.setattr(LocalFileIO, "is_slow", property(lambda _: is_slow))
    name = f"in_pieces_{is_slow}".lower()
    catalog.create_table(f"d.{name}", "id INT").append(pa.table({"id": [1]}))
    factory = _scan_of(spark.table(f"penstock.d.{name}")).readerFactory()
    conf = factory.broadcastedConf().value().value()
    found = [conf.get(key) for key in ("parquet.read.allocation.size", "parquet.hadoop.vectored.io.enabled")]
    assert found == ([None, None] if is_slow else ["262144", "false"])


def _scan_of(frame: DataFrame) -> Any:
    """Return the scan in a physical plan that has no other leaf."""
    node = frame._jdf.queryExecution().executedPlan()
    while node.children().nonEmpty():
        node = node.children().head()
    return node
