"""A sort compaction on Spark whose shuffle fills the disk of ``spark.local.dir``: nothing lost, nothing left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("full_shuffle_disk.py")
IN_NAMESPACE = ("unshare", "-Urm", "sh", "-c")

pytestmark = pytest.mark.slow


def test_full_disk_of_a_shuffle_changes_nothing_and_the_next_sort_succeeds(tmp_path: Path) -> None:
    small_disk = tmp_path / "small"
    small_disk.mkdir()
    mount = f"mount -t tmpfs -o size=8m tmpfs '{small_disk}'"
    if shutil.which("unshare") is None or subprocess.run([*IN_NAMESPACE, mount], check=False).returncode:
        pytest.skip("no disk of its own: mounting one is not allowed here")
    ended = subprocess.run(
        [*IN_NAMESPACE, f"{mount} && exec '{sys.executable}' '{SCRIPT}' '{tmp_path / 'warehouse'}' '{small_disk}'"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]
    result = json.loads(ended.stdout.splitlines()[-1])
    assert "No space left on device" in result["message"]
    assert "d.t" in result["message"]
    assert result["snapshots"] == [1, 2, 3, 4]
    assert result["rows"]
    assert not result["left"]
    assert result["rows after"]
    assert result["kinds after"] == ["APPEND"] * 4 + ["OVERWRITE"]
