"""The parts of charts: a plot with its axes, and marks in it.

Marks are drawn in a box of 1000 x 100 that is stretched to the space available, with lines that keep their width; text
is HTML next to it, so that a chart is as readable on a narrow screen as on a wide one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.cli.draw.node import node, value_text
from penstock.cli.draw.scale import Tick, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from xml.etree.ElementTree import Element

    from penstock.cli.draw.scale import Axis

WIDTH: Final = 1000.0
HEIGHT: Final = 100.0

# Keeps adjacent bars apart.
_BAR_SHARE: Final = 0.84
_LEAST_BAR: Final = 1.4
# Space that a label takes of a wide screen, and of a narrow one.
_LABEL: Final = 0.07
_WIDE_LABEL: Final = 0.2


def box(marks: Iterable[Element], *, style: str = "", kind: str = "marks") -> Element:
    """Return the box that marks are drawn in."""
    attributes = {
        "class": kind,
        "viewBox": f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        "preserveAspectRatio": "none",
        "aria-hidden": "true",
        "focusable": "false",
    }
    return node("svg", {**attributes, **({"style": style} if style else {})}, *marks)


def plot(marks: Iterable[Element], axis: Axis, *, x_axis: Axis | None = None, tall: bool = False) -> Element:
    """Return a plot with its vertical axis at the left.

    Args:
        x_axis: whose ticks get a line through the plot.
        tall: twice as high.
    """
    grid = [_line(tick.at, "grid zero" if _is_zero(axis, tick.at) else "grid") for tick in axis.ticks]
    upright = [] if x_axis is None else [_upright(tick.at) for tick in x_axis.ticks]
    labels = [
        node("span", {"class": "tick", "style": f"bottom:{tick.at * 100:.2f}%"}, tick.label) for tick in axis.ticks
    ]
    return node(
        "div",
        {"class": "plot tall" if tall else "plot", "aria-hidden": "true"},
        node("div", {"class": "y"}, *labels),
        box([*upright, *grid, *marks]),
    )


def x_labels(axis: Axis, unit: str, *, now: float | None = None) -> Element:
    """Return the labels of a horizontal axis.

    Args:
        unit: of the axis, such as the time zone.
        now: position of the current time; None if it is not on the axis.
    """
    present = () if now is None else (Tick(at=now, label="now"),)
    # The label with the date is needed most.
    wanted = (*present, *sorted(axis.ticks, key=lambda tick: not tick.context))
    kept = spread(wanted, _LABEL)
    wide = spread(kept, _WIDE_LABEL)
    labels = []
    for tick in sorted(kept, key=lambda tick: tick.at):
        kinds = ["tick"]
        if tick not in wide:
            kinds.append("spare")
        if tick.at > 1 - _LABEL / 2:
            kinds.append("end")
        elif tick.at < _LABEL / 2:
            kinds.append("begin")
        context = node("small", {}, tick.context) if tick.context else None
        labels.append(
            node("span", {"class": " ".join(kinds), "style": f"left:{tick.at * 100:.2f}%"}, tick.label, context)
        )
    return node("div", {"class": "x", "aria-hidden": "true"}, node("span", {"class": "unit"}, unit), *labels)


def bars(kind: str, values: Sequence[tuple[float, float, float, float]]) -> Element:
    """Return bars as one path.

    Args:
        kind: class of the mark.
        values: left, right, bottom and top of each, from 0 to 1.
    """
    parts = []
    for left, right, bottom, top in values:
        if bottom == top:
            continue
        width = max((right - left) * WIDTH * _BAR_SHARE, _LEAST_BAR)
        x = (left + right) / 2 * WIDTH - width / 2
        parts.append(f"M{_n(x)} {_y(bottom)}V{_y(top)}h{_n(width)}V{_y(bottom)}z")
    return node("path", {"class": f"fill {kind}", "d": "".join(parts)})


def steps(kind: str, points: Sequence[tuple[float, float]], *, until: float | None = None) -> Element:
    """Return a line that keeps a value until the next one.

    Args:
        points: place and value of each, from 0 to 1, left to right.
        until: where the last value ends; None for at its own place.
    """
    return node("path", {"class": f"line {kind}", "d": _step_path(points, until)})


def step_area(kind: str, points: Sequence[tuple[float, float]], *, until: float | None = None) -> Element:
    """Return the area below such a line."""
    if not points:
        return node("path", {"class": f"fill {kind}", "d": ""})
    end = points[-1][0] if until is None else until
    path = f"{_step_path(points, until)}V{_y(0)}H{_n(points[0][0] * WIDTH)}z" if end > points[0][0] else ""
    return node("path", {"class": f"fill {kind}", "d": path})


def line(kind: str, points: Sequence[tuple[float, float]]) -> Element:
    """Return a line from point to point."""
    path = "L".join(f"{_n(x * WIDTH)} {_y(y)}" for x, y in points)
    return node("path", {"class": f"line {kind}", "d": f"M{path}" if points else ""})


def dots(kind: str, points: Iterable[tuple[float, float]]) -> Element:
    """Return dots; lines of no length, whose round ends are not stretched."""
    path = "".join(f"M{_n(x * WIDTH)} {_y(y)}h0" for x, y in points)
    return node("path", {"class": f"dot {kind}", "d": path})


def ticks(kind: str, places: Iterable[float]) -> Element:
    """Return vertical lines over the whole height; those too close to be distinguished are one."""
    seen = sorted({round(place * WIDTH, 1) for place in places})
    path = "".join(f"M{_n(x)} 0V{HEIGHT:.0f}" for x in seen)
    return node("path", {"class": f"stroke {kind}", "d": path})


def band(kind: str, left: float, right: float, *, bottom: float = 0, top: float = 1) -> Element:
    """Return a filled part of the plot, never too narrow to be seen."""
    width = max((right - left) * WIDTH, 2.0)
    return node(
        "rect",
        {
            "class": f"fill {kind}",
            "x": min(left * WIDTH, WIDTH - width),
            "y": (1 - top) * HEIGHT,
            "width": width,
            "height": (top - bottom) * HEIGHT,
        },
    )


def thin_out(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the visible points: of those within half a unit the lowest, the highest and the last."""
    groups: dict[int, list[int]] = {}
    for place, (x, _) in enumerate(points):
        groups.setdefault(int(x * WIDTH * 2), []).append(place)
    kept: list[int] = []
    for places in groups.values():
        extremes = {
            min(places, key=lambda place: points[place][1]), max(places, key=lambda place: points[place][1]), places[-1]
        }  # fmt: skip
        kept += sorted(extremes)
    return [points[place] for place in kept]


def _step_path(points: Sequence[tuple[float, float]], until: float | None) -> str:
    if not points:
        return ""
    (first_x, first_y), *rest = points
    parts = [f"M{_n(first_x * WIDTH)} {_y(first_y)}"]
    before = first_y
    for x, y in rest:
        if y != before:
            parts.append(f"H{_n(x * WIDTH)}V{_y(y)}")
            before = y
    end = points[-1][0] if until is None else until
    return "".join((*parts, f"H{_n(end * WIDTH)}"))


def _line(at: float, kind: str) -> Element:
    return node("path", {"class": kind, "d": f"M0 {_y(at)}H{WIDTH:.0f}"})


def _upright(at: float) -> Element:
    return node("path", {"class": "grid", "d": f"M{_n(at * WIDTH)} 0V{HEIGHT:.0f}"})


def _is_zero(axis: Axis, at: float) -> bool:
    return abs(axis.place(0) - at) < 1e-9


def _y(value: float) -> str:
    return _n((1 - value) * HEIGHT)


def _n(value: float) -> str:
    return value_text(float(value))
