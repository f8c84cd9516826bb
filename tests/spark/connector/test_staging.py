"""Statements that create or replace a table together with its rows: all or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException

import penstock
from penstock import AddColumn
from penstock.catalog.directory import DirectoryBackend
from penstock.spark.connector.gateway import open_bridge
from penstock.spark.versions.facts import PYTHON_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from penstock import Catalog


@pytest.fixture
def run(spark: SparkSession, catalog: Catalog) -> Callable[[str], list[Any]]:
    return lambda text: sorted((tuple(row) for row in spark.sql(text).collect()), key=repr)


@pytest.fixture
def old(run: Callable[[str], list[Any]]) -> str:
    """Return the name of a table with three rows."""
    run("DROP TABLE IF EXISTS penstock.d.t")
    run("CREATE TABLE penstock.d.t AS SELECT id, CAST(id AS STRING) AS name FROM range(3)")
    return "penstock.d.t"


ROWS = [(0, "0"), (1, "1"), (2, "2")]


def root_of(catalog: Catalog) -> Path:
    return Path(catalog.warehouse)


def files(catalog: Catalog, table: str) -> list[str]:
    root = root_of(catalog) / "d.db"
    return sorted(str(path.relative_to(root)) for path in root.glob(f"{table}*/**/*") if path.is_file())


def kinds(catalog: Catalog, table: str) -> list[str]:
    found: list[str] = catalog.load_table(f"d.{table}").snapshots()["commit_kind"].to_pylist()
    return found


FAILED = (PySparkException, Py4JJavaError)  # Spark 3.5 leaves errors of tasks as they are
FAILURES = {
    "ANSI": "SELECT 10 / (id - 3) AS x, id FROM range(0, 4, 1, 2)",
    "UDF": "SELECT fails_at_three(id) AS x, id FROM range(0, 4, 1, 2)",
    "bucketed": "SELECT id, CAST(raise_error('stop') AS INT) AS x FROM range(0, 4, 1, 2)",
}


@pytest.fixture
def failing(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a query that fails after some rows are written."""

    def fails_at_three(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    spark.conf.set("spark.sql.ansi.enabled", "true")  # the default since Spark 4.0
    spark.udf.register("fails_at_three", fails_at_three, "bigint")
    yield FAILURES[request.param]
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("failing", FAILURES, indirect=True)
def test_a_table_whose_query_fails_is_not_created(
    run: Callable[[str], list[Any]], catalog: Catalog, failing: str
) -> None:
    options = "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'id')" if "raise_error" in failing else ""
    with pytest.raises(FAILED, match=r"DIVIDE_BY_ZERO|three|stop"):
        run(f"CREATE TABLE penstock.d.half {options} AS {failing}")
    assert not (root_of(catalog) / "d.db" / "half").exists()
    merged = "TBLPROPERTIES ('bucket' = '1', 'bucket-key' = 'x', 'precommit-compact' = 'true')"
    run(f"CREATE TABLE penstock.d.half {merged} AS SELECT id AS x FROM range(0, 2, 1, 2)")
    assert run("SELECT * FROM penstock.d.half") == [(0,), (1,)]
    assert catalog.load_table("d.half").files().num_rows == 1
    run("DROP TABLE penstock.d.half")


@pytest.mark.parametrize("failing", FAILURES, indirect=True)
@pytest.mark.parametrize("clauses", ["", "PARTITIONED BY (id)"])
def test_a_table_whose_replacement_fails_stays(
    run: Callable[[str], list[Any]], catalog: Catalog, old: str, failing: str, clauses: str
) -> None:
    before = files(catalog, "t")
    with pytest.raises(FAILED, match=r"DIVIDE_BY_ZERO|three|stop"):
        run(f"CREATE OR REPLACE TABLE {old} {clauses} AS {failing}")
    assert run(f"SELECT * FROM {old}") == ROWS
    assert files(catalog, "t") == before
    assert catalog.list_tables("d").count("t") == 1
    assert not [name for name in catalog.list_tables("d") if name.startswith("t__")]


def test_a_query_may_read_the_table_that_it_replaces(
    run: Callable[[str], list[Any]], catalog: Catalog, old: str
) -> None:
    run(f"CREATE OR REPLACE TABLE {old} AS SELECT id * 10 AS id, name, 1.5D AS price FROM {old} WHERE id > 0")
    assert run(f"SELECT * FROM {old}") == [(10, "1", 1.5), (20, "2", 1.5)]
    assert run(f"SELECT * FROM {old} VERSION AS OF 1") == ROWS
    assert kinds(catalog, "t") == ["APPEND", "OVERWRITE"]
    run(f"CREATE OR REPLACE TABLE {old} PARTITIONED BY (name) AS SELECT id, name FROM {old}")
    assert run(f"SELECT * FROM {old}") == [(10, "1"), (20, "2")]
    assert catalog.load_table("d.t").schema.partition_keys == ("name",)
    assert kinds(catalog, "t") == ["APPEND"]


def test_readers_see_the_old_rows_while_the_query_runs(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, old: str
) -> None:
    root = str(root_of(catalog))

    def rows_there(name: str) -> int:
        there = penstock.Catalog(root)
        return there.load_table(name).to_arrow().num_rows if name.partition(".")[2] in there.list_tables("d") else -1

    spark.udf.register("rows_there", rows_there, "int")
    run(f"CREATE OR REPLACE TABLE {old} AS SELECT id, rows_there('d.t') AS seen FROM range(2)")
    assert run(f"SELECT * FROM {old}") == [(0, 3), (1, 3)]
    run("CREATE TABLE penstock.d.later AS SELECT rows_there('d.later') AS seen, id FROM range(2)")
    assert run("SELECT seen FROM penstock.d.later") == [(-1,), (-1,)]


def test_rows_that_others_add_while_the_query_runs_are_replaced_and_stay_in_the_history(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, old: str
) -> None:
    root = str(root_of(catalog))

    def add(number: int) -> int:
        penstock.Catalog(root).load_table("d.t").append([{"id": 100 + number, "name": "meanwhile"}])
        return number

    spark.udf.register("add", add, "bigint")
    run(f"CREATE OR REPLACE TABLE {old} AS SELECT add(id) AS n FROM range(1)")
    assert run(f"SELECT * FROM {old}") == [(0,)]
    assert run(f"SELECT * FROM {old} VERSION AS OF 2") == [*ROWS[:2], (100, "meanwhile"), ROWS[2]]


def test_a_table_that_others_alter_while_the_query_runs_is_not_replaced(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog, old: str
) -> None:
    root = str(root_of(catalog))

    def alter(number: int) -> int:
        penstock.Catalog(root).alter_table("d.t", AddColumn(column="late", type="INT"))
        return number

    spark.udf.register("alter_it", alter, "bigint")
    with pytest.raises(PySparkException, match="others have altered it") as caught:
        run(f"CREATE OR REPLACE TABLE {old} AS SELECT alter_it(id) AS n FROM range(1)")
    assert 'File "' not in str(caught.value)
    assert run(f"SELECT * FROM {old}") == [(*row, None) for row in ROWS]


def test_a_table_is_replaced_without_a_query(run: Callable[[str], list[Any]], catalog: Catalog, old: str) -> None:
    run(f"REPLACE TABLE {old} (a INT, name STRING) TBLPROPERTIES ('file.format' = 'orc')")
    assert run(f"SELECT * FROM {old}") == []
    run(f"INSERT INTO {old} VALUES (1, 'x')")
    run(f"CREATE OR REPLACE TABLE {old} (a INT, name STRING) TBLPROPERTIES ('file.format' = 'orc')")
    assert run(f"SELECT * FROM {old}") == []
    assert run(f"SELECT * FROM {old} VERSION AS OF 3") == [(1, "x")]
    assert kinds(catalog, "t") == ["APPEND", "OVERWRITE", "APPEND", "OVERWRITE"]
    assert catalog.load_table("d.t").schema.option_map == {"file.format": "orc"}
    run("CREATE OR REPLACE TABLE penstock.d.brand_new (a INT)")
    assert catalog.load_table("d.brand_new").latest_snapshot() is None
    run("DROP TABLE penstock.d.brand_new")
    for statement in ("REPLACE TABLE penstock.d.none (a INT)", "REPLACE TABLE penstock.d.none AS SELECT 1 AS a"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            run(statement)
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        run("CREATE OR REPLACE TABLE penstock.nowhere.t AS SELECT 1 AS a")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        run(f"CREATE TABLE {old} AS SELECT 1 AS a")
    run(f"CREATE TABLE IF NOT EXISTS {old} AS SELECT 1 AS a")
    assert run(f"SELECT * FROM {old}") == []


def test_dataframes_create_and_replace_tables(
    spark: SparkSession, run: Callable[[str], list[Any]], catalog: Catalog
) -> None:
    frame = spark.range(2)
    name = "penstock.d.framed"
    frame.writeTo(name).using("penstock").tableProperty("bucket", "2").tableProperty("bucket-key", "id").create()
    assert catalog.load_table("d.framed").schema.option_map == {"bucket": "2", "bucket-key": "id"}
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        frame.writeTo(name).create()
    frame.selectExpr("id + 5 AS id").writeTo(name).tableProperty("bucket", "4").tableProperty(
        "bucket-key", "id"
    ).option("commit.user-prefix", "nightly").replace()
    assert run(f"SELECT * FROM {name}") == [(5,), (6,)]
    snapshot = catalog.load_table("d.framed").latest_snapshot()
    assert snapshot is not None
    assert snapshot.commit_user.startswith("nightly")
    frame.writeTo(name).partitionedBy(frame["id"]).createOrReplace()
    assert catalog.load_table("d.framed").schema.partition_keys == ("id",)
    if PYTHON_SOURCES.is_here:
        frame.selectExpr("id AS n").write.format("penstock").mode("overwrite").saveAsTable(name)
    else:
        frame.selectExpr("id AS n").writeTo(name).createOrReplace()
    assert run(f"SELECT * FROM {name}") == [(0,), (1,)]
    frame.write.mode("overwrite").saveAsTable(name)  # with Spark's default format, Parquet
    assert run(f"SELECT * FROM {name}") == [(0,), (1,)]
    frame.write.saveAsTable("penstock.d.saved")
    assert run("SELECT * FROM penstock.d.saved") == [(0,), (1,)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        frame.writeTo("penstock.d.missing").replace()
    frame.writeTo("penstock.d.missing").createOrReplace()
    assert run("SELECT * FROM penstock.d.missing") == [(0,), (1,)]


def test_a_table_replaced_while_it_is_loaded_has_the_columns_of_its_rows(
    run: Callable[[str], list[Any]], catalog: Catalog, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = catalog.load_table("d.t")._ref
    run(f"CREATE OR REPLACE TABLE {old} AS SELECT 7 AS other")
    load = DirectoryBackend.load_table
    answers = [before]
    monkeypatch.setattr(DirectoryBackend, "load_table", lambda *args: answers.pop() if answers else load(*args))
    assert run(f"SELECT * FROM {old}") == [(7,)]
    assert not answers


def test_a_cached_table_shows_what_replaced_it(spark: SparkSession, run: Callable[[str], list[Any]], old: str) -> None:
    run(f"CACHE TABLE {old}")
    assert len(run(f"SELECT * FROM {old}")) == 3
    run(f"CREATE OR REPLACE TABLE {old} AS SELECT 7 AS id")
    assert run(f"SELECT * FROM {old}") == [(7,)]


def test_older_callers_stage_tables_by_columns(spark: SparkSession, catalog: Catalog, old: str) -> None:
    """Spark passes a TableInfo; its interface also has columns or a schema, partitioning and properties."""
    jvm: Any = spark._jvm
    made = spark._jsparkSession.sessionState().catalogManager().catalog("penstock")
    names = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    names[0] = "d"
    connector = jvm.org.apache.spark.sql.connector
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL("a INT, b STRING")
    columns = open_bridge(spark).columns(schema)
    nothing = spark.sparkContext._gateway.new_array(connector.expressions.Transform, 0)
    for given in (schema, columns):
        staged = made.stageCreateOrReplace(connector.catalog.Identifier.of(names, "t"), given, nothing, {})
        assert [field.name() for field in staged.columns()] == ["a", "b"]
        staged.commitStagedChanges()
        staged.abortStagedChanges()
        assert catalog.load_table("d.t").schema.field_names == ("a", "b")
