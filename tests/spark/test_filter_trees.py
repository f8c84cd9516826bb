"""A few of the random conditions of ``make fuzz ARGS="--trees N"``, and those that once lost rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark.filter_trees import Batch, Findings, count_filters, create_sources

import penstock

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("seeds", "count"), [(range(13, 14), 24), pytest.param(range(20, 28), 64, marks=pytest.mark.slow)]
)
def test_random_conditions_find_and_change_the_rows_that_they_find_in_parquet_tables_of_spark(
    spark: SparkSession, tmp_path: Path, seeds: range, count: int
) -> None:
    catalog = penstock.attach(spark, tmp_path / "warehouse")
    catalog.create_database("fuzz")
    create_sources(spark, tmp_path)
    findings = Findings()
    with count_filters(findings):
        for seed in seeds:
            batch = Batch(spark, catalog, tmp_path, seed)
            batch.run(count, findings, format_every=8, change_every=12)
            batch.drop()
    assert findings.texts == []
    tally = findings.tally
    assert min(tally[way] for way in ("catalog", "to_spark().where", "format", "to_arrow", "DELETE", "UPDATE")) > 0
    # Push-down happens, so that a filter that loses rows would show.
    assert tally["scans whose reader got filters"] > tally["catalog"] // 4


def test_readers_get_no_side_of_an_or_alone(spark: SparkSession, tmp_path: Path) -> None:
    catalog = penstock.attach(spark, tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT, b BOOLEAN", options={"write-only": "true"})
    for number, value in enumerate((False, True, None)):
        table.append([{"id": number, "b": value}])
    # Spark has no filter for a BOOLEAN among several values, and takes the other side for the whole.
    for condition in ("b IN (TRUE, FALSE) OR id = 99", "NOT (b NOT IN (TRUE, FALSE) AND id <> 99)"):
        for frame in (spark.table("penstock.d.t"), table.to_spark(spark)):
            assert sorted(row.id for row in frame.where(condition).collect()) == [0, 1]
