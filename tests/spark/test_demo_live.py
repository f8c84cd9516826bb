"""The live demo with Kafka and a killed driver ends with equal numbers; tests/unit/test_demo_live.py has its parts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.quick_spark import quick_environment
from tests.spark.kafka_broker import fetched_jars
from tests.support.kafka_broker import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1_000)]


def test_a_killed_driver_leaves_every_number_equal(tmp_path: Path) -> None:
    for use in ("broker", "connector"):
        fetched_jars(use)
    command = [sys.executable, "-m", "scripts.demo.live", "--warehouse", str(tmp_path / "warehouse")]
    done = subprocess.run(
        [*command, "--days", "3", "--seconds", "8", "--patience", "800"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **quick_environment(), "PYSPARK_PYTHON": sys.executable},
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed the driver (SIGKILL" in done.stdout
    assert done.stdout.count("equal") == 11
    assert "DIFFERENT" not in done.stdout
    assert "live.hourly" in (tmp_path / "warehouse" / "report.html").read_text("utf-8")
