"""Rows that deletion vectors delete are missing from every way in which Spark reads a table."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.deletion_vectors import delete_by_vectors, delete_keys
from tests.quick_spark import quick_environment
from tests.spark.needs import needs

import penstock
from penstock.catalog.changes import RenameColumn
from penstock.spark.connector import scan
from penstock.spark.versions.facts import PYTHON_SCANS, PYTHON_SOURCES, PYTHON_WRITES, ROW_DELTAS
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

# By Java Paimon: two files of 20 rows each; the first one has had two deletion vectors, the second of which holds both.
WRITTEN: Final = Path(__file__).parents[2] / "golden" / "data" / "deleted" / "java142.db" / "t"
SCRIPT: Final = Path(__file__).with_name("executor_class_script.py")
LEFT: Final = [k for k in range(40) if k not in {0, 7, 19}]


@pytest.fixture(scope="module")
def table(catalog: Catalog) -> Table:
    shutil.copytree(WRITTEN, Path(catalog.warehouse) / "d.db" / "dv")
    return catalog.load_table("d.dv")


def _keys(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("k").collect())


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_spark_reads_the_rows_that_are_left(spark: SparkSession, table: Table) -> None:
    assert _keys(spark.table("penstock.d.dv")) == LEFT
    assert _keys(table.to_spark(spark)) == LEFT
    assert _keys(table.to_spark(spark, filter="k < 9")) == LEFT[:7]
    assert _keys(spark.sql("SELECT k FROM penstock.d.dv WHERE k > 5 AND k < 21")) == [k for k in LEFT if 5 < k < 21]
    assert len(spark.sql("SELECT k FROM penstock.d.dv LIMIT 30").collect()) == 30
    assert "by parquet reader of Spark, with deletion vectors" in _plan(spark.table("penstock.d.dv"))
    assert "vectors" not in _plan(spark.sql("SELECT k FROM penstock.d.dv WHERE k >= 20"))


@needs(PYTHON_SOURCES)
def test_the_data_source_reads_the_rows_that_are_left(spark: SparkSession, table: Table) -> None:
    assert _keys(spark.read.format("penstock").load(table.location)) == LEFT


@needs(PYTHON_SCANS)
def test_python_workers_read_the_rows_where_executors_load_no_class(
    spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table
    monkeypatch.setattr(scan, "executors_have_classes", lambda _: False)
    frame = spark.table("penstock.d.dv")
    assert "Python workers, because rows of its files are deleted by deletion vectors" in _plan(frame)
    assert _keys(frame) == LEFT


def test_nothing_is_answered_from_metadata(spark: SparkSession, table: Table) -> None:
    rows: list[Any] = spark.sql("SELECT count(*), min(k), max(k), count(n) FROM penstock.d.dv").collect()
    assert tuple(rows[0]) == (37, 1, 39, 37)
    assert spark.table("penstock.d.dv").count() == 37
    assert table.to_spark(spark).count() == 37


@pytest.mark.parametrize("bucket", ["-1", pytest.param("1", marks=needs(ROW_DELTAS))])
def test_changes_leave_the_deleted_rows_out(spark: SparkSession, catalog: Catalog, bucket: str) -> None:
    options = {"bucket": bucket, "deletion-vectors.enabled": "true", **({"bucket-key": "k"} if bucket == "1" else {})}
    name = f"d.changed_{bucket.strip('-')}_{len(bucket)}"
    table = catalog.create_table(name, "k INT, n INT", options=options)
    for first in (0, 10, 20):
        table.append([{"k": k, "n": 0} for k in range(first, first + 10)])
    delete_keys(table, "k", {1, 2, 11})
    wanted = {k: 0 for k in range(30) if k not in {1, 2, 11}}

    def check() -> None:
        assert {row["k"]: row["n"] for row in table.to_arrow().to_pylist()} == wanted
        assert table.to_arrow().num_rows == len(wanted)

    spark.sql(f"UPDATE penstock.{name} SET n = n + 1 WHERE k % 10 = 1")
    wanted[21] = 1
    check()
    delete_keys(table, "k", {12, 22})
    del wanted[12], wanted[22]
    spark.sql(f"DELETE FROM penstock.{name} WHERE k IN (SELECT * FROM VALUES (3), (12), (23))")
    del wanted[3], wanted[23]
    check()
    spark.sql(
        f"MERGE INTO penstock.{name} t USING (SELECT col1 AS k FROM VALUES (4), (11)) AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = 7 WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, 8)"
    )
    wanted |= {4: 7, 11: 8}
    check()
    if bucket == "1":
        keys = table.to_arrow()["k"].to_pylist()
        # Rows that a statement has updated or inserted come last.
        assert keys == [*(k for k in sorted(wanted) if k not in {4, 11, 21}), 21, 4, 11]


def test_a_delete_writes_vectors(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.marked", "k INT, n INT", options={"deletion-vectors.enabled": "true"})
    for first in (0, 10):
        table.append([{"k": k, "n": 0} for k in range(first, first + 10)])
    before = table.files()["file_path"].to_pylist()
    spark.sql("DELETE FROM penstock.d.marked WHERE k IN (3, 15)")
    assert table.files()["file_path"].to_pylist() == before
    frame = spark.table("penstock.d.marked")
    assert "parquet reader of Spark, with deletion vectors" in _plan(frame)
    assert sorted(row.k for row in frame.collect()) == [k for k in range(20) if k not in {3, 15}]
    assert frame.count() == 18
    penstock.sql(spark, catalog, "DELETE FROM d.marked WHERE k = 4; UPDATE d.marked SET n = 1 WHERE k = 5")
    assert table.files()["file_path"].to_pylist()[:2] == before
    rows = spark.table("penstock.d.marked").where("n = 0").collect()
    assert sorted(row.k for row in rows) == [k for k in range(20) if k not in {3, 4, 5, 15}]


def test_a_stream_leaves_the_deleted_rows_out(
    spark: SparkSession, catalog: Catalog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = catalog.create_table("d.streamed", "k INT, n INT", options={"deletion-vectors.enabled": "true"})
    for first in (0, 10):
        table.append([{"k": k, "n": 0} for k in range(first, first + 10)])
    delete_keys(table, "k", {1, 2, 11})

    def run() -> list[int]:
        frame = spark.readStream.option("read.stream.maxFilesPerTrigger", "1").table("penstock.d.streamed")
        query = frame.writeStream.format("memory").queryName("remaining").option("checkpointLocation", str(tmp_path))
        started = query.trigger(availableNow=True).outputMode("append").start()
        started.awaitTermination()
        return sorted(row.k for row in spark.table("remaining").select("k").collect())

    assert run() == [k for k in range(20) if k not in {1, 2, 11}]
    assert "by Python workers" not in caplog.text


@needs(PYTHON_WRITES)
def test_a_sort_leaves_the_deleted_rows_out(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.sorted_dv", "k INT, n INT", options={"deletion-vectors.enabled": "true"})
    for first in (0, 10):
        table.append([{"k": k, "n": -k} for k in range(first, first + 10)])
    delete_keys(table, "k", {1, 2, 11})
    table.compact(spark, order_by=["n"])
    assert table.to_arrow()["k"].to_pylist() == [k for k in range(19, -1, -1) if k not in {1, 2, 11}]
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is None


@pytest.mark.cluster
@pytest.mark.parametrize("hidden", [(), pytest.param(("hidden",), marks=needs(PYTHON_SCANS))], ids=["added", "hidden"])
def test_executors_in_other_processes_load_the_class_or_python_reads(tmp_path: Path, hidden: tuple[str, ...]) -> None:
    shutil.copytree(WRITTEN, tmp_path / "warehouse" / "d.db" / "dv")
    environment = {
        **os.environ,
        **quick_environment(),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(tmp_path / "warehouse"), *hidden],
        env=environment,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    way = "Python workers, because rows of its files" if hidden else "parquet reader of Spark, with deletion vectors"
    assert way in found.pop("plan")
    assert found == {"catalog": LEFT, "to_spark": LEFT, "second session": LEFT, "jars": 0 if hidden else 1}
    assert done.stderr.count("executors load no class that this session adds") == len(hidden)


COLUMNS: Final = """
    id INT, s STRING, i BIGINT, b BOOLEAN, f FLOAT, d DOUBLE, small DECIMAL(9, 2), wide DECIMAL(30, 4), bin BYTES,
    day DATE, at TIMESTAMP(6), list ARRAY<INT>, m MAP<STRING, INT>, r ROW<x INT, y ROW<z STRING>>, p INT
"""
# Rows of each partition, and which share of them is deleted.
SHARES: Final = {0: (5_000, 0.0), 1: (70_000, 0.01), 2: (5_000, 0.5), 3: (5_000, 1.0)}


def _row(part: int, n: int, text: str) -> dict[str, Any]:
    return {
        "id": part * 100_000 + n,
        text: None if n % 7 == 0 else f"s{n % 13}",
        "i": n * n,
        "b": n % 3 == 0,
        "f": n / 4,
        "d": None if n % 5 == 0 else n / 8,
        "small": Decimal(n) / 100,
        "wide": Decimal(n * 7) / 10_000,
        "bin": str(n).encode(),
        "day": dt.date(2026, 1, 1) + dt.timedelta(n % 300),
        "at": dt.datetime(2026, 1, 1) + dt.timedelta(seconds=n),  # noqa: DTZ001 - a wall clock
        "list": [n, None] if n % 4 else None,
        "m": {f"k{n % 3}": n},
        "r": {"x": n, "y": {"z": f"z{n}"}} if n % 6 else None,
        "p": part,
    }


@pytest.fixture(scope="module", params=["32", "64"])
def large(catalog: Catalog, request: pytest.FixtureRequest) -> Table:
    """All kinds of columns, one of which was renamed between its files; the files have several row groups."""
    name = f"d.deleted_{request.param}"
    table = catalog.create_table(name, COLUMNS, partition_by=["p"], options={"file.block-size": "64 kb"})
    deleted: dict[str, list[int]] = {}
    chooser = random.Random(7)  # noqa: S311 - not for secrets
    for part, (count, share) in SHARES.items():
        if part == 2:
            table = catalog.alter_table(name, RenameColumn(column="s", new_name="text"))
        text = "text" if part >= 2 else "s"
        table.append(pa.Table.from_pylist([_row(part, n, text) for n in range(count)], table.arrow_schema))
        (file,) = set(table.files()["file_path"].to_pylist()) - set(deleted)
        # Neighbours, and rows at both ends of a container of a bitmap.
        ends = {0, 1, 65_535, 65_536, count - 1} if part == 1 else set()
        deleted[file] = sorted(ends | {row for row in range(count) if chooser.random() < share})
    rows = {path.rpartition("/")[2]: found for path, found in deleted.items() if found}
    delete_by_vectors(table, rows, is_64=request.param == "64")
    return catalog.load_table(name)


@pytest.fixture(params=["vectorised", "row by row"])
def in_parts(spark: SparkSession, compiled: None, request: pytest.FixtureRequest) -> Iterator[None]:
    """Have files read in parts, each of which finds its rows in the vector, by each of Spark's readers."""
    settings = {
        "spark.sql.parquet.enableVectorizedReader": str(request.param == "vectorised").lower(),
        "spark.sql.files.maxPartitionBytes": "100000",
        "spark.sql.files.openCostInBytes": "1000",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        spark.conf.unset(key)


@pytest.mark.parametrize(
    ("large", "in_parts"),
    [
        ("32", "row by row"),
        ("64", "vectorised"),
        pytest.param("32", "vectorised", marks=pytest.mark.slow),
        pytest.param("64", "row by row", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_the_rows_are_those_of_to_arrow(spark: SparkSession, large: Table, in_parts: None) -> None:
    everything = sorted(large.to_arrow().to_pylist(), key=itemgetter("id"))
    conditions: dict[str, Callable[[dict[str, Any]], bool]] = {
        "true": lambda _: True,
        "id BETWEEN 165000 AND 166000": lambda row: 165_000 <= row["id"] <= 166_000,
        "text = 's5'": lambda row: row["text"] == "s5",
        "text IS NULL AND p = 2": lambda row: row["text"] is None and row["p"] == 2,
        "p = 3": lambda _: False,
    }
    for condition, fits in conditions.items():
        frame = spark.sql(f"SELECT * FROM penstock.{large.name} WHERE {condition}")
        assert "parquet reader of Spark, with deletion vectors" in _plan(frame), condition
        found = sorted(to_arrow(frame).to_pylist(), key=itemgetter("id"))
        assert found == [row for row in everything if fits(row)], condition
    whole = spark.table(f"penstock.{large.name}")
    assert "files of 2 schemas" in _plan(whole)
    totals = whole.selectExpr("count(*)", "sum(r.x)", "count(r.y.z)").collect()[0]
    fields = [row["r"]["x"] for row in everything if row["r"]]
    assert tuple(totals) == (len(everything), sum(fields), len(fields))
    assert whole.select("p").where("p > 0").count() == sum(row["p"] > 0 for row in everything)


DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "it was cut off": lambda data: data[:-3],
    "its checksum is wrong, the file is damaged": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "there is none at this offset": lambda data: data[:5] + b"\0" + data[6:],
}


@pytest.mark.parametrize("error", DAMAGES)
def test_a_damaged_vector_is_an_error(spark: SparkSession, catalog: Catalog, error: str) -> None:
    table = catalog.create_table(f"d.damaged_{list(DAMAGES).index(error)}", "k INT")
    table.append([{"k": k} for k in range(10)])
    (path,) = table.files()["file_path"].to_pylist()
    delete_by_vectors(table, {path.rpartition("/")[2]: [3, 5]})
    (index,) = Path(table.location, "index").iterdir()
    index.write_bytes(DAMAGES[error](index.read_bytes()))
    with pytest.raises(Exception, match=error):
        spark.table(f"penstock.{table.name}").collect()
    index.unlink()
    with pytest.raises(Exception, match="is missing, which has a deletion vector; restore it from a copy"):
        spark.table(f"penstock.{table.name}").collect()


def test_a_row_that_the_file_does_not_have_is_an_error(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.beyond", "k INT")
    table.append([{"k": k} for k in range(10)])
    (path,) = table.files()["file_path"].to_pylist()
    delete_by_vectors(table, {path.rpartition("/")[2]: [3, 10]})
    with pytest.raises(Exception, match="it deletes rows that its file does not have"):
        spark.table("penstock.d.beyond").collect()
