"""Index files of Java Paimon skip files in every way in which Spark reads a table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

# Six files of 40 rows; a bitmap of each says which values of `m` it holds, and `m3` is in one of them.
WRITTEN: Final = Path(__file__).parents[2] / "golden" / "data" / "warehouse" / "java142.db" / "file_index_beside"


@pytest.fixture(scope="module")
def table(catalog: Catalog) -> Table:
    shutil.copytree(WRITTEN, Path(catalog.warehouse) / "d.db" / "indexed")
    return catalog.load_table("d.indexed")


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("id").collect())


def _expected(table: Table) -> list[int]:
    return [row["id"] for row in table.to_arrow().to_pylist() if row["m"] == "m3"]


def test_a_scan_opens_only_the_file_with_the_value(spark: SparkSession, table: Table) -> None:
    frames = [
        spark.sql("SELECT id FROM penstock.d.indexed WHERE m = 'm3'"),
        table.to_spark(spark, filter="m = 'm3'"),
    ]
    for frame in frames:
        assert _ids(frame) == _expected(table)
        plan = str(frame._jdf.queryExecution().executedPlan().toString())
        assert "1 of 6 files" in plan
        assert "file index 1" in plan


def test_a_stream_delivers_only_the_file_with_the_value(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    frame = table.read_stream(
        spark, filter="m = 'm3'", options={"scan.mode": "from-snapshot-full", "scan.snapshot-id": "6"}
    )
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "c"))
        .option("path", str(tmp_path / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    assert _ids(spark.read.parquet(str(tmp_path / "out"))) == _expected(table)
    assert sum(int(each["sources"][0]["numInputRows"]) for each in query.recentProgress) <= 40
