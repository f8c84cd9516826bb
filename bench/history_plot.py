"""Draws what ``history-flat`` and ``history-beside`` measured: ``python -m bench.history_plot <result>.json ...``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.chart import Panel, to_svg
from bench.history_flat import BATCH_TIME, BESIDE, COURSES, IN_TURN, LIVE_FILES, METADATA, MIN_FILES
from bench.result import from_json
from bench.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.result import Section

PLOT: Final = ROOT / "docs" / "img" / "history.svg"


def draw(sections: Iterable[Section], batches: int) -> str:
    """Return the three charts of the sections."""
    traces = {check.name: check.values for section in sections for check in section.checks}
    limit = next(iter(COURSES.values())).groups * 2 * MIN_FILES
    panels = (
        Panel(title="time of a micro-batch, ms", lines=_lines(traces, BATCH_TIME, 1000)),
        Panel(title=f"live files (limit {limit})", lines=_lines(traces, LIVE_FILES), limit=limit),
        Panel(title="snapshots and manifests, kB", lines=_lines(traces, METADATA)),
    )
    return to_svg(panels, x_most=batches, x_title="micro-batches")


def _lines(traces: Mapping[str, tuple[float, ...]], trace: str, scale: float = 1) -> dict[str, tuple[float, ...]]:
    names = {kind: f"{kind}: {trace}" for kind in COURSES}
    return {kind: tuple(value * scale for value in traces[name]) for kind, name in names.items()}


def main(arguments: Sequence[str]) -> None:
    """Draw the plot of the docs from results that together have both sections, of as many micro-batches."""
    results = [json.loads(Path(each).read_text()) for each in arguments]
    found = [each for result in results for each in result["sections"] if each["name"] in {IN_TURN, BESIDE}]
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(draw(map(from_json, found), results[0]["settings"]["history_batches"]))


if __name__ == "__main__":
    main(sys.argv[1:])
