"""Runs the examples of documentation pages one after another, so that they share a JVM and what they import.

Each line of standard input is a JSON object with the ``directory`` to run in and either a ``script`` to run or the
``arguments`` of the command ``penstock``. Each line of
standard output answers one: ``{"output": ..., "failed": ...}``, where ``output`` is all that the page printed.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.quick_spark import shorten_configuration
from tests.spark.py4j_names import keep_names
from typer.testing import CliRunner

from penstock.cli.main import app


def shorten_configurations() -> None:
    """Let each session that a page starts cost less."""
    original = SparkSession.Builder.getOrCreate

    def start(builder: SparkSession.Builder) -> SparkSession:
        session = original(builder)
        shorten_configuration(session)
        return session

    SparkSession.Builder.getOrCreate = start  # type: ignore[method-assign]


def run_page(script: str, directory: str) -> bool:
    """Run a script as a program of its own would run; return whether it failed."""
    os.chdir(directory)
    jvm: Any = SparkContext._jvm
    if jvm is not None:
        # Where Hadoop takes relative paths from, which its file systems read once.
        jvm.java.lang.System.setProperty("user.dir", directory)
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException:  # noqa: BLE001 - whatever it is, the test shows it
        traceback.print_exc()
        return True
    finally:
        session = SparkSession.getActiveSession()
        if session is not None:
            for query in session.streams.active:
                query.stop()
            session.stop()
    return False


def run_command(arguments: list[str], directory: str) -> bool:
    """Run the command ``penstock``; return whether it failed."""
    os.chdir(directory)
    result = CliRunner().invoke(app, arguments)
    sys.stdout.write(result.output)
    if result.exception is not None:
        traceback.print_exception(result.exception)
    return result.exit_code != 0


def main() -> None:
    """Answer until standard input ends."""
    keep_names()
    shorten_configurations()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            request = json.loads(line)
            with tempfile.TemporaryFile() as output:
                for descriptor in (1, 2):
                    os.dup2(output.fileno(), descriptor)
                if "script" in request:
                    failed = run_page(request["script"], request["directory"])
                else:
                    failed = run_command(request["arguments"], request["directory"])
                sys.stdout.flush()
                sys.stderr.flush()
                output.seek(0)
                printed = output.read().decode(errors="replace")
            answers.write(json.dumps({"output": printed, "failed": failed}) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
