"""The history benchmark at toy size, and the plot that is drawn of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from bench import history_flat, history_plot
from bench.chart import Panel, to_svg
from bench.result import to_json
from bench.settings import TOY

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_every_course_is_run_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [history_flat.measure(TOY), history_flat.measure_beside(TOY)]
    names = {check.name for section in sections for check in section.checks}
    for kind in history_flat.COURSES:
        assert {f"{kind}: {trace}" for trace in (history_flat.BATCH_TIME, history_flat.LIVE_FILES)} <= names
    result = tmp_path / "result.json"
    raw = [to_json(section) for section in sections]
    result.write_text(json.dumps({"sections": raw, "settings": {"history_batches": TOY.history_batches}}))
    monkeypatch.setattr(history_plot, "PLOT", tmp_path / "img" / "history.svg")
    history_plot.main([str(result)])
    root = ET.fromstring((tmp_path / "img" / "history.svg").read_text())  # noqa: S314 - our own
    lines = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    assert len(lines) == 3 * 2


def test_a_line_runs_over_the_whole_width_from_0_to_the_top() -> None:
    text = to_svg([Panel(title="a < b", lines={"x": [0.0, 5.0, 10.0]})], x_most=3, x_title="n")
    root = ET.fromstring(text)  # noqa: S314 - our own
    (line,) = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none"]
    points = [tuple(map(float, point.split())) for point in str(line.get("d"))[1:].split("L")]
    assert [x for x, _ in points] == pytest.approx([301.7, 543.3, 785.0], abs=0.1)
    (_, lowest), (_, middle), (_, highest) = points
    assert middle == pytest.approx((lowest + highest) / 2)
    assert "a < b" in {element.text for element in root.iter(f"{SVG}text")}
