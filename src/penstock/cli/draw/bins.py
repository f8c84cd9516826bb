"""Commits grouped into bins of equal time, so that a chart can show thousands of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.cli.draw.labels import MINUTE
from penstock.cli.draw.scale import time_step
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.api.history import Commit, TableHistory

# The minimum time span of a chart.
_LEAST_SPAN_MS = MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that is drawn, in bins of ``step_ms``.

    Attributes:
        first: ms; ``last`` is the end of the last bin.
        shows_now: whether it includes the time at which the history was read; otherwise it ends with the last commit.
    """

    first: int
    last: int
    step_ms: int
    shows_now: bool

    @property
    def count(self) -> int:
        """Number of bins."""
        return (self.last - self.first) // self.step_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The commits of one bin.

    Attributes:
        appended_rows: of APPEND snapshots; ``overwritten_rows`` were written and ``removed_rows`` removed by OVERWRITE
            snapshots.
        merged_bytes: written by COMPACT snapshots; ``new_bytes`` by all others.
        end: the last commit up to the end of the bin; None before the first one.
    """

    first: int
    last: int
    commits: tuple[Commit, ...]
    appended_rows: int
    overwritten_rows: int
    removed_rows: int
    new_bytes: int
    merged_bytes: int
    end: Commit | None


def window_of(history: TableHistory, most: int) -> Window:
    """Return the time range to draw: that of the commits read, extended to now unless the last one is long ago.

    Args:
        most: bins at most.
    """
    times = [commit.snapshot.time_millis for commit in history.commits] or [history.seen_millis]
    first, last = min(times), max(times)
    # A longer time without commits would leave them less than two thirds of the axis.
    shows_now = last <= history.seen_millis <= last + max((last - first) / 2, _LEAST_SPAN_MS)
    last = history.seen_millis if shows_now else last
    missing = max(0, _LEAST_SPAN_MS - (last - first))
    # The future is not drawn.
    after = 0 if shows_now else missing // 2
    first, last = first - (missing - after), last + after
    # The first bin begins at a round time, so one more bin may be needed.
    step = time_step(last - first, most - 1)
    first = first // step * step
    return Window(first=first, last=max(math.ceil(last / step) * step, first + step), step_ms=step, shows_now=shows_now)


def to_bins(commits: Sequence[Commit], window: Window) -> tuple[Bin, ...]:
    """Group commits, oldest first, into the bins of a window."""
    groups: list[list[Commit]] = [[] for _ in range(window.count)]
    for commit in commits:
        place = (commit.snapshot.time_millis - window.first) // window.step_ms
        groups[min(max(place, 0), window.count - 1)].append(commit)
    bins = []
    end: Commit | None = None
    for place, group in enumerate(groups):
        end = group[-1] if group else end
        begin = window.first + place * window.step_ms
        bins.append(_bin(begin, begin + window.step_ms, group, end))
    return tuple(bins)


def _bin(first: int, last: int, commits: Sequence[Commit], end: Commit | None) -> Bin:
    changes = [(commit.snapshot.commit_kind, commit.change) for commit in commits]
    return Bin(
        first=first,
        last=last,
        commits=tuple(commits),
        appended_rows=sum(change.added.rows for kind, change in changes if kind is CommitKind.APPEND),
        overwritten_rows=sum(change.new_rows for kind, change in changes if kind is CommitKind.OVERWRITE),
        removed_rows=sum(
            max(0, change.removed.rows - change.rewritten_rows)
            for kind, change in changes
            if kind is CommitKind.OVERWRITE
        ),
        new_bytes=sum(change.added.bytes for kind, change in changes if kind is not CommitKind.COMPACT),
        merged_bytes=sum(change.added.bytes for kind, change in changes if kind is CommitKind.COMPACT),
        end=end,
    )
