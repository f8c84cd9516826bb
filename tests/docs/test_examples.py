"""Every example of the documentation runs as it is printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.quick_spark import quick_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
# docs/cli.md has a test of its own beside the commands.
_WITH_EXAMPLES = [page for page in _PAGES if page != "docs/cli.md" and _BLOCK.search((ROOT / page).read_text("utf-8"))]


def _blocks(page: str, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall((ROOT / page).read_text("utf-8")) if kind == language]


def examples_of() -> dict[str, dict[str, list[str]]]:
    """Return the blocks that are run here, by their page and language."""
    return {page: {kind: _blocks(page, kind) for kind in ("python", "console")} for page in _WITH_EXAMPLES}


class PageRunner:
    """A process that runs examples of pages, which share its JVM and what it has imported."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("page_runner.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            text=True,
        )

    def run(self, directory: Path, **what: str | list[str]) -> None:
        """Run a ``script``, or ``penstock`` with ``arguments``; the test fails with what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**what, "directory": str(directory)}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert not answer["failed"], f"{what}\n{answer['output']}"

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _environment() -> dict[str, str]:
    return {**os.environ, **quick_environment(), "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def page_runner() -> Iterator[PageRunner]:
    runner = PageRunner()
    yield runner
    runner.close()


@pytest.mark.spark
@pytest.mark.parametrize("page", _WITH_EXAMPLES)
def test_the_examples_of_a_page_run_one_after_another(page: str, tmp_path: Path, page_runner: PageRunner) -> None:
    script = tmp_path / "example.py"
    text = "\n".join(_blocks(page, "python"))
    # Spark's Python workers stay in the directory that the JVM was started in, and take paths of tables from there.
    script.write_text(text.replace('.load("warehouse/', f'.load("{tmp_path}/warehouse/'), encoding="utf-8")
    is_alone = '.option("path", "warehouse/' in text
    if is_alone:
        _run([sys.executable, str(script)], tmp_path)
    else:
        page_runner.run(tmp_path, script=str(script))
    for block in _blocks(page, "console"):
        for line in block.splitlines():
            if line.startswith("$ penstock ") and is_alone:
                _run([str(Path(sys.executable).with_name("penstock")), *shlex.split(line)[2:]], tmp_path)
            elif line.startswith("$ penstock "):
                page_runner.run(tmp_path, arguments=shlex.split(line)[2:])


def test_links_between_pages_lead_somewhere() -> None:
    for page in _PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8")):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", ["options", "api"])
def test_pages_made_from_the_code_are_those_of_the_code(page: str) -> None:
    made = subprocess.run(
        [sys.executable, "-c", f"import {page}_page; print({page}_page.render_page(), end='')"],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == (ROOT / "docs" / f"{page}.md").read_text("utf-8"), f"run scripts/{page}_page.py"
