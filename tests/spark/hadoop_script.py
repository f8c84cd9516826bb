"""Reads tables on an object store in a session with Hadoop's connector for it.

Tests call ``read_tables``, which runs this module as a program, with a JSON object as argument. The program prints
plans and results as one JSON object.
"""

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import penstock

ROWS = 1000
SUMS = "count(*)", "sum(id)", "count_if(`a day` = '2026-01-01 x')"


def make_tables(place: str, options: Mapping[str, str]) -> str:
    """Make a warehouse below a location, with two tables, and return its location."""
    root = f"{place}/{uuid.uuid4()}"
    catalog = penstock.Catalog(root, options)
    catalog.create_database("d")
    for file_format in ("parquet", "orc"):
        table = catalog.create_table(
            f"d.{file_format}", "id BIGINT, `a day` STRING", partition_by="a day", options={"file.format": file_format}
        )
        ids = pa.array(range(ROWS), pa.int64())
        table.append(pa.table({"id": ids, "a day": [f"2026-01-0{number % 2 + 1} x" for number in range(ROWS)]}))
    return root


def read_tables(
    root: str,
    settings: Mapping[str, str],
    *,
    own: Mapping[str, str],
    other: Mapping[str, str],
    environment: Mapping[str, str],
) -> tuple[dict[str, Any], str]:
    """Read the tables of a warehouse in another process.

    Args:
        settings: of the Spark session.
        own: options of a catalog that has the access that the session has.
        other: of a catalog that has another.

    Returns:
        What the program found, and what it wrote to stderr.
    """
    given = {"root": root, "own": dict(own), "other": dict(other), "settings": dict(settings)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, json.dumps(given)],
            env={**os.environ, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def values_of(frame: DataFrame) -> list[Any]:
    return list(frame.collect()[0])


def main() -> None:
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]")
    for key, value in given["settings"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    catalog = penstock.Catalog(given["root"], given["own"])
    catalog.attach(spark, "own")
    other = penstock.Catalog(given["root"], given["other"])
    other.attach(spark, "other")
    found: dict[str, Any] = {}
    for name in ("parquet", "orc"):
        frame = catalog.load_table(f"d.{name}").to_spark(spark)
        query = spark.table(f"own.d.{name}").selectExpr(*SUMS)
        found |= {
            f"{name} plan": plan_of(frame),
            f"{name} SQL": plan_of(spark.table(f"own.d.{name}")),
            f"{name} rows": values_of(frame.selectExpr(*SUMS)),
            f"{name} SQL rows": values_of(query),
            f"{name} files": [row.path for row in frame.selectExpr("input_file_name() AS path").distinct().collect()],
        }
    rows: list[int] = []
    stream = spark.readStream.table("own.d.parquet").writeStream.trigger(availableNow=True)
    stream.foreachBatch(lambda batch, _: rows.extend(row.id for row in batch.collect())).start().awaitTermination()
    frame = other.load_table("d.parquet").to_spark(spark)
    found |= {
        "stream": sorted(rows),
        "other access plan": plan_of(frame),
        "other access rows": values_of(frame.selectExpr(*SUMS)),
        "other SQL": plan_of(spark.table("other.d.parquet")),
    }
    print(json.dumps(found))  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()
