"""A cluster whose executors, workers and drivers are killed, with speculative tasks and dynamic allocation.

Each test has tables and drivers of its own, and at its end every row is there once, in order, and each file is one that
a snapshot needs or that the removal of orphans finds.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from tests.faults.streams.checker import load_placed_rows
from tests.faults.streams.harness import stray_files
from tests.spark.cluster_kill_script import APPEND_ROWS

import penstock
from penstock.clocks import utc_millis

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.s3_server import S3Bucket
    from tests.standalone_cluster import StandaloneCluster

SCRIPT = Path(__file__).with_name("cluster_kill_script.py")
ROOT = str(Path(__file__).parents[2])
FED_ROWS = 200
WAIT_SECONDS = 240.0
EXECUTOR = "CoarseGrainedExecutorBackend"
SETTINGS = {
    "spark__executorEnv__PYTHONPATH": ROOT,
    # Else a session waits for a second executor, also where there is only one machine.
    "spark__scheduler__minRegisteredResourcesRatio": "0",
}
SPECULATION = {
    "spark__speculation": "true",
    "spark__speculation__interval": "100ms",
    "spark__speculation__quantile": "0.5",
    "spark__speculation__multiplier": "1.1",
    "spark__speculation__minTaskRuntime": "100ms",
}
ALLOCATION = {
    "spark__dynamicAllocation__enabled": "true",
    "spark__dynamicAllocation__minExecutors": "0",
    "spark__dynamicAllocation__initialExecutors": "0",
    "spark__dynamicAllocation__maxExecutors": "2",
    "spark__dynamicAllocation__executorIdleTimeout": "2s",
    "spark__dynamicAllocation__schedulerBacklogTimeout": "1s",
    "spark__executor__cores": "1",
}

# With Spark's own times, it misses a machine that went silent after two to three minutes.
SHORT_TIMEOUTS = {
    "spark__network__timeout": "8s",
    "spark__network__timeoutInterval": "1s",
    "spark__executor__heartbeatInterval": "1s",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Scene:
    """Tables on a store, a stream between two of them, and a driver, which is on one of two machines.

    Attributes:
        fed: rows of the source of the stream so far; their ids count from 0.
        appended: first ids of the appends that were asked for.
    """

    def __init__(self, cluster: StandaloneCluster, store: S3Bucket, folder: Path) -> None:
        self.cluster, self.options, self.root = cluster, store.options, f"{store.root}/{folder.name}"
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.name = folder.name.replace("_", "-")[-40:].strip("-")
        catalog = penstock.Catalog(self.root, self.options)
        catalog.create_database("d")
        buckets = {"bucket": "2", "bucket-key": "id"}
        self.table = catalog.create_table("d.t", "id BIGINT", options=buckets)
        self.queue = catalog.create_table("d.q", "id BIGINT", options=buckets)
        self.batches = catalog.create_table("d.b", "id BIGINT")
        self.fed = 0
        self.appended: list[int] = []
        self.events: list[tuple[float, str]] = []
        self.driver: subprocess.Popen[str] | None = None
        self._machines: list[tuple[str, str]] = []
        self._starts = 0

    def start(self, **settings: str) -> None:
        """Start a driver, on the machine where the one before was not."""
        if len(self._machines) < 2:
            self._machines.append(self.cluster.network.add())
        self._place = f"{self.name}-{self._starts % 2}"
        self.driver = self.cluster.start_driver(
            *(SCRIPT, self.root, json.dumps(self.options), str(self.shared), json.dumps({**SETTINGS, **settings})),
            folder=self._place,
            space=self._machines[self._starts % 2],
            PYTHONPATH=ROOT,
        )
        self._starts += 1
        threading.Thread(target=self._listen, args=(self.driver,), daemon=True).start()

    def _listen(self, driver: subprocess.Popen[str]) -> None:
        assert driver.stdout is not None
        with driver.stdout as lines:
            for line in lines:
                seconds, _, event = line.strip().partition(" ")
                self.events.append((float(seconds), event))

    def has_said(self, event: str) -> bool:
        return any(each == event for _, each in self.events)

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for something that the driver brings about."""
        started = time.monotonic()
        while not condition():
            assert self.driver is not None
            assert self.driver.poll() is None, self.cluster.errors_of(self._place)
            failed = [event for _, event in self.events if event.startswith("failed")]
            assert not failed, (failed, self.cluster.errors_of(self._place))
            late = (what, self.events[-5:], self.cluster.errors_of(self._place))
            assert time.monotonic() < started + WAIT_SECONDS, late
            time.sleep(0.05)
        print(f"{what}: {time.monotonic() - started:.1f} s")  # noqa: T201 - for docs/cluster.md

    def feed(self) -> None:
        ids = range(self.fed, self.fed + FED_ROWS)
        self.table.append(pa.table({"id": pa.array(ids, pa.int64())}))
        self.fed += FED_ROWS

    def catch_up(self, what: str) -> None:
        """Feed, and wait until the queue has all rows."""
        self.feed()
        self.wait(f"{what}, {self.fed} rows", lambda: self.queued() >= self.fed)

    def queued(self) -> int:
        latest = self.queue.latest_snapshot()
        return 0 if latest is None else latest.total_record_count or 0

    def ask(self, order: str) -> None:
        """Ask something of the next task that comes to its end."""
        (self.shared / order).touch()

    def is_taken(self, order: str) -> bool:
        return not (self.shared / order).exists()

    def pause(self) -> None:
        """Wait until a task has taken the order to pause."""
        self.wait("a task paused", lambda: (self.shared / "paused").exists() and bool(self.paused_on()))

    def paused_on(self) -> str:
        return (self.shared / "paused").read_text()

    def say(self, command: str) -> None:
        assert self.driver is not None
        assert self.driver.stdin is not None
        self.driver.stdin.write(f"{command}\n")
        self.driver.stdin.flush()

    def begin_append(self, command: str = "append") -> int:
        first = len(self.appended) * APPEND_ROWS
        self.appended.append(first)
        self.say(f"{command} {first}")
        return first

    def append(self, command: str = "append") -> None:
        first = self.begin_append(command)
        self.wait(f"{command} done", lambda: self.has_said(f"done {first}"))

    def executors(self) -> list[int]:
        return [pid for worker in self.cluster.workers for pid in worker.pids_of(EXECUTOR)]

    def kill_driver(self) -> None:
        """Kill the Python and the JVM of the driver."""
        assert self.driver is not None
        assert self.driver.stdin is not None
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.driver.stdin.close()

    def end(self) -> None:
        self.say("stop")
        assert self.driver is not None
        assert self.driver.stdin is not None
        self.driver.stdin.close()
        assert self.driver.wait(120) == 0, self.cluster.errors_of(self._place)

    def check(self) -> None:
        """Compare the tables with what was fed and appended."""
        assert sorted(ids_of(self.table)) == list(range(self.fed))
        placed = load_placed_rows(self.queue)
        assert sorted(placed["id"].to_pylist()) == list(range(self.fed))
        for bucket in range(2):
            ids = placed["id"].to_numpy()[placed["bucket"].to_numpy() == bucket]
            assert (np.diff(ids) > 0).all(), f"bucket {bucket} is not in the order of its source"
        landed = [first for first in self.appended if self.has_said(f"done {first}")]
        assert sorted(ids_of(self.batches)) == [first + row for first in landed for row in range(APPEND_ROWS)]
        for table in (self.table, self.queue, self.batches):
            assert table.inspect.fsck(all_snapshots=True).findings == ()
            print(f"{table.name}: {len(stray_files(table))} files that no snapshot needs")  # noqa: T201 - see above
            table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
            assert stray_files(table) == set()
            assert table.inspect.fsck(all_snapshots=True).findings == ()


def ids_of(table: penstock.Table) -> list[int]:
    ids: list[int] = table.to_arrow(["id"])["id"].to_pylist()
    return ids


@pytest.fixture
def scene(cluster: StandaloneCluster, store: S3Bucket, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(cluster, store, tmp_path)
    print(f"load {os.getloadavg()[0]:.0f}")  # noqa: T201 - see above
    yield scene
    if scene.driver is not None and scene.driver.poll() is None:
        scene.kill_driver()
    start = scene.events[0][0] if scene.events else 0.0
    for seconds, event in scene.events:
        print(f"{seconds - start:.1f} {event}")  # noqa: T201 - see above


def test_killed_executors_and_their_python_lose_and_double_nothing(scene: Scene) -> None:
    scene.start()
    scene.catch_up("first rows")
    for order in ("kill-executor", "kill-python", "kill-executor"):
        scene.ask(order)
        scene.catch_up(order)
        assert scene.is_taken(order)
    for command, order in (("append", "kill-executor"), ("save", "kill-python")):
        scene.ask(order)
        scene.append(command)
        assert scene.is_taken(order)
    scene.end()
    scene.check()


def test_tasks_of_a_lost_worker_run_on_the_other_one(scene: Scene) -> None:
    scene.start()
    scene.catch_up("first rows")
    scene.ask("pause")
    scene.feed()
    scene.pause()
    lost = next(worker for worker in scene.cluster.workers if worker.folder.name == scene.paused_on())
    lost.lose()
    (scene.shared / "paused").unlink()
    try:
        scene.catch_up("worker lost")
        scene.append()
    finally:
        lost.start(scene.cluster.master, scene.cluster.environment)
        scene.cluster.wait_for_workers()
    scene.catch_up("worker back")
    scene.end()
    scene.check()


def test_tasks_of_a_machine_whose_network_went_silent_run_on_the_other_one(scene: Scene) -> None:
    scene.start(**SHORT_TIMEOUTS)
    scene.catch_up("first rows")
    scene.ask("pause")
    scene.feed()
    scene.pause()
    silent = next(worker for worker in scene.cluster.workers if worker.folder.name == scene.paused_on())
    executors = set(silent.pids_of(EXECUTOR))
    assert executors
    scene.cluster.network.cut(silent.space)
    try:
        # Its task goes on: it wants to write to the store, and finds no network.
        (scene.shared / "paused").unlink()
        scene.catch_up("network of a machine lost")
        scene.append()
        assert executors <= set(silent.pids_of(EXECUTOR)), "the silent machine noticed first"
    finally:
        scene.cluster.network.mend(silent.space)
    scene.wait("executor of the silent machine gone", lambda: not executors & set(silent.pids_of(EXECUTOR)))
    scene.catch_up("network back")
    scene.end()
    scene.check()


def test_next_driver_on_another_machine_goes_on_where_the_killed_one_was(scene: Scene) -> None:
    scene.start()
    scene.catch_up("first rows")
    for number in range(2):
        scene.ask("pause")
        if number:
            scene.begin_append()
        else:
            scene.feed()
        scene.pause()
        scene.kill_driver()
        (scene.shared / "paused").unlink()
        scene.events.append((time.time(), "killed"))
        scene.start()
        scene.catch_up("driver started on the other machine")
        scene.events.append((time.time(), "caught up"))
    scene.append()
    scene.end()
    scene.check()


@pytest.mark.parametrize("end", ["outrun", "race"])
def test_speculative_copies_of_tasks_double_nothing(scene: Scene, end: str) -> None:
    scene.start(**SPECULATION)
    scene.catch_up("first rows")
    jobs: dict[str, Callable[[], None]] = {
        "stream": lambda: scene.catch_up("stream"),
        "append": scene.append,
        "save": lambda: scene.append("save"),
    }
    for what, job in jobs.items():
        scene.ask("straggle")
        releaser = threading.Thread(target=release_when_copied, args=(scene.shared,))
        if end == "race":
            releaser.start()
        job()
        if end == "race":
            releaser.join()
        attempts = sorted(path.name for path in scene.shared.glob("attempt-0-*"))
        assert attempts[:2] == ["attempt-0-0", "attempt-0-1"], what
        for path in (*scene.shared.glob("attempt-*"), *scene.shared.glob("release"), scene.shared / "straggle"):
            path.unlink()
    scene.end()
    scene.check()


def release_when_copied(shared: Path) -> None:
    """Let the first attempt at a task go on once the second one is as far."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (shared / "attempt-0-1").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    (shared / "release").touch()


def test_executors_that_left_an_idle_stream_come_back_for_its_next_rows(scene: Scene) -> None:
    scene.start(**ALLOCATION)
    for _ in range(2):
        scene.catch_up("executors asked for")
        scene.wait("executors gone", lambda: not scene.executors())
    scene.append()
    scene.end()
    scene.check()
