"""A task's memory is bounded by options, not by how many partitions and buckets it meets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = Path(__file__).parent / "write_memory_probe.py"
WRITE_BUFFER_MB = 256


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("partitions", "rows"), [(300, 1_000_000), pytest.param(4_000, 5_000_000, marks=pytest.mark.slow)]
)
def test_peak_memory_and_open_files_are_bounded(partitions: int, rows: int, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [sys.executable, str(PROBE), str(partitions), "8", str(rows)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    with capsys.disabled():
        sys.stdout.write(f"\none task over {partitions} partitions x 8 buckets, {rows} rows: {figures}\n")
    assert figures["groups"] == figures["files"] == partitions * 8
    assert figures["rows"] == rows
    assert figures["peak_mb"] <= WRITE_BUFFER_MB + 512
    assert figures["most_open_files"] <= 64
