"""The process with one Spark session: reads a job from standard input, writes the series to the file it is given."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import spark_append, spark_plan, spark_scan
from bench.spark_job import SparkJob, load_job
from bench.spark_session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bench.measure import Series

KINDS: Final[dict[str, Callable[[SparkSession, SparkJob], tuple[Series, ...]]]] = {
    "append": spark_append.measure,
    "scan": spark_scan.measure,
    "plan": spark_plan.measure,
}


def main(answer: str) -> None:
    """Do the job."""
    job = load_job(sys.stdin.read())
    spark = open_session(job)
    try:
        series = KINDS[job.kind](spark, job)
    finally:
        spark.stop()
    Path(answer).write_text(json.dumps([asdict(each) for each in series]))


if __name__ == "__main__":
    main(sys.argv[1])
