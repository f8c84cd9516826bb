"""The rows of a small table as a chart, such as windows that a query computed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from penstock.cli.draw.labels import count_text, name_text, time_text
from penstock.cli.draw.node import node
from penstock.cli.draw.plot import dots, line, plot, x_labels
from penstock.cli.draw.scale import fraction_axis, time_axis
from penstock.cli.draw.tables import Bar, bar_table, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from penstock.cli.draw.scale import Axis

COLOURS: Final = 6
"""Number of lines whose colors can be distinguished."""

_DOTS: Final = 120
_TICKS: Final = 10
_ROWS: Final = 100
_BARS: Final = 40
_TIPS: Final = 400


class XKind(StrEnum):
    """Kind of the horizontal axis."""

    TIME = "time"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line.

    Attributes:
        name: empty when there is only one.
        points: x and y by ascending x; x is in ms on a time axis.
    """

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The chart data of a table.

    Attributes:
        bars: names and values, instead of series, when x is text.
        notes: about omitted data.
    """

    table: str
    x: str
    y: str
    by: str | None
    x_kind: XKind
    series: tuple[Series, ...]
    bars: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]


def draw_result(result: Result) -> Element:
    """Return the chart of a result with its table."""
    by = f", for each {name_text(result.by)}" if result.by is not None else ""
    head = node(
        "p",
        {"class": "head"},
        node("b", {}, f"{name_text(result.y)} by {name_text(result.x)}{by}"),
        " ",
        *(
            node("span", {"class": "key"}, node("i", {"class": f"live series{place}"}), name_text(series.name, 40))
            for place, series in enumerate(result.series)
            if result.by is not None
        ),
        node("span", {"class": "note"}, "; ".join(result.notes)),
    )
    body = _bars(result) if result.x_kind is XKind.TEXT else _lines(result)
    return node(
        "section",
        {"class": "result"},
        node("h2", {}, f"Result: {name_text(result.table)}"),
        *([node("div", {"class": "panel"}, head), *body]),
    )


def _bars(result: Result) -> list[Element]:
    if not result.bars:
        return [_nothing()]
    bars = [Bar(name=name_text(name, 60), value=max(value, 0), cells=(_number(value),)) for name, value in result.bars]
    caption = f"{count_text(len(bars), 'row')}, the greatest first"
    return [bar_table(caption, (name_text(result.x), "", f">{name_text(result.y)}"), bars, most=_BARS)]


def _lines(result: Result) -> list[Element]:
    points = [point for series in result.series for point in series.points]
    if not points:
        return [_nothing()]
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    if first == last:
        first, last = first - 1, last + 1
    x_axis = _x_axis(first, last, result.x_kind)
    y_axis = fraction_axis(max(y for _, y in points), min(y for _, y in points))
    marks = []
    for place, series in enumerate(result.series):
        places = [(x_axis.place(x), y_axis.place(y)) for x, y in series.points]
        is_function = max(Counter(x for x, _ in series.points).values(), default=1) == 1
        if is_function:
            marks.append(line(f"series{place}", places))
        if not is_function or len(places) <= _DOTS:
            marks.append(dots(f"series{place}", places))
    unit = "UTC" if result.x_kind is XKind.TIME else ""
    chart = node(
        "div",
        {"class": "timeline"},
        plot(marks, y_axis, x_axis=x_axis, tall=True),
        x_labels(x_axis, unit),
        _hits(result, x_axis),
        node("div", {"class": "cursor", "hidden": "hidden"}),
        node("div", {"class": "tip", "hidden": "hidden"}),
    )
    return [chart, _numbers(result)]


def _x_axis(first: float, last: float, kind: XKind) -> Axis:
    if kind is XKind.TIME:
        return time_axis(first, last, _TICKS)
    return fraction_axis(last, first, ticks=_TICKS)


def _hits(result: Result, axis: Axis) -> Element | None:
    places = sorted({x for series in result.series for x, _ in series.points})
    if len(places) > _TIPS:
        return None
    found: dict[float, list[str]] = {x: [_x_text(x, result.x_kind)] for x in places}
    for series in result.series:
        for x, y in series.points:
            found[x].append(f"{name_text(series.name, 40)} {_number(y)}".strip())
    at = [axis.place(x) * 1000 for x in places]
    edges = [0.0, *((before + after) / 2 for before, after in pairwise(at)), 1000.0]
    rects = [
        node(
            "rect",
            {"x": left, "y": 0, "width": right - left, "height": 1},
            node("title", {}, "\n".join(found[x])),
        )
        for x, (left, right) in zip(places, pairwise(edges), strict=True)
    ]
    attributes = {"class": "hits", "viewBox": "0 0 1000 1", "preserveAspectRatio": "none", "aria-hidden": "true"}
    return node("svg", {**attributes, "focusable": "false"}, *rects)


def _numbers(result: Result) -> Element:
    rows = sorted((x, series.name, y) for series in result.series for x, y in series.points)
    shown = rows[-_ROWS:]
    left = "" if len(shown) == len(rows) else f" of {len(rows):,}"
    x = name_text(result.x) + (", UTC" if result.x_kind is XKind.TIME else "")
    cells: Sequence[tuple[str, ...]]
    if result.by is None:
        head: tuple[str, ...] = (x, f">{name_text(result.y)}")
        cells = [(_x_text(at, result.x_kind), _number(y)) for at, _, y in shown]
    else:
        head = (x, name_text(result.by), f">{name_text(result.y)}")
        cells = [(_x_text(at, result.x_kind), name_text(name), _number(y)) for at, name, y in shown]
    numbers = table(f"The last {len(shown):,}{left} points", head, cells)
    return node("details", {}, node("summary", {}, "Numbers"), numbers)


def _nothing() -> Element:
    return node("p", {"class": "empty"}, "The table has no rows to draw.")


def _x_text(x: float, kind: XKind) -> str:
    return time_text(round(x)) if kind is XKind.TIME else _number(x)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"
