"""Which rows of micro-batches come to the driver."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from penstock.spark.stream import row_writer
from penstock.spark.stream.row_writer import collect_small

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_rows_come_unless_they_are_many_or_too_large(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writer, "_MAX_BYTES", 10_000)
    monkeypatch.setattr(row_writer, "_MIN_ROWS_PER_TASK", 1)
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    values = [(0, None, None, None, None, None), (1, "é", b"x", [["a"], None], {"k": ("v", 1)}, at)]
    kinds = (
        "`a.b` INT, s STRING, b BINARY, l ARRAY<ARRAY<STRING>>, m MAP<STRING, STRUCT<x: STRING, y: INT>>, t TIMESTAMP"
    )
    every = spark.createDataFrame(values, kinds).coalesce(1)
    rows = collect_small(every, 10)
    assert rows is not None
    assert rows.column_names == every.columns
    assert rows.to_pylist() == every.toArrow().to_pylist()

    def of_width(count: int, expression: str) -> int | None:
        found = collect_small(spark.range(0, count, 1, 2).selectExpr(f"{expression} AS w", "id"), 10)
        return None if found is None else found["id"].to_pylist() == list(range(count)) and found["w"].null_count == 0

    assert of_width(3, "repeat('x', 3000)")  # wide, but few
    assert of_width(3, "array(named_struct('b', CAST(repeat('x', 3000) AS BINARY)))")
    assert of_width(4, "repeat('x', 3000)") is None
    # One task with more than its part, others without any: nothing is cut off.
    skewed = spark.range(0, 64, 1, 16).where("id < 4").coalesce(16).selectExpr("id", "'x' AS w")
    assert collect_small(skewed, 10) is None
    # Names that are equal but for their case, and one that the check uses itself.
    named = spark.range(0, 2, 1, 1).selectExpr("id AS a", "'x' AS A", "'y' AS _penstock_width")
    rows = collect_small(named, 10)
    assert rows is not None
    assert rows.column_names == named.columns
    assert [list(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)] == [
        [0, "x", "y"],
        [1, "x", "y"],
    ]
