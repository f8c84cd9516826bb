"""Draw the results of ``--only history-flat``: ``python -m bench.history_plot bench/results/<result>.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.chart import Panel, to_svg
from bench.history_flat import BATCH_TIME, COURSES, IN_TURN, LIVE_FILES, METADATA, MIN_FILES
from bench.result import from_json
from bench.settings import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.result import Section

PLOT: Final = ROOT / "docs" / "img" / "history.svg"


def draw(section: Section, batches: int) -> str:
    """Return the three charts of a section."""
    traces = {check.name: check.values for check in section.checks}

    def lines(trace: str, scale: float = 1) -> dict[str, tuple[float, ...]]:
        names = {kind: f"{kind}: {trace}" for kind in COURSES if f"{kind}: {trace}" in traces}
        return {kind: tuple(value * scale for value in traces[name]) for kind, name in names.items()}

    limit = next(iter(COURSES.values())).groups * 2 * MIN_FILES
    panels = (
        Panel(title="time of a micro-batch, ms", lines=lines(BATCH_TIME, 1000)),
        Panel(title=f"live files (limit {limit})", lines=lines(LIVE_FILES), limit=limit),
        Panel(title="snapshots and manifests, kB", lines=lines(METADATA)),
    )
    return to_svg(panels, x_most=batches, x_title="micro-batches")


def main(arguments: Sequence[str]) -> None:
    """Draw the plot of the docs from a result."""
    result = json.loads(Path(arguments[0]).read_text())
    section = next(from_json(each) for each in result["sections"] if each["name"] == IN_TURN)
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(draw(section, result["settings"]["history_batches"]))


if __name__ == "__main__":
    main(sys.argv[1:])
