"""The streaming half of the demo: a job that is killed and restarted, and a second one that reads its output.

As a script, it runs only the first job, in the process that the demo kills.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from pyspark.sql.streaming import StreamingQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A streaming job from a directory of files into the queue.

    Attributes:
        queue: location of its table.
        feed: Parquet files; each file is one micro-batch.
    """

    queue: str
    feed: Path
    checkpoint: Path

    @staticmethod
    def under(directory: Path, queue: penstock.Table) -> Job:
        """Return the job that keeps its files in a directory."""
        return Job(queue=queue.location, feed=directory / "feed", checkpoint=directory / "checkpoint")

    def start(self, spark: SparkSession, trigger: dict[str, object] | None = None) -> StreamingQuery:
        """Start it, or continue from its checkpoint."""
        table = penstock.Table.at(self.queue)
        # One file at a time: files and their rows are in order of departure.
        source = spark.readStream.schema(table.to_spark(spark).schema).option("maxFilesPerTrigger", 1)
        return table.write_stream(source.parquet(str(self.feed)), checkpoint=str(self.checkpoint), trigger=trigger)


def write_feed(job: Job, weeks: Iterable[pa.Table]) -> int:
    """Write one file per week, modified a second apart, as Spark sorts by these times; return the number of files."""
    job.feed.mkdir(parents=True)
    number = 0
    for number, week in enumerate(weeks, start=1):
        path = job.feed / f"week-{number:02}.parquet"
        pq.write_table(week, path)
        os.utime(path, (number, number))
    return number


def start_spark() -> SparkSession:
    """Start a small local session; its start-up output is shown only if it fails."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("penstock demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.log.level", "ERROR")
    )
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            return builder.getOrCreate()
        except BaseException:
            log.seek(0)
            os.write(stderr, log.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def run_until_killed(job: Job, enough: Callable[[], bool]) -> None:
    """Run the job in a separate process, and kill that once there are enough rows."""
    with tempfile.TemporaryFile() as log:
        # Its JVM is a child process: a process group, so that the signal reaches both.
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.demo.stream", job.queue, str(job.feed), str(job.checkpoint)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            while not enough():
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"the streaming job ended by itself:\n{log.read().decode(errors='replace')}")
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def finish(query: StreamingQuery, on_look: Callable[[], None] = lambda: None) -> int:
    """Wait until a query has ended; return the number of its micro-batches."""
    while not query.awaitTermination(0.2):
        on_look()
    on_look()
    last = query.lastProgress
    return 0 if last is None else last["batchId"] + 1


def main() -> None:
    """Run the job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queue")
    for name in ("feed", "checkpoint"):
        parser.add_argument(name, type=Path)
    arguments = parser.parse_args()
    job = Job(queue=arguments.queue, feed=arguments.feed, checkpoint=arguments.checkpoint)
    job.start(start_spark()).awaitTermination()


if __name__ == "__main__":
    main()
