"""A program with two sessions, one after the other: ``two_sessions_script.py <warehouse> <checkpoint>``."""

from __future__ import annotations

import sys

import pyarrow as pa
from pyspark.sql import SparkSession

import penstock


def run(warehouse: str, checkpoint: str, number: int) -> int:
    """Append a row and stream what is new; return how many rows that was."""
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    catalog = penstock.attach(spark, warehouse)
    if number == 0:
        catalog.create_database("d")
        catalog.create_table("d.t", "n BIGINT")
    table = catalog.load_table("d.t")
    table.append(pa.table({"n": pa.array([number], pa.int64())}))
    found: list[int] = []
    writer = spark.readStream.option("scan.mode", "earliest").table("penstock.d.t").writeStream
    query = writer.foreachBatch(lambda rows, _: found.extend(row.n for row in rows.collect()))
    assert query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination(60)
    # Tasks run with this Python, although nothing in the environment says which.
    assert spark.read.format("penstock").load(table.location).count() == number + 1
    spark.stop()
    return len(found)


if __name__ == "__main__":
    sys.stdout.write(f"{[run(*sys.argv[1:], number) for number in range(2)]}\n")
