"""The main job on a standalone cluster with a store between; run by ``test_standalone`` as a program.

Arguments: warehouse on the store, its options as JSON, a directory that each worker has for itself, number of workers.
With more than one, an executor is killed. Prints one JSON object: for each step its result or its error, and its
seconds.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

ROWS = 20_000


def open_session(**settings: str) -> SparkSession:
    host = os.environ["SPARK_LOCAL_IP"]
    builder = (
        SparkSession.builder.master(os.environ["PENSTOCK_MASTER"])
        .config("spark.driver.host", host)
        .config("spark.driver.bindAddress", host)
        .config("spark.executor.memory", "600m")
        .config("spark.cores.max", "2")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
        .config("spark.locality.wait", "0")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    return builder.getOrCreate()


class Steps:
    """The steps so far, with what they returned or raised."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def take(self, name: str, step: "Callable[[], object]") -> None:
        start = time.monotonic()
        result: dict[str, object] = {}
        try:
            result["is"] = step()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            result["error"] = f"{type(error).__name__}: {error}"
        self.found[name] = {**result, "seconds": round(time.monotonic() - start, 2)}


def kill_first_executor(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Hand rows on; at the end of the first attempt at the first task, kill the executor that runs it."""
    yield from batches
    context = TaskContext.get()
    assert context is not None
    if (context.partitionId(), context.attemptNumber()) == (0, 0):
        os.kill(parent_of(os.getppid()), signal.SIGKILL)
        time.sleep(60)  # nothing comes after it: this process is killed too


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def hosts(spark: SparkSession) -> list[str]:
    """Return the addresses of the machines that run tasks."""
    executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return sorted({each.host() for each in executors} - {os.environ["SPARK_LOCAL_IP"]})


def main() -> None:
    root, options, private, workers = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    steps, spark = Steps(), open_session(spark__cores__max=str(workers))
    catalog = penstock.Catalog(root, options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT, k BIGINT")
    queue = catalog.create_table("d.q", "id BIGINT, k BIGINT", options={"bucket": "2", "bucket-key": "id"})
    frame = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 7 AS k")

    def stream() -> int:
        query = queue.write_stream(
            table.read_stream(spark, options={"scan.mode": "latest-full"}),
            checkpoint=f"{Path.cwd()}/checkpoint",
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        return queue.to_arrow(["id"]).num_rows

    def lost() -> None:
        local = penstock.Catalog(f"{private}/warehouse")
        local.create_database("d")
        local.create_table("d.t", "id BIGINT, k BIGINT", options={"bucket": "2", "bucket-key": "id"}).append(frame)

    def read_format() -> int:
        reader = spark.read.format("penstock").options(**options)
        return reader.load(table.location).where("k = 3").count()

    def without_python() -> int:
        python, spark.sparkContext.pythonExec = spark.sparkContext.pythonExec, "/no/such/python"
        try:
            return table.append(frame).id
        finally:
            spark.sparkContext.pythonExec = python

    steps.take("no python", without_python)
    steps.take("append before", lambda: table.append(frame).id)
    steps.take("ship", lambda: list(penstock.ship(spark)))
    steps.take("hosts", lambda: hosts(spark))
    steps.take("ship again", lambda: list(penstock.ship(spark)))
    steps.take("append", lambda: table.append(frame).id)
    steps.take("stream", stream)
    if workers > 1:
        steps.take("executor killed", lambda: table.append(frame.mapInArrow(kill_first_executor, frame.schema)).id)
        steps.take("stream again", stream)
    steps.take("compact", lambda: len(table.compact(spark, strategy="full").snapshots))
    steps.take("read", lambda: queue.to_spark(spark).selectExpr("count(*)", "count(DISTINCT id)", "sum(k)").collect())
    steps.take("format", read_format)
    steps.take("private disk", lost)
    steps.take("fsck", lambda: [str(each) for each in (*table.inspect.fsck().findings, *queue.inspect.fsck().findings)])
    print(json.dumps(steps.found), flush=True)  # noqa: T201 - its result
    spark.stop()


if __name__ == "__main__":
    main()
