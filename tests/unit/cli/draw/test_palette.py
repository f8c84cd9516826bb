"""Colours that can be read: WCAG's contrast of 4.5 for text and 3 for marks, on light, dark and paper."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = files("penstock.cli.draw").joinpath("report.css").read_text("utf-8")
THEMES = [
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
]
THEMES = [theme for theme in THEMES if "paper" in theme]
TEXTS = ("ink", "muted", "append", "compact", "overwrite", "analyze", "look", "good")
MARKS = (*TEXTS, "lag", "even", "axis")


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_there_are_three_themes_of_the_same_colours() -> None:
    light, dark, paper = THEMES
    assert light.keys() == dark.keys()
    assert paper.keys() == light.keys() - {"tip", "tip-ink"}, "nothing is pointed at on paper"


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark", "print"])
def test_colours_can_be_read(theme: dict[str, str]) -> None:
    for name in TEXTS:
        assert contrast(theme[name], theme["paper"]) >= 4.5, name
    for name in MARKS:
        assert contrast(theme[name], theme["paper"]) >= (2.5 if name == "axis" else 3), name
    # Lines over filled areas, and neighbours that touch.
    assert contrast(theme["ink"], theme["small"]) >= 4.5
    assert contrast(theme["lag"], theme["still"]) >= 3
    assert contrast(theme["even"], theme["odd"]) >= 2
