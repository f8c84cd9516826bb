"""Files of Spark's own writer whose row groups a compaction copies undecoded, read by Spark and DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import duckdb
import pyarrow.parquet as pq
import pytest

from penstock.table.compact import copy, rewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock import Catalog

ROWS = 3_000
NAME = "penstock.d.copied"
COLUMNS = (
    "id AS id, concat('name ', id % 7) AS s, IF(id % 3 = 0, NULL, array(id, -id)) AS a, "
    "timestamp_seconds(id * 86400) AS at, named_struct('x', id / 7, 'y', CAST(id AS DECIMAL(20, 2))) AS place"
)


def _decodes(*_arguments: Any) -> NoReturn:
    pytest.fail("the rows were decoded")


def test_copied_files_of_sparks_writer_are_read_alike(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "_MIN_FILE_BYTES", 1)
    monkeypatch.setattr(copy, "_MIN_GROUP_ROWS", 1)
    spark.sql(f"CREATE TABLE {NAME} AS SELECT {COLUMNS} FROM range(0, {ROWS}, 1, 1)")
    for first in (ROWS, 2 * ROWS):
        spark.sql(f"INSERT INTO {NAME} SELECT {COLUMNS} FROM range({first}, {first + ROWS}, 1, 1)")
    table = catalog.load_table("d.copied")
    queries = [
        f"SELECT count(*), bit_xor(xxhash64(id, s, a, at, place)), min(place.y), max(at) FROM {NAME}",
        f"SELECT * FROM {NAME} WHERE id BETWEEN {ROWS - 2} AND {ROWS + 2} ORDER BY id",
        f"SELECT count(s), sum(size(a)) FROM {NAME} WHERE at >= timestamp_seconds({2 * ROWS} * 86400)",
    ]
    before = [spark.sql(query).collect() for query in queries]
    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "_write_rows", _decodes)
        table.compact(strategy="full")
    (file,) = spark.sql("SELECT file_path FROM `penstock`.d.`copied$files`").first()
    assert pq.ParquetFile(file).num_row_groups == 3
    # So that tasks begin at a row group that is not the first.
    size = spark.conf.get("spark.sql.files.maxPartitionBytes")
    try:
        for part in (size, "10000b"):
            spark.conf.set("spark.sql.files.maxPartitionBytes", part)
            assert [spark.sql(query).collect() for query in queries] == before
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", size)
    by_duckdb = duckdb.sql(f"SELECT count(*), sum(id), min(place.y), max(id) FROM read_parquet('{file}')").fetchall()
    assert by_duckdb == [(3 * ROWS, sum(range(3 * ROWS)), 0, 3 * ROWS - 1)]
