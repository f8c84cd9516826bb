"""Append from Spark: rows of a Parquet directory into a new table, once per round."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import count_rows
from bench.measure import Contender, race
from bench.paimon_spark import open_other_spark
from bench.result import Section
from bench.spark_tables import (
    BucketedParquetTarget,
    OurTarget,
    ParquetTarget,
    PartitionedParquetTarget,
    peer_targets,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from bench.measure import Series
    from bench.paimon_spark import OtherTable
    from bench.spark_session import SparkJob
    from bench.spark_tables import Target


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Append every source to every table."""
    series: list[Series] = []
    with open_other_spark(job) as others:
        for source in job.arguments["sources"]:
            series += _race(spark, job, source, others)
    return Section(name="append", title="Append from Spark", series=tuple(series))


def _race(
    spark: SparkSession, job: SparkJob, source: Mapping[str, str], others: Sequence[OtherTable]
) -> tuple[Series, ...]:
    rows = spark.read.parquet(source["path"])
    targets = [
        ParquetTarget(spark, Path(job.folder)),
        BucketedParquetTarget(spark, Path(job.folder), source["key"]),
        PartitionedParquetTarget(spark, Path(job.folder), source["key"]),
        *peer_targets(spark, job, source["key"]),
        OurTarget(spark, Path(job.folder)),
        OurTarget(spark, Path(job.folder), source["key"]),
    ]
    return race(
        f"append {source['name']}",
        [*(append_to(spark, target, rows) for target in targets), *(each.appends(source["path"]) for each in others)],
        rounds=job.settings.rounds,
        warm_ups=job.settings.warm_ups,
        session=job.peer,
        rows=count_rows(Path(source["path"])),
    )


def append_to(spark: SparkSession, target: Target, rows: DataFrame) -> Contender:
    """Append rows to a new table."""

    def before() -> None:
        target.create(rows)
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    return Contender(
        name=target.name,
        before=before,
        run=lambda: target.append(rows),
        verify=lambda: target.load().count(),
        after=target.drop,
    )
