"""Branches of tables in a catalog of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors.exceptions.base import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock import Catalog, Table


@pytest.fixture
def forked(catalog: Catalog) -> Table:
    """A table whose main branch has the rows 1 and 2, and whose branch ``b`` has 1 and 10, each in snapshot 2."""
    catalog.drop_table("d.forked", if_exists=True)
    table = catalog.create_table("d.forked", "id INT, p STRING", partition_by=["p"])
    table.append([{"id": 1, "p": "x"}])
    table.create_branch("b", snapshot_id=1)
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


def test_what_a_branch_does_not_have_is_refused(spark: SparkSession, forked: Table) -> None:
    with pytest.raises(PySparkException, match="no branch 'c'; there are b"):
        spark.table("penstock.d.`forked$branch_c`").count()
    with pytest.raises(PySparkException, match=r"of which only rows are read and changed; the table is 'd\.forked'"):
        spark.sql("ALTER TABLE penstock.d.`forked$branch_b` ADD COLUMN more INT")
    with pytest.raises(PySparkException, match=r"the table is 'd\.forked'"):
        spark.sql("DROP TABLE penstock.d.`forked$branch_b`")


def test_a_change_of_columns_that_is_not_allowed_is_one_sentence(spark: SparkSession, forked: Table) -> None:
    with pytest.raises(PySparkException, match="partition") as raised:
        spark.sql("ALTER TABLE penstock.d.forked DROP COLUMN p")
    assert "at org.apache" not in str(raised.value)
