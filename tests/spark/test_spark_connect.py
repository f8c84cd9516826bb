"""Spark Connect, on a server in a process of its own: what works there, and the one line of what does not."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.quick_spark import JVM_OPTIONS, quick_settings
from tests.s3_server import free_port
from tests.spark.connect_script import ROWS
from tests.spark.forked_python import forked_python
from tests.spark.needs import needs
from tests.spark.server_commands import PAGE
from tests.standalone_cluster import SPARK_HOME

from penstock import Catalog
from penstock.spark.versions.facts import PYTHON_SOURCES, STREAM_READS_OF_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator

# Clients read by format("penstock").
pytestmark = [pytest.mark.cluster, needs(PYTHON_SOURCES)]

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
        ("append", 1),
        ("append toArrow", 1),
        ("to_spark", ROWS),
        ("pinned", [len(range(3, ROWS, 7)), len(range(3, ROWS, 7)), len(range(3, ROWS, 7)) + 1]),
        ("travel", [ROWS, 1, 0]),
        ("altered", [[None, "x"]]),
        ("overwrite", [[1, 3], [3, 4], [], True, None]),
        ("twice", [True, [1, 2]]),
        ("transaction", [[1, 1, 2, 2], True]),
        ("floats", [[1, 9, 9, 9], 1, 2]),
        ("merge", [1, 1]),
        ("write", ROWS),
        ("compact here", 1),
        ("register", None),
        ("format filter", len(range(3, ROWS, 7))),
        ("format system table", True),
    ],
)
def test_rows_are_written_once_and_read_at_the_state_that_was_latest(
    found: dict[str, dict[str, Any]], name: str, result: object
) -> None:
    assert found[name] == {"is": result}


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("sql create", None),
        ("sql values", 1),
        ("sql insert", 2),
        ("sql select", [[2, 3]]),
        ("sql join", [[3, "{x}"], [4, "y"]]),
        ("sql files", ["(`day` = 'm') AND (`a` > 1)"]),
        ("sql overwrite", 3),
        ("sql changes", [True, True, True]),
        ("sql call", True),
        ("sql travel", [[1, "{x}"], [9, "w"]]),
        ("sql view", [[20]]),
        ("sql as", None),
        pytest.param("sql stream", [1], marks=needs(STREAM_READS_OF_FORMAT)),
        pytest.param("sql explain", True, marks=needs(STREAM_READS_OF_FORMAT)),
    ],
)
def test_statements_of_penstock_sql_run(found: dict[str, dict[str, Any]], name: str, result: object) -> None:
    assert found[name] == {"is": result}


@needs(STREAM_READS_OF_FORMAT)
def test_streams_deliver_each_row_once_also_where_a_batch_runs_twice(found: dict[str, dict[str, Any]]) -> None:
    assert found["streams"] == {"is": [[1, 4, 7], [1, 4, 7, 10]]}
    assert found["foreachBatch"] == {"is": [True, 1]}


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("compact", "compact() without spark"),
        ("attach", 'format("penstock")'),
        ("ship", "install penstock in the Python of the Connect server"),
        ("branch", "it is a branch: read with to_arrow"),
        ("new files", "give 'scan.snapshot-id'"),
        ("connector", "use spark.read and spark.readStream"),
        pytest.param(
            "sql stream without a checkpoint",
            "SET 'execution.checkpointing.dir'",
            marks=needs(STREAM_READS_OF_FORMAT),
        ),
        pytest.param("stream watermark", "'penstock.read.watermark' = 'false'", marks=needs(STREAM_READS_OF_FORMAT)),
    ],
)
def test_it_is_refused_in_one_line_with_what_works(found: dict[str, dict[str, Any]], name: str, instead: str) -> None:
    error = found[name]["error"]
    assert error.startswith("UnsupportedFeatureError: ")
    assert instead in error
    assert "\n" not in error


def test_errors_of_a_write_on_the_server_are_those_of_a_write_here(found: dict[str, dict[str, Any]]) -> None:
    assert found["task error"]["error"].startswith("SchemaMismatchError: table ")
    assert "which has no value 1.5" in found["task error"]["error"]
    assert "penstock" not in found["query error"]["error"].partition("\n")[0]
    assert found["no column"]["error"] == "NotFoundError: table d.days: no column 'ids'; did you mean 'id'?"


@needs(STREAM_READS_OF_FORMAT)
def test_errors_of_queries_have_the_place_in_the_text(found: dict[str, dict[str, Any]]) -> None:
    assert found["sort"]["error"].startswith("InvalidOptionError: table d.t: sorting runs on Spark")
    assert "JVM" not in found["sql error"]["error"]
    assert "line 2, column 3: Spark cannot run the query" in found["sql error"]["error"]
    assert "_pyspark" not in found["sql column"]["error"]
    assert "nope" in found["sql column"]["error"]


def test_the_block_of_the_page_runs_as_it_is(server: str, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "w", {"penstock.durable": "false"})
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", "id BIGINT, item STRING, dt STRING", partition_by=["dt"])
    orders.append([{"id": 1, "item": "pen", "dt": "d1"}, {"id": 3, "item": "mug", "dt": "d2"}])
    section = PAGE.split("## Spark Connect of another host\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"\n\n((?:    [^\n]*\n|\n)+)", section)
    text = (
        textwrap.dedent(block).replace("sc://127.0.0.1:15002", server).replace("/data/warehouse", str(tmp_path / "w"))
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[0] == "1", done.stderr[-3000:]
    assert sorted(orders.to_arrow(["id"])["id"].to_pylist()) == [1, 3, 4, 103, 104]
