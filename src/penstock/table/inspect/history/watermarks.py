"""Stalls of the watermark while rows were added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.table.inspect.history.commits import Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledWatermark:
    """A period in which rows were committed but the watermark did not advance.

    Attributes:
        watermark: ms of event time.
        from_millis: commit time of the first snapshot with it that was read.
        to_millis: commit time of the last one that added rows and did not advance it.
        commits: number of commits that added rows and did not advance it.
        is_open: it has not ended.
    """

    watermark: int
    from_millis: int
    to_millis: int
    commits: int
    is_open: bool

    @property
    def duration_ms(self) -> int:
        """How long it lasted."""
        return max(0, self.to_millis - self.from_millis)


def find_stalled_watermarks(commits: Sequence[Commit]) -> tuple[StalledWatermark, ...]:
    """Find the periods in which rows were added but the watermark did not advance, oldest first.

    Periods without new rows are ignored.

    Args:
        commits: oldest first.
    """
    runs = [(watermark, tuple(run)) for watermark, run in groupby(commits, key=lambda commit: commit.watermark)]
    found = []
    for number, (watermark, run) in enumerate(runs):
        stuck = [commit for commit in run[1:] if commit.change.brings_rows]
        if watermark is None or not stuck:
            continue
        found.append(
            StalledWatermark(
                watermark=watermark,
                from_millis=run[0].snapshot.time_millis,
                to_millis=stuck[-1].snapshot.time_millis,
                commits=len(stuck),
                is_open=number + 1 == len(runs),
            )
        )
    return tuple(found)
