"""The demo with Kafka, which compares each of its numbers with the source."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.spark.forked_python import forked_python
from tests.spark.kafka_broker import fetched_jars
from tests.support.kafka_broker import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_demo_finds_what_it_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for use in ("broker", "connector"):
        fetched_jars(use)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with forked_python(tmp_path) as python:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", python)
        done = subprocess.run(
            [sys.executable, "-m", "scripts.demo.kafka", "--days", "4", "--warehouse", tmp_path / "warehouse"],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same windows, counted as a batch" in done.stdout
