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
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.spark import staging_directory
from penstock.spark.staging_directory import StagingDirectory

ROWS = 1000
CHANGES = (
    "UPDATE {} SET v = v + 100, id = id + v % 2 WHERE id % 3 = 1",
    "DELETE FROM {} WHERE id IN (SELECT id FROM range(4, 6))",
    """
    MERGE INTO {} t USING (SELECT CAST(id AS INT) AS i FROM range(15, 25)) ON id = i
    WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT (id, `a day`, v) VALUES (i, 'new', 7)
    WHEN NOT MATCHED BY SOURCE AND id < 2 THEN DELETE
    """,
)
FAILURE = "UPDATE {} SET `a day` = raise_error('no luck') WHERE v % 60 = 9"
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


def change_tables(spark: SparkSession, catalog: penstock.Catalog, name: str) -> dict[str, Any]:
    """Change rows of tables, and of twins on the disk, as if the tasks ran on other machines.

    Returns:
        The places where Spark has staged rows, and by the kind of table the rows of the table and of its twin.
    """
    staged: list[str] = []
    delete = StagingDirectory.delete

    def noted(directory: StagingDirectory, session: object) -> None:
        if not directory.file_io.is_local:
            staged.extend(directory.uri(each.path) for each in directory.file_io.list(directory.path))
        delete(directory, session)

    twins = penstock.Catalog(tempfile.mkdtemp())
    twins.create_database("d")
    twins.attach(spark, "twins")
    found: dict[str, Any] = {"staged": staged}
    with (
        patch.object(StagingDirectory, "delete", noted),
        patch.object(staging_directory, "is_on_this_machine", lambda _: False),
    ):
        for kind, options in (("scalable", {}), ("queue", {"bucket": "2", "bucket-key": "id"})):
            tables = [
                each.create_table(
                    f"d.a {kind}[1]", "id INT, `a day` STRING, v INT", partition_by="a day", options=options
                )
                for each in (catalog, twins)
            ]
            for table in tables:
                table.append([{"id": n, "a day": "xy%"[n % 3], "v": n} for n in range(20)])
            for statement in CHANGES:
                for owner in (name, "twins"):
                    spark.sql(statement.format(f"{owner}.d.`a {kind}[1]`"))
            try:
                spark.sql(FAILURE.format(f"{name}.d.`a {kind}[1]`"))
            except Exception as error:  # noqa: BLE001 - of Spark or Py4J
                found[f"{kind} failure"] = str(error)
            found[kind] = [sorted(list(row.values()) for row in table.to_arrow().to_pylist()) for table in tables]
    return found


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def check_changes(found: Mapping[str, Any], root: str) -> None:
    """Check that rows were changed as on a disk, and staged below a root."""
    for kind in ("scalable", "queue"):
        assert found[kind][0] == found[kind][1]
        assert {day for _, day, _ in found[kind][0]} == {"x", "y", "%", "new"}
        assert "no luck" in found[f"{kind} failure"]
    assert len(found["staged"]) > 6
    assert {each.partition("/d.db/a ")[0] for each in found["staged"]} == {root}


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
        "changes": change_tables(spark, catalog, "own"),
    }
    print(json.dumps(found))  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()
