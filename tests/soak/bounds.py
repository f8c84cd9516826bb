"""Slopes of measured series, and the bounds that they are held to. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

HOUR = 3600.0


class Rule(StrEnum):
    """What a series may do after the warm-up."""

    SLOPE = "slope"
    RATIO = "ratio"
    PEAK = "peak"
    LEVEL = "level"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A rule with its numbers.

    Attributes:
        share: ``SLOPE``: growth in an hour, as a part of the level at the end of the warm-up. ``RATIO``: the median of
            the last quarter may be this much times that of the first one. ``PEAK``: the same of the largest value of
            the second half and of the first one. ``LEVEL``: as ``RATIO``.
        floor: ``SLOPE``: growth in an hour that is always allowed. ``PEAK``, ``LEVEL``: the same of the difference.
    """

    rule: Rule
    share: float = 0.0
    floor: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What a series does after the warm-up.

    Attributes:
        level: the fitted line where it begins.
        per_hour: its slope.
        quarters: medians of the first and of the last quarter of the time.
        peaks: largest value of the first half of the time and of the second.
    """

    count: int
    span_seconds: float
    level: float
    per_hour: float
    quarters: tuple[float, float]
    peaks: tuple[float, float]

    @property
    def ratio(self) -> float:
        """The median of the last quarter over that of the first one."""
        return self.quarters[1] / self.quarters[0] if self.quarters[0] else 1.0

    @property
    def share_per_hour(self) -> float:
        """The slope as a part of the level."""
        return self.per_hour / self.level if self.level else 0.0


def trend_of(seconds: Sequence[float], values: Sequence[float], *, warm_up: float) -> Trend | None:
    """Return what a series does, by the median of the slopes between any two samples; None for less than eight of them.

    Args:
        seconds: when each value was measured; they only grow.
        warm_up: values measured before are left out.
    """
    kept = [(second, value) for second, value in zip(seconds, values, strict=True) if second >= warm_up]
    if len(kept) < 8 or kept[0][0] == kept[-1][0]:
        return None
    times, measured = [second for second, _ in kept], [value for _, value in kept]
    slope, intercept = _line_of(times, measured)
    begin, span = times[0], times[-1] - times[0]
    quarters = [
        statistics.median([value for second, value in kept if low <= second <= high] or measured)
        for low, high in ((begin, begin + span / 4), (begin + span * 3 / 4, times[-1]))
    ]
    middle = begin + span / 2
    return Trend(
        count=len(kept),
        span_seconds=span,
        level=intercept + slope * begin,
        per_hour=slope * HOUR,
        quarters=(quarters[0], quarters[1]),
        peaks=(
            max(value for second, value in kept if second <= middle),
            max(value for second, value in kept if second >= middle),
        ),
    )


def _line_of(times: Sequence[float], measured: Sequence[float]) -> tuple[float, float]:
    """Return slope and intercept by Theil and Sen, which a few samples of a busy moment do not move."""
    x, y = np.asarray(times), np.asarray(measured)
    first, second = np.triu_indices(len(x), k=1)
    apart = x[second] > x[first]
    slope = float(np.median((y[second] - y[first])[apart] / (x[second] - x[first])[apart]))
    return slope, float(np.median(y - slope * x))


def is_kept(trend: Trend, bound: Bound) -> bool:
    """Return whether a series stays within its bound."""
    match bound.rule:
        case Rule.SLOPE:
            return trend.per_hour <= max(bound.floor, bound.share * abs(trend.level))
        case Rule.RATIO:
            return trend.ratio <= bound.share
        case Rule.PEAK:
            before, after = trend.peaks
            return after <= max(bound.share * before, before + bound.floor)
        case Rule.LEVEL:
            first, last = trend.quarters
            return last <= max(bound.share * first, first + bound.floor)
        case Rule.NONE:
            return True
