"""What the charts over time draw, and when."""

from __future__ import annotations

import itertools
import re
from typing import Any

from tests.unit.cli.draw.pages import Element, read_page
from tests.unit.table.inspect.history.histories import commit, history, reader

from penstock.cli.draw.labels import DAY, HOUR, MINUTE, YEAR
from penstock.cli.draw.page import draw_page
from penstock.clocks import END_OF_TIME_MS
from penstock.format.snapshot import CommitKind
from penstock.table.inspect.history.commits import Commit, FileSums
from penstock.table.inspect.history.history import TableHistory, TagMark

T0 = 1_790_000_040_000  # 2026-09-21T14:14:00Z, a whole minute


def page_of(*commits: Commit, **values: Any) -> Element:
    return read_page(draw_page([history(*commits, **values)]))


def panel(page: Element, title: str) -> Element:
    return next(each for each in page.with_class("panel") if each.text.startswith(title))


def path(part: Element, kind: str) -> str:
    return next(each.attributes["d"] for each in part.all("path") if each.attributes["class"].endswith(kind))


def tops(bars: str) -> list[float]:
    """Heights of bars, from 0 to 100."""
    return [float(base) - float(top) for base, top in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", bars)]


def every_minute(count: int, **values: Any) -> list[Commit]:
    return [commit(number + 1, T0 + number * MINUTE, **values) for number in range(count)]


def test_bars_are_as_high_as_their_rows() -> None:
    commits = [commit(number + 1, T0 + number * MINUTE, rows=rows) for number, rows in enumerate((50, 100, 20))]
    part = panel(page_of(*commits), "Rows written per 2 s")
    assert [tick.text for tick in part.with_class("tick")] == ["0", "25", "50", "75", "100"]
    assert tops(path(part, "append")) == [50, 100, 20]
    assert "170 in all" in part.text


def test_what_an_overwrite_replaces_is_below_0() -> None:
    commits = [*every_minute(3, rows=100), commit(9, T0 + 5 * MINUTE, rows=40, removed=60, kind=CommitKind.OVERWRITE)]
    part = panel(page_of(*commits), "Rows written")
    assert [tick.text for tick in part.with_class("tick")] == ["-100", "-50", "0", "50", "100"]
    written, replaced = (
        tops(each.attributes["d"]) for each in part.all("path") if each.attributes["class"].endswith("overwrite")
    )
    assert (written, replaced) == ([20], [30]), "a fifth and three tenths of an axis of 200"
    assert "by overwrites; below 0 what they replaced" in part.text
    assert "overwrites" not in panel(page_of(*every_minute(3)), "Rows written").text


def test_bytes_of_merges_are_above_those_of_new_rows() -> None:
    commits = [commit(1, T0, bytes=64), commit(2, T0 + 1, rows=0, bytes=192)]
    part = panel(page_of(*commits), "Bytes written")
    assert tops(path(part, "append")) == [25]
    assert tops(path(part, "compact")) == [75]
    assert "new rows, 64 B" in part.text
    assert "merges, 192 B" in part.text


def test_files_are_a_line_over_small_ones() -> None:
    commits = [
        commit(number, T0 + number * HOUR, live=FileSums(files=files, rows=1, bytes=1, small_files=small))
        for number, (files, small) in enumerate(((4, 4), (8, 2)))
    ]
    part = panel(page_of(*commits, seen_millis=T0 + 2 * HOUR), "Live files")
    assert "8 now, 2 of them small" in part.text
    assert [float(y) for y in re.findall(r"[V ]([\d.]+)", path(part, "live"))] == [50, 0]
    assert [float(y) for y in re.findall(r"[V ]([\d.]+)", path(part, "small"))] == [50, 75, 100]


def test_the_lag_is_drawn_and_long_standstills_are_shaded() -> None:
    moving = [commit(number, T0 + number * MINUTE, T0 + number * MINUTE - 30_000) for number in range(1, 20)]
    short = [commit(30 + number, T0 + (20 + number) * MINUTE, T0 + 20 * MINUTE) for number in range(5)]
    long = [commit(50 + number, T0 + (40 + number) * MINUTE, T0 + 39 * MINUTE) for number in range(12)]
    page = page_of(*moving, *short, *long)
    part = panel(page, "Event time lag")
    assert "commit time less watermark, 12 min at the last commit" in part.text
    assert len([each for each in part.all("rect") if "still" in each.attributes["class"]]) == 1
    assert "Stalls of the watermark (2)" in page.text
    assert "has not advanced for 11 min while 11 commits brought rows" in page.with_class("signs")[0].text
    assert not page_of(*moving).with_class("still")


def test_old_data_show_how_far_they_are() -> None:
    old = T0 - round(10 * YEAR)
    commits = [commit(number, T0 + number * MINUTE, old + number * DAY) for number in range(1, 6)]
    page = page_of(*commits)
    part = panel(page, "Watermark")
    assert "old data, 10.0 years before the clock" in part.text
    assert not [each for each in page.with_class("panel") if each.text.startswith("Event time lag")]
    heights = [float(y) for y in re.findall(r"[V ]([\d.]+)", path(part, "lag"))]
    assert heights == [100, 75, 50, 25, 0]


def test_without_watermarks_the_reason_is_shown() -> None:
    assert "the table declares none" in panel(page_of(*every_minute(3)), "Event time lag").text
    declared = page_of(*every_minute(3), event_time_column="t")
    assert "none of the snapshots read has one" in panel(declared, "Event time lag").text
    ended = page_of(*every_minute(3), commit(9, T0 + HOUR, END_OF_TIME_MS))
    assert "the input has ended" in ended.with_class("signs")[0].text


def test_a_reader_is_a_bar_from_what_it_has_not_read() -> None:
    commits = every_minute(61)
    lanes = panel(
        page_of(
            *commits,
            readers=(
                reader("done"),
                reader("half", snapshots=30, rows=30, unread_since_millis=T0 + 30 * MINUTE),
                reader("lost", snapshots=60, rows=60, unread_since_millis=T0 - DAY, expired_snapshots=2),
            ),
        ),
        "Readers",
    )
    assert [each.text for each in lanes.with_class("reader")] == [
        "lost has not read 60 rows in 60 commits, the oldest 1 d 1 h ago; 2 snapshots expired before it read them",
        "half has not read 30 rows in 30 commits, the oldest 30 min ago",
        "done has read everything",
    ]
    lost, half = lanes.all("rect")
    assert lost.attributes["x"] == "0", "from before the axis"
    assert 480 < float(half.attributes["x"]) <= 500
    many = page_of(*commits, readers=tuple(reader(f"r{number}") for number in range(14)))
    assert len(panel(many, "Readers").with_class("reader")) == 12
    assert "2 with less lag are in the table" in panel(many, "Readers").text


def test_names_of_tags_do_not_overlap() -> None:
    tags = tuple(
        TagMark(name=f"tag-{number}", snapshot_id=1, time_millis=T0 + number * MINUTE) for number in range(-5, 61)
    )
    lane = page_of(*every_minute(61), tags=tags).with_class("tags")[0]
    places = [float(each.attributes["style"].removeprefix("left:").rstrip("%")) for each in lane.with_class("label")]
    assert all(after - before >= 13 for before, after in itertools.pairwise(places))
    assert len(places) == 8
    assert path(lane, "tag").count("M") == 61, "each that is on the axis has its dot"


def test_the_item_under_the_pointer_is_described() -> None:
    page = page_of(*every_minute(3, rows=7), commit(9, T0 + 2 * MINUTE, rows=0, bytes=1_024), seen_millis=T0 + 130_000)
    tips = [each.text for each in page.with_class("hits")[0].all("title")]
    assert sum("7 rows written" in tip for tip in tips) == 3
    assert (
        "2026-09-21 14:16:00 UTC, 2 s\n1 APPEND, 1 COMPACT\n7 rows written\n"
        "100 B of new rows, 1.0 KiB by merges\nthen 9 files, 9 small"
    ) in tips
    assert "2026-09-21 14:16:02 UTC, 2 s\nno commits\nthen 9 files, 9 small" in tips


def test_an_axis_that_does_not_reach_now_says_so() -> None:
    def heading(seen: TableHistory) -> str:
        return panel(read_page(draw_page([seen])), "Commits").text

    commits = every_minute(61)
    assert "; the axis ends with the last one, 30 d ago" in heading(
        history(*commits, seen_millis=T0 + 60 * MINUTE + 30 * DAY)
    )
    assert "axis" not in heading(history(*commits, seen_millis=T0 + 70 * MINUTE))
