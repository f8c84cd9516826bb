"""Reads of what changed, through both entry points of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from tests.spark.ways import READ_FORMAT_IF_SLOW

import penstock
from penstock import Catalog, Table
from penstock.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = READ_FORMAT_IF_SLOW


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Snapshot 1 is tagged; 2 appends to both partitions, 3 overwrites one of them, 4 appends."""
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT, p STRING", partition_by=["p"])

    def rows(*values: tuple[int, str]) -> pa.Table:
        return pa.Table.from_pylist([{"a": a, "p": p} for a, p in values], table.arrow_schema)

    table.append(rows((1, "x"), (2, "y")))
    table.append(rows((3, "x"), (4, "y")))
    table.overwrite(rows((5, "y")), partition={"p": "y"})
    table.append(rows((6, "x")))
    table.create_tag("first", snapshot_id=1)
    table.create_tag("last")
    return table


CASES = [
    ({"incremental-between": "1,4"}, [3, 4, 6]),
    ({"incremental-between": "2,3"}, []),
    ({"incremental-between": "1,4", "incremental-between-scan-mode": "diff"}, [3, 5, 6]),
    ({"incremental-between": "first,last"}, [3, 5, 6]),
    ({"scan.mode": "latest-delta"}, [6]),
]


def test_both_entry_points_deliver_the_changes_that_a_read_without_spark_delivers(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    penstock.attach(spark, tmp_path)
    for options, expected in CASES:
        assert sorted(table.to_arrow(options=options)["a"].to_pylist()) == expected
        assert sorted(table.to_batches(options=options).read_all()["a"].to_pylist()) == expected
        assert sorted(row["a"] for row in table.to_spark(spark, options=options).collect()) == expected
        frame = spark.read.format("penstock").options(**options).load(table.location)
        assert sorted(row["a"] for row in frame.collect()) == expected
        attached = spark.read.options(**options).table("penstock.d.t")
        assert sorted(row["a"] for row in attached.collect()) == expected


def test_a_filter_and_columns_apply_to_changes(spark: SparkSession, table: Table) -> None:
    options = {"incremental-between": "1,4"}
    for condition in ("p = 'x' AND a > 3", (pc.field("p") == "x") & (pc.field("a") > 3)):
        assert table.to_spark(spark, options=options, columns=["a"], filter=condition).collect() == [(6,)]
    frame = spark.read.format("penstock").options(**options, filter="p = 'x' AND a > 3").load(table.location)
    assert frame.select("a").collect() == [(6,)]
    assert table.explain(options=options).startswith("changes after snapshot 1 up to snapshot 4 (APPEND)")


def test_a_changelog_is_refused_at_both_entry_points(spark: SparkSession, table: Table) -> None:
    options = {"incremental-between": "1,4", "incremental-between-scan-mode": "changelog"}
    with pytest.raises(UnsupportedFeatureError, match="tables with a primary key"):
        table.to_spark(spark, options=options)
    with pytest.raises(PySparkException, match="tables with a primary key"):
        spark.read.format("penstock").options(**options).load(table.location).collect()
