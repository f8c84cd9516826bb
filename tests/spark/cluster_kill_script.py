"""A driver that is killed: a stream into a queue, and appends beside it; run by ``test_cluster_kills`` as a program.

Arguments: warehouse on the store, its options as JSON, a directory that all machines share, settings of the session as
JSON. Reads commands, a line each: ``append FIRST``, ``save FIRST`` and ``stop``. Prints lines of a time and an event.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.spark.standalone_script import open_session, parent_of

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

APPEND_ROWS = 1000
TASK_SECONDS = 240
"""How long a task waits for what the test does meanwhile."""


def say(event: str) -> None:
    print(f"{time.time():.2f} {event}", flush=True)  # noqa: T201 - its result


@dataclass(frozen=True)
class Obedient:
    """Hands rows on; then does what a file of the shared directory asks of the first task that takes it.

    ``kill-executor`` and ``kill-python`` kill what runs the task, ``pause`` keeps it until the file ``paused`` is gone.
    While ``straggle`` is there, each attempt leaves a file, and the first one at the first partition waits for the file
    ``release``.
    """

    shared: Path

    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        yield from batches
        if self.takes("kill-executor"):
            os.kill(parent_of(os.getppid()), signal.SIGKILL)
            self.wait(lambda: False)
        if self.takes("kill-python"):
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.takes("pause"):
            (self.shared / "paused").write_text(socket.gethostname())
            self.wait(lambda: not (self.shared / "paused").exists())
        if (self.shared / "straggle").exists():
            self.straggle()

    def straggle(self) -> None:
        context = TaskContext.get()
        assert context is not None
        place = context.partitionId(), context.attemptNumber()
        (self.shared / f"attempt-{place[0]}-{place[1]}").touch()
        if place == (0, 0):
            self.wait((self.shared / "release").exists)

    def takes(self, order: str) -> bool:
        """Whether a file asks for something, and no other task has taken it."""
        try:
            (self.shared / order).unlink()
        except FileNotFoundError:
            return False
        return True

    def wait(self, condition: "Callable[[], bool]") -> None:
        deadline = time.monotonic() + TASK_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "nobody ended this task"
            time.sleep(0.05)


def serve(spark: "SparkSession", table: "penstock.Table", options: dict[str, str], task: Obedient) -> None:
    """Do what the lines of the standard input say, until one says that it is the end."""
    for line in sys.stdin:
        command, *first = line.split()
        if command == "stop":
            break
        rows = spark.range(int(first[0]), int(first[0]) + APPEND_ROWS, 1, 2).mapInArrow(task, "id BIGINT")
        say(f"begun {first[0]}")
        try:
            if command == "append":
                table.append(rows)
            else:
                rows.write.format("penstock").options(**options).mode("append").save(table.location)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails for it
            say(f"failed {first[0]} {type(error).__name__} {error}".replace("\n", " "))
        else:
            say(f"done {first[0]}")


def watch(query: "StreamingQuery") -> None:
    """Say how a query ended."""
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        say(f"failed {error}".replace("\n", " "))
    else:
        say("stopped")


def main() -> None:
    root, options, shared, settings = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4])
    say("begin")
    spark = open_session(**settings)
    say("session")
    catalog = penstock.Catalog(root, options)
    source, queue, batches = (catalog.load_table(name) for name in ("d.t", "d.q", "d.b"))
    task = Obedient(shared)
    rows = source.read_stream(spark, options={"scan.mode": "latest-full", "consumer-id": "killed"})
    query = queue.write_stream(
        # The tasks write the rows of an observed query, however few they are, and not the driver.
        rows.mapInArrow(task, "id BIGINT").observe("rows", F.count("id")),
        checkpoint=str(shared / "checkpoint"),
        trigger={"processingTime": "200 milliseconds"},
    )
    say("query")
    watcher = threading.Thread(target=watch, args=(query,), daemon=True)
    watcher.start()
    # In the main thread: Spark finds formats in Python only where a session is the active one.
    serve(spark, batches, options, task)
    query.stop()
    watcher.join()
    spark.stop()


if __name__ == "__main__":
    main()
