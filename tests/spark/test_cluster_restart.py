"""How long a restarted driver on a cluster takes until it has caught up, next to a stream of Spark's own."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.standalone_script import parent_of
from tests.standalone_cluster import pids_in, seconds_of

import penstock

if TYPE_CHECKING:
    import subprocess

    from tests.s3_server import S3Bucket
    from tests.standalone_cluster import StandaloneCluster, Worker

SCRIPT = Path(__file__).with_name("restart_script.py")
ROOT = str(Path(__file__).parents[2])
ROWS = 200
WAIT_SECONDS = 120.0
# Else a session waits for a second executor.
SETTINGS = {"spark__executorEnv__PYTHONPATH": ROOT, "spark__scheduler__minRegisteredResourcesRatio": "0"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Job:
    """A stream, whose driver is on one of two machines; ``kind`` as in the script."""

    def __init__(self, kind: str, cluster: StandaloneCluster, store: S3Bucket, shared: Path) -> None:
        self.kind, self.cluster, self.shared, self.fed, self.starts = kind, cluster, shared, 0, 0
        self.space = ""
        self.events: list[tuple[float, str]] = []
        (shared / "in").mkdir(parents=True)
        self.arguments = (kind, str(shared), json.dumps(SETTINGS))
        if kind == "penstock":
            root = f"{store.root}/{shared.name}"
            self.arguments += (root, json.dumps(store.options))
            catalog = penstock.Catalog(root, store.options)
            catalog.create_database("d")
            buckets = {"bucket": "2", "bucket-key": "id"}
            self.table = catalog.create_table("d.t", "id BIGINT", options=buckets)
            self.queue = catalog.create_table("d.q", "id BIGINT", options=buckets)
        self.machines = [cluster.network.add() for _ in range(2)]

    def start(self) -> None:
        self.events = [(time.time(), "start")]
        number = self.starts % 2
        self.folder = f"{self.kind}-{number}"
        self.space = self.machines[number][0]
        self.driver = self.cluster.start_driver(
            SCRIPT, *self.arguments, folder=self.folder, space=self.machines[number], PYTHONPATH=ROOT
        )
        self.starts += 1
        threading.Thread(target=self.listen, args=(self.driver,), daemon=True).start()

    def listen(self, driver: subprocess.Popen[str]) -> None:
        assert driver.stdout is not None
        with driver.stdout as lines:
            for line in lines:
                seconds, _, event = line.strip().partition(" ")
                self.events.append((float(seconds), event))

    def feed(self) -> None:
        rows = pa.table({"id": pa.array(range(self.fed, self.fed + ROWS), pa.int64())})
        self.fed += ROWS
        if self.kind == "penstock":
            self.table.append(rows)
            return
        hidden = self.shared / "in" / f".{self.fed}"
        pq.write_table(rows, hidden)
        hidden.rename(self.shared / "in" / f"{self.fed}.parquet")

    def written(self) -> int:
        """Return how many rows the target has."""
        if self.kind == "penstock":
            latest = self.queue.latest_snapshot()
            return 0 if latest is None else latest.total_record_count or 0
        logs = [path for path in (self.shared / "out" / "_spark_metadata").glob("*") if path.name.isdigit()]
        files = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
        return sum(pq.read_metadata(path.removeprefix("file://")).num_rows for path in files)

    def catch_up(self) -> float:
        """Wait until all rows are in the target; return the seconds since the driver was started."""
        while self.written() < self.fed:
            assert self.driver.poll() is None, self.cluster.errors_of(self.folder)
            failed = [event for _, event in self.events if event.startswith("failed")]
            assert not failed, failed
            assert time.time() < self.events[0][0] + WAIT_SECONDS, self.cluster.errors_of(self.folder)
            time.sleep(0.05)
        return time.time() - self.events[0][0]

    def settle(self) -> None:
        """Wait until Spark knows that the last batch is done."""
        while not any(event.startswith("batch") for _, event in self.events):
            assert time.time() < self.events[0][0] + WAIT_SECONDS, self.cluster.errors_of(self.folder)
            time.sleep(0.05)

    def kill(self) -> None:
        assert self.driver.stdin is not None
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.driver.stdin.close()


def executor_seconds(cluster: StandaloneCluster) -> float:
    """Return the CPU seconds of the workers and of what runs there."""
    return sum(seconds_of(pids_in(worker.space)) for worker in cluster.workers)


def daemons_of(worker: Worker) -> list[int]:
    """Return the processes that start Python workers; the workers themselves have the same command."""
    found = worker.pids_of("pyspark.daemon")
    return [pid for pid in found if parent_of(pid) not in found]


def test_restarted_driver_catches_up_next_to_a_stream_of_spark(
    cluster: StandaloneCluster, store: S3Bucket, tmp_path: Path
) -> None:
    seconds: dict[str, list[float]] = {"files": [], "penstock": []}
    jobs = {kind: Job(kind, cluster, store, tmp_path / kind) for kind in seconds}
    for number in range(int(os.environ.get("PENSTOCK_RESTARTS", "1")) + 1):
        for kind, job in jobs.items():
            job.feed()
            before = executor_seconds(cluster)
            job.start()
            taken = job.catch_up()
            own = seconds_of(pids_in(job.space))
            executors = executor_seconds(cluster) - before
            job.settle()
            # Spark starts another one for tasks with other variables, and that takes seconds.
            assert all(len(daemons_of(worker)) <= (kind == "penstock") for worker in cluster.workers), kind
            job.kill()
            print(  # noqa: T201 - for docs
                f"{kind}, start {number}: {taken:.1f} s; CPU s: driver {own:.1f}, executors {executors:.1f}; "
                f"load {os.getloadavg()[0]:.0f}"
            )
            for at, event in job.events:
                print(f"  {at - job.events[0][0]:5.2f} {event}")  # noqa: T201 - see above
            if number:
                seconds[kind].append(taken)
    assert sorted(jobs["penstock"].queue.to_arrow()["id"].to_pylist()) == list(range(jobs["penstock"].fed))
    print({kind: [round(each, 1) for each in taken] for kind, taken in seconds.items()})  # noqa: T201 - see above
