"""Tables of any width on terminals of any width."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from penstock.cli.output.render import draw_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("snapshot_id", "changelog_manifest_list", "total_record_count", "commit_user")
ROW = ("12", "changelog-manifest-list-0", "1234567", "b9a7-" * 8)


def drawn(width: int, rows: Sequence[Sequence[str]], names: Sequence[str] = NAMES) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    cells = [[Text(value) for value in row] for row in rows]
    console.print(draw_rows(names, cells, numbers=[name == "total_record_count" for name in names], width=width))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_names_of_columns_are_never_cut() -> None:
    lines = drawn(100, [ROW])
    assert lines[0].split() == list(NAMES)
    assert "".join(line[-25:] for line in lines[2:]).replace(" ", "").endswith("b9a7-")
    assert all(len(line) <= 100 for line in lines)


def test_columns_that_do_not_fit_are_printed_one_below_the_other() -> None:
    lines = drawn(60, [ROW, ROW])
    assert lines[0].startswith("row 1 ─")
    assert lines[1].split() == ["snapshot_id", "12"]
    assert lines[2].split() == ["changelog_manifest_list", "changelog-manifest-list-0"]
    assert sum(line.startswith("row ") for line in lines) == 2
    assert all(len(line) <= 60 for line in lines)


def test_a_table_without_rows_keeps_its_names_or_says_so() -> None:
    assert drawn(100, [])[0].split() == list(NAMES)
    assert drawn(40, []) == ["no rows"]


def test_one_column_wider_than_the_terminal_is_folded() -> None:
    assert "".join(drawn(20, [["x" * 50]], names=["a"])[2:]) == "x" * 50
