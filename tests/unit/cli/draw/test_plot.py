from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.draw.node import node, to_html
from penstock.cli.draw.plot import bars, steps, thin_out, ticks

POINTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=3_000)


@given(POINTS)
def test_thinning_out_keeps_extremes_and_ends(points: list[tuple[float, float]]) -> None:
    points.sort(key=lambda point: point[0])
    kept = thin_out(points)
    assert len(kept) <= 3 * 2_001
    assert max(y for _, y in kept) == max(y for _, y in points)
    assert min(y for _, y in kept) == min(y for _, y in points)
    assert kept[-1] == points[-1]
    assert kept == sorted(kept, key=lambda point: point[0])


def test_a_step_line_keeps_its_value_until_the_next_one() -> None:
    path = steps("live", [(0.1, 0.0), (0.2, 0.0), (0.5, 1.0)], until=0.9).get("d")
    assert path == "M100 100H500V0H900"
    assert steps("live", []).get("d") == ""


def test_bars_begin_at_their_base_and_are_never_too_thin_to_be_seen() -> None:
    path = bars("append", [(0.0, 0.1, 0.0, 0.5), (0.1, 0.2, 0.3, 0.3), (0.5, 0.5001, 0.0, 1.0)]).get("d", "")
    assert path == "M8 100V50h84V100zM499.35 100V0h1.4V100z"


def test_indistinguishable_marks_are_one() -> None:
    path = ticks("append", [number / 100_000 for number in range(100_000)]).get("d", "")
    assert len(re.findall("M", path)) == 10_001


class Echo(HTMLParser):
    """Puts what was parsed together again."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag, attrs]

    def handle_data(self, data: str) -> None:
        self.found.append(data)


@given(st.text(min_size=1))
def test_no_text_becomes_markup(text: str) -> None:
    echo = Echo()
    echo.feed(to_html(node("p", {"title": text}, text, node("b", {}), text)).removeprefix("<!doctype html>\n"))
    echo.close()
    assert echo.found == ["p", [("title", text)], text, "b", [], text, "\n"]
