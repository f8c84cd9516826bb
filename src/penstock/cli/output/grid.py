"""Rows as a table for a terminal: columns side by side if all names fit, otherwise one list per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from penstock.printable import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

_GAP = 3
"""Spaces between two columns."""


def draw_rows(
    names: Sequence[str], rows: Iterable[Sequence[Text]], *, numbers: Sequence[bool], width: int
) -> RenderableType:
    """Return the table or the lists.

    Args:
        numbers: for each column whether its values are aligned right.
        width: of the terminal, in cells. Wider values are wrapped, column names never.
    """
    heads = [visible(name) for name in names]
    if sum(map(cell_len, heads)) + _GAP * (len(heads) - 1) > width:
        return _one_under_the_other(heads, rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head, is_number in zip(heads, numbers, strict=True):
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(Text(head), justify=justify, overflow="fold", min_width=cell_len(head))
    for row in rows:
        table.add_row(*row)
    return table


def _one_under_the_other(heads: Sequence[str], rows: Iterable[Sequence[Text]]) -> RenderableType:
    parts: list[RenderableType] = []
    for number, row in enumerate(rows, start=1):
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for head, cell in zip(heads, row, strict=True):
            grid.add_row(Text(head), cell)
        parts += [Rule(Text(f"row {number}"), align="left", style="dim"), grid]
    return Group(*parts) if parts else Text("no rows")
