"""Limits of the operating system itself, in a process of its own: a full disk, file sizes, open files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("child.py")
TOP = Path(__file__).parents[3]
# A small disk of its own needs no privileges where the system has name spaces of users.
IN_NAMESPACE = ("unshare", "-Urm", "sh", "-c")


# Starting Python and pyarrow takes longer than the checks. The other tests of this directory do without.
pytestmark = pytest.mark.slow


def run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TOP, timeout=300)
    assert ended.returncode == 0, ended.stderr[-4_000:]


def test_limits_of_files_fail_calls_and_nothing_else(tmp_path: Path) -> None:
    run(sys.executable, str(CHILD), str(tmp_path), "size,handles")


def test_a_small_disk_loses_nothing_and_can_be_cleared(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=2m tmpfs '{tmp_path}'"
    if shutil.which("unshare") is None:
        pytest.skip("no disk of its own: there is no 'unshare'")
    if subprocess.run([*IN_NAMESPACE, mount], capture_output=True, check=False).returncode:
        pytest.skip("no disk of its own: mounting one is not allowed here")
    run(*IN_NAMESPACE, f"{mount} && exec '{sys.executable}' '{CHILD}' '{tmp_path}' disk")
