"""Names as Spark resolves them: in any case where it ignores case, and paths left to its own readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from tests.spark.needs import needs

from penstock.spark.versions.facts import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog


def found(spark: SparkSession, statement: str) -> list[Any]:
    return [tuple(row) for row in spark.sql(statement).collect()]


@pytest.fixture
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def test_names_are_found_in_any_case(spark: SparkSession, catalog: Catalog) -> None:
    spark.sql("CREATE TABLE penstock.D.Emp (a INT)")
    assert catalog.list_tables("d") == ("Emp",)
    spark.sql("INSERT INTO penstock.d.EMP VALUES (1), (2)")
    spark.sql("DELETE FROM penstock.D.emp WHERE a = 2")
    spark.sql("ALTER TABLE penstock.d.eMP ADD COLUMN b INT")
    assert found(spark, "SELECT * FROM penstock.D.EMP") == [(1, None)]
    assert found(spark, "SELECT snapshot_id FROM penstock.d.`EMP$snapshots`") == [(1,), (2,)]
    for statement in ("CREATE TABLE penstock.d.EMP (a INT)", "CREATE TABLE penstock.d.EMP AS SELECT 1 AS a"):
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            spark.sql(statement)
    spark.sql("CREATE TABLE IF NOT EXISTS penstock.d.EMP (z INT)")
    spark.sql("CREATE OR REPLACE TABLE penstock.d.EMP AS SELECT 7 AS a")
    assert catalog.load_table("d.Emp").to_arrow().to_pylist() == [{"a": 7}]
    spark.sql("ALTER TABLE penstock.d.EMP RENAME TO d.emp")
    assert catalog.list_tables("d") == ("emp",)
    spark.sql("DROP TABLE penstock.d.EMP")
    assert catalog.list_tables("d") == ()


@needs(VIEWS)
def test_names_of_views_are_found_in_any_case(spark: SparkSession, catalog: Catalog) -> None:
    spark.sql("CREATE TABLE penstock.D.Emp AS SELECT 1 AS a")
    spark.sql("CREATE VIEW penstock.d.Seen AS SELECT a FROM penstock.d.EMP")
    assert found(spark, "SELECT * FROM penstock.D.SEEN") == [(1,)]
    for statement in (
        "CREATE VIEW penstock.d.EMP AS SELECT 1 AS a",
        "CREATE VIEW penstock.d.SEEN AS SELECT 1 AS a",
    ):
        with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
            spark.sql(statement)
    spark.sql("CREATE OR REPLACE VIEW penstock.d.SEEN AS SELECT a + 1 AS a FROM penstock.d.emp")
    assert found(spark, "SELECT * FROM penstock.d.Seen") == [(2,)]
    assert catalog.list_views("d") == ("Seen",)
    spark.sql("DROP VIEW penstock.d.SEEN")
    spark.sql("DROP TABLE penstock.d.EMP")
    assert (catalog.list_tables("d"), catalog.list_views("d")) == ((), ())


def test_of_names_that_differ_only_in_case_the_equal_one_is_meant(spark: SparkSession, catalog: Catalog) -> None:
    for number, name in enumerate(("twin", "TWIN")):
        catalog.create_table(f"d.{name}", "a INT").append([{"a": number}])
    assert [found(spark, f"SELECT * FROM penstock.d.{name}") for name in ("twin", "TWIN")] == [[(0,)], [(1,)]]
    with pytest.raises(PySparkException, match="TWIN and twin differ from it only in case"):
        spark.sql("SELECT * FROM penstock.d.Twin")
    with pytest.raises(PySparkException, match="missing"):
        spark.sql("ALTER TABLE penstock.d.twin DROP COLUMN missing")
    for name in ("twin", "TWIN"):
        spark.sql(f"DROP TABLE penstock.d.{name}")
    assert catalog.list_tables("d") == ()


@pytest.mark.usefixtures("case_sensitive")
def test_case_counts_where_spark_says_so(spark: SparkSession, catalog: Catalog) -> None:
    for name in ("one", "ONE"):
        spark.sql(f"CREATE TABLE penstock.d.{name} (a INT)")
    assert catalog.list_tables("d") == ("ONE", "one")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM penstock.d.One")
    for name in ("one", "ONE"):
        spark.sql(f"DROP TABLE penstock.d.{name}")


def test_paths_are_left_to_sparks_own_readers(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    spark.sql("USE penstock.d")
    try:
        for kind in ("parquet", "csv", "json", "orc"):
            path = tmp_path / kind
            spark.range(3).write.format(kind).save(str(path))
            assert spark.sql(f"SELECT * FROM {kind}.`{path}`").count() == 3
            spark.sql(f"CREATE OR REPLACE TABLE copied AS SELECT * FROM {kind}.`{path}`")
            assert catalog.load_table("d.copied").to_arrow().num_rows == 3
        assert not spark.catalog.tableExists("d.`a/b`")
        spark.sql("DROP TABLE IF EXISTS d.`a/b`")
        if VIEWS.is_here:
            spark.sql("DROP VIEW IF EXISTS d.`a/b`")
        with pytest.raises(PySparkException, match="'/' cannot be in a name"):
            spark.sql("CREATE TABLE d.`a/b` (a INT)")
        spark.sql("DROP TABLE copied")
    finally:
        spark.sql("USE spark_catalog.default")
