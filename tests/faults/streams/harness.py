"""Starts drivers ahead of their time, lets each run until it ends or is killed, and says where the kill fell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyspark
from tests.faults.streams.calls import LANDED, RETURNED, Logged, Plan, count_chosen, read_calls
from tests.support.garbage import needed_files, stored_files

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from types import TracebackType

    import penstock
    from penstock.format.snapshot import CommitKind

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
RUN_SECONDS: Final = 300
START_SECONDS: Final = 150
_AHEAD: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended.

    Attributes:
        is_killed: its plan, or nobody knows what, ended the process.
        errors: by name of the query.
        calls: to storage, by all processes.
    """

    is_killed: bool
    errors: dict[str, str]
    calls: tuple[Logged, ...]


class Driver:
    """One driver process.

    Args:
        folder: not there yet; its own.
        python: what Spark runs as its Python.
    """

    def __init__(self, folder: Path, master: str, python: str) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._runs = 0
        self._errors = (folder / "stderr").open("wb")
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "PENSTOCK_TEST_STATE": str(folder),
            "PYTHONPATH": os.pathsep.join((str(HERE / "site"), str(ROOT), os.environ.get("PYTHONPATH", ""))),
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": python,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), str(folder), master, str(folder / "scratch")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            text=True,
            cwd=folder,
        )
        self._is_ready = False

    def run(self, phases: list[list[dict[str, Any]]], plan: Plan | None = None) -> Outcome:
        """Run queries to their end or that of the process."""
        if not self._is_ready:
            assert self._answer(START_SECONDS) == "ready", self.stderr()
            self._is_ready = True
        self._runs += 1
        plan = replace(plan or Plan(run=0), run=self._runs)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"plan": asdict(plan), "phases": phases}) + "\n")
        self._process.stdin.flush()
        answer = self._answer(RUN_SECONDS)
        errors = {} if answer is None else json.loads(answer)["errors"]
        if answer is None:
            assert self._process.wait(30) == -9, self.stderr()
        return Outcome(is_killed=answer is None, errors=errors, calls=read_calls(self._folder, self._runs))

    def chosen(self) -> int:
        """Count the calls so far of the kind that the plan of the present run chose."""
        return count_chosen(self._folder, self._runs)

    def close(self) -> None:
        """End the process if it is still there."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._process.kill()  # its JVM ends when the pipe between them breaks
        self._process.wait()
        self._errors.close()

    def stderr(self) -> str:
        """Return the end of what it wrote to standard error."""
        return (self._folder / "stderr").read_text(errors="replace")[-5_000:]

    def _answer(self, seconds: float) -> str | None:
        """Return the next answer; None when the process has ended."""
        watchdog = threading.Timer(seconds, self._process.kill)
        watchdog.start()
        try:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                if line.startswith("@"):
                    return line[1:].strip()
            assert watchdog.is_alive(), f"no answer in {seconds} s: {self.stderr()}"
            return None
        finally:
            watchdog.cancel()


class Drivers:
    """Driver processes, one at work at a time; the next ones start while one works that will not come back.

    Args:
        root: what they leave is here.
        python: what Spark runs as its Python.

    Attributes:
        kills_ahead: how many more are going to be killed, so that one starts ahead of its time.
        entry_point: by which queries write, ``write_stream`` or ``to_table``, unless they say it themselves.
    """

    entry_point = "write_stream"

    def __init__(self, root: Path, master: str = "local[2]", python: str = sys.executable) -> None:
        self._root = root
        self._master = master
        self._python = python
        self.kills_ahead = 0
        self._waiting: list[Driver] = []
        self._ended: list[Driver] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for driver in (*self._ended, *self._waiting):
            driver.close()

    def run(self, phases: list[list[dict[str, Any]]], plan: Plan | None = None) -> Outcome:
        """Run queries to their end, or that of the process; it serves again if it outlives them."""
        phases = [[{"entry_point": self.entry_point, **query} for query in phase] for phase in phases]
        while len(self._waiting) < 1 + min(_AHEAD, self.kills_ahead):
            number = len(self._ended) + len(self._waiting)
            self._waiting.append(Driver(self._root / f"driver-{number}", self._master, self._python))
        try:
            outcome = self._waiting[0].run(phases, plan)
        except (AssertionError, OSError):
            # It did not answer in time and was killed for that: the next test needs another one.
            self._ended.append(self._waiting.pop(0))
            raise
        if outcome.is_killed:
            self._ended.append(self._waiting.pop(0))
            self.kills_ahead = max(0, self.kills_ahead - 1)
        return outcome

    def chosen(self) -> int:
        """Count the calls so far of the kind that the plan of the present run chose; may be asked beside ``run``."""
        return self._waiting[0].chosen() if self._waiting else 0


def landed_batch(table: penstock.Table, checkpoint: Path) -> int:
    """Return the last micro-batch of a query that is a snapshot; -1 for none."""
    user = query_id(checkpoint)
    snapshots = table.snapshots().to_pylist()
    return max((each["commit_identifier"] for each in snapshots if each["commit_user"] == user), default=-1)


def logged_batch(checkpoint: Path) -> int:
    """Return the last micro-batch in Spark's own commit log; -1 for none."""
    names = [path.name for path in (checkpoint / "commits").glob("*")]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def forget_last_batch(checkpoint: Path) -> None:
    """Delete the last entry of Spark's commit log, upon which Spark does that batch again."""
    batch = logged_batch(checkpoint)
    (checkpoint / "commits" / str(batch)).unlink()
    # Hadoop's local file system takes the name for taken as long as the checksum is there.
    (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


def query_id(checkpoint: Path) -> str | None:
    """Return the id of the query of a checkpoint; None when it never started."""
    path = checkpoint / "metadata"
    return json.loads(path.read_text())["id"] if path.exists() else None


def count_snapshots(table: penstock.Table, kind: CommitKind) -> int:
    """Count the snapshots of a kind; a stream makes an APPEND for each micro-batch, and merges of its own beside."""
    kinds: list[str] = table.snapshots()["commit_kind"].to_pylist()
    return kinds.count(kind)


def stray_files(table: penstock.Table) -> set[str]:
    """Return the paths of all files that no snapshot needs."""
    return stored_files(table._ref) - needed_files(table._ref)


def draw_plan(chance: random.Random, calls: Sequence[Logged], tables: Sequence[str], *, spread: int) -> Plan:
    """Choose where a driver ends, by the log of a run that came to its end.

    Half of the time between the landing of a snapshot and the time when Spark has put the batch in its own log, where
    a repeated batch would double its rows; else at a call of any kind of any process, rare kinds as often as others.

    Args:
        tables: locations of the tables that are written.
        spread: most batches before.
    """
    if chance.random() < 0.35:
        return Plan(run=0, returning=chance.randint(1, spread), delay_ms=chance.choice((0, 0, 1, 2, 4, 8)))
    is_after = chance.random() < 0.5
    if chance.random() < 0.33:
        table = chance.choice(tables)
        count = chance.randint(0, _calls_after_landing(calls, table))
        return Plan(run=0, table=table, landing=chance.randint(1, spread), calls=count, is_after=is_after)
    returns = sum(call.operation == RETURNED for call in calls)
    counts = Counter(call.kind for call in calls if call.operation not in {LANDED, RETURNED})
    kind = chance.choice(sorted(counts))
    return Plan(run=0, what=kind, at=chance.randint(1, max(1, counts[kind] * spread // returns)), is_after=is_after)


def _calls_after_landing(calls: Sequence[Logged], table: str) -> int:
    """Count the calls for the table between the first landing in it and the return to Spark."""
    place = next(i for i, call in enumerate(calls) if call.operation == LANDED and call.path.startswith(table))
    count = 0
    for call in calls[place + 1 :]:
        if call.operation == RETURNED:
            break
        count += call.path.startswith(table) and call.pid == calls[place].pid
    return count
