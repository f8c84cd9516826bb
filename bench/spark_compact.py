"""Compaction on Spark: many small files of one table to one, by everybody's own command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Contender, Series, race
from bench.result import Section
from bench.spark_tables import DeltaTarget, IcebergTarget, OurTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from bench.spark_job import SparkJob
    from bench.spark_tables import Target

WORK = "small files to one"
IN_PROCESS = " without Spark"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Compact a new table each round, as its files are when many small commits have made them."""
    files = job.settings.small_files
    rows = spark.read.parquet(job.arguments["path"])
    folder = Path(job.folder)
    ours = OurTarget(spark, folder)
    here = OurTarget(spark, folder)
    here.name += IN_PROCESS
    contenders = [
        _contender(spark, ours, rows, files, lambda: ours.table().compact(spark)),
        _contender(spark, here, rows, files, lambda: here.table().compact()),
    ]
    if job.peer == "delta":
        delta = DeltaTarget(spark, folder)
        contenders.append(
            _contender(spark, delta, rows, files, lambda: spark.sql(f"OPTIMIZE delta.`{folder}/delta`").collect())
        )
    elif job.peer == "iceberg":
        iceberg = IcebergTarget(spark)
        contenders.append(_contender(spark, iceberg, rows, files, lambda: _rewrite(spark, f"{folder}/iceberg/plain")))
    series: tuple[Series, ...] = race(
        WORK,
        contenders,
        rounds=job.settings.rounds,
        warm_ups=job.settings.warm_ups,
        session=job.peer,
        rows=rows.count(),
    )
    return Section(name="compact", title="Compaction", series=series)


def _contender(
    spark: SparkSession, target: Target, rows: DataFrame, files: int, compact: Callable[[], object]
) -> Contender:
    def before() -> None:
        target.create(rows)
        target.append(rows.repartition(files))
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def verify() -> tuple[int, int]:
        found = target.load()
        return found.count(), len(found.inputFiles())

    return Contender(name=target.name, before=before, run=compact, verify=verify, after=target.drop)


def _rewrite(spark: SparkSession, location: str) -> None:
    jvm = spark._jvm  # noqa: SLF001 - the procedures need a catalog of Iceberg's own, which Spark 4.2 refuses
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())  # noqa: SLF001 - as above
    action = jvm.org.apache.iceberg.spark.actions.SparkActions.get().rewriteDataFiles(tables.load(location))
    action.option("min-input-files", "2").execute()
