"""Index files of Java Paimon skip files in every way in which Spark reads a table; all its writes index files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from penstock.table.read.indexes import has_index
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

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


INDEXED: Final = (
    "TBLPROPERTIES ('file-index.bloom-filter.columns' = 'k', 'file-index.bloom-filter.k.items' = '100', "
    "'file-index.bitmap.columns' = 's', 'file-index.in-manifest-threshold' = '{threshold}')"
)
STATEMENTS: Final = {
    "insert": "INSERT INTO {t} SELECT id AS k, concat('s', id % 3) AS s FROM range(20)",
    "overwrite": "INSERT OVERWRITE {t} SELECT id AS k, concat('s', id % 3) AS s FROM range(20)",
    "update": "UPDATE {t} SET s = 'new' WHERE k = 3",
    "delete": "DELETE FROM {t} WHERE k = 3",
    "merge": "MERGE INTO {t} t USING (SELECT 3L AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET s = 'new'",
    "compact": "CALL penstock.sys.compact(table => '{n}', options => 'compaction.min.file-num=2')",
    "sort": "CALL penstock.sys.compact(table => '{n}', order_strategy => 'order', order_by => 'k')",
}


@pytest.mark.parametrize("threshold", ["0 b", "1 mb"])
def test_all_writes_of_the_catalog_index_their_files(spark: SparkSession, catalog: Catalog, threshold: str) -> None:
    name = f"d.written_{threshold.replace(' ', '')}"
    spark.sql(f"CREATE TABLE penstock.{name} (k BIGINT, s STRING) {INDEXED.format(threshold=threshold)}")
    for statement in (STATEMENTS["insert"], *STATEMENTS.values()):
        spark.sql(statement.format(t=f"penstock.{name}", n=name)).collect()
        assert_all_are_indexed(catalog.load_table(name))
    location = Path(catalog.load_table(name).location)
    assert any(location.rglob("*.index")) == (threshold == "0 b")
    plan = str(spark.sql(f"SELECT * FROM penstock.{name} WHERE k = 7")._jdf.queryExecution().executedPlan().toString())
    assert "file index" in plan


def assert_all_are_indexed(table: Table) -> None:
    store = MetadataStore(table._ref)
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    files = [entry.file for entry in load_live_entries(store, snapshot).values()]
    assert files
    assert all(map(has_index, files))
    names = {name for file in files for name in file.extra_files}
    assert names <= {path.name for path in Path(table.location).rglob("*.index")}
    assert not table.inspect.fsck().findings


def test_dataframes_and_streams_index_their_files(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE penstock.d.framed (k BIGINT, s STRING) {INDEXED.format(threshold='0 b')}")
    table = catalog.load_table("d.framed")
    rows = spark.range(20).selectExpr("id AS k", "concat('s', id % 3) AS s")
    table.append(rows)
    rows.write.format("penstock").mode("append").save(table.location)
    rows.write.mode("overwrite").parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    query = (
        stream.writeStream.option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .toTable("penstock.d.framed")
    )
    query.awaitTermination(60)
    table = catalog.load_table("d.framed")
    assert table.to_arrow().num_rows == 60
    assert_all_are_indexed(table)
    assert table.explain_values("k = 7 AND s = 's1x'")["files"] == 0
