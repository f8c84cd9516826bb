"""Scan from Spark: the sum of two of seven columns, planning included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from bench.data import count_rows
from bench.measure import Contender, race
from bench.paimon_spark import open_other_spark
from bench.result import OURS, Section
from bench.spark_tables import OurTarget, ParquetTarget, peer_targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from bench.spark_session import SparkJob

WORK = "sum of 2 of 7 columns"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Fill one table of each contender, then sum them in turns."""
    source = spark.read.parquet(job.arguments["path"])
    ours = OurTarget(spark, Path(job.folder))
    queue = OurTarget(spark, Path(job.folder), "product_id")
    targets = [ParquetTarget(spark, Path(job.folder)), *peer_targets(spark, job, "product_id")[:1], ours, queue]
    for target in targets:
        target.create(source)
        target.append(source)
    contenders = [sum_two_columns(target.name, target.load) for target in targets]
    contenders.append(sum_two_columns(f'{OURS} format("penstock")', ours.load_source))
    narrow = "price double, sales bigint"
    contenders.append(sum_two_columns(f'{OURS} format("penstock"), schema given', lambda: ours.load_source(narrow)))
    with open_other_spark(job) as others:
        for other in others:
            other.fill(job.arguments["path"])
        series = race(
            WORK,
            [*contenders, *(other.sums(("sum(price)", "sum(sales)")) for other in others)],
            rounds=3 * job.settings.rounds,  # they are short
            warm_ups=2 * job.settings.warm_ups,
            session=job.peer,
            rows=count_rows(Path(job.arguments["path"])),
        )
    return Section(name="scan", title="Scan from Spark", series=series)


def sum_two_columns(
    name: str, load: Callable[[], DataFrame], columns: tuple[str, str] = ("price", "sales")
) -> Contender:
    """Load a table and sum two of its columns."""
    last: list[Any] = []

    def run() -> None:
        last[:] = load().agg(*map(F.sum, columns)).collect()

    # Rows come in another order, so the sum of doubles differs in its last digits.
    return Contender(name=name, run=run, verify=lambda: (round(last[0][0], 2), last[0][1]))
