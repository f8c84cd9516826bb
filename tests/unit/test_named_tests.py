"""Tests that the design notes and the documentation name with their file are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
NAMED: Final = {
    page: re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page.read_text("utf-8"))
    for folder in ("design", "docs")
    for page in sorted((ROOT / folder).glob("*.md"))
}


@pytest.mark.parametrize("page", [page for page, named in NAMED.items() if named], ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in NAMED[page]
        if not (ROOT / file).is_file() or f"def {name}(" not in (ROOT / file).read_text("utf-8")
    ]
    assert missing == []
