"""A driver that is killed and started again, with a stream of Penstock or of Spark; run by ``test_cluster_restart``.

Arguments: ``penstock`` or ``files``, a directory that all machines share, settings of the session as JSON, and for
``penstock`` the warehouse on the store and its options as JSON. Prints lines of a time and an event, until its standard
input ends.
"""

import json
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.standalone_script import open_session

import penstock

TRIGGER = {"processingTime": "200 milliseconds"}


def say(event: str) -> None:
    print(f"{time.time():.2f} {event}", flush=True)  # noqa: T201 - its result


def start_penstock(spark: SparkSession, shared: Path) -> StreamingQuery:
    catalog = penstock.Catalog(sys.argv[4], json.loads(sys.argv[5]))
    source, queue = catalog.load_table("d.t"), catalog.load_table("d.q")
    say("tables")
    rows = source.read_stream(spark, options={"scan.mode": "latest-full"})
    say("rows")
    return queue.write_stream(rows, checkpoint=str(shared / "checkpoint"), trigger=TRIGGER)


def start_files(spark: SparkSession, shared: Path) -> StreamingQuery:
    rows = spark.readStream.schema("id BIGINT").parquet(str(shared / "in"))
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(shared / "checkpoint"))
    return writer.trigger(**TRIGGER).start(str(shared / "out"))


def show(query: StreamingQuery) -> None:
    """Say what batches of a query took."""
    seen = -1
    while query.isActive:
        last = query.lastProgress
        if last is not None and last["batchId"] != seen and last["numInputRows"]:
            seen = last["batchId"]
            say(f"batch {seen} {last['numInputRows']} rows {json.dumps(last['durationMs'])}")
        time.sleep(0.1)
    say(f"failed {query.exception()}".replace("\n", " "))


def main() -> None:
    say("imported")
    spark = open_session(**json.loads(sys.argv[3]))
    say("session")
    start = {"penstock": start_penstock, "files": start_files}[sys.argv[1]]
    query = start(spark, Path(sys.argv[2]))
    say("query")
    threading.Thread(target=show, args=(query,), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
