"""Line charts as SVG, for the docs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH: Final = 800
_PANEL_HEIGHT: Final = 190
_LEFT: Final = 60
_RIGHT: Final = 15
_TOP: Final = 34
_BOTTOM: Final = 26
_LEGEND_HEIGHT: Final = 26
_COLOURS: Final = ("#0b6fb8", "#c8500a", "#7fb2d9", "#eba67c")
"""Told apart on light and on dark pages, and by those who do not see red and green."""
_GREY: Final = "#808080"
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart; its vertical axis begins at 0.

    Attributes:
        lines: by name, the same names in every panel; points are equally spaced.
        limit: a horizontal line, if any.
    """

    title: str
    lines: Mapping[str, Sequence[float]]
    limit: float | None = None


def to_svg(panels: Sequence[Panel], *, x_most: float, x_title: str) -> str:
    """Draw panels below each other with a common horizontal axis from 0 to ``x_most``."""
    height = _LEGEND_HEIGHT + len(panels) * _PANEL_HEIGHT + 20
    size = f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{_GREY}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *_legend(list(panels[0].lines))]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate(0 {_LEGEND_HEIGHT + number * _PANEL_HEIGHT})">']
        parts += [*_panel(panel, x_most), "</g>"]
    parts += [_text(WIDTH / 2, height - 6, x_title, "middle"), "</svg>", ""]
    return "\n".join(parts)


def _legend(names: Sequence[str]) -> list[str]:
    width = (WIDTH - _LEFT) / len(names)
    parts = []
    for number, name in enumerate(names):
        x = _LEFT + number * width
        parts.append(f'<path d="M{x:.0f} 14h22" stroke="{_COLOURS[number]}" stroke-width="3"/>')
        parts.append(_text(x + 28, 18, name))
    return parts


def _panel(panel: Panel, x_most: float) -> list[str]:
    most = max(max(values) for values in panel.lines.values())
    step = _step(max(most, panel.limit or 0))
    top = step * math.ceil(max(most, panel.limit or 0) / step)
    parts = [_text(_LEFT, _TOP - 12, panel.title)]
    for number in range(round(top / step) + 1):
        y = _y(number * step, top)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{_GREY}" stroke-opacity="0.25"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{number * step:g}", "end"))
    for number in range(6):
        x = number * x_most / 5
        parts.append(_text(_x(x, x_most), _PANEL_HEIGHT - _BOTTOM + 16, f"{x:,.0f}", "middle"))
    if panel.limit is not None:
        y = _y(panel.limit, top)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{_GREY}" stroke-dasharray="6 4"/>')
    for colour, values in zip(_COLOURS, panel.lines.values(), strict=False):
        parts.append(f'<path d="{_path(values, x_most, top)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts


def _path(values: Sequence[float], x_most: float, top: float) -> str:
    points = [
        f"{_x((number + 1) * x_most / len(values), x_most):.1f} {_y(value, top):.1f}"
        for number, value in enumerate(values)
    ]
    return "M" + "L".join(points)


def _step(most: float) -> float:
    """Return the distance of the grid lines: a round number, for four to eight lines."""
    rough = (most or 1) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(each * power for each in _STEPS if each * power >= rough)


def _x(value: float, most: float) -> float:
    return _LEFT + value / most * (WIDTH - _LEFT - _RIGHT)


def _y(value: float, top: float) -> float:
    return _PANEL_HEIGHT - _BOTTOM - value / top * (_PANEL_HEIGHT - _TOP - _BOTTOM)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
