"""Lets queries fail, each after a line that says which; for ``test_failures.py``, which reads what is printed.

Usage: ``failures_script.py DIRECTORY``
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

DIRECTORY = sys.argv[1]
SPARK = SparkSession.builder.master("local[1]").getOrCreate()
SPARK.sparkContext.setLogLevel("ERROR")
CATALOG = penstock.Catalog(f"{DIRECTORY}/warehouse")


def fail(name: str, start: Callable[[], StreamingQuery]) -> None:
    """Drop the table ``d.<name>`` while a query uses it, and wait for the end of the query."""
    query = start()
    while query.lastProgress is None:
        time.sleep(0.1)
    sys.stderr.write(f"\n== {name}\n")
    CATALOG.drop_table(f"d.{name}")
    CATALOG.load_table("d.input").append([{"n": 2}])
    with suppress(StreamingQueryException):
        query.awaitTermination(60)
    time.sleep(2)  # the line is logged after the end


def main() -> None:
    """Run the queries one after another."""
    CATALOG.create_database("d")
    CATALOG.create_table("d.input", "n INT").append([{"n": 1}])
    penstock.attach(SPARK, CATALOG)
    tables = {name: CATALOG.create_table(f"d.{name}", "n INT") for name in ("written", "by_name", "source")}
    tables["source"].append([{"n": 1}])
    rows = CATALOG.load_table("d.input").read_stream(SPARK)
    place = f"{DIRECTORY}/checkpoints"
    fail("written", lambda: tables["written"].write_stream(rows, checkpoint=f"{place}/1"))
    by_name = rows.writeStream.option("checkpointLocation", f"{place}/2")
    fail("by_name", lambda: by_name.toTable("penstock.d.by_name"))
    source = tables["source"].read_stream(SPARK).writeStream.format("noop").option("checkpointLocation", f"{place}/3")
    fail("source", source.start)
    sys.stderr.write("\n== end\n")


main()
