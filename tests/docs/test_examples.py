"""Every example of the documentation runs as it is printed."""

from __future__ import annotations

import importlib
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
from tests.spark.forked_python import forked_python

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
    """A process that runs examples of pages, which share its JVM and what it has imported.

    Args:
        python: what Spark runs as its Python.
    """

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.docs.page_runner"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                **quick_environment(),
                "PYSPARK_PYTHON": python,
                "PYSPARK_DRIVER_PYTHON": python,
                "PYTHONWARNINGS": "ignore",
            },
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


@pytest.fixture(scope="module")
def page_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageRunner]:
    with forked_python(tmp_path_factory.mktemp("python")) as python:
        runner = PageRunner(python)
        yield runner
        runner.close()


@pytest.mark.spark
@pytest.mark.parametrize("page", _WITH_EXAMPLES)
def test_the_examples_of_a_page_run_one_after_another(page: str, tmp_path: Path, page_runner: PageRunner) -> None:
    script = tmp_path / "example.py"
    text = "\n".join(_blocks(page, "python"))
    # Spark's Python workers stay in the directory that the JVM was started in, and take paths of tables from there.
    for call in ('.load("', '.option("path", "'):
        text = text.replace(f"{call}warehouse/", f"{call}{tmp_path}/warehouse/")
    script.write_text(text, encoding="utf-8")
    page_runner.run(tmp_path, script=str(script))
    for block in _blocks(page, "console"):
        for line in block.splitlines():
            if line.startswith("$ penstock "):
                page_runner.run(tmp_path, arguments=shlex.split(line)[2:])


def test_links_between_pages_lead_somewhere() -> None:
    for page in _PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8")):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize(
    ("page", "script"),
    [
        ("options", "options_page"),
        ("api", "api_page"),
        ("spark", "versions_table"),
        ("sql", "procedures_table"),
    ],
)
def test_pages_made_from_the_code_are_those_of_the_code(page: str, script: str) -> None:
    made = importlib.import_module(f"scripts.{script}").render_page()
    assert made == (ROOT / "docs" / f"{page}.md").read_text("utf-8"), f"run scripts/{script}.py"
