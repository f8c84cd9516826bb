"""From a table of many live files to a DataFrame with a physical plan; no file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from bench.measure import Contender, race
from bench.result import OURS, Section

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bench.spark_session import SparkJob


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Create a new DataFrame each round."""
    penstock.attach(spark, Path(job.arguments["location"]).parent.parent)
    name = f"penstock.{Path(job.arguments['location']).parent.stem}.{Path(job.arguments['location']).name}"

    def run_attached() -> None:
        plan = spark.table(name)._jdf.queryExecution().executedPlan()  # noqa: SLF001 - see below
        # Spark gets the list of files with its partitions.
        plan.execute().getNumPartitions()

    def run() -> None:
        frame = penstock.Table.at(job.arguments["location"]).to_spark(spark)
        frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - nothing public returns the physical plan

    series = race(
        job.arguments["work"],
        [Contender(name=OURS, run=run), Contender(name=f"{OURS} catalog", run=run_attached)],
        rounds=job.settings.rounds,
        warm_ups=job.settings.warm_ups,
        session=job.peer,
    )
    return Section(name="plan", title="Planning on Spark", series=series)
