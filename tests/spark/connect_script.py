"""What works with a session of Spark Connect; run by ``test_spark_connect`` as a program.

Arguments: address of the server, a directory. Prints one JSON object: for each step its result or its error.
"""

import json
import sys
import warnings
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_000


def main() -> None:
    root = sys.argv[2]
    spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    catalog = penstock.Catalog(f"{root}/warehouse")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT, k BIGINT")
    queue = catalog.create_table("d.q", "id BIGINT, k BIGINT", options={"bucket": "2", "bucket-key": "id"})
    frame = spark.range(0, ROWS, 1, 2).selectExpr("id", "id % 7 AS k")

    def read(location: str) -> int:
        return spark.read.format("penstock").load(location).count()

    def write() -> int:
        frame.write.format("penstock").mode("append").save(queue.location)
        return queue.to_arrow(["id"]).num_rows

    def stream() -> int:
        rows = spark.readStream.format("penstock").load(table.location)
        query = (
            rows.writeStream.format("penstock")
            .option("checkpointLocation", f"{root}/checkpoint")
            .trigger(availableNow=True)
            .start(queue.location)
        )
        query.awaitTermination()
        return queue.to_arrow(["id"]).num_rows

    def write_stream() -> object:
        rows = spark.readStream.format("penstock").load(table.location)
        return queue.write_stream(rows, checkpoint=f"{root}/other", trigger={"availableNow": True})

    def by_name() -> list[int]:
        spark.sql(f"CREATE TABLE named USING penstock OPTIONS (path '{table.location}')")
        return list(spark.sql("SELECT count(*) FROM named WHERE k = 3").collect()[0])

    steps: dict[str, Callable[[], object]] = {
        "append": lambda: table.append(frame),
        "overwrite": lambda: table.overwrite(frame),
        "append toArrow": lambda: table.append(frame.toArrow()).id,
        "to_spark": lambda: table.to_spark(spark),
        "read_stream": lambda: table.read_stream(spark),
        "write_stream": write_stream,
        "compact": lambda: table.compact(spark),
        "compact here": lambda: len(table.compact(strategy="full").snapshots),
        "attach": lambda: penstock.attach(spark, f"{root}/warehouse"),
        "register": lambda: penstock.register(spark),
        "ship": lambda: penstock.ship(spark),
        "sql select": lambda: penstock.sql(spark, catalog, "SELECT count(*) FROM d.t"),
        "sql insert": lambda: penstock.sql(spark, catalog, "INSERT INTO d.t SELECT * FROM d.t"),
        "sql create": lambda: penstock.sql(spark, catalog, "CREATE TABLE d.z (a BIGINT)"),
        "format read": lambda: read(table.location),
        "format filter": lambda: spark.read.format("penstock").load(table.location).where("k = 3").count(),
        "format system table": lambda: read(f"{table.location}$snapshots"),
        "format write": write,
        "format stream": stream,
        "table by name": by_name,
        "insert by name": lambda: spark.sql("INSERT INTO named SELECT * FROM named LIMIT 3").collect(),
    }
    found: dict[str, dict[str, object]] = {}
    for name, step in steps.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = {"is": step()}
            except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
                found[name] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(found, default=str), flush=True)  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()
