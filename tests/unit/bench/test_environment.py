"""The environment of a benchmark's result."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from bench import environment

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def git(root: Path, *arguments: str) -> None:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *names, *arguments], cwd=root, check=True, capture_output=True)


def test_code_is_dirty_by_changes_but_not_by_the_results_of_the_benchmarks_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    assert environment.describe_code() == "unknown"
    for name in ("src/a.py", "bench/b.py", "bench/results/old.json", "docs/benchmarks.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "First")
    revision = environment.describe_code()
    assert len(revision) == 7

    (tmp_path / "bench/results/old.json").unlink()
    (tmp_path / "bench/results/new.json").write_text("2\n")
    (tmp_path / "docs/benchmarks.md").write_text("2\n")
    assert environment.describe_code() == revision
    (tmp_path / "bench/b.py").write_text("2\n")
    assert environment.describe_code() == f"{revision}-dirty"
