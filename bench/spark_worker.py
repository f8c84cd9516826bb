"""The process with one Spark session: reads a job from standard input, writes its measurements to the given file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import (
    changed_tables,
    spark_append,
    spark_compact,
    spark_dml,
    spark_plan,
    spark_scan,
    spark_select,
    spark_servers,
    spark_slope,
    spark_sort,
    spark_stream_compact,
    spark_stream_read,
    spark_stream_windows,
    spark_stream_write,
    spark_versions,
)
from bench.cpu import adopt_orphans
from bench.result import to_json
from bench.spark_session import SparkJob, load_job, open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bench.result import Section

KINDS: Final[dict[str, Callable[[SparkSession, SparkJob], Section]]] = {
    "append": spark_append.measure,
    "changed": changed_tables.measure,
    "compact": spark_compact.measure,
    "scan": spark_scan.measure,
    "select": spark_select.measure,
    "servers": spark_servers.measure,
    "append-partitioned": spark_select.measure_append,
    "dml": spark_dml.measure,
    "first-row": spark_select.measure_first_row,
    "plan": spark_plan.measure,
    "slope": spark_slope.measure,
    "sort": spark_sort.measure,
    "stream-compact": spark_stream_compact.measure,
    "stream-durable": spark_stream_write.measure_durable,
    "stream-read": spark_stream_read.measure,
    "stream-watermark": spark_stream_write.measure_watermark,
    "stream-windows": spark_stream_windows.measure,
    "stream-write": spark_stream_write.measure,
    "versions": spark_versions.measure,
}


def main(answer: str) -> None:
    """Run the job."""
    job = load_job(sys.stdin.read())
    adopt_orphans()
    spark = open_session(job)
    try:
        section = KINDS[job.kind](spark, job)
    finally:
        spark.stop()
    Path(answer).write_text(json.dumps(to_json(section)))


if __name__ == "__main__":
    main(sys.argv[1])
