"""Servers of the command line, as docs/ways-in.md starts them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.quick_spark import JVM_OPTIONS, quick_settings
from tests.s3_server import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = str(Path(sys.executable).with_name("penstock"))
PAGE = (Path(__file__).parents[2] / "docs" / "ways-in.md").read_text("utf-8")
START_SECONDS = 120


def of_page(section: str, example: int = 0) -> tuple[str, str]:
    """Return the command and the code of one of the clients that a section of the page shows."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    command = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    client = re.findall(r"\n\n((?:    [^\n]*\n|\n)+)", text)
    assert command is not None
    return command[1].strip(), textwrap.dedent(client[example]) if client else ""


def arguments(command: str, warehouse: Path, port: int | None = None) -> list[str]:
    """Return the words of a command of the page, with another warehouse and port, and settings that suit a test."""
    words = [str(warehouse) if word == "/data/warehouse" else word for word in shlex.split(command)[1:]]
    if port is not None:
        words[words.index("--port") + 1] = str(port)
    settings = {**quick_settings(), "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return [COMMAND, *words, *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}"))]


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": " ".join(JVM_OPTIONS)}


@contextmanager
def running(command: str, folder: Path, number: int) -> Iterator[int]:
    """Run a server of the page, and yield its port; then stop it with a signal, which it obeys without an error."""
    port = free_port()
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            arguments(command, folder / "w", port), cwd=folder, env=environment(), stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while "catalogs: penstock" not in log.read_text():
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield port
        process.send_signal(number)
        assert process.wait(60) == 0, log.read_text()[-3000:]
    finally:
        process.kill()
        process.wait()
    text = log.read_text()
    assert "Traceback" not in text, text[-3000:]
    assert "stopping" in text.splitlines(), text[-3000:]  # Spark may log a line after it
