"""Reads tables on S3 in a session with Hadoop's connector; run by ``test_hadoop_s3`` as a program.

Arguments: warehouse, options of its catalog as JSON, JARs. Prints plans and results as one JSON object.
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import penstock

ROWS = 1000
SUMS = "count(*)", "sum(id)", "count_if(`a day` = '2026-01-01 x')"


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def values_of(frame: DataFrame) -> list[Any]:
    return list(frame.collect()[0])


def main() -> None:
    root, options, jars = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.hadoop.fs.s3a.endpoint", options["s3.endpoint"])
        .config("spark.hadoop.fs.s3a.access.key", options["s3.access-key"])
        .config("spark.hadoop.fs.s3a.secret.key", options["s3.secret-key"])
        .config("spark.hadoop.fs.s3a.path.style.access", "true")
        .config("spark.hadoop.fs.s3a.connection.ssl.enabled", "false")
        .getOrCreate()
    )
    catalog = penstock.attach(spark, root, name="own")
    penstock.attach(spark, penstock.Catalog(root, {**options, "s3.access-key": "another"}), name="other")
    found: dict[str, Any] = {}
    for name in ("parquet", "orc"):
        frame = catalog.load_table(f"d.{name}").to_spark(spark)
        query = spark.table(f"own.d.{name}").selectExpr(*SUMS)
        found |= {
            f"{name} plan": plan_of(frame),
            f"{name} SQL": plan_of(spark.table(f"own.d.{name}")),
            f"{name} rows": values_of(frame.selectExpr(*SUMS)),
            f"{name} SQL rows": values_of(query),
        }
    rows: list[int] = []
    stream = spark.readStream.table("own.d.parquet").writeStream.trigger(availableNow=True)
    stream.foreachBatch(lambda batch, _: rows.extend(row.id for row in batch.collect())).start().awaitTermination()
    other = penstock.Catalog(root, {**options, "s3.access-key": "another"}).load_table("d.parquet")
    found |= {
        "stream": sorted(rows),
        "other access plan": plan_of(other.to_spark(spark)),
        "other SQL": plan_of(spark.table("other.d.parquet")),
    }
    print(json.dumps(found))  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()
