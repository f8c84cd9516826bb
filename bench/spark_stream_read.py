"""Stream read: a table of the seven columns from its first row to its last, into a sink that reads every column."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from bench.data import count_rows
from bench.measure import Contender, Series, take_turns
from bench.micro_batches import Finished, finish
from bench.result import Section
from bench.spark_tables import OurSourceTarget, OurTarget, ParquetTarget, PartitionedParquetTarget, peer_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from bench.measure import Turn
    from bench.spark_session import SparkJob
    from bench.spark_tables import Target

KEY = "product_id"
WORK = "stream read of 7 columns"
BATCHES_WORK = f"{WORK}, micro-batches alone"
CPU_WORK = f"{WORK}, processor time"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Fill one table of each contender, then stream each to its end in turns."""
    source = spark.read.parquet(job.arguments["path"])
    folder = Path(job.folder)
    targets: list[Target] = [
        ParquetTarget(spark, folder),
        PartitionedParquetTarget(spark, folder, KEY),
        *peer_targets(spark, job, KEY)[:1],
        OurTarget(spark, folder),
        OurTarget(spark, folder, KEY),
        OurSourceTarget(spark, folder, KEY),
    ]
    contenders = [_contender(spark, target, folder / "checkpoint") for target in targets]
    series = read_in_turns(job, source, list(zip(targets, contenders, strict=True)), (WORK, BATCHES_WORK, CPU_WORK))
    return Section(name="stream-read", title="Stream read", series=series)


def read_in_turns(
    job: SparkJob, source: DataFrame, pairs: Sequence[tuple[Target, Contender]], works: Sequence[str]
) -> tuple[Series, ...]:
    """Fill one table of each contender, then let each read its own to the end, in turns.

    Args:
        works: names of the figures for the whole query, its micro-batches only, and its CPU time.
    """
    for target, _ in pairs:
        target.create(source)
        target.append(source)
    contenders = [contender for _, contender in pairs]
    turns = take_turns(works[0], contenders, rounds=job.settings.rounds, warm_ups=job.settings.warm_ups)
    return _series(turns, works, job.peer, count_rows(Path(job.arguments["path"])))


def _series(turns: Mapping[str, tuple[Turn, ...]], works: Sequence[str], session: str, rows: int) -> tuple[Series, ...]:
    series = []
    for name, taken in turns.items():
        ended = [cast("Finished", turn.answer) for turn in taken]
        if any(each.rows != rows for each in ended):
            message = f"{name} read {[each.rows for each in ended]} rows of {rows}"
            raise AssertionError(message)
        figures = (
            [each.wall_seconds for each in ended],
            [sum(batch.seconds for batch in each.batches) for each in ended],
            [each.cpu_seconds for each in ended],
        )
        series += [
            Series(work=work, contender=name, session=session, seconds=tuple(seconds), rows=rows)
            for work, seconds in zip(works, figures, strict=True)
        ]
    return tuple(sorted(series, key=lambda each: works.index(each.work)))


def _contender(spark: SparkSession, target: Target, checkpoint: Path) -> Contender:
    def ready() -> None:
        shutil.rmtree(checkpoint, ignore_errors=True)
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def start() -> StreamingQuery:
        writer = target.load_stream().writeStream.option("checkpointLocation", str(checkpoint))
        return writer.format("noop").trigger(availableNow=True).start()

    def verify() -> object:
        ready()
        return _sums(target, checkpoint)

    return Contender(name=target.name, before=ready, run=lambda: finish(start), verify=verify)


def _sums(target: Target, checkpoint: Path) -> object:
    """Stream the table once more and return the sums of all columns."""
    found: list[tuple[Any, ...]] = []

    def add(batch: DataFrame, _number: int) -> None:
        hashed = F.sum(F.xxhash64(*batch.columns).cast("decimal(38,0)"))
        found.append(tuple(batch.agg(F.count("*"), hashed).collect()[0]))

    writer = target.load_stream().writeStream.option("checkpointLocation", str(checkpoint))
    finish(lambda: writer.foreachBatch(add).trigger(availableNow=True).start())
    return sum(count for count, _ in found), sum(hashed for count, hashed in found if count)
