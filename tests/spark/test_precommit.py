"""``precommit-compact`` through every entry point of Spark: tasks write, readers see one file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock.spark.versions.facts import STREAM_READS_OF_FORMAT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from penstock.api.table import Table


@pytest.fixture(params=["-1", "1"], ids=["scalable", "queue"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    catalog = penstock.Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("db")
    options = {"bucket": request.param, "precommit-compact": "true"}
    if request.param != "-1":
        options["bucket-key"] = "id"
    return catalog.create_table("db.t", "id BIGINT", options=options)


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, 4_000, 1, numPartitions=4)


def check(table: Table, files: int) -> None:
    assert table.files().num_rows == files
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(list(range(4_000)) * files)
    assert set(table.snapshots()["commit_kind"].to_pylist()) == {"APPEND"}
    assert not table.inspect.fsck().findings
    report = table.remove_orphan_files(older_than=time.time_ns() // 1_000_000, allow_recent=True)
    assert report.orphans == ()


def test_the_files_of_all_tasks_become_one(
    spark: SparkSession, table: Table, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table.append(numbers(spark))
    check(table, 1)
    if table.options["bucket"] == "1":
        assert table.to_arrow()["id"].to_pylist() == list(range(4_000))
    entry_points = ["write_stream"]
    if STREAM_READS_OF_FORMAT.is_here:
        request.getfixturevalue("format_streams")
        numbers(spark).write.format("penstock").mode("append").save(table.location)
        check(table, 2)
        entry_points.append("format")
    numbers(spark).write.parquet(str(tmp_path / "feed"))
    for number, entry_point in enumerate(entry_points, start=table.files().num_rows + 1):
        feed = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "feed"))
        checkpoint = str(tmp_path / entry_point)
        if entry_point == "write_stream":
            query = table.write_stream(feed.repartition(4), checkpoint=checkpoint, trigger={"availableNow": True})
        else:
            writer = feed.repartition(4).writeStream.format("penstock").option("checkpointLocation", checkpoint)
            query = writer.option("path", table.location).trigger(availableNow=True).start()
        query.awaitTermination()
        check(table, number)
