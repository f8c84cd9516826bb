"""Windows over a stream: counts and sums by window and category, of a table from its first row to its last."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from bench.measure import Contender
from bench.micro_batches import finish
from bench.result import Section
from bench.spark_stream_read import read_in_turns
from bench.spark_tables import TIME, OurTimedTarget, ParquetTarget, PartitionedParquetTarget, peer_targets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from bench.spark_session import SparkJob
    from bench.spark_tables import Target

KEY = "product_id"
COLUMNS = (TIME, "category", "price")
WORK = "1-minute windows by category"
BATCHES_WORK = f"{WORK}, micro-batches alone"
CPU_WORK = f"{WORK}, processor time"


def measure(spark: SparkSession, job: SparkJob) -> Section:
    """Fill one table of each contender, then compute windows of each to its end, in turns."""
    # Each partition has its own state store in every micro-batch; Spark's default of 200 would dominate the time.
    spark.conf.set("spark.sql.shuffle.partitions", str(job.settings.cores))
    source = spark.read.parquet(job.arguments["path"])
    folder = Path(job.folder)
    targets: list[Target] = [
        ParquetTarget(spark, folder),
        PartitionedParquetTarget(spark, folder, KEY),
        *peer_targets(spark, job, KEY)[:1],
        OurTimedTarget(spark, folder, has_watermark=True, columns=COLUMNS),
        OurTimedTarget(spark, folder, KEY, has_watermark=True, columns=COLUMNS),
    ]
    contenders = [_contender(spark, target, folder / "checkpoint") for target in targets]
    series = read_in_turns(job, source, list(zip(targets, contenders, strict=True)), (WORK, BATCHES_WORK, CPU_WORK))
    return Section(name="stream-windows", title="Windows over a stream", series=series)


def _contender(spark: SparkSession, target: Target, checkpoint: Path) -> Contender:
    def ready() -> None:
        shutil.rmtree(checkpoint, ignore_errors=True)
        spark._jvm.java.lang.System.gc()  # noqa: SLF001 - a full heap is not the next contender's fault

    def start() -> StreamingQuery:
        writer = _windows(target).writeStream.option("checkpointLocation", str(checkpoint))
        return writer.format("noop").trigger(availableNow=True).start()

    def verify() -> object:
        ready()
        return _rows(target, checkpoint)

    return Contender(name=target.name, before=ready, run=lambda: finish(start), verify=verify)


def _windows(target: Target) -> DataFrame:
    rows = target.load_stream()
    if not isinstance(target, OurTimedTarget):
        rows = rows.withWatermark(TIME, "5 seconds")
    return rows.groupBy(F.window(TIME, "1 minute"), "category").agg(
        F.count("*").alias("orders"), F.sum("price").alias("price")
    )


def _rows(target: Target, checkpoint: Path) -> object:
    """Compute the windows once more; return the number of emitted windows and of their rows."""
    found: list[tuple[int, int]] = []

    def add(batch: DataFrame, _number: int) -> None:
        windows, orders = batch.agg(F.count("*"), F.coalesce(F.sum("orders"), F.lit(0))).collect()[0]
        found.append((windows, orders))

    writer = _windows(target).writeStream.option("checkpointLocation", str(checkpoint))
    finish(lambda: writer.foreachBatch(add).trigger(availableNow=True).start())
    return sum(windows for windows, _ in found), sum(orders for _, orders in found)
