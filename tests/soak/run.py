"""A part of a soak: starts all processes, samples them, ends them, and compares what has arrived."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from tests.soak.processes import children, count_pooled, held_by
from tests.soak.record import Sample, load_samples, measure_processes, measure_tables, read_notes
from tests.soak.roles import ROLES
from tests.soak.scene import TABLES, Scene
from tests.soak.streams import Batches, measure_jvm, open_session, start_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROOT: Final = Path(__file__).resolve().parents[2]
END_SECONDS: Final = 180.0
RECORD: Final = "samples.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """How one part runs.

    Attributes:
        sample_seconds: between two samples.
    """

    scene: Scene
    seconds: float
    sample_seconds: float


def run_part(part: Part) -> Path:
    """Run everything for so long and return the record.

    Raises:
        RuntimeError: a process has ended by itself, rows are missing, or something does not come to its end.
    """
    scene = part.scene
    for stop in scene.root.glob("*.stop"):
        stop.unlink()
    record = scene.root / RECORD
    number = max((sample.part for sample in load_samples(record)), default=-1) + 1
    spark = open_session(scene)
    beside = Beside(scene)
    try:
        beside.start()
        queries = start_queries(spark, scene)
        _sample_until_over(part, spark, queries, beside, number)
        beside.end("producer")
        _wait_for_all(scene, queries)
        beside.end_all()
        for query in queries.values():
            query.stop()
    finally:
        beside.kill()
        spark.stop()
    _check_end(scene)
    return record


class Beside:
    """The processes beside the streams."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> dict[str, int]:
        """Process of each role."""
        return {name: process.pid for name, process in self._running.items()}

    def start(self) -> None:
        """Start one of each."""
        for role in ROLES:
            self._start(role, [sys.executable, "-m", "tests.soak.roles", role, str(self._scene.root)])

    def check(self) -> None:
        """Raise where one has ended that nobody has asked to."""
        for name, process in self._running.items():
            if process.poll() is not None:
                message = f"{name} ended with {process.returncode}:\n{self._said(name)}"
                raise RuntimeError(message)

    def end(self, name: str) -> None:
        """Ask one to end, and wait for it."""
        process = self._running.pop(name)
        self._scene.stop(name)
        if name == "compactor":
            process.send_signal(signal.SIGINT)
        code = process.wait(END_SECONDS)
        if code not in ({0, 130} if name == "compactor" else {0}):
            message = f"{name} ended with {code}:\n{self._said(name)}"
            raise RuntimeError(message)

    def end_all(self) -> None:
        """End those that are left."""
        for name in tuple(self._running):
            self.end(name)

    def kill(self) -> None:
        """Leave nothing behind."""
        for process in self._running.values():
            process.kill()
            process.wait()

    def _start(self, name: str, command: list[str]) -> None:
        with (self._scene.root / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _said(self, name: str) -> str:
        return (self._scene.root / f"{name}.log").read_text()[-4000:]


def _sample_until_over(
    part: Part, spark: SparkSession, queries: dict[str, StreamingQuery], beside: Beside, number: int
) -> None:
    jvm = _find_jvm()
    batches = {name: Batches(query) for name, query in queries.items()}
    started = time.monotonic()
    with (part.scene.root / RECORD).open("a") as record:
        while time.monotonic() - started < part.seconds:
            time.sleep(part.sample_seconds)
            beside.check()
            for name, query in queries.items():
                if not query.isActive:
                    message = f"query {name} has ended: {query.exception()}"
                    raise RuntimeError(message)
            sample = Sample(
                part=number,
                seconds=round(time.monotonic() - started, 1),
                jvm=[*measure_jvm(spark), count_pooled(jvm)],
                held=measure_processes(beside.pids, jvm),
                tables=measure_tables(part.scene),
                batches={name: each.take() for name, each in batches.items()},
                notes=read_notes(part.scene),
            )
            record.write(sample.to_json() + "\n")
            record.flush()


def _find_jvm() -> int:
    return max(children()[os.getpid()], key=lambda process: held_by(process).threads)


def _wait_for_all(scene: Scene, queries: dict[str, StreamingQuery]) -> None:
    produced = read_notes(scene)["produced"]
    deadline = time.monotonic() + END_SECONDS
    while read_notes(scene).get("consumed") != produced or _last(scene) != {produced}:
        if time.monotonic() > deadline:
            message = f"{read_notes(scene)}, {_last(scene)} after {END_SECONDS} s: {queries}"
            raise RuntimeError(message)
        time.sleep(1)


def _last(scene: Scene) -> set[int]:
    return {int(np.max(scene.table(name).to_arrow(["n"])["n"].to_numpy())) + 1 for name in TABLES}


def _check_end(scene: Scene) -> None:
    for name in TABLES:
        report = scene.table(name).inspect.fsck()
        if report.findings:
            message = f"{name}: {report.findings}"
            raise RuntimeError(message)
