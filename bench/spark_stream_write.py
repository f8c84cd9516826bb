"""Stream write: micro-batches of one size into a table, from the same files for all contenders."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bench.data import FILES
from bench.measure import Contender, Series, take_turns
from bench.micro_batches import Finished, finish, percentile
from bench.result import Section
from bench.spark_tables import (
    OurCatalogTarget,
    OurDurableTarget,
    OurSourceTarget,
    OurTarget,
    OurTimedTarget,
    ParquetTarget,
    peer_targets,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from bench.measure import Turn
    from bench.micro_batches import MicroBatch
    from bench.spark_session import SparkJob
    from bench.spark_tables import Target

KEY = "product_id"
SKIPPED = 3
"""First micro-batches of a query, in which everybody opens what it then keeps."""
THROUGHPUT = "all of them"
P50, P95 = "p50 of a micro-batch", "p95 of a micro-batch"
SINK_P50, SINK_P95 = "p50 in the sink", "p95 in the sink"
WALL, CPU = "with start and end of the query", "processor time of the query"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Stream every size of micro-batch into every table, in turns."""
    folder = Path(job.folder)
    targets: list[Target] = [
        ParquetTarget(spark, folder),
        *peer_targets(spark, job, KEY),
        OurTarget(spark, folder),
        OurTarget(spark, folder, KEY),
        OurSourceTarget(spark, folder),
        OurCatalogTarget(spark, folder),
        OurCatalogTarget(spark, folder, "FileSystemBasedCheckpointFileManager"),
    ]
    return Section(name="stream-write", title="Stream write", series=_measure_into(targets, spark, job))


def measure_watermark(spark: SparkSession, job: SparkJob) -> Section:
    """Do the same with our tables, with and without a declared watermark."""
    targets: list[Target] = [
        OurTimedTarget(spark, Path(job.folder), key, has_watermark=has_watermark)
        for key in (None, KEY)
        for has_watermark in (False, True)
    ]
    return Section(name="stream-watermark", title="Watermarks in snapshots", series=_measure_into(targets, spark, job))


def measure_durable(spark: SparkSession, job: SparkJob) -> Section:
    """Do the same with our tables, with and without durable commits."""
    targets: list[Target] = [
        OurDurableTarget(spark, Path(job.folder), key, is_durable=is_durable)
        for key in (None, KEY)
        for is_durable in (False, True)
    ]
    return Section(name="stream-durable", title="Flushed commits", series=_measure_into(targets, spark, job))


def _measure_into(targets: Sequence[Target], spark: SparkSession, job: SparkJob) -> tuple[Series, ...]:
    series: list[Series] = []
    for source in job.arguments["sources"]:
        turns = take_turns(
            work_name(source["rows"]),
            [_contender(spark, target, source["path"], Path(job.folder) / "checkpoint") for target in targets],
            rounds=job.settings.rounds,
            warm_ups=job.settings.warm_ups,
        )
        series += _series(turns, job.peer, source["rows"], source["batches"] + SKIPPED)
    return tuple(series)


def work_name(rows: int, figure: str = "") -> str:
    """Return the name of a micro-batch size, or of a figure of it."""
    return f"micro-batches of {rows:,} rows" + (f", {figure}" if figure else "")


def figures_of(batches: Sequence[MicroBatch]) -> dict[str, float]:
    """Return the times of the counted micro-batches, in seconds."""
    whole = [batch.seconds for batch in batches]
    sink = [batch.sink_seconds for batch in batches]
    return {
        THROUGHPUT: sum(whole),
        P50: percentile(whole, 0.5),
        P95: percentile(whole, 0.95),
        SINK_P50: percentile(sink, 0.5),
        SINK_P95: percentile(sink, 0.95),
    }


def _series(turns: Mapping[str, tuple[Turn, ...]], session: str, rows: int, batches: int) -> list[Series]:
    by_figure: dict[str, list[Series]] = {}
    for name, taken in turns.items():
        ended = [cast("Finished", turn.answer) for turn in taken]
        if any(len(each.batches) != batches for each in ended):
            message = f"{name} ran {[len(each.batches) for each in ended]} micro-batches instead of {batches}"
            raise AssertionError(message)
        rounds = [figures_of(each.batches[SKIPPED:]) for each in ended]
        rounds = [
            {**figures, WALL: each.wall_seconds, CPU: each.cpu_seconds}
            for figures, each in zip(rounds, ended, strict=True)
        ]
        handled = {THROUGHPUT: rows * (batches - SKIPPED), WALL: rows * batches, CPU: rows * batches}
        for figure in rounds[0]:
            seconds = tuple(each[figure] for each in rounds)
            each_series = Series(
                work=work_name(rows, figure),
                contender=name,
                session=session,
                seconds=seconds,
                rows=handled.get(figure),
            )
            by_figure.setdefault(figure, []).append(each_series)
    return [each for several in by_figure.values() for each in several]


def _contender(spark: SparkSession, target: Target, source: str, checkpoint: Path) -> Contender:
    schema = spark.read.parquet(source).schema

    def before() -> None:
        shutil.rmtree(checkpoint, ignore_errors=True)
        target.create(spark.createDataFrame([], schema))
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def run() -> Finished:
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(source)
        return finish(lambda: target.start_stream(rows, str(checkpoint)))

    return Contender(
        name=target.name,
        before=before,
        run=run,
        verify=lambda: target.load().count(),
        after=target.drop,
    )
