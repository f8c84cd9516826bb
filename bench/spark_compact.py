"""Compaction on Spark: many small files of one table to one, with each contender's own command."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from bench.measure import Contender, Series, race
from bench.result import Section
from bench.spark_tables import DeltaTarget, IcebergTarget, OurTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from bench.spark_session import SparkJob
    from bench.spark_tables import Target

WORK = "small files to one"
IN_PROCESS = " without Spark"
SCAN_BEFORE = "sum of 2 of 7 columns before compaction"
SCAN_AFTER = "sum of 2 of 7 columns after compaction"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Compact a new table each round, with the files of many small commits."""
    files = job.settings.small_files
    rows = spark.read.parquet(job.arguments["path"])
    folder = Path(job.folder)
    ours = OurTarget(spark, folder)
    here = OurTarget(spark, folder)
    here.name += IN_PROCESS
    scans = _Scans(ours)
    contenders = [
        _contender(spark, ours, rows, files, lambda: ours.table().compact(spark), scans),
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
    series += scans.series(job.settings.rounds, job.peer)
    return Section(name="compact", title="Compaction", series=series)


class _Scans:
    """Times a scan of one table before each of its compactions and after it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._before: list[float] = []
        self._after: list[float] = []
        self._sums: set[tuple[Any, ...]] = set()

    def before(self) -> None:
        """Scan the small files."""
        self._before.append(self._scan())

    def after(self) -> None:
        """Scan the merged files."""
        self._after.append(self._scan())

    def series(self, rounds: int, session: str) -> tuple[Series, ...]:
        """Return the times of the last rounds.

        Raises:
            AssertionError: the rows before and after differ.
        """
        if len(self._sums) != 1:
            message = f"sums before and after compaction: {self._sums}"
            raise AssertionError(message)
        times = {SCAN_BEFORE: self._before, SCAN_AFTER: self._after}
        return tuple(
            Series(work=work, contender=self._target.name, session=session, seconds=tuple(seconds[-rounds:]))
            for work, seconds in times.items()
        )

    def _scan(self) -> float:
        os.sync()
        started = time.perf_counter()
        found = self._target.load().agg(F.sum("price"), F.sum("sales")).collect()[0]
        seconds = time.perf_counter() - started
        # Rows come in another order, so the sum of doubles differs in its last digits.
        self._sums.add((round(found[0], 2), found[1]))
        return seconds


def _contender(
    spark: SparkSession,
    target: Target,
    rows: DataFrame,
    files: int,
    compact: Callable[[], object],
    scans: _Scans | None = None,
) -> Contender:
    def before() -> None:
        target.create(rows)
        target.append(rows.repartition(files))
        if scans:
            scans.before()
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def verify() -> tuple[int, int]:
        found = target.load()
        return found.count(), found.select(F.input_file_name()).distinct().count()

    def after() -> None:
        if scans:
            scans.after()
        target.drop()

    return Contender(name=target.name, before=before, run=compact, verify=verify, after=after)


def _rewrite(spark: SparkSession, location: str) -> None:
    jvm = spark._jvm  # noqa: SLF001 - the procedures need a catalog of Iceberg's own, which Spark 4.2 refuses
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())  # noqa: SLF001 - as above
    action = jvm.org.apache.iceberg.spark.actions.SparkActions.get().rewriteDataFiles(tables.load(location))
    action.option("min-input-files", "2").execute()
