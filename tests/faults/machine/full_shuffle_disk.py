"""Sort compaction whose shuffle finds no space on Spark's local disk; run by ``test_full_shuffle_disk`` as a program.

Arguments: directory of the warehouse; a small disk, empty, for ``spark.local.dir``. Prints one JSON object.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock import Catalog, Table, TableStoreError

ROWS = 60_000
LEFT_FREE = 64 * 1024


def main() -> None:
    warehouse, small_disk = sys.argv[1:]
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = session.config("spark.local.dir", small_disk).getOrCreate()
    catalog = Catalog(warehouse)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a BIGINT, text STRING", options={"target-file-size": "256 kb"})
    for part in range(4):
        numbers = [(n * 7_919) % ROWS for n in range(part, ROWS, 4)]
        table.append(pa.table({"a": pa.array(numbers, pa.int64()), "text": [f"{n:032x}" for n in numbers]}))
    before = files_below(table)

    ballast = Path(small_disk, "ballast")
    fill(ballast)
    result: dict[str, object] = {}
    try:
        table.compact(spark, order_strategy="order", order_by=["a"])
    except TableStoreError as error:
        result["error"] = type(error).__name__
        result["message"] = str(error)
    result["snapshots"] = [row["snapshot_id"] for row in table.snapshots().to_pylist()]
    result["rows"] = sorted_rows(table)
    result["left"] = sorted(files_below(table) - before)
    ballast.unlink()
    table.compact(spark, order_strategy="order", order_by=["a"])
    result["rows after"] = sorted_rows(table)
    result["kinds after"] = [row["commit_kind"] for row in table.snapshots().to_pylist()]
    print(json.dumps(result))  # noqa: T201 - its result


def fill(ballast: Path) -> None:
    """Leave a few blocks of the disk of a file."""
    free = shutil.disk_usage(ballast.parent).free
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - LEFT_FREE)


def files_below(table: Table) -> set[str]:
    return {str(path) for path in Path(table.location).rglob("*") if path.is_file()}


def sorted_rows(table: Table) -> bool:
    return sorted(table.to_arrow()["a"].to_pylist()) == list(range(ROWS))


if __name__ == "__main__":
    main()
