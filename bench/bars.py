"""Horizontal bars as SVG: median times of contenders for one task, with the minimum and maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measure import Series

WIDTH: Final = 800
_LABELS: Final = 300
_VALUES: Final = 90
_BAR: Final = 18
_STEP: Final = 26
_TITLE: Final = 30
# Distinguishable on light and dark pages, and with red-green color blindness.
_OURS: Final = "#0b6fb8"
_THEIRS: Final = "#c8500a"
_GREY: Final = "#808080"


def to_svg(works: Sequence[tuple[str, Sequence[Series]]], ours: str) -> str:
    """Draw a group of bars for each task, below each other; each group has its own scale, from 0.

    Args:
        ours: prefix of the names of our contenders, which have another color.
    """
    height = sum(_TITLE + len(series) * _STEP + 10 for _, series in works)
    size = f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13" fill="{_GREY}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>']
    top = 0
    for work, series in works:
        parts.append(f'<g transform="translate(0 {top})">')
        parts.append(f'<text x="4" y="18" font-weight="bold">{escape(work)}</text>')
        most = max(max(each.seconds) for each in series)
        for number, each in enumerate(series):
            parts += _bar(each, _TITLE + number * _STEP, most, _OURS if each.contender.startswith(ours) else _THEIRS)
        parts.append("</g>")
        top += _TITLE + len(series) * _STEP + 10
    return "\n".join([*parts, "</svg>", ""])


def _bar(series: Series, y: int, most: float, colour: str) -> list[str]:
    def x(seconds: float) -> float:
        return _LABELS + seconds / most * (WIDTH - _LABELS - _VALUES)

    middle = y + _BAR / 2
    label = f"{series.contender} ({series.session})" if series.session else series.contender
    least, greatest = x(min(series.seconds)), x(max(series.seconds))
    return [
        f'<text x="{_LABELS - 8}" y="{middle + 4.5:.1f}" text-anchor="end">{escape(label)}</text>',
        f'<rect x="{_LABELS}" y="{y}" width="{x(series.median) - _LABELS:.1f}" height="{_BAR}" fill="{colour}"/>',
        f'<path d="M{least:.1f} {middle:.1f}H{greatest:.1f}" stroke="{_GREY}" stroke-width="2"/>',
        f'<text x="{greatest + 8:.1f}" y="{middle + 4.5:.1f}">{series.median:.3g} s</text>',
    ]
