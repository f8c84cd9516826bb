"""Reads a table with deletion vectors on executors in processes of their own; run as a program.

Arguments: directory of the warehouse; ``hidden`` if the driver must not hand its class to executors. Prints one JSON
object: the physical plan; the keys by the catalog, by ``to_spark`` and in a second session; and the number of jars.
"""

import json
import sys

from pyspark.sql import SparkSession

import penstock
from penstock.spark.connector import executor_classes


def main() -> None:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,600]")
        .config("spark.executor.memory", "500m")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    if sys.argv[2:] == ["hidden"]:
        executor_classes._add = lambda *_, **__: True
    penstock.attach(spark, sys.argv[1])
    frame = spark.table("penstock.d.dv")
    table = penstock.Catalog(sys.argv[1]).load_table("d.dv")
    second = spark.newSession()
    penstock.attach(second, sys.argv[1])
    found = {
        "plan": frame._jdf.queryExecution().executedPlan().toString(),
        "catalog": sorted(row.k for row in frame.repartition(3).collect()),
        "to_spark": sorted(row.k for row in table.to_spark(spark).collect()),
        "second session": sorted(row.k for row in second.table("penstock.d.dv").collect()),
        "jars": sum("penstock-" in jar for jar in spark.sparkContext._jsc.sc().listJars().mkString(" ").split()),
    }
    print(json.dumps(found))  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()
