"""Writes tables of Delta Lake and Iceberg with their own JARs, and converts them; prints what it saw as JSON.

Arguments: a folder, and the JARs separated by commas. It runs in a process of its own, because a session has JARs from
its start on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import penstock

ROWS: Final = """
SELECT id, CAST(id * 1.25 AS DECIMAL(12, 2)) AS price, concat('n', id) AS name, id % 5 = 0 AS is_new,
    make_timestamp(2026, 1, 1 + id % 3, id % 24, 0, 0) AS at, date'2026-01-01' + CAST(id % 3 AS INT) AS dt
FROM range(300)
"""


def open_session(folder: Path, jars: str) -> SparkSession:
    """Start a session that has both."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.iceberg": "IcebergTables",
        "spark.sql.catalog.iceberg.warehouse": f"{folder}/iceberg",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def write_lakes(spark: SparkSession, folder: Path) -> dict[str, str]:
    """Write the same rows to a table of each, in two commits of which the second deletes rows; return their places."""
    rows = spark.sql(ROWS)
    rows.where("id < 200").write.format("delta").partitionBy("dt").save(f"{folder}/delta")
    rows.where("id >= 200").write.format("delta").mode("append").save(f"{folder}/delta")
    spark.sql(f"DELETE FROM delta.`{folder}/delta` WHERE id % 10 = 1")  # noqa: S608 - the statement has the path
    columns = "id BIGINT, price DECIMAL(12, 2), name STRING, is_new BOOLEAN, at TIMESTAMP, dt DATE"
    places = {"delta": f"{folder}/delta"}
    for name, transform in (("plain", "dt"), ("by_day", "days(at)")):
        spark.sql(f"CREATE TABLE iceberg.{name} ({columns}) USING iceberg PARTITIONED BY ({transform})")
        kept = rows.where("id % 10 <> 1").sortWithinPartitions("dt", "at")
        kept.where("id < 200").writeTo(f"iceberg.{name}").append()
        kept.where("id >= 200").writeTo(f"iceberg.{name}").append()
        places[name] = f"{folder}/iceberg/{name}"
    return places


def convert(spark: SparkSession, catalog: penstock.Catalog, name: str, place: str, **more: Any) -> dict[str, Any]:
    """Convert one of them and compare it with what its own reader says, by Spark."""
    done = penstock.convert(catalog, f"shop.{name}", place, spark=spark, **more)
    table = catalog.load_table(f"shop.{name}")
    wanted = spark.sql(ROWS).where("id % 10 <> 1").select("id", "price", "name", "is_new", "at", "dt")
    found = table.to_spark(spark).select(*wanted.columns)
    return {
        "rows": done.rows,
        "columns": done.plan.columns,
        "partition_by": list(table.schema.partition_keys),
        "snapshots": table.snapshots().num_rows,
        "missing": wanted.exceptAll(found).count(),
        "extra": found.exceptAll(wanted).count(),
    }


def main() -> None:
    """Convert all of them."""
    folder, jars = Path(sys.argv[1]), sys.argv[2]
    spark = open_session(folder, jars)
    places = write_lakes(spark, folder)
    catalog = penstock.Catalog(folder / "warehouse")
    found = {name: convert(spark, catalog, name, place) for name, place in places.items()}
    found["chosen"] = convert(spark, catalog, "chosen", places["by_day"], partition_by="dt")
    sys.stdout.write(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
