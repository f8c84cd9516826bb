"""Every code block of the documentation is of a kind that a test runs, or at least reads as what uses it would.

The blocks of ``python`` and ``console`` are run by ``test_examples.py``, and by ``tests/unit/cli/test_docs.py`` for
docs/cli.md. The others are read here: they need a cluster, a broker, or JARs of other formats.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import sqlglot
from tests.docs.test_examples import ROOT, examples_of
from typer.main import get_command

from penstock.cli.main import app
from penstock.dialect.parse.parser import parse_script

PAGES: Final = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
# Python and shell blocks that say what is run elsewhere; `text` is no code outside of the page of signatures.
LANGUAGES: Final = {"python", "console", "sh", "sql", "json", "mermaid", "text", "yaml", "jinja"}
DIAGRAMS: Final = {"flowchart", "sequenceDiagram"}
_FENCE: Final = re.compile(r"^( *)(```+|~~~+)([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page, which is a path from the project's folder."""

    page: str
    line: int
    indent: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where it begins."""
        return f"{self.page}:{self.line}"


def _blocks_of(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, found.start()) + 1, len(found[1]), found[3].strip(), found[4])
        for found in _FENCE.finditer(text)
    ]


BLOCKS: Final = [block for page in PAGES for block in _blocks_of(page)]


def _of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def test_every_block_has_a_language_that_a_test_knows() -> None:
    assert {block.place for block in BLOCKS if block.language not in LANGUAGES} == set()
    # What is at the margin is what the expressions of the other tests find.
    assert {block.place for block in BLOCKS if block.indent} == set()


def test_every_block_of_python_and_of_commands_is_run() -> None:
    run = Counter(
        {(page, language): len(blocks) for page, kinds in examples_of().items() for language, blocks in kinds.items()}
    )
    there = Counter((block.page, block.language) for block in BLOCKS if block.language in {"python", "console"})
    # docs/cli.md has a test of its own beside the commands, which runs all of its lines.
    del there["docs/cli.md", "console"]
    assert +run == there
    for block in _of("console"):
        lines = [line for line in block.text.splitlines() if block.page != "docs/cli.md"]
        assert [line for line in lines if not line.startswith("$ penstock ")] == [], block.place


def test_signatures_are_python() -> None:
    signatures = [block for block in _of("text") if block.page == "docs/api.md"]
    assert len(signatures) > 50
    for block in signatures:
        ast.parse(f"def {block.text.strip()}: ...")


def test_data_is_json() -> None:
    for block in _of("json"):
        json.loads(block.text)


def test_files_of_dbt_are_those_that_its_test_uses() -> None:
    # tests/spark/test_dbt.py makes a project of them.
    assert [block.page for block in (*_of("yaml"), *_of("jinja"))] == ["docs/ways-in.md"] * 3


def test_diagrams_are_of_known_kinds() -> None:
    for block in _of("mermaid"):
        assert block.text.split(maxsplit=1)[0] in DIAGRAMS, block.place


def test_statements_are_read_by_whom_they_are_for() -> None:
    for block in _of("sql"):
        if block.page == "docs/from-delta-iceberg.md":
            assert sqlglot.parse(block.text.rstrip().rstrip(";"), dialect="databricks"), block.place
        else:
            assert parse_script(block.text), block.place


def test_shell_blocks_are_shell_and_their_commands_are_there() -> None:
    assert _of("sh")
    for block in _of("sh"):
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
        for line in block.text.replace("\\\n", " ").splitlines():
            words = [word for word in shlex.split(line) if "=" not in word.split("/")[0] or word.startswith("-")]
            if words and words[0] == "penstock":
                _check_command(words[1:], block.place)
            elif words and words[0] == "spark-submit":
                _check_spark_submit(words[1:], block.place)
            else:
                assert not words or words[0] in {"python3", ".", "pip", "venv-pack"}, block.place


def test_commands_in_sentences_are_there() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    checked = 0
    for page in PAGES:
        text = page.read_text("utf-8")
        name = page.relative_to(ROOT).as_posix()
        for target in re.findall(r"`make ([a-z0-9-]+)", text):
            assert target in targets, f"{name}: make {target}"
            checked += 1
        for line in re.findall(r"`penstock ([a-z][^`\n]*)`", text):
            _check_command(shlex.split(line), name)
            checked += 1
    assert checked > 50


def _check_command(words: list[str], place: str) -> None:
    """Check that verbs and options of ``penstock`` exist; what stands for a value is not read."""
    command = get_command(app)
    options = {name for parameter in command.params for name in parameter.opts}
    for position, word in enumerate(words):
        if word.startswith("-"):
            assert word.split("=")[0] in options, f"{place}: {word} of penstock {shlex.join(words)}"
        verbs = getattr(command, "commands", {})
        is_value = position > 0 and words[position - 1].startswith("-")
        if verbs and not word.startswith("-") and not is_value and word != "…":
            assert word in verbs, f"{place}: penstock {shlex.join(words)}"
            command = verbs[word]
            options |= {name for each in command.params for name in (*each.opts, *each.secondary_opts)}


def _check_spark_submit(words: list[str], place: str) -> None:
    options = {word for word in words if word.startswith("--")}
    assert options <= {"--archives", "--conf", "--packages"}, place
    assert words[-1].endswith(".py"), place


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_page_works_in_a_fresh_clone(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    text = (clone / "docs" / "start.md").read_text("utf-8")
    blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL) for kind in LANGUAGES}
    (clone / "page.py").write_text("\n".join(blocks["python"]), encoding="utf-8")
    commands = [line.removeprefix("$ ") for block in blocks["console"] for line in block.splitlines()]
    script = "\n".join(["set -e", *blocks["sh"], "python page.py", *commands])
    kept = ("PATH", "JAVA_HOME", "HTTPS_PROXY", "https_proxy", "PIP_INDEX_URL", "PIP_CACHE_DIR", "SSL_CERT_FILE")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(home)}
    # The interpreter that the tests run with, as python3.
    environment["PATH"] = f"{Path(sys.executable).resolve().parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    if "No matching distribution found" in done.stderr:
        pytest.skip("there is no package registry")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "/cart" in done.stdout
