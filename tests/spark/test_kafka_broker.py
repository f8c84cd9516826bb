"""``scripts/kafka``: a broker that is there when it says so and gone when its owner is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.spark.kafka_broker import SCRIPT, fetched_jars

if TYPE_CHECKING:
    from pathlib import Path

OWNER = "import subprocess, sys; subprocess.Popen([sys.argv[1], 'run'], stdin=subprocess.PIPE).wait()"


@pytest.fixture(autouse=True)
def _jars() -> None:
    fetched_jars("broker")


def is_listening(servers: str) -> bool:
    host, port = servers.split(":")
    with socket.socket() as trial:
        return trial.connect_ex((host, int(port))) == 0


@pytest.mark.cluster
def test_a_broker_and_its_data_do_not_outlive_an_owner_that_was_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", OWNER, str(SCRIPT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        servers = json.loads(owner.stdout.readline())["servers"]
        assert is_listening(servers)
        assert list(tmp_path.glob("kafka-*/data/meta.properties"))
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while is_listening(servers) or list(tmp_path.glob("kafka-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_broker_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'ERROR no room for this JVM' >&2\nexit 1\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [SCRIPT, "run"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "Kafka's storage could not be formatted: ERROR no room for this JVM\n"
