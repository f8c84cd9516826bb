"""The paths of docs/architecture.md are those of the imports."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "penstock"
PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text("utf-8")
LISTS = [
    re.findall(r"^\d+\. `([\w/]+\.py)`", block, re.MULTILINE)
    for block in re.findall(r"(?:^\d+\. .*\n(?:   .*\n)*)+", PAGE, re.MULTILINE)
]


def test_the_page_has_its_paths() -> None:
    assert [len(modules) for modules in LISTS] == [11, 6, 7, 4, 6, 4]


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r"`([\w]+(?:/\w+)+\.py)`", PAGE)
    assert [name for name in named if not (SOURCES / name).is_file()] == []


@pytest.mark.parametrize("modules", LISTS, ids=lambda modules: modules[0])
def test_each_step_is_imported_by_one_before_it(modules: list[str]) -> None:
    for place, module in enumerate(modules[1:], start=1):
        assert any(module in imported_by(earlier) for earlier in modules[:place]), module


@cache
def imported_by(module: str) -> frozenset[str]:
    """Files that a module names in its imports, those of its types and by their dotted name included."""
    text = (SOURCES / module).read_text("utf-8")
    names = set(re.findall(r'"(penstock(?:\.\w+)+)"', text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(f"{name.removeprefix('penstock.').replace('.', '/')}.py" for name in names)
