"""The files in ``examples/servers``: read by the programs that they are for, and their commands are run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from tests.spark.server_commands import PAGE, of_page, running

from penstock import Catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = Path(__file__).parents[2] / "examples" / "servers"
UNIT: Final = (FOLDER / "penstock-connect.service").read_text("utf-8")
DOCKERFILE: Final = (FOLDER / "Dockerfile").read_text("utf-8")
MANIFESTS: Final = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8")))

CLIENT: Final = """
import os, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

address, *tokens = sys.argv[1:]
for token in tokens:
    spark = SparkSession.builder.remote(f"{address}/;token={token}").create()
    try:
        print(spark.table("penstock.shop.orders").count())
    except PySparkException as error:
        print("UNAUTHENTICATED" in str(error))
os._exit(0)
"""


def directives(unit: str) -> dict[str, str]:
    lines = [line for line in unit.splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def docker_command() -> list[str]:
    (text,) = re.findall(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    words: list[str] = json.loads(text)
    return words


def pod() -> Mapping[str, Any]:
    found: Mapping[str, Any] = MANIFESTS[0]["spec"]["template"]
    return found


def test_the_unit_is_one_of_systemd_and_runs_the_command_of_the_page(tmp_path: Path) -> None:
    command, _ = of_page("Spark Connect")
    program, _, words = directives(UNIT)["ExecStart"].partition(" ")
    assert f"penstock {words}" == command
    assert program == "/opt/penstock/bin/penstock"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    copy = tmp_path / "penstock-connect.service"
    copy.write_text(UNIT.replace(program, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert [done.returncode, done.stderr] == [0, ""]


def test_the_image_runs_the_command_of_the_page_for_other_machines() -> None:
    command, _ = of_page("Spark Connect")
    words = docker_command()
    place = words.index("--host")
    assert words[place + 1] == "0.0.0.0"  # noqa: S104 - in a container
    assert [*words[:place], *words[place + 2 :]] == shlex.split(command)
    kinds = [
        line.split()[0] for line in DOCKERFILE.replace("\\\n", "").splitlines() if line and not line.startswith("#")
    ]
    assert kinds == ["FROM", "RUN", "COPY", "RUN", "USER", "WORKDIR", "EXPOSE", "ENTRYPOINT"]
    for text in re.findall(r"^RUN ((?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE):
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_the_manifests_fit_each_other_and_the_image() -> None:
    deployment, service = MANIFESTS
    assert [each["kind"] for each in MANIFESTS] == ["Deployment", "Service"]
    assert [each["apiVersion"] for each in MANIFESTS] == ["apps/v1", "v1"]
    labels = pod()["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    (container,) = pod()["spec"]["containers"]
    port = docker_command()[docker_command().index("--port") + 1]
    assert [str(each["containerPort"]) for each in container["ports"]] == [port]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod()["spec"]["volumes"]}
    assert container["volumeMounts"][0]["mountPath"] == docker_command()[docker_command().index("-w") + 1]
    user = re.search(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)
    assert user is not None
    assert pod()["spec"]["securityContext"]["runAsUser"] == int(user[1])
    assert deployment["spec"]["replicas"] == 1
    assert container["env"][0]["name"] in PAGE


@pytest.mark.cluster
@pytest.mark.timeout(400)
def test_the_command_of_the_image_and_of_the_pod_asks_for_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    catalog = Catalog(tmp_path / "w", {"penstock.durable": "false"})
    catalog.create_database("shop")
    catalog.create_table("shop.orders", "id BIGINT").append([{"id": 1}])
    (container,) = pod()["spec"]["containers"]
    monkeypatch.setenv(container["env"][0]["name"], "secret")
    command = shlex.join([*docker_command(), *container["args"]]).replace("3g", "1g").replace("local[4]", "local[2]")
    with running(command, tmp_path, signal.SIGTERM) as port:
        assert "whoever reaches" not in (tmp_path / "server.log").read_text()
        kept = {key: value for key, value in os.environ.items() if key != container["env"][0]["name"]}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CLIENT, f"sc://localhost:{port}", "secret", "wrong"],
            env=kept,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.stdout.split() == ["1", "True"], done.stderr[-2000:]


def test_the_page_says_of_each_way_in_whether_it_is_run_and_by_which_test() -> None:
    table = PAGE.split("## What was run\n")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "---" not in line][1:]
    for row in rows:
        way, state = (cell.strip() for cell in row.strip("|").split("|"))
        assert "run" in state, way
        named = re.findall(r"`(tests/[\w/.]+|test_\w+\.py)`", state)
        assert named or "**not run**" in state, way
        for name in named:
            assert (FOLDER.parents[1] / ("" if "/" in name else "tests/spark") / name).exists(), name
    named_there = {
        "A view in Spark as it is": "a view in Spark as it is",
        "Drivers in Python without a line of code": ".pth",
        "JDBC and ODBC": "Thrift server",
        "The SQL prompt of Spark": "spark-sql",
    }
    for section in re.findall(r"^## (.*)$", PAGE, re.MULTILINE):
        text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
        if "```" in text or "\n    " in text:
            assert any(named_there.get(section, section) in row for row in rows), section
