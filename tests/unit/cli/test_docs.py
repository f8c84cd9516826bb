"""The examples of the documentation, run as they stand."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typer.main import get_command
from typer.testing import CliRunner

from penstock.cli.exit_codes import ExitCode
from penstock.cli.main import app

if TYPE_CHECKING:
    import pytest

TEXT: Final = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _examples() -> list[tuple[str, str]]:
    """Pairs of a command and its output."""
    examples: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = command.partition("\n")
            examples.append((line, output))
    return examples


def test_every_example_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    _script(tools / "penstock", f"exec {sys.executable} -c 'from penstock.cli.main import main; main()' \"$@\"")
    _script(tools / "python", f'exec {sys.executable} "$@"')
    directory = tmp_path / "empty"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PWD", str(directory))
    for line, expected in _examples():
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            monkeypatch.setenv(name, os.path.expandvars(value))
            continue
        output = _run(line)
        assert doctest.OutputChecker().check_output(expected, output, FLAGS), f"$ {line}\n{output}"


def test_every_verb_has_an_example() -> None:
    run = [shlex.split(line.split("|")[-1])[1:] for line, _ in _examples() if "penstock " in line]
    command = get_command(app)
    for verb, each in command.commands.items():
        for path in [(verb, inner) for inner in each.commands] if hasattr(each, "commands") else [(verb,)]:
            assert any(tuple(words[: len(path)]) == path for words in run) or f"penstock {' '.join(path)} " in TEXT, (
                path
            )


def test_every_exit_code_is_explained() -> None:
    explained = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    assert explained == set(ExitCode)


def _run(line: str) -> str:
    if _needs_a_shell(line):
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"$ {line}\n{done.stderr}"
        return done.stdout
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, f"$ {line}\n{result.output}\n{result.exception!r}"
    return result.stdout


def _needs_a_shell(line: str) -> bool:
    words = list(shlex.shlex(line, posix=True, punctuation_chars="|<>"))
    return words[0] != "penstock" or any(word in {"|", ">", "<"} for word in words)


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
