"""A session of its own whose tasks fail once, or twice at a time; run by ``test_attempts`` as a program.

Arguments: directory of the table, Spark master, then ``key=value`` settings of Spark. Prints one JSON object.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from penstock import Catalog, Table, UnsupportedFeatureError
from penstock.format.types.data_types import STRING, DataField
from penstock.spark.kafka.frame import read_kafka


def fail_at_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the first attempt of the second task breaks when it has written files."""
    context = TaskContext.get()
    for number, batch in enumerate(batches):
        if context.partitionId() == 1 and context.attemptNumber() == 0 and number == 3:
            raise RuntimeError("the first attempt of this task breaks")
        yield batch


def main() -> None:
    location, master, *settings = sys.argv[1:]
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    catalog = Catalog(location)
    catalog.create_database("d")
    results = {}
    for entry_point in ("append", "hash", "save"):
        strategy = "hash" if entry_point == "hash" else "none"
        table = catalog.create_table(
            f"d.{entry_point}",
            "n BIGINT, k INT",
            options={
                "bucket": "2",
                "bucket-key": "k",
                "write-buffer-size": "1 mb",
                "partition.sink-strategy": strategy,
            },
        )
        rows = spark.range(0, 80_000, 1, 2).selectExpr("id AS n", "cast(id % 7 AS INT) AS k")
        rows = rows.mapInArrow(fail_at_first, rows.schema)
        if entry_point == "save":
            rows.write.format("penstock").mode("append").save(table.location)
        else:
            table.append(rows)
        results[entry_point] = describe(table)
    # Only the first of these is known; the warning goes to the program's standard error.
    spark.read.format("penstock").option("scan.snapshotid", "1").load(table.location).count()
    results["position"] = position_after_a_stream(spark, catalog, f"{location}/checkpoint")
    results["kafka"] = read_without_connector(spark)
    print(json.dumps(results))  # noqa: T201 - its result
    # No spark.stop(): most scripts just end.


def read_without_connector(spark: SparkSession) -> str:
    options = {"topic": "a", "properties.bootstrap.servers": "localhost:9", "format": "raw"}
    options["scan.startup.mode"] = "earliest-offset"
    try:
        read_kafka(spark, options, [DataField(id=0, name="s", type=STRING)], table="shop.kafka")
    except UnsupportedFeatureError as error:
        return str(error)
    return ""


def position_after_a_stream(spark: SparkSession, catalog: Catalog, checkpoint: str) -> object:
    table = catalog.create_table("d.queue", "n BIGINT")
    for number in range(2):
        table.append(pa.table({"n": [number]}))
    frame = table.read_stream(spark, {"consumer-id": "c", "scan.mode": "earliest"})
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return table.inspect.consumers()["next_snapshot_id"].to_pylist()


def describe(table: Table) -> dict[str, object]:
    rows = table.to_arrow()
    live = {Path(path).name for path in table.files()["file_path"].to_pylist()}
    by_bucket = rows.group_by("k").aggregate([("n", "list")]).to_pylist()
    return {
        "snapshots": table.snapshots().num_rows,
        "rows": rows.num_rows,
        "distinct": len(rows["n"].unique()),
        "ordered": all(row["n_list"] == sorted(row["n_list"]) for row in by_bucket),
        "strays": sorted({path.name for path in Path(table.location).rglob("*data-*")} - live),
    }


if __name__ == "__main__":
    pa.set_cpu_count(1)
    main()
