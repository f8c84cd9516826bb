"""A standalone cluster whose machines share only an object store: the main job, by executors without Penstock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.store.faulty_proxy import Faults, FaultyProxy
from tests.spark.standalone_script import ROWS
from tests.standalone_cluster import pids_in, seconds_of

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket
    from tests.standalone_cluster import StandaloneCluster

SCRIPT = Path(__file__).with_name("standalone_script.py")
FIGURES = Path(__file__).with_name("standalone_figures.py")
ROOT = str(Path(__file__).parents[2])
on_any_cluster = pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(1, id="one worker", marks=pytest.mark.cluster),
        pytest.param(2, id="two workers", marks=pytest.mark.slow),
    ],
    indirect=True,
)
on_two_workers = pytest.mark.parametrize("cluster", [pytest.param(2, id="two workers")], indirect=True)


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a Python that has the standard library only."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def found(cluster: StandaloneCluster, store: S3Bucket, bare_python: str) -> dict[str, Any]:
    driver = cluster.start_driver(
        SCRIPT,
        f"{store.root}/main",
        json.dumps(store.options),
        str(cluster.private),
        str(len(cluster.workers)),
        python=bare_python,
    )
    output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0, cluster.errors_of()
    steps: dict[str, Any] = json.loads(output.splitlines()[-1])
    print(json.dumps(steps, indent=1))  # noqa: T201 - the seconds of each step
    return steps


@on_any_cluster
def test_executors_without_penstock_are_named_with_the_line_that_sends_it(found: dict[str, Any]) -> None:
    error = found["append before"]["error"]
    assert error.startswith("UnsupportedFeatureError: the executors cannot import penstock, pyarrow, numpy, ")
    assert "call penstock.ship(spark) first" in error
    assert "\n" not in error


@on_any_cluster
def test_python_that_the_machines_do_not_have_is_named(found: dict[str, Any]) -> None:
    error = found["no python"]["error"]
    assert error.startswith("UnsupportedFeatureError: the executors cannot run Python tasks with '/no/such/python'")
    assert "set PYSPARK_PYTHON" in error
    assert "\n" not in error


@on_any_cluster
def test_executors_get_penstock_once_and_run_the_main_job(found: dict[str, Any], cluster: StandaloneCluster) -> None:
    assert found["ship"]["is"][0] == "penstock"
    assert "obstore" in found["ship"]["is"]
    assert found["ship again"]["is"] == []
    assert found["hosts"]["is"] == [worker.address for worker in cluster.workers]
    assert found["append"]["is"] == 1
    assert found["stream"]["is"] == ROWS
    assert found["compact"]["is"] == 1
    # With more than one worker an executor is killed during a second append of the same rows.
    appends = 1 if len(cluster.workers) == 1 else 2
    assert found["read"]["is"] == [[appends * ROWS, ROWS, appends * sum(number % 7 for number in range(ROWS))]]
    assert found["format"]["is"] == appends * sum(number % 7 == 3 for number in range(ROWS))
    assert found["fsck"]["is"] == []


@pytest.mark.slow
@on_two_workers
def test_tasks_of_a_killed_executor_are_run_again(found: dict[str, Any], cluster: StandaloneCluster) -> None:
    # Two executors at first, and one instead of the killed one.
    assert sum(len(worker.executors()) for worker in cluster.workers) == 3
    assert found["executor killed"]["is"] == 2
    assert found["stream again"]["is"] == 2 * ROWS


@on_any_cluster
def test_disk_of_one_machine_is_no_warehouse(found: dict[str, Any]) -> None:
    error = found["private disk"]["error"]
    assert "the worker on machine 'machine-" in error
    assert "does not share the table's storage" in error


def end(driver: subprocess.Popen[str]) -> None:
    """Kill a driver with its JVM, and show what it said."""
    os.killpg(driver.pid, signal.SIGKILL)
    print(driver.communicate()[0])  # noqa: T201 - the seconds of its steps


@pytest.mark.slow
@pytest.mark.timeout(900)
@on_two_workers
def test_figures_of_a_million_rows(cluster: StandaloneCluster, store: S3Bucket) -> None:
    with FaultyProxy(store.url, Faults(busy=0.0, lost=0.0, delay_seconds=0.0), cluster.host) as proxy:
        options = json.dumps({**store.options, "s3.endpoint": proxy.url})
        driver = cluster.start_driver(FIGURES, f"{store.root}/figures", options, folder="figures", PYTHONPATH=ROOT)
        assert driver.stdout is not None
        before, requests = None, 0
        for line in driver.stdout:
            name, seconds = line.split()
            if name == "rows":
                assert seconds == "1000000"
                break
            used = (sum(seconds_of(pids_in(worker.space)) for worker in cluster.workers), driver_seconds(driver.pid))
            if before is not None:
                executors, own = used[0] - before[0], used[1] - before[1]
                print(  # noqa: T201 - for docs/cluster.md
                    f"{name}: {seconds} s; {executors:.1f} CPU s of executors, {own:.1f} of the driver, "
                    f"{proxy.counts.total() - requests} requests"
                )
            before, requests = used, proxy.counts.total()
        else:
            raise AssertionError(cluster.errors_of("figures"))
        end(driver)


def driver_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its children, such as its JVM."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return seconds_of([pid, *map(int, children)])
