"""Spark Connect, on a server in a process of its own: what works there, and the one line of what does not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.quick_spark import JVM_OPTIONS, quick_settings
from tests.s3_server import free_port
from tests.spark.connect_script import ROWS
from tests.spark.forked_python import forked_python
from tests.standalone_cluster import SPARK_HOME

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cluster

SCRIPT = Path(__file__).with_name("connect_script.py")
START_SECONDS = 120


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with forked_python(tmp_path_factory.mktemp("python")) as executable:
        yield executable


@pytest.fixture(scope="module")
def server(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("connect"), free_port()
    settings = {
        **quick_settings(),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.local.dir": str(folder / "scratch"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SUBMIT_OPTS": " ".join(JVM_OPTIONS),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(SPARK_HOME / "bin" / "spark-submit"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"),
                *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
                "spark-internal",
            ],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()[-3000:]
                assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
                time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def found(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("client")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), server, str(folder)],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    steps: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for name, step in steps.items():
        print(name, str(step)[:300])  # noqa: T201 - what happened, where a test fails
    return steps


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("append toArrow", 1),
        ("compact here", 0),
        ("sql create", None),
        ("register", None),
        ("format read", ROWS),
        ("format filter", len(range(3, ROWS, 7))),
        ("format system table", 1),
        ("format write", ROWS),
        ("format stream", 2 * ROWS),
        ("table by name", [len(range(3, ROWS, 7))]),
    ],
)
def test_it_works(found: dict[str, dict[str, Any]], name: str, result: object) -> None:
    assert found[name] == {"is": result}


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("append", "toArrow()"),
        ("overwrite", "toArrow()"),
        ("to_spark", "spark.read.format('penstock').load("),
        ("read_stream", "spark.readStream.format('penstock').load("),
        ("write_stream", "sdf.writeStream.format('penstock').start("),
        ("compact", "compact() without spark"),
        ("attach", 'format("penstock")'),
        ("ship", "install penstock in the Python of the Connect server"),
        ("sql select", "format('penstock')"),
        ("sql insert", "format('penstock')"),
    ],
)
def test_it_is_refused_in_one_line_with_what_works(found: dict[str, dict[str, Any]], name: str, instead: str) -> None:
    error = found[name]["error"]
    assert error.startswith("UnsupportedFeatureError: ")
    assert instead in error
    assert "\n" not in error
