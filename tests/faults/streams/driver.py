"""A Spark driver that runs streaming queries until it is told, or made, to end.

Run as a program: ``driver.py <state directory> <Spark master> <scratch directory>``. Prints ``@ready``; each line of
standard input is a request, one JSON object, answered with ``@`` and one JSON object. A request holds a plan for
``calls`` and phases, one after the other; a phase is a list of queries that run together. It ends when those with the
trigger availableNow have ended, upon which the others are stopped; one without any of them goes on until it fails.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter
from tests.faults.streams.calls import Hook, Plan, write_plan
from tests.faults.streams.order import TaskOrder
from tests.faults.streams.rows import BATCH_ROWS, COLUMNS, PARTITIONS
from tests.quick_spark import CHECKPOINT_FILES, JVM_OPTIONS, shorten_configuration
from tests.spark.py4j_names import keep_names

import penstock
from penstock import Table
from penstock.spark.connector.stream.table_write import StreamTableWrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def start_session(master: str, scratch: str) -> SparkSession:
    keep_names()
    jvm = " ".join(JVM_OPTIONS)
    builder = (
        SparkSession.builder.master(master)
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", jvm)
        .config("spark.executor.extraJavaOptions", jvm)
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", Path(scratch, "warehouse").as_uri())
        .config("spark.sql.shuffle.partitions", "2")
        # Less than by default, so that few rows already come in several batches.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINT_FILES)
        # As in the session of the tests: there is less to compute than to compile.
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        # How soon a stream without rows asks its source again: after the usual 10 ms it does little else.
        .config("spark.sql.streaming.pollingDelay", "100ms")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    shorten_configuration(spark)
    return spark


def count_returns(hook: Hook) -> None:
    """Tell the hook whenever a foreachBatch function, or a commit of ``toTable``, is about to return to Spark."""
    original, commit = DataStreamWriter.foreachBatch, StreamTableWrite.commit

    def counted_commit(self: StreamTableWrite, batch_id: int, messages: Any) -> None:
        commit(self, batch_id, messages)
        hook.returned()

    StreamTableWrite.commit = counted_commit  # type: ignore[method-assign]

    def foreach_batch(self: DataStreamWriter, func: Any) -> DataStreamWriter:
        def counted(df: DataFrame, batch_id: int) -> None:
            func(df, batch_id)
            hook.returned()

        return original(self, counted)

    DataStreamWriter.foreachBatch = foreach_batch  # type: ignore[method-assign]


def source_of(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    if "folder" in query:
        reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", query["files"])
        return reader.parquet(query["folder"])
    sdf = Table.at(query["source"]).read_stream(spark, options=query.get("options", {}))
    order = TaskOrder(tuple(query.get("ascending", ())), tuple(query.get("partitions", PARTITIONS)))
    return sdf.mapInArrow(order, sdf.schema)


def forget_unfinished_start(checkpoint: Path) -> None:
    """Delete the temporary file of a query that ended while Spark wrote its first offsets.

    Spark refuses such a checkpoint (``STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY``), whatever the sink.
    """
    offsets = checkpoint / "offsets"
    if not any(path.name.isdigit() for path in offsets.glob("*")):
        for path in offsets.glob(".*"):
            path.unlink()


def start_query(spark: SparkSession, query: dict[str, Any]) -> StreamingQuery:
    forget_unfinished_start(Path(query["checkpoint"]))
    sdf, trigger = source_of(spark, query), query["trigger"]
    match query["entry_point"]:
        case "write_stream":
            table, options = Table.at(query["table"]), query.get("sink_options")
            return table.write_stream(sdf, checkpoint=query["checkpoint"], trigger=trigger, options=options)
        case "to_table":
            place = Path(query["table"])
            penstock.attach(spark, place.parent.parent)
            writer = sdf.writeStream.options(**query.get("sink_options", {})).trigger(**trigger)
            writer = writer.option("checkpointLocation", query["checkpoint"])
            return writer.toTable(f"penstock.{place.parent.stem}.{place.name}")
        case "format":
            writer = sdf.writeStream.format("penstock").option("checkpointLocation", query["checkpoint"])
            return writer.trigger(**trigger).start(query["table"])
        case _:
            # What exactly-once is measured against: a plain append, done again when a batch is.
            table = Table.at(query["table"])
            writer = sdf.writeStream.foreachBatch(lambda df, _: table.append(df))
            return writer.option("checkpointLocation", query["checkpoint"]).trigger(**trigger).start()


def wait_for_start(query: StreamingQuery) -> None:
    """Wait until a source has said what there is: a dozen that start at once take longer than Spark waits for each."""
    while query.isActive and query.status["message"].startswith(("Initializing", "Getting offsets")):
        time.sleep(0.02)


def run_phase(spark: SparkSession, queries: list[dict[str, Any]]) -> dict[str, str]:
    """Run queries together; returns what went wrong with which."""
    errors: dict[str, str] = {}
    running: list[tuple[str, StreamingQuery]] = []
    endless: list[tuple[str, StreamingQuery]] = []
    for query in queries:
        try:
            started = start_query(spark, query)
        except Exception as error:  # noqa: BLE001 - a refusal is a result
            errors[query["name"]] = f"{type(error).__name__}: {error}"
            continue
        wait_for_start(started)
        (running if "availableNow" in query["trigger"] else endless).append((query["name"], started))
    for name, each in running or endless:
        try:
            each.awaitTermination()
        except Exception as error:  # noqa: BLE001 - as above
            errors[name] = cause_of(error)
    for name, each in endless:
        each.stop()
        failure = each.exception()
        if failure is not None:
            errors[name] = cause_of(failure)
    for thread in threading.enumerate():
        # What ``toTable`` returns does not wait for merges in the background.
        if thread.name.startswith("end of query"):
            thread.join()
    return errors


def cause_of(error: BaseException) -> str:
    """Return the message of a failed query without the frames of Python, of which it holds dozens."""
    return "\n".join(line for line in str(error).splitlines() if not line.startswith(("  File ", "    ")))


def warm_up(spark: SparkSession) -> None:
    """Start the Python workers, and have them import what they will need."""

    def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import penstock.spark.write.task  # noqa: F401

        yield from batches

    spark.range(0, 2, 1, 2).mapInArrow(through, "id BIGINT").collect()


def main() -> None:
    state, master, scratch = sys.argv[1:]
    folder = Path(state)
    spark = start_session(master, scratch)
    (folder / "victims").write_text(json.dumps([spark.sparkContext._gateway.proc.pid, os.getpid()]))
    count_returns(Hook(folder))
    warm_up(spark)
    print("@ready", flush=True)  # noqa: T201 - what it talks with
    for line in sys.stdin:
        request = json.loads(line)
        write_plan(folder, Plan(**request["plan"]))
        errors: dict[str, str] = {}
        for phase in request["phases"]:
            errors |= run_phase(spark, phase)
            if errors:
                break
        (folder / "plan").unlink()
        print("@" + json.dumps({"errors": errors}), flush=True)  # noqa: T201 - as above
    spark.stop()


if __name__ == "__main__":
    main()
