"""The Spark side of a soak: a session, two queries behind each other, and what they and the JVM say of themselves."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from tests.soak.scene import BATCH_SECONDS, HOUSE, QUEUE, SOURCE, WIDE

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from tests.soak.scene import Scene

HEAP: Final = "1g"
MIB: Final = 2**20


def open_session(scene: Scene) -> SparkSession:
    """Start a session of two cores."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": HEAP,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scene.root / "scratch"),
        "spark.sql.warehouse.dir": str(scene.root / "spark-warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps a thousand jobs and stages for its pages, which looks like a leak until there are so many.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.sql.streaming.ui.retainedQueries": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.sql.streaming.minBatchesToRetain": "20",
    }
    builder = SparkSession.builder.master("local[2]").appName("soak")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def start_queries(spark: SparkSession, scene: Scene) -> dict[str, StreamingQuery]:
    """Start the source's stream into the queue, and the queue's into the scalable table."""
    return {
        "queue": _start(spark, scene, SOURCE, QUEUE),
        "wide": _start(spark, scene, QUEUE, WIDE, HOUSE),
    }


def _start(
    spark: SparkSession, scene: Scene, source: str, target: str, options: dict[str, str] | None = None
) -> StreamingQuery:
    name = target.rpartition(".")[2]
    reads = {"scan.mode": "earliest", "consumer-id": f"into-{name}", "scan.plan-sort-partition": "true"}
    return scene.table(target).write_stream(
        scene.table(source).read_stream(spark, options=reads),
        checkpoint=str(scene.root / "checkpoints" / name),
        trigger={"processingTime": f"{BATCH_SECONDS:g} seconds"},
        query_name=name,
        options=options,
    )


class Batches:
    """Counts and times the micro-batches of a query; asked more often than Spark forgets them."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._seen = -1
        self.count = 0

    def take(self) -> list[int]:
        """Return the milliseconds of each micro-batch with rows since the last time."""
        new = [each for each in self._query.recentProgress if each["batchId"] > self._seen and each["numInputRows"]]
        if new:
            self._seen = max(each["batchId"] for each in new)
        self.count += len(new)
        return [each["durationMs"]["triggerExecution"] for each in new]


def measure_jvm(spark: SparkSession) -> list[float]:
    """Return what the JVM holds, in the order of ``JVM`` but for the threads of pools.

    Heap counts after a collection. Code that the compiler has made has a limit of its own (240 MB), which it needs
    hours to come near; classes and what belongs to them have none.
    """
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    beans = jvm.java.lang.management.ManagementFactory
    heap = beans.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    outside = beans.getMemoryMXBean().getNonHeapMemoryUsage().getUsed()
    used = {pool.getName(): pool.getUsage().getUsed() for pool in beans.getMemoryPoolMXBeans()}
    metaspace = sum(each for name, each in used.items() if name in {"Metaspace", "Compressed Class Space"})
    code = sum(each for name, each in used.items() if name.startswith("Code"))
    classes = beans.getClassLoadingMXBean().getLoadedClassCount()
    threads = beans.getThreadMXBean().getThreadCount()
    heap, outside, metaspace, code = (round(each / MIB, 2) for each in (heap, outside, metaspace, code))
    return [heap, outside, classes, threads, metaspace, code]
