"""Sorts the rows of tables on Spark; run as a program, and killed.

Argument: directory of the warehouse. Prints ``ready`` and the process id of the JVM; each line of standard input, a
table and how it is compacted, is answered with ``done`` and the number of new snapshots, or ``failed`` and the error.
"""

import sys
from typing import Final

from pyspark.sql import SparkSession
from tests.quick_spark import shorten_configuration

import penstock

ORDER: Final = "v,k"


def compact(spark: SparkSession, catalog: penstock.Catalog, table: str, way: str) -> int:
    loaded = catalog.load_table(table)
    before = loaded.latest_snapshot()
    match way:
        case "order" | "zorder" | "hilbert":
            loaded.compact(spark, order_strategy=way, order_by=ORDER.split(","))
        case "minor" | "full":
            loaded.compact(spark, strategy=way)
        case "procedure":
            spark.sql(
                f"CALL penstock.sys.compact(table => '{table}', order_strategy => 'zorder', order_by => '{ORDER}')"
            )
        case _:
            spark.sql(f"CALL penstock.sys.compact(table => '{table}', compact_strategy => 'full')")
    kinds = loaded.snapshots().select(["snapshot_id", "commit_kind"]).to_pylist()
    first = 0 if before is None else before.id
    return sum(each["snapshot_id"] > first and each["commit_kind"] != "APPEND" for each in kinds)


def main() -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.local.dir", sys.argv[2]).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    shorten_configuration(spark)
    catalog = penstock.attach(spark, sys.argv[1])
    spark.range(2).count()
    print("ready", spark.sparkContext._gateway.proc.pid, flush=True)  # noqa: T201 - what it talks with
    for line in sys.stdin:
        try:
            answer = f"done {compact(spark, catalog, *line.split())}"
        except Exception as error:  # noqa: BLE001 - the test judges it
            answer = f"failed {error!r}".replace("\n", " ")
        print(answer, flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    main()
