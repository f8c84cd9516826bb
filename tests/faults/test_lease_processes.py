"""Leases between real processes: one winner, a dead holder's lease at once, a living one's not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from penstock.errors import LeaseHeldError
from penstock.io.local import LocalFileIO
from penstock.table.lease import acquire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.faults

RACERS: Final = 4
ROUNDS: Final = 60

# Goes for each name as soon as it is told; a lease is never given back, and its holder lives to the end.
RACER: Final = """
import json, sys
from penstock.errors import LeaseHeldError
from penstock.io.local import LocalFileIO
from penstock.table.lease import acquire

def give_up(_seconds):
    raise LeaseHeldError("held")

print("ready", flush=True)
for line in sys.stdin:
    try:
        epoch = acquire(LocalFileIO(), sys.argv[1], line.strip(), ttl_ms=600_000, sleep=give_up).epoch
    except LeaseHeldError:
        epoch = None
    print(json.dumps(epoch), flush=True)
"""

HOLDER: Final = """
import sys
from penstock.io.local import LocalFileIO
from penstock.table.lease import LeaseKeeper, acquire

keeper = LeaseKeeper(acquire(LocalFileIO(), sys.argv[1], "consumer-c", ttl_ms=int(sys.argv[2])))
print("held", flush=True)
sys.stdin.readline()
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def race(racers: Sequence[subprocess.Popen[str]], name: str) -> list[int | None]:
    """Send all for a lease at once; return the epoch that each got."""
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(f"{name}\n")
        racer.stdin.flush()
    return [json.loads(line_of(racer)) for racer in racers]


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps the lease ``consumer-c``, with renewals each half second."""
    process = start(HOLDER, str(tmp_path), "1500")
    assert line_of(process) == "held\n"
    yield process
    end(process)


def test_each_lease_has_one_holder(tmp_path: Path) -> None:
    racers = [start(RACER, str(tmp_path)) for _ in range(RACERS)]
    try:
        assert [line_of(racer) for racer in racers] == ["ready\n"] * RACERS
        for number in range(ROUNDS):
            found = race(racers, f"q{number}")
            assert sorted(found, key=str) == [1, *[None] * (RACERS - 1)]
        # Each can win: who is first is not left to the scheduler.
        for number, racer in enumerate(racers):
            others = [each for each in racers if each is not racer]
            assert race([racer], f"first-{number}") == [1]
            assert race(others, f"first-{number}") == [None] * (RACERS - 1)
    finally:
        end(*racers)


def test_a_living_holder_is_left_alone_and_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LeaseHeldError, match=f"in use by process {holder.pid} on "):
        acquire(LocalFileIO(), str(tmp_path), "consumer-c")


def test_a_killed_holder_is_followed_at_once(tmp_path: Path) -> None:
    process = start(HOLDER, str(tmp_path), "600000")
    try:
        assert line_of(process) == "held\n"
        process.send_signal(signal.SIGKILL)
        # Not waited for: its parent may be long in noticing, and then it is still listed as a process.
        time.sleep(0.2)
        began = time.monotonic()
        assert acquire(LocalFileIO(), str(tmp_path), "consumer-c").epoch == 2
        assert time.monotonic() - began < 60
    finally:
        end(process)


def test_a_holder_killed_while_another_waits_is_followed_then(tmp_path: Path) -> None:
    process = start(HOLDER, str(tmp_path), "600000")
    try:
        assert line_of(process) == "held\n"
        looks: list[float] = []

        def kill_at_the_second_look(_seconds: float) -> None:
            looks.append(time.monotonic())
            if len(looks) == 2:
                process.kill()
                process.wait()

        assert acquire(LocalFileIO(), str(tmp_path), "consumer-c", sleep=kill_at_the_second_look).epoch == 2
        assert len(looks) == 2
    finally:
        end(process)


def test_a_holder_that_is_stopped_loses_its_lease_in_time_and_notices(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    lease = acquire(LocalFileIO(), str(tmp_path), "consumer-c")
    assert lease.epoch == 2
    assert 0.5 < time.monotonic() - began < 30
    holder.send_signal(signal.SIGCONT)
    time.sleep(1)
    lease.check()
