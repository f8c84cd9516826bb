"""Tables of a page, some of them with a bar in each row next to the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.api.history import overlapping
from penstock.cli.draw.labels import count_text, duration_words, name_text, short_number, time_text
from penstock.cli.draw.node import node
from penstock.cli.draw.plot import HEIGHT, WIDTH, box
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from xml.etree.ElementTree import Element

    from penstock.api.history import BucketOrder, SequenceRange, TableHistory

    Cell: TypeAlias = Element | str

_COMMITS: Final = 100
_BARS: Final = 16
_STALLS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row of a chart of bars.

    Attributes:
        value: the length.
        cells: those after the bar.
    """

    name: str
    value: float
    cells: tuple[str, ...]


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Element:
    """Return a table.

    Args:
        head: names of the columns; ``>`` before a name marks a column of numbers.
    """
    kinds = ["number" if name.startswith(">") else "text" for name in head]
    names = [name.removeprefix(">") for name in head]
    top = [node("th", {"scope": "col", "class": kind}, name) for kind, name in zip(kinds, names, strict=True)]
    body = [
        node("tr", {}, *(node("td", {"class": kind}, cell) for kind, cell in zip(kinds, row, strict=True)))
        for row in rows
    ]
    made = node(
        "table", {}, node("caption", {}, caption), node("thead", {}, node("tr", {}, *top)), node("tbody", {}, *body)
    )
    return node("div", {"class": "scroll"}, made)


def bar_table(caption: str, head: Sequence[str], bars: Sequence[Bar], *, most: int = _BARS) -> Element:
    """Return a table with a bar in each row, from 0.

    Args:
        head: names of the columns: name, bar and the cells after it.
        most: maximum number of rows; the caption has the number of the others.
    """
    longest = max((bar.value for bar in bars), default=0) or 1
    rows: list[tuple[Cell, ...]] = [
        (bar.name, node("span", {"class": "bar", "style": f"width:{bar.value / longest * 100:.1f}%"}), *bar.cells)
        for bar in bars[:most]
    ]
    more = f"; {len(bars) - most:,} more are not listed" if len(bars) > most else ""
    made = table(f"{caption}{more}", head, rows)
    made.set("class", "scroll bars")
    return made


def commit_table(history: TableHistory) -> Element:
    """Return the newest commits, newest first."""
    shown = history.commits[: -_COMMITS - 1 : -1]
    rows = [
        (
            time_text(commit.snapshot.time_millis, spec="milliseconds"),
            commit.snapshot.commit_kind.value,
            str(commit.snapshot.id),
            f"{commit.change.added.rows:,}",
            f"{commit.change.removed.rows:,}",
            f"{commit.change.added.bytes:,}",
            f"{commit.live.rows:,}",
            f"{commit.live.files:,}",
            f"{commit.live.small_files:,}",
            "" if commit.watermark is None else time_text(commit.watermark),
            "" if commit.event_time_lag_ms is None else duration_words(commit.event_time_lag_ms),
            name_text(commit.snapshot.commit_user),
        )
        for commit in shown
    ]
    head = (
        "commit time, UTC", "kind", ">snapshot", ">rows written", ">rows removed", ">bytes written",
        ">rows then", ">files then", ">small files", ">watermark, UTC", ">lag", "commit user",
    )  # fmt: skip
    left = "" if len(shown) == len(history.commits) else f" of {len(history.commits):,}"
    return table(f"The newest {len(shown):,}{left} commits; a merge writes and removes the same rows", head, rows)


def reader_table(history: TableHistory) -> Element:
    """Return the readers of the table."""
    rows = [
        (
            name_text(reader.name),
            reader.kind,
            "" if reader.next_snapshot_id is None else str(reader.next_snapshot_id),
            f"{reader.snapshots:,}",
            f"{reader.files:,}",
            f"{reader.rows:,}",
            bytes_text(reader.bytes),
            ""
            if reader.unread_since_millis is None
            else duration_words(max(0, history.seen_millis - reader.unread_since_millis)),
            "" if reader.event_time_lag_ms is None else duration_words(reader.event_time_lag_ms),
            f"{reader.expired_snapshots:,}",
        )
        for reader in history.readers
    ]
    head = (
        "reader", "kind", ">next snapshot", ">unread commits", ">files", ">rows", ">bytes", ">oldest",
        ">event time lag", ">expired unread",
    )  # fmt: skip
    return table("Readers of the table, and what they have not read", head, rows)


def tag_table(history: TableHistory) -> Element:
    """Return the tags."""
    rows = [(name_text(tag.name), time_text(tag.time_millis), str(tag.snapshot_id)) for tag in history.tags]
    return table("Named snapshots, whose files are retained", ("tag", "commit time, UTC", ">snapshot"), rows)


def stalled_watermark_table(history: TableHistory) -> Element:
    """Return the longest stalls of the watermark."""
    longest = sorted(history.standstills, key=lambda each: -each.duration_ms)[:_STALLS]
    rows = [
        (
            time_text(each.watermark),
            time_text(each.from_millis),
            "not yet ended" if each.is_open else time_text(each.to_millis),
            duration_words(each.duration_ms),
            f"{each.commits:,}",
        )
        for each in longest
    ]
    head = ("watermark, UTC", "from", "to", ">for", ">commits with rows")
    more = len(history.standstills) - len(longest)
    left = f"; {count_text(more, 'shorter one')} left out" if more else ""
    return table(f"When the watermark did not advance while rows came, the longest first{left}", head, rows)


def partition_bars(history: TableHistory) -> Element:
    """Return the partitions, the largest first."""
    sums: dict[str, list[int]] = {}
    for each in history.buckets:
        found = sums.setdefault(each.partition, [0, 0, 0])
        for place, amount in enumerate((each.bytes, each.rows, each.files)):
            found[place] += amount
    bars = [
        Bar(name=name_text(name, 60), value=size, cells=(bytes_text(size), f"{rows:,}", f"{files:,}"))
        for name, (size, rows, files) in sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    ]
    return bar_table(
        f"{count_text(len(bars), 'partition')} by size, the largest first",
        ("partition", "", ">bytes", ">rows", ">files"),
        bars,
    )


def bucket_bars(history: TableHistory) -> Element:
    """Return the buckets of a queue over all partitions, by number."""
    sums: dict[int, list[int]] = {number: [0, 0, 0] for number in range(history.total_buckets)}
    for each in history.buckets:
        found = sums.setdefault(each.bucket, [0, 0, 0])
        for place, amount in enumerate((each.bytes, each.rows, each.files)):
            found[place] += amount
    mean = sum(size for size, _, _ in sums.values()) / len(sums)
    bars = [
        Bar(
            name=f"{number}",
            value=size,
            cells=(bytes_text(size), f"{rows:,}", f"{files:,}", f"{size / mean:.2f}" if mean else ""),
        )
        for number, (size, rows, files) in sorted(sums.items())
    ]
    largest = max(size for size, _, _ in sums.values())
    skew = f"; the largest is {largest / mean:.1f} times the mean" if mean else ""
    return bar_table(
        f"{count_text(len(bars), 'bucket')}, all partitions together{skew}",
        ("bucket", "", ">bytes", ">rows", ">files", ">of the mean"),
        bars,
        most=64,
    )


def order_table(history: TableHistory) -> Element:
    """Return the files of each bucket by their sequence numbers."""
    shown = () if history.order is None else history.order.shown
    last = max((each.last for order in shown for each in order.ranges), default=0) + 1
    rows = [
        (
            f"{name_text(order.partition, 40)} {order.bucket}".strip(),
            box(_range_marks(order, last), kind="ranges"),
            f"{len(order.ranges):,}",
            f"{order.ranges[0].first:,} to {max(each.last for each in order.ranges):,}",
            f"{order.overlaps:,}" if order.overlaps else "none",
        )
        for order in shown
    ]
    hidden = 0 if history.order is None else history.order.buckets - len(shown)
    more = f"; {count_text(hidden, 'bucket')} with fewer files left out" if hidden else ""
    made = table(
        f"Files by the sequence numbers of their rows, on one scale from 0 to {short_number(last)}{more}",
        ("bucket", "", ">files", ">numbers", ">overlaps"),
        rows,
    )
    made.set("class", "scroll order")
    return made


def _range_marks(order: BucketOrder, last: int) -> list[Element]:
    flags = overlapping(order.ranges)
    regular = [each for each, bad in zip(order.ranges, flags, strict=True) if not bad]
    blocks = _blocks(regular, last)
    marks = [_ranges("even", blocks[::2], last), _ranges("odd", blocks[1::2], last)]
    if order.overlaps:
        bad = [(each.first, each.last) for each, flag in zip(order.ranges, flags, strict=True) if flag]
        marks.append(_ranges("bad", bad, last))
    return marks


def _blocks(ranges: Sequence[SequenceRange], last: int) -> list[tuple[int, int]]:
    """Join files that are too small to draw one by one with those after them."""
    blocks: list[tuple[int, int]] = []
    for each in ranges:
        if blocks and (blocks[-1][1] - blocks[-1][0] + 1) * WIDTH / last < 1:
            blocks[-1] = (blocks[-1][0], each.last)
        else:
            blocks.append((each.first, each.last))
    return blocks


def _ranges(kind: str, blocks: Iterable[tuple[int, int]], last: int) -> Element:
    parts = []
    for first, end in blocks:
        width = max((end - first + 1) * WIDTH / last, 1)
        parts.append(f"M{first * WIDTH / last:.1f} 0h{width:.1f}V{HEIGHT:.0f}h-{width:.1f}z")
    return node("path", {"class": f"fill {kind}", "d": "".join(parts)})
