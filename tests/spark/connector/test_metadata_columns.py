"""Columns of Spark SQL that say where a row is, as Paimon's connector has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors.exceptions.base import PySparkException
from tests.deletion_vectors import delete_by_vectors
from tests.spark.needs import needs

from penstock.catalog.changes import RenameColumn
from penstock.spark.versions.facts import METADATA_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

pytestmark = needs(METADATA_COLUMNS)
PLACE = "__paimon_file_path, __paimon_row_index, __paimon_bucket"


def append(table: Table, ids: range) -> str:
    """Append a file of these rows; return its path."""
    before = set(table.files()["file_path"].to_pylist())
    table.append(pa.Table.from_pylist([{"id": n, "p": n // 1_000} for n in ids], table.arrow_schema))
    (path,) = set(table.files()["file_path"].to_pylist()) - before
    return str(path)


@pytest.fixture(params=["vectorised", "row by row"])
def reader(spark: SparkSession, compiled: None, request: pytest.FixtureRequest) -> Iterator[str]:
    key = "spark.sql.parquet.enableVectorizedReader"
    spark.conf.set(key, str(request.param == "vectorised").lower())
    yield str(request.param)
    spark.conf.unset(key)


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


def test_rows_are_where_they_say(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.places_{reader[:3]}"
    options = {"bucket": "2", "bucket-key": "id", "file.block-size": "64 kb"}
    table = catalog.create_table(name, "id BIGINT, p INT", partition_by=["p"], options=options)
    for start in (0, 1_000):
        ids = range(start, start + 800)
        table.append(pa.Table.from_pylist([{"id": n, "p": start // 1_000} for n in ids], table.arrow_schema))
    files = {file["file_path"]: file for file in table.files().to_pylist()}
    assert len(files) == 4
    for condition in ("true", "id = 1234", "p = 1", "id % 100 = 7", "__paimon_row_index = 5", "__paimon_bucket = 1"):
        text = f"SELECT {PLACE}, *, __paimon_bucket + 1 FROM penstock.{name} WHERE {condition}"
        for path, row, bucket, number, _, more in rows(spark, text):
            assert files[path]["bucket"] == bucket == more - 1
            stored = table._ref.file_io.read(path)
            assert pq.read_table(pa.BufferReader(stored))["id"][row].as_py() == number
    counted = rows(spark, f"SELECT __paimon_file_path, count(*) FROM penstock.{name} GROUP BY 1")
    assert dict(counted) == {path: file["record_count"] for path, file in files.items()}
    assert rows(spark, f"SELECT max(__paimon_bucket), count(__paimon_row_index) FROM penstock.{name}") == [(1, 1_600)]
    assert spark.table(f"penstock.{name}").columns == ["id", "p"]
    joined = f"SELECT count(*) FROM penstock.{name} t JOIN penstock.d.`{name[2:]}$files` f "
    assert rows(spark, f"{joined} ON t.__paimon_file_path = f.file_path") == [(1_600,)]


def test_rows_are_numbered_with_those_that_are_deleted(spark: SparkSession, catalog: Catalog, reader: str) -> None:
    name = f"d.deleted_places_{reader[:3]}"
    table = catalog.create_table(name, "id BIGINT, p INT")
    first = append(table, range(10))
    table = catalog.alter_table(name, RenameColumn(column="p", new_name="q"))
    table.append([{"id": n, "q": 0} for n in range(10, 20)])
    delete_by_vectors(table, {first.rpartition("/")[2]: [0, 1, 5]})
    left = [n for n in range(20) if n not in {0, 1, 5}]
    for condition in ("true", "id > 2"):
        wanted = [n for n in left if condition == "true" or n > 2]
        text = f"FROM penstock.{name} WHERE {condition} ORDER BY id"
        assert rows(spark, f"SELECT id, __paimon_row_index, q {text}") == [(n, n % 10, 0) for n in wanted]
        found = f"SELECT __paimon_file_path = '{first}', id, __paimon_bucket, q {text}"
        if reader == "row by row" and condition != "true":
            with pytest.raises(Exception, match="with Spark's vectorized reader only"):
                rows(spark, found)
        else:
            assert rows(spark, found) == [(n < 10, n, 0, 0) for n in wanted]


def test_what_readers_do_not_say_is_refused(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    for file_format, names in {"orc": {"row_index"}, "avro": {"row_index", "file_path", "bucket"}}.items():
        name = f"d.places_{file_format}"
        table = catalog.create_table(name, "id BIGINT", options={"file.format": file_format})
        table.append([{"id": 1}])
        for column in ("row_index", "file_path", "bucket"):
            text = f"SELECT id, __paimon_{column} FROM penstock.{name}"
            if column in names:
                with pytest.raises(PySparkException, match=f"{name}: this query cannot return __paimon_{column}"):
                    rows(spark, text)
            else:
                assert len(rows(spark, text)) == 1


def test_streams_do_not_return_them(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_table("d.streamed_places", "id BIGINT").append([{"id": 1}])
    stream = spark.readStream.option("scan.mode", "earliest").table("penstock.d.streamed_places")
    place = stream.select("id", "__paimon_file_path")
    for number, frame in enumerate((place, place.union(place), place.where("__paimon_bucket = 0"))):
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / str(number)))
        with pytest.raises(PySparkException, match=r"a stream does not return __paimon_.*: read it in a batch query"):
            writer.trigger(availableNow=True).start().awaitTermination(60)
