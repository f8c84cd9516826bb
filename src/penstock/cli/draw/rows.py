"""Rows of marks over time: commits by kind, tags, and the unread range of each reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.cli.draw.labels import count_text, duration_words, name_text
from penstock.cli.draw.node import node
from penstock.cli.draw.plot import band, box, dots, ticks
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from penstock.api.history import Reader, TableHistory, TagMark
    from penstock.cli.draw.scale import Axis

_READERS: Final = 12
_TAG_ROOM: Final = 0.13


def commit_lanes(history: TableHistory, axis: Axis, note: str) -> Element:
    """Return a row of marks for each kind of commit that occurs.

    Args:
        note: text after their number.
    """
    lanes = []
    for kind in CommitKind:
        places = [
            axis.place(commit.snapshot.time_millis) for commit in history.commits if commit.snapshot.commit_kind is kind
        ]
        if places:
            name = kind.value.lower()
            lanes.append(_lane(kind.value, box([ticks(name, places)]), name))
    count = count_text(len(history.commits), "commit") + note
    return node(
        "div",
        {"class": "panel"},
        node("p", {"class": "head"}, node("b", {}, "Commits"), " ", node("span", {"class": "note"}, count)),
        *lanes,
    )


def tag_lane(history: TableHistory, axis: Axis) -> Element | None:
    """Return a row with the tags in the drawn time range; None without any."""
    tags = [(axis.place(tag.time_millis), tag) for tag in sorted(history.tags, key=lambda tag: tag.time_millis)]
    tags = [(place, tag) for place, tag in tags if 0 <= place <= 1]
    if not tags:
        return None
    labels = []
    free = 0.0
    for place, tag in tags:
        if place >= free:
            labels.append(_tag_label(place, tag))
            free = place + _TAG_ROOM
    marks = node("div", {"class": "over"}, box([dots("tag", [(place, 0.5) for place, _ in tags])]), *labels)
    return node("div", {"class": "panel tags"}, _lane("tags", marks, "tag"))


def reader_lanes(history: TableHistory, axis: Axis) -> Element:
    """Return a row for each reader: from the first commit that it has not read to the end."""
    parts = []
    late = sorted(history.readers, key=lambda reader: (-reader.snapshots, reader.name))
    for reader in late[:_READERS]:
        since = reader.unread_since_millis
        end = min(1.0, axis.place(history.seen_millis))
        if since is None:
            marks = [dots("read", [(end, 0.5)])]
        else:
            marks = [band("unread", max(0.0, axis.place(since)), end, bottom=0.1, top=0.9)]
        text = node(
            "p", {"class": "reader"}, node("b", {}, name_text(reader.name, 48)), f" {unread_text(reader, history)}"
        )
        parts += [text, _lane("", box(marks), "")]
    if not history.readers:
        note = "no consumer, and no query was named"
    else:
        note = "what each has not read"
        note += f"; {len(late) - _READERS} with less lag are in the table" if len(late) > _READERS else ""
    head = node("p", {"class": "head"}, node("b", {}, "Readers"), " ", node("span", {"class": "note"}, note))
    return node("div", {"class": "panel"}, head, *parts)


def unread_text(reader: Reader, history: TableHistory) -> str:
    """Return the lag of a reader in words."""
    lost = (
        f"; {count_text(reader.expired_snapshots, 'snapshot')} expired before it read them"
        if reader.expired_snapshots
        else ""
    )
    if reader.unread_since_millis is None:
        return f"has read everything{lost}"
    age = duration_words(max(0, history.seen_millis - reader.unread_since_millis))
    return (
        f"has not read {count_text(reader.rows, 'row')} in {count_text(reader.snapshots, 'commit')}, the oldest "
        f"{age} ago{lost}"
    )


def _lane(name: str, marks: Element, kind: str) -> Element:
    return node(
        "div",
        {"class": "lane", "aria-hidden": "true"},
        node("span", {"class": f"name {kind}".strip()}, name),
        marks,
    )


def _tag_label(place: float, tag: TagMark) -> Element:
    side = " end" if place > 1 - _TAG_ROOM else ""
    return node("span", {"class": f"label{side}", "style": f"left:{place * 100:.2f}%"}, name_text(tag.name, 18))
