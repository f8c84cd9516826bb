"""Steps of a million rows on a standalone cluster; run by ``test_standalone`` as a program.

Arguments: warehouse on the store, its options as JSON. Prints the name and the seconds of each step, and waits a second
after it, in which the test takes its figures.
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from tests.spark.standalone_script import open_session

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable


ROWS = 1_000_000


def main() -> None:
    spark = open_session()
    catalog = penstock.Catalog(sys.argv[1], json.loads(sys.argv[2]))
    catalog.create_database("figures")
    columns = "id BIGINT, k BIGINT, amount DOUBLE, text STRING"
    table = catalog.create_table("figures.t", columns)
    queue_options = {"bucket": "4", "bucket-key": "id", "write-only": "true"}
    queue = catalog.create_table("figures.q", columns, options=queue_options)

    def rows(count: int) -> DataFrame:
        shown = ("id", "id % 977 AS k", "id / 3 AS amount", "concat('t', id) AS text")
        return spark.range(0, count, 1, 4).selectExpr(*shown)

    def stream() -> None:
        query = queue.write_stream(
            table.read_stream(spark, options={"scan.mode": "from-snapshot", "scan.snapshot-id": "2"}),
            checkpoint=f"{Path.cwd()}/figures",
            trigger={"availableNow": True},
        )
        query.awaitTermination()

    def compact() -> None:
        if len(table.compact(spark, strategy="full").snapshots) != 1:
            raise AssertionError("nothing was merged")

    steps: dict[str, Callable[[], object]] = {
        "warm-up": lambda: (table.append(rows(1000)), table.to_spark(spark).count()),
        "append": lambda: table.append(rows(ROWS)),
        "stream": stream,
        "read": lambda: queue.to_spark(spark).selectExpr("sum(k)", "max(amount)", "max(text)").collect(),
        "compact": compact,
    }
    for name, step in steps.items():
        start = time.monotonic()
        step()
        print(name, f"{time.monotonic() - start:.2f}", flush=True)  # noqa: T201 - its result
        time.sleep(1)
    print("rows", queue.to_arrow(["id"]).num_rows, flush=True)  # noqa: T201 - see above
    spark.stop()


if __name__ == "__main__":
    main()
