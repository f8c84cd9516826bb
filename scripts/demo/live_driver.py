"""The driver of the live demo, the process that it kills: Kafka into a queue, and the queue into windows.

Both are streaming inserts in SQL, and both continue from their checkpoints when the process is restarted. A line on
standard input means that no record will follow: the stream of windows then ends at the end of the queue, which delivers
the last windows, and the process ends with it.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.demo.stream import start_spark
from tests.support.kafka_broker import fetch_all

import penstock

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

TOPIC: Final = "departures"
QUEUE: Final = "live.departures"
WINDOWS: Final = "live.hourly"
# Flights of an airport are sent in order, but those of two airports are read a few hours apart after a restart.
DELAY: Final = "INTERVAL '1' DAY"
COLUMNS: Final = "carrier STRING, flight BIGINT, origin STRING, dest STRING, delay DOUBLE, departs TIMESTAMP(3)"
_SETTINGS: Final = """
SET 'execution.checkpointing.dir' = '{checkpoints}';
SET 'execution.checkpointing.interval' = '1 s';
SET 'spark.sql.shuffle.partitions' = '2';
CREATE TABLE live.departures_topic ({columns}, WATERMARK FOR departs AS departs - {delay}) WITH (
    'connector' = 'kafka',
    'topic' = '{topic}',
    'properties.bootstrap.servers' = '{servers}',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
"""
_INTO_QUEUE: Final = "INSERT INTO live.departures SELECT * FROM live.departures_topic"
# A query with the same name has the same checkpoint, even if its options differ.
_INTO_WINDOWS: Final = """
INSERT INTO live.hourly SELECT window_start, origin, COUNT(*), SUM(delay) FROM TABLE(
    TUMBLE(TABLE live.departures /*+ OPTIONS({options}) */, DESCRIPTOR(departs), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, origin
"""
# For a JVM that lives for a minute, the optimizing compiler and parallel garbage collection cost more time than they
# save.
_JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Driver:
    """The two queries of one session."""

    def __init__(self, warehouse: Path, servers: str) -> None:
        self._catalog = penstock.Catalog(str(warehouse))
        self._spark = start_spark()
        self._run(
            _SETTINGS.format(
                checkpoints=warehouse / "checkpoints", columns=COLUMNS, delay=DELAY, topic=TOPIC, servers=servers
            )
        )

    def run(self, ended: threading.Event) -> None:
        """Run both queries until ``wait_for_line`` reports that no record follows; raises the error of either one."""
        queue, windows = self._start("departures", _INTO_QUEUE), self._into_windows()
        while not ended.wait(0.2):
            for query in (queue, windows):
                query.awaitTermination(0.1)
        for query in (queue, windows):
            query.stop()
        latest = self._catalog.load_table(QUEUE).latest_snapshot()
        if latest is not None:
            self._into_windows(latest.id).awaitTermination()
        self._spark.stop()

    def _into_windows(self, end: int | None = None) -> StreamingQuery:
        options = ["'scan.mode' = 'earliest'"]
        if end is not None:
            options.append(f"'penstock.scan.bounded.snapshot-id' = '{end}'")
        return self._start("hourly", _INTO_WINDOWS.format(options=", ".join(options)))

    def _start(self, name: str, statement: str) -> StreamingQuery:
        self._run(f"SET 'execution.runtime-mode' = 'streaming'; SET 'pipeline.name' = '{name}'")
        return self._run(statement)

    def _run(self, script: str) -> StreamingQuery:
        return penstock.sql(self._spark, self._catalog, script)


def wait_for_line(ended: threading.Event) -> None:
    """Set the event when standard input has a line, or ends."""
    sys.stdin.readline()
    ended.set()


def main() -> None:
    """Run the driver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("servers")
    arguments = parser.parse_args()
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, fetch_all('connector')))} pyspark-shell"
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _JVM_OPTIONS)
    ended = threading.Event()
    threading.Thread(target=wait_for_line, args=[ended], daemon=True).start()
    Driver(arguments.warehouse, arguments.servers).run(ended)


if __name__ == "__main__":
    main()
