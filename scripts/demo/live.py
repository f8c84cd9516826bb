"""Flights through Kafka, a queue and windows while you watch, with the driver killed on the way.

Three processes run next to this one: a Kafka broker, a driver with two streaming queries, and later another driver,
after the first one is killed (SIGKILL). This process sends the records, shows what ``penstock watch`` shows, serves the
report to a browser, and compares the tables with what it has sent. Exit code 0 means that every number is equal.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from rich.console import Console
from rich.table import Table as Grid
from scripts.demo.live_driver import COLUMNS, DELAY, QUEUE, TOPIC, WINDOWS
from scripts.demo.live_numbers import (
    AIRPORTS,
    Flight,
    Line,
    check_queue,
    check_snapshots,
    check_windows,
    plan_flights,
    windows_of,
)
from scripts.demo.live_screen import RESULT, Page, Screen, served
from tests.support.kafka_broker import ROOT, BrokerError, fetch_all, running_broker

import penstock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# How long records accumulate in Kafka without a reader, so that the backlog becomes visible.
DOWN_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.1


class DemoError(Exception):
    """The demo cannot continue; the message says why."""


class Sender(threading.Thread):
    """Sends records at a constant rate: the first half at once, the second half after ``go_on``.

    Attributes:
        sent: what the broker has acknowledged, in order, once the thread has ended.
        count: how many records have been acknowledged so far.
        error: why it ended early.
    """

    def __init__(self, servers: str, flights: Sequence[Flight], seconds: float) -> None:
        super().__init__(name="sender", daemon=True)
        self._producer = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)
        self._flights, self._seconds = flights, seconds
        self._stopped, self._goes_on = threading.Event(), threading.Event()
        self.sent: list[Flight] = []
        self.count = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Send them all."""
        try:
            self._send()
        except Exception as error:  # noqa: BLE001 - told by the main thread
            self.error = error

    def go_on(self) -> None:
        """Send the second half too."""
        self._goes_on.set()

    def stop(self) -> None:
        """End early."""
        self._stopped.set()
        self.join()
        self._producer.close(timeout=1)

    def _send(self) -> None:
        started, done = time.monotonic(), 0
        while done < len(self._flights) and not self._stopped.wait(LOOK_SECONDS):
            share = (time.monotonic() - started) / self._seconds
            if share > 1 / 2 and not self._goes_on.is_set():
                # The waiting time does not count.
                started, share = time.monotonic() - self._seconds / 2, 1 / 2
            due = min(len(self._flights), int(len(self._flights) * share))
            answers = [
                self._producer.send(TOPIC, row.encode(), partition=row.partition) for row in self._flights[done:due]
            ]
            self._producer.flush()
            for answer in answers:
                answer.get(timeout=30)
            self.sent += self._flights[done:due]
            done = self.count = due


class Driver:
    """The process with the two queries; it can be killed, asked to end, and restarted."""

    def __init__(self, warehouse: Path, servers: str) -> None:
        command = [sys.executable, "-m", "scripts.demo.live_driver", str(warehouse), servers]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        # Its JVM is a child process: a process group, so that a signal reaches both.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def kill(self) -> None:
        """Kill it; no effect if it has already ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def tell_end(self) -> None:
        """Tell it that no record follows."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def has_ended(self) -> bool:
        """Whether it has ended normally; raises an error if it has ended otherwise."""
        code = self._process.poll()
        if code:
            self._log.seek(0)
            raise DemoError(f"the driver ended with {code}:\n{self._log.read().decode(errors='replace')[-4000:]}")
        return code == 0


class Demo:
    """One run, after the broker has started."""

    def __init__(self, console: Console, warehouse: Path, servers: str, arguments: argparse.Namespace) -> None:
        catalog = penstock.Catalog(str(warehouse))
        catalog.create_database("live")
        options = {"bucket": "2", "bucket-key": "carrier"}
        self._queue = catalog.create_table(QUEUE, COLUMNS, options=options, watermark=("departs", DELAY))
        schema = "window_start TIMESTAMP(3), origin STRING, flights BIGINT, delay DOUBLE"
        self._windows = catalog.create_table(WINDOWS, schema, options={"bucket": "-1"})
        self._console, self._warehouse, self._servers = console, warehouse, servers
        self._flights = plan_flights(arguments.days)
        self._seconds: float = arguments.seconds
        self._deadline = time.monotonic() + self._seconds + arguments.patience

    def run(self) -> list[Line]:
        """Send, kill, restart, and return the numbers."""
        create_topic(self._servers)
        sender = Sender(self._servers, self._flights, self._seconds)
        with served(Page(self._queue, self._windows)) as address:
            screen = Screen(self._console, self._queue, address)
            for name, total in (
                ("in Kafka", len(self._flights)),
                ("in the queue", len(self._flights)),
                ("windows delivered", len(windows_of(self._flights))),
            ):
                screen.add_bar(name, total)
            screen.say(f"watch the report in a browser: {address}", "bold")
            place = os.path.relpath(self._warehouse)
            screen.say(f"or in another terminal: .venv/bin/penstock -w {place} watch {QUEUE}")
            with screen.shown():
                try:
                    self._act(screen, sender)
                finally:
                    sender.stop()
        lines = [
            Line("records in Kafka", f"{count_records(self._servers):,}", f"{len(sender.sent):,}"),
            *check_queue(self._queue.to_arrow(), sender.sent),
            *check_snapshots(self._queue.snapshots()["snapshot_id"].to_pylist()),
            *check_windows(self._windows.to_arrow(), sender.sent),
        ]
        (self._warehouse / "report.html").write_text(Page(self._queue, self._windows).draw(), encoding="utf-8")
        return lines

    def _act(self, screen: Screen, sender: Sender) -> None:
        count = len(self._flights)
        sender.start()
        screen.say(f"sending {count:,} flights to Kafka in {self._seconds:g} s; starting Spark with two queries")
        with self._driver() as first:
            wait = partial(self._wait, screen, sender, first)
            wait("rows in the queue", lambda: rows_of(self._queue) > 0)
            screen.say("the first rows are in the queue")
            half = "half of the records and a window"
            wait(half, lambda: sender.count >= count // 2 and rows_of(self._windows) > 0)
            # The next micro-batches are on their way.
            sender.go_on()
            wait("more records", lambda: sender.count > count // 2)
            first.kill()
        sent, arrived = sender.count, rows_of(self._queue)
        screen.say(f"killed the driver (SIGKILL, process {first.pid}): {sent:,} sent, {arrived:,} in the queue", "red")
        down = time.monotonic() + DOWN_SECONDS
        self._wait(screen, sender, None, "a pause", lambda: time.monotonic() > down)
        screen.say("Kafka goes on; starting another driver on the same checkpoints", "green")
        with self._driver() as second:
            wait = partial(self._wait, screen, sender, second)
            wait("more rows in the queue", lambda: rows_of(self._queue) > arrived)
            screen.say("it goes on where the first one was")
            wait("all rows in the queue", lambda: not sender.is_alive() and rows_of(self._queue) >= count)
            screen.say("all is sent and in the queue; telling the driver, which delivers the windows that are open")
            second.tell_end()
            wait("the end of the driver", second.has_ended)
            screen.say("the driver has ended by itself", "green")

    @contextmanager
    def _driver(self) -> Iterator[Driver]:
        driver = Driver(self._warehouse, self._servers)
        try:
            yield driver
        finally:
            driver.kill()

    def _wait(
        self, screen: Screen, sender: Sender, driver: Driver | None, what: str, is_done: Callable[[], bool]
    ) -> None:
        while not is_done():
            if sender.error is not None:
                raise DemoError(f"a record could not be sent: {sender.error}")
            if driver is not None:
                driver.has_ended()
            if time.monotonic() > self._deadline:
                raise DemoError(f"waited too long for {what}")
            arrived, delivered = rows_of(self._queue), rows_of(self._windows)
            screen.look({"in Kafka": sender.count, "in the queue": arrived, "windows delivered": delivered})
            time.sleep(LOOK_SECONDS)


def rows_of(table: penstock.Table) -> int:
    """Return how many rows a table has."""
    snapshot = table.latest_snapshot()
    return 0 if snapshot is None else snapshot.total_record_count or 0


def create_topic(servers: str) -> None:
    """Create it with a partition for each airport."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(TOPIC, len(AIRPORTS), 1)])
    admin.close()


def count_records(servers: str) -> int:
    """Return how many records the broker has."""
    consumer = KafkaConsumer(bootstrap_servers=servers)
    try:
        ends = consumer.end_offsets([TopicPartition(TOPIC, number) for number in range(len(AIRPORTS))])
    finally:
        consumer.close()
    return sum(ends.values())


def print_lines(console: Console, lines: Sequence[Line]) -> bool:
    """Print the numbers; whether all are equal."""
    grid = Grid("what", "found", "from what was sent", "")
    for column in (1, 2):
        grid.columns[column].justify = "right"
    for line in lines:
        grid.add_row(line.what, line.found, line.expected, "equal" if line.is_equal else "[bold red]DIFFERENT[/]")
    console.print(grid)
    return all(line.is_equal for line in lines)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=Path("demo-live-warehouse"), help="made anew")
    parser.add_argument("--days", type=int, default=14, help="of flights, at most 31")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long records are sent")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds more until the demo gives up")
    arguments = parser.parse_args()
    warehouse: Path = arguments.warehouse.resolve()
    shutil.rmtree(warehouse, ignore_errors=True)
    console, started = Console(), time.perf_counter()
    try:
        fetch_all("connector")
        console.print("starting a Kafka broker")
        with running_broker() as (_, servers):
            lines = Demo(console, warehouse, servers, arguments).run()
    except (BrokerError, DemoError) as error:
        sys.exit(str(error))
    is_equal = print_lines(console, lines)
    console.print(f"{time.perf_counter() - started:.0f} s in all. The report stays: {warehouse / 'report.html'}")
    place = os.path.relpath(warehouse)
    for command in (f"snapshots {QUEUE}", f"report {QUEUE} {WINDOWS} --result {RESULT} -o report.html"):
        console.print(f"  .venv/bin/penstock -w {place} {command}", highlight=False, soft_wrap=True)
    sys.exit(0 if is_equal else 1)


if __name__ == "__main__":
    main()
