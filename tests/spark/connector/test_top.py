"""``ORDER BY ... LIMIT`` opens only the files that can have the first rows."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.deletion_vectors import delete_by_vectors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

FILES, ROWS = 12, 20


def _row(number: int, chooser: random.Random) -> dict[str, Any]:
    value = None if chooser.random() < 0.1 else number // 3
    return {
        "id": number,
        "i": value,
        "s": None if value is None else f"{'long prefix of equal letters ' * (number % 2)}{value:04}",
        "d": None if value is None else Decimal(value) / 100,
        "t": None if value is None else dt.datetime(2026, 1, 1) + dt.timedelta(hours=value),  # noqa: DTZ001
        "f": float("nan") if number % 50 == 0 else value,
        "p": number % 2,
    }


@pytest.fixture(scope="module")
def table(catalog: Catalog) -> Table:
    chooser = random.Random(3)  # noqa: S311 - the same in every run
    columns = "id BIGINT, i INT, s STRING, d DECIMAL(9, 2), t TIMESTAMP(6), f DOUBLE, p INT"
    table = catalog.create_table("d.top", columns, partition_by=["p"])
    for file in range(FILES // 2):
        rows = [_row(file * 2 * ROWS + n, chooser) for n in range(2 * ROWS)]
        table.append(pa.Table.from_pylist(rows, table.arrow_schema))
    return table


def _files(frame: DataFrame) -> int:
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    found = plan.partition(" NULLS ")[2].partition(" in ")[2]
    return int(found.split(" files")[0]) if found else FILES


@pytest.mark.parametrize("column", ["s", "d", "f", *(pytest.param(column, marks=pytest.mark.slow) for column in "it")])
def test_first_rows_are_those_of_the_whole_table(spark: SparkSession, table: Table, column: str) -> None:
    rows = table.to_spark(spark).select(column, "id", "p")
    # Rows of the session, for which Spark pushes nothing down.
    spark.createDataFrame(rows.collect(), rows.schema).createOrReplaceTempView("judge")
    for direction, nulls, limit, where in product(
        ("ASC", "DESC"), ("FIRST", "LAST"), (1, 60, 1_000), ("true", "p = 1")
    ):
        offset = " OFFSET 7" if limit == 60 else ""
        order = f"WHERE {where} ORDER BY {column} {direction} NULLS {nulls}, id DESC LIMIT {limit}{offset}"
        found, judged = (
            [row.id for row in spark.sql(f"SELECT id FROM {name} {order}").collect()]
            for name in ("penstock.d.top", "judge")
        )
        assert found == judged, order


def test_few_files_are_opened(spark: SparkSession, table: Table) -> None:
    for order, limit, files in (
        ("id DESC", 5, 2),
        ("id", 5, 2),
        ("id DESC NULLS FIRST", 30, 2),
        ("id", 41, 4),
        ("t DESC", 3, 2),
        ("t", 3, FILES),  # nulls come first, and all files have some
        ("f DESC", 3, FILES),
        ("id + 1", 3, FILES),
    ):
        frame = spark.sql(f"SELECT * FROM penstock.d.top ORDER BY {order} LIMIT {limit}")
        assert _files(frame) == files, order
        assert len(frame.collect()) == limit
    assert _files(spark.sql("SELECT * FROM penstock.d.top WHERE id % 2 = 0 ORDER BY id LIMIT 3")) == FILES
    assert _files(spark.sql("SELECT * FROM penstock.d.top WHERE p = 0 ORDER BY id LIMIT 3")) == 1


def test_deleted_rows_do_not_count(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.top_deleted", "id BIGINT")
    paths: list[str] = []
    for start in (0, 10, 20):
        table.append([{"id": n} for n in range(start, start + 10)])
        paths += set(table.files()["file_path"].to_pylist()) - set(paths)
    delete_by_vectors(table, {paths[2].rpartition("/")[2]: list(range(9))})
    frame = spark.sql("SELECT id FROM penstock.d.top_deleted ORDER BY id DESC LIMIT 3")
    assert [row.id for row in frame.collect()] == [29, 19, 18]
