"""Aligned sources in processes of their own: how far they come apart, and what becomes of those whose fellow dies."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.io.local import LocalFileIO
from penstock.table.stream.align.membership import GroupFiles, open_membership

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.faults

NOON: Final = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a wall clock
DRIFT: Final = 20
# Seconds of event time that a snapshot goes on.
SPEEDS: Final = {"fast": 100, "medium": 10, "slow": 1}
UNTIL: Final = 200
OPTIONS: Final = {
    "scan.mode": "earliest",
    "scan.watermark.alignment.group": "g",
    "scan.watermark.alignment.max-drift": f"{DRIFT} s",
    "scan.watermark.alignment.update-interval": "50 ms",
}
# Says how far it has come after each batch; one that is told to stops there until it is told to go on.
FOLLOWER: Final = """
import json, sys
from penstock import Table
stop = int(sys.argv[3])
table = Table.at(sys.argv[1])
rows = table.follow(options=json.loads(sys.argv[2]), once=True, interval_ms=50)
print("ready", flush=True)
sys.stdin.readline()
for batch in rows:
    last = max(batch["n"].to_pylist())
    print(last, flush=True)
    if last == stop:
        sys.stdin.readline()
"""


class StreamScanner:
    """A process that follows a table."""

    def __init__(self, location: str, options: dict[str, str], stop: int = 0) -> None:
        arguments = [sys.executable, "-W", "ignore", "-c", FOLLOWER, location, json.dumps(options), str(stop)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tables with a row a snapshot, which go on in event time at their speeds."""
    folder = tmp_path_factory.mktemp("aligned")
    catalog = Catalog(str(folder))
    catalog.create_database("d")
    for name, span in SPEEDS.items():
        table = catalog.create_table(f"d.{name}", "n INT, t TIMESTAMP(3)", watermark=("t", None))
        for second in range(span, UNTIL + 1, span):
            times = pa.array([NOON + timedelta(seconds=second)], pa.timestamp("ms"))
            table.append(pa.table({"n": pa.array([second], pa.int32()), "t": times}))
    return folder


@pytest.fixture
def followers() -> Iterator[dict[str, StreamScanner]]:
    started: dict[str, StreamScanner] = {}
    yield started
    for follower in started.values():
        follower.end()


def start(
    followers: dict[str, StreamScanner], warehouse: Path, *names: str, stop: int = 0, **options: str
) -> dict[str, StreamScanner]:
    for name in names:
        is_last = name == "slow"
        followers[name] = StreamScanner(f"{warehouse}/d.db/{name}", OPTIONS | options, stop if is_last else 0)
    return followers


def marks(warehouse: Path) -> dict[str, int]:
    """Seconds that each member says it has come to."""
    origin = int((NOON - datetime(1970, 1, 1)).total_seconds())  # noqa: DTZ001 - see above
    files = GroupFiles(LocalFileIO(), f"{warehouse}/.penstock/alignment/g")
    members = [sign.member for sign in files.load()]
    return {each.table: each.watermark // 1_000 - origin for each in members if each.watermark is not None}


def test_processes_of_very_different_speeds_keep_the_drift_and_one_snapshots_span(
    warehouse: Path, followers: dict[str, StreamScanner]
) -> None:
    start(followers, warehouse, *SPEEDS)
    # Who cannot tell where it stands holds the others until all are there.
    gate = open_membership(Table.at(f"{warehouse}/d.db/slow")._ref.with_options(OPTIONS))
    assert gate is not None
    gate.join()
    for follower in followers.values():
        follower.go_on()
    gaps, deadline = [], time.monotonic() + 60
    while len(marks(warehouse)) < len(SPEEDS):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gate.leave()
    while any(follower.process.poll() is None for follower in followers.values()):
        stood = marks(warehouse)
        if len(stood) == len(SPEEDS):
            gaps.append(max(stood.values()) - min(stood.values()))
        assert time.monotonic() < deadline, stood
        time.sleep(0.005)
    assert len(set(gaps)) > 5
    assert max(gaps) <= DRIFT + max(SPEEDS.values())
    lines = {name: [int(line) for line in follower.process.stdout or ()] for name, follower in followers.items()}
    assert lines == {name: list(range(span, UNTIL + 1, span)) for name, span in SPEEDS.items()}


def test_a_process_that_is_killed_releases_the_others_at_once(
    warehouse: Path, followers: dict[str, StreamScanner]
) -> None:
    start(followers, warehouse, "fast", "slow", stop=50)
    followers["slow"].go_on()
    while followers["slow"].line() != "50":
        pass
    followers["fast"].go_on()
    time.sleep(1)
    assert followers["fast"].process.poll() is None
    began = time.monotonic()
    followers["slow"].process.kill()
    assert [followers["fast"].line() for _ in range(2)] == ["100", "200"]
    assert time.monotonic() - began < 30, "on the same machine no member waits for the idle timeout"
    assert followers["fast"].process.wait(30) == 0
    assert list((warehouse / ".penstock" / "alignment" / "g").iterdir()) == []


def test_a_process_that_falls_silent_releases_the_others_within_its_idle_time(
    warehouse: Path, followers: dict[str, StreamScanner]
) -> None:
    # A heartbeat comes each third of it: late by two thirds, on a busy machine, it still is in time.
    options = {"scan.watermark.idle-timeout": "4 s", "scan.watermark.alignment.update-interval": "1 s"}
    start(followers, warehouse, "fast", "slow", stop=50, **options)
    followers["slow"].go_on()
    while followers["slow"].line() != "50":
        pass
    followers["fast"].go_on()
    time.sleep(5.5)
    assert followers["fast"].process.poll() is None, "a reader that is busy with its rows is not idle"
    began = time.monotonic()
    followers["slow"].process.send_signal(signal.SIGSTOP)
    assert [followers["fast"].line() for _ in range(2)] == ["100", "200"]
    assert 1 < time.monotonic() - began < 30
    assert followers["fast"].process.wait(30) == 0
    followers["slow"].process.send_signal(signal.SIGCONT)
    followers["slow"].go_on()
    assert [followers["slow"].line() for _ in range(UNTIL - 50)] == [str(second) for second in range(51, UNTIL + 1)]
    assert followers["slow"].process.wait(30) == 0
