"""Rows that Java Paimon deleted by deletion vectors are missing from every way in which Spark reads a table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.errors.exceptions.base import PySparkException
from tests.spark.needs import needs

from penstock.spark.versions.facts import PYTHON_SCANS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table


# Two files of 20 rows each; the first one has had two deletion vectors, the second of which holds both.
WRITTEN: Final = Path(__file__).parents[2] / "golden" / "data" / "deleted" / "java142.db" / "t"


@pytest.fixture(scope="module")
def table(catalog: Catalog) -> Table:
    shutil.copytree(WRITTEN, Path(catalog.warehouse) / "d.db" / "dv")
    return catalog.load_table("d.dv")


LEFT = [k for k in range(40) if k not in {0, 7, 19}]


def _keys(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("k").collect())


@needs(PYTHON_SCANS)
def test_spark_reads_the_rows_that_are_left(spark: SparkSession, table: Table) -> None:
    assert _keys(spark.table("penstock.d.dv")) == LEFT
    assert _keys(table.to_spark(spark)) == LEFT
    assert _keys(table.to_spark(spark, filter="k < 9")) == LEFT[:7]
    assert _keys(spark.read.format("penstock").load(table.location)) == LEFT
    assert _keys(spark.sql("SELECT k FROM penstock.d.dv WHERE k > 5 AND k < 21")) == [k for k in LEFT if 5 < k < 21]
    assert len(spark.sql("SELECT k FROM penstock.d.dv LIMIT 30").collect()) == 30


@needs(PYTHON_SCANS)
def test_nothing_is_answered_from_metadata(spark: SparkSession, table: Table) -> None:
    rows: list[Any] = spark.sql("SELECT count(*), min(k), max(k), count(n) FROM penstock.d.dv").collect()
    assert tuple(rows[0]) == (37, 1, 39, 37)
    assert spark.table("penstock.d.dv").count() == 37
    assert table.to_spark(spark).count() == 37


def test_rows_are_not_changed(spark: SparkSession, table: Table) -> None:
    for statement in ("UPDATE penstock.d.dv SET n = 0 WHERE k % 5 = 1", "DELETE FROM penstock.d.dv WHERE k = 3"):
        with pytest.raises(PySparkException, match="is read only here"):
            spark.sql(statement)
    assert _keys(table.to_spark(spark)) == LEFT
