from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from tests.unit.table.inspect.history.histories import commit, history, reader

from penstock.cli.draw.terminal import draw_screen, sparkline

if TYPE_CHECKING:
    from penstock.table.inspect.history.history import TableHistory

T0 = 1_790_000_000_000


def screen(seen: TableHistory, width: int = 120, height: int = 40) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(draw_screen(seen, width=width, height=height))
    return captured.get()


def test_a_line_of_blocks_goes_from_0_to_the_greatest() -> None:
    assert sparkline([0, 1, 7, 8, None, 4]) == " ▁▇█ ▄"
    assert sparkline([None, None]) == "  "
    assert sparkline([0, 0]) == "  "
    assert sparkline([1, 1000]) == "▁█", "little is not nothing"
    assert sparkline([-5, 10]) == "▁█"


def test_the_screen_fits_the_terminal() -> None:
    commits = [commit(number, T0 + number * 10_000, T0 - 5_000) for number in range(1, 300)]
    seen = history(*commits, readers=tuple(reader(f"r{number}", snapshots=number) for number in range(9)))
    for width, height in ((80, 24), (120, 40), (200, 60)):
        lines = screen(seen, width, height).splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= max(height, 36)
    wide = screen(seen)
    assert "and 3 readers with less lag" in wide
    assert wide.index("r8 ") < wide.index("r3 "), "who is furthest behind comes first"


def test_names_can_do_nothing_to_the_terminal() -> None:
    commits = [commit(number, T0 + number) for number in range(1, 4)]
    text = screen(history(*commits, name="shop.\x1b[31m[bold]x[/bold]", readers=(reader("[red]\x07", snapshots=1),)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"\x1b[31m[bold]x[/bold]" in text
    assert r"[red]\x07" in text
