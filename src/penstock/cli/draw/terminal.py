"""A table's history in a terminal: health checks, small charts of one line each, readers, the newest commits."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.api.history import HealthStatus
from penstock.cli.draw.bins import to_bins, window_of
from penstock.cli.draw.health import LEGEND, MARKS, checks_of, headline, snapshots_read
from penstock.cli.draw.labels import count_text, duration_words, name_text, rate_words, short_number, time_text
from penstock.format.snapshot import CommitKind
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from penstock.api.history import Commit, TableHistory
    from penstock.cli.draw.bins import Bin, Window

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_STYLES: Final = {HealthStatus.GOOD: "green", HealthStatus.LOOK: "bold red", HealthStatus.UNKNOWN: "dim"}
_KINDS: Final = {CommitKind.APPEND: "blue", CommitKind.COMPACT: "yellow", CommitKind.OVERWRITE: "magenta"}
_LABEL: Final = 18
_VALUE: Final = 30
_WIDE: Final = 90
_WIDEST: Final = 118
_READERS: Final = 6
_LEAST_COMMITS: Final = 3


def draw_screen(history: TableHistory, *, width: int, height: int) -> RenderableType:
    """Return the view of a table for a terminal of that size."""
    title = Text.assemble((name_text(history.name), "bold"), f"  {headline(history)}")
    parts: list[RenderableType] = [
        title,
        Text(f"{time_text(history.seen_millis)} UTC; {snapshots_read(history)}", style="dim"),
        _signs(history),
        Text(LEGEND, style="dim"),
    ]
    used = 10
    if history.commits:
        parts += [Text(), _charts(history, width)]
        used += 7
        if history.readers:
            parts += [Text(), _readers(history)]
            used += 3 + min(len(history.readers), _READERS)
        parts += [Text(), _commits(history, max(_LEAST_COMMITS, height - used - 4), width)]
    return Group(*parts)


def _signs(history: TableHistory) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for check in checks_of(history):
        grid.add_row(
            Text(MARKS[check.status], style=_STYLES[check.status]), Text(check.topic, style="bold"), Text(check.text)
        )
    return grid


def _charts(history: TableHistory, width: int) -> RenderableType:
    space = max(10, width - _LABEL - _VALUE)
    window = window_of(history, space)
    bins = to_bins(history.commits, window)
    every = rate_words(window.step_ms)
    lines = [
        _chart("rows written", [each.appended_rows + each.overwritten_rows for each in bins], short_number, every),
        _chart("bytes written", [each.new_bytes + each.merged_bytes for each in bins], _size, every),
        _chart("live files", _levels(bins, lambda commit: commit.live.files), short_number),
        _chart("small files", _levels(bins, lambda commit: commit.live.small_files), short_number),
        _chart("event time lag", _levels(bins, lambda commit: commit.event_time_lag_ms), duration_words),
    ]
    return Group(*lines, _time_line(window))


def _levels(bins: Sequence[Bin], value: Callable[[Commit], float | None]) -> list[float | None]:
    """Return the maximum of each bin, or the last value before it if nothing was committed."""
    levels = []
    for each in bins:
        ends = () if each.end is None else (each.end,)
        known = [level for commit in each.commits or ends if (level := value(commit)) is not None]
        levels.append(max(known, default=None))
    return levels


def _chart(name: str, values: Sequence[float | None], words: Callable[[float], str], every: str | None = None) -> Text:
    """Return a chart of one line.

    Args:
        every: the unit of time of the counts; None for values that hold until the next one.
    """
    known = [value for value in values if value is not None]
    label = Text(f"{name:<{_LABEL}}")
    if not known:
        return label.append("none", style="dim")
    most = f"max {words(max(0, *known))}"
    note = f"{most} / {every}" if every is not None else f"{words(known[-1])}, {most}"
    return label.append(sparkline(values), style="cyan").append(f"  {note}", style="dim")


def sparkline(values: Sequence[float | None]) -> str:
    """Return a one-line chart from 0 upwards, with a blank for no value."""
    most = max((value for value in values if value is not None), default=0)
    return "".join(_block(value, most) for value in values)


def _block(value: float | None, most: float) -> str:
    if value is None:
        return " "
    if value <= 0:
        return " " if value == 0 else _BLOCKS[0]
    return _BLOCKS[ceil(value / most * len(_BLOCKS)) - 1]


def _time_line(window: Window) -> Text:
    days = time_text(window.first)[:10] != time_text(window.last)[:10]
    first, last = (time_text(time) if days else time_text(time)[11:] for time in (window.first, window.last))
    end = "now" if window.shows_now else last
    space = max(1, window.count - len(first) - len(end) - 4)
    return Text(f"{'':<{_LABEL}}{first} UTC{' ' * space}{end}", style="dim")


def _readers(history: TableHistory) -> Table:
    table = _table("reader", ">next", ">commits", ">rows", ">bytes", ">oldest unread", ">lost")
    late = sorted(history.readers, key=lambda reader: (-reader.snapshots, reader.name))
    for reader in late[:_READERS]:
        since = reader.unread_since_millis
        table.add_row(
            Text(name_text(reader.name, 40)),
            "" if reader.next_snapshot_id is None else str(reader.next_snapshot_id),
            f"{reader.snapshots:,}",
            f"{reader.rows:,}",
            bytes_text(reader.bytes),
            "" if since is None else duration_words(max(0, history.seen_millis - since)),
            f"{reader.expired_snapshots:,}" if reader.expired_snapshots else "",
        )
    if len(late) > _READERS:
        table.add_row(Text(f"and {count_text(len(late) - _READERS, 'reader')} with less lag", style="dim"))
    return table


def _commits(history: TableHistory, most: int, width: int) -> Table:
    heads = ["commit, UTC", "kind", ">rows", ">files then", ">lag"]
    heads += [">snapshot", ">bytes", ">files"] if width >= _WIDE else []
    heads += ["user"] if width >= _WIDEST else []
    table = _table(*heads)
    for commit in history.commits[: -most - 1 : -1]:
        table.add_row(*_commit_cells(commit)[: len(heads)])
    return table


def _commit_cells(commit: Commit) -> list[Text]:
    kind, change, lag = commit.snapshot.commit_kind, commit.change, commit.event_time_lag_ms
    rows = change.added.rows - change.removed.rows
    removed = f" -{change.removed.files:,}" if change.removed.files else ""
    return [
        Text(time_text(commit.snapshot.time_millis)),
        Text(kind.value, style=_KINDS.get(kind, "")),
        Text(f"{rows:+,}" if rows else ""),
        Text(f"{commit.live.files:,}"),
        Text("" if lag is None else duration_words(lag)),
        Text(str(commit.snapshot.id)),
        Text(bytes_text(change.added.bytes)),
        Text(f"+{change.added.files:,}{removed}"),
        Text(name_text(commit.snapshot.commit_user, 24)),
    ]


def _table(*heads: str) -> Table:
    """Return an empty table; ``>`` before a head marks a column of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head.removeprefix(">"), justify="right" if head.startswith(">") else "left", no_wrap=True)
    return table


def _size(value: float) -> str:
    return bytes_text(int(value))
