"""Appends and a scan next to Spark's own Parquet, in the session of any version of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import count_rows
from bench.measure import race
from bench.result import Section
from bench.spark_append import append_to
from bench.spark_scan import WORK as SCAN
from bench.spark_scan import sum_two_columns
from bench.spark_tables import OurTarget, ParquetTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.spark_session import SparkJob

APPEND = "append"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Append the source to new tables; then sum two columns of the scalable one."""
    path, folder = Path(job.arguments["path"]), Path(job.folder)
    rows = spark.read.parquet(str(path))
    parquet, ours = ParquetTarget(spark, folder), OurTarget(spark, folder)
    series = race(
        APPEND,
        [append_to(spark, target, rows) for target in (parquet, ours, OurTarget(spark, folder, "product_id"))],
        rounds=2 * job.settings.rounds,  # differences of a few percent count
        warm_ups=job.settings.warm_ups,
        session=job.peer,
        rows=count_rows(path),
    )
    for target in (parquet, ours):
        target.create(rows)
        target.append(rows)
    series += race(
        SCAN,
        [sum_two_columns(target.name, target.load) for target in (parquet, ours)],
        rounds=4 * job.settings.rounds,
        warm_ups=2 * job.settings.warm_ups,
        session=job.peer,
        rows=count_rows(path),
    )
    return Section(name="versions", title="Versions of Spark", series=series)
