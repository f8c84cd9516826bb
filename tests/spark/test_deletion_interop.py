"""Spark's readers leave out the rows that Java Paimon deletes by deletion vectors of both kinds."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.conftest import java, location
from tests.interop.engines import JavaPaimon

__all__ = ["java", "location"]

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_rows_that_java_deletes_are_gone(spark: SparkSession, java: JavaPaimon, location: Path, bitmap64: str) -> None:
    options = {"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": bitmap64}
    java.create(location, [("k", "INT"), ("n", "INT")], options=options)
    for start in (0, 200):
        java.append(location, [{"k": k, "n": k % 3} for k in range(start, start + 200)])
    names = [row["file_path"].rpartition("/")[2] for row in ours.load(location).files().to_pylist()]
    for name, positions in ((names[0], [0, 7, 19, 199]), (names[1], list(range(20, 180))), (names[0], [8])):
        java.ask("delete_positions", location, rows={name: positions})
    for condition in ("true", "k > 30"):
        frame = ours.load(location).to_spark(spark).where(condition)
        assert "with deletion vectors" in frame._jdf.queryExecution().executedPlan().toString()
        found = [row.asDict() for row in frame.collect()]
        assert sort_rows(found) == [row for row in java.read(location) if condition == "true" or row["k"] > 30]
    assert len(java.read(location)) == 235
