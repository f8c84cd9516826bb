"""Branches of tables in a catalog of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors.exceptions.base import PySparkException

import penstock
from penstock.catalog.changes import RenameColumn
from penstock.spark.versions.facts import PROCEDURES, PYTHON_SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock import Catalog, Table


@pytest.fixture
def forked(catalog: Catalog) -> Table:
    """A table whose main branch has the rows 1 and 2, and whose branch ``b`` has 1 and 10, each in snapshot 2."""
    catalog.drop_table("d.forked", if_exists=True)
    table = catalog.create_table("d.forked", "id INT, p STRING", partition_by=["p"])
    table.append([{"id": 1, "p": "x"}])
    table.versions.create_branch("b", snapshot_id=1)
    table.append([{"id": 2, "p": "x"}])
    table.with_options({"branch": "b"}).append([{"id": 10, "p": "x"}])
    return table


def _ids(spark: SparkSession, sql: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(sql).collect())


def test_a_branch_is_read_and_changed_by_its_name(spark: SparkSession, forked: Table) -> None:
    branch = "penstock.d.`forked$branch_b`"
    assert _ids(spark, f"SELECT id FROM {branch}") == [1, 10]
    assert _ids(spark, f"SELECT id FROM {branch} VERSION AS OF 1") == [1]
    assert _ids(spark, f"SELECT id FROM {branch} WHERE id > 5") == [10]
    assert spark.table("penstock.d.`forked$branch_b$snapshots`").count() == 2
    spark.sql(f"INSERT INTO {branch} VALUES (11, 'y')")
    spark.sql(f"DELETE FROM {branch} WHERE id = 1")
    assert _ids(spark, f"SELECT id FROM {branch}") == [10, 11]
    assert _ids(spark, "SELECT id FROM penstock.d.forked") == [1, 2]
    spark.range(1).selectExpr("CAST(12 AS INT) AS id", "'z' AS p").writeTo(branch).append()
    assert forked.with_options({"branch": "b"}).to_arrow(["id"])["id"].to_pylist() == [10, 11, 12]


def test_rows_of_two_branches_with_equal_snapshot_ids_are_not_mixed_up(spark: SparkSession, forked: Table) -> None:
    """Spark runs scans with equal keys once, and uses the rows for both."""
    one, two = "SELECT id FROM penstock.d.forked", "SELECT id FROM penstock.d.`forked$branch_b`"
    assert _ids(spark, f"{one} UNION ALL {two}") == [1, 1, 2, 10]
    assert _ids(spark, f"SELECT a.id FROM ({one}) a JOIN ({two}) b ON a.id = b.id") == [1]
    frames = [table.to_spark(spark).repartition(2, "id") for table in (forked, forked.with_options({"branch": "b"}))]
    assert sorted(row.id for row in frames[0].union(frames[1]).collect()) == [1, 1, 2, 10]
    assert frames[0].join(frames[1], "id").count() == 1


def test_columns_of_a_branch_change_alone(spark: SparkSession, forked: Table) -> None:
    spark.sql("ALTER TABLE penstock.d.`forked$branch_b` ADD COLUMN more INT")
    spark.sql("INSERT INTO penstock.d.`forked$branch_b` VALUES (12, 'y', 5)")
    assert _ids(spark, "SELECT id FROM penstock.d.`forked$branch_b` WHERE more = 5") == [12]
    assert spark.table("penstock.d.forked").columns == ["id", "p"]


def test_a_fallback_branch_is_read_and_never_changed(spark: SparkSession, forked: Table) -> None:
    main, other = "penstock.d.forked", "penstock.d.`forked$branch_b`"
    spark.sql(f"ALTER TABLE {main} SET TBLPROPERTIES ('scan.fallback-branch' = 'b')")
    spark.sql(f"INSERT INTO {other} VALUES (20, 'y'), (21, 'y')")
    assert _ids(spark, f"SELECT id FROM {main}") == [1, 2, 20, 21]
    assert _ids(spark, f"SELECT id FROM {main} VERSION AS OF 2") == [1, 2]
    assert _ids(spark, f"SELECT count(*) FROM {main}") == [4]
    assert _ids(spark, f"SELECT max(id) FROM {main} WHERE p = 'y'") == [21]
    assert spark.sql(f"SHOW PARTITIONS {main}").count() == 2
    table = penstock.Table.at(forked.location)
    assert sorted(row.id for row in table.to_spark(spark).collect()) == [1, 2, 20, 21]
    if PYTHON_SOURCES.is_here:
        loaded = spark.read.format("penstock").load(forked.location)
        assert sorted(row.id for row in loaded.collect()) == [1, 2, 20, 21]
    # The main branch has the same snapshot, but a read of it has more rows now.
    spark.sql(f"INSERT INTO {other} VALUES (22, 'z')")
    assert _ids(spark, f"SELECT id FROM {main}") == [1, 2, 20, 21, 22]
    spark.sql(f"DELETE FROM {main} WHERE id IN (SELECT id FROM {main} WHERE id IN (2, 20))")
    spark.sql(f"UPDATE {main} SET id = id + 100 WHERE id < 30")
    spark.sql(f"MERGE INTO {main} t USING (SELECT 101 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.id = 102")
    assert _ids(spark, f"SELECT id FROM {main}") == [20, 21, 22, 102]
    assert _ids(spark, f"SELECT id FROM {other}") == [1, 10, 20, 21, 22]
    stream = spark.readStream.table(main).writeStream.format("memory").queryName("of_main").trigger(availableNow=True)
    assert stream.start().awaitTermination(60)
    assert _ids(spark, "SELECT id FROM of_main") == [102]


def test_options_that_name_a_past_state_keep_the_columns_of_both_branches(
    spark: SparkSession, catalog: Catalog
) -> None:
    """Spark passes them after it has taken the latest columns, whose names another column may have had before."""
    catalog.drop_table("d.renamed", if_exists=True)
    table = catalog.create_table("d.renamed", "a INT, b INT, p STRING", partition_by=["p"])
    table.versions.create_branch("b")
    catalog.alter_table("d.renamed", penstock.SetOption(key="scan.fallback-branch", value="b"))
    table.with_options({"branch": "b"}).append([{"a": 1, "b": 100, "p": "y"}])
    table.append([{"a": 2, "b": 200, "p": "x"}])
    for name in ("d.renamed", "d.renamed$branch_b"):
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            catalog.alter_table(name, RenameColumn(column=old, new_name=new))
    read = spark.read.option("scan.snapshot-id", "1").table("penstock.d.renamed")
    assert sorted((row.a, row.b) for row in read.collect()) == [(100, 1), (200, 2)]
    assert sorted((row.a, row.b) for row in read.where("a > 50").collect()) == [(100, 1), (200, 2)]
    assert read.where("a < 50").count() == 0
    assert [row.a for row in read.where("a = 100").collect()] == [100]


def test_the_option_can_be_removed_where_the_branches_differ(spark: SparkSession, forked: Table) -> None:
    spark.sql("ALTER TABLE penstock.d.forked SET TBLPROPERTIES ('scan.fallback-branch' = 'b')")
    spark.sql("ALTER TABLE penstock.d.forked ADD COLUMN more INT")
    with pytest.raises(PySparkException, match="whose columns differ"):
        spark.sql("SELECT id FROM penstock.d.forked").collect()
    spark.sql("ALTER TABLE penstock.d.forked UNSET TBLPROPERTIES ('scan.fallback-branch')")
    assert _ids(spark, "SELECT id FROM penstock.d.forked") == [1, 2]


def test_the_fallback_branch_must_exist_and_stays(spark: SparkSession, forked: Table) -> None:
    with pytest.raises(PySparkException, match="there is no branch 'c': create the branch first"):
        spark.sql("ALTER TABLE penstock.d.forked SET TBLPROPERTIES ('scan.fallback-branch' = 'c')")
    with pytest.raises(PySparkException, match="there is no branch 'c': create the branch first"):
        spark.sql("CREATE TABLE penstock.d.other (id INT) TBLPROPERTIES ('scan.fallback-branch' = 'c')")
    spark.sql("ALTER TABLE penstock.d.forked SET TBLPROPERTIES ('scan.fallback-branch' = 'b')")
    if PROCEDURES.is_here:
        with pytest.raises(PySparkException, match="branch 'b' cannot be deleted"):
            spark.sql("CALL penstock.sys.delete_branch('d.forked', 'b')")


def test_what_a_branch_does_not_have_is_refused(spark: SparkSession, forked: Table) -> None:
    with pytest.raises(PySparkException, match="no branch 'c'; there are b"):
        spark.table("penstock.d.`forked$branch_c`").count()
    with pytest.raises(PySparkException, match=r"whose rows and columns can change; the table is 'd\.forked'"):
        spark.sql("DROP TABLE penstock.d.`forked$branch_b`")


def test_a_change_of_columns_that_is_not_allowed_is_one_sentence(spark: SparkSession, forked: Table) -> None:
    with pytest.raises(PySparkException, match="partition") as raised:
        spark.sql("ALTER TABLE penstock.d.forked DROP COLUMN p")
    assert "at org.apache" not in str(raised.value)
