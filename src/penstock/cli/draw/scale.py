"""Axes: which values get a tick, and the place of each value between 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.cli.draw.labels import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    YEAR,
    datetime_of,
    duration_words,
    millis_of,
    short_number,
)
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

TIME_STEPS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(each * SECOND for each in (1, 2, 5, 10, 15, 30)),
    *(each * MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * HOUR for each in (1, 2, 3, 6, 12)),
    *(each * DAY for each in (1, 2, 7, 14, 28, 91, 182, 364)),
    *(each * 364 * DAY for each in (2, 5, 10, 20, 50, 100, 200, 500)),
)
"""Usual units of time, in ms."""

# Ticks at the first of a month instead of every so many days.
_MONTHS: Final = {28 * DAY: 1, 91 * DAY: 3, 182 * DAY: 6, 364 * DAY: 12}
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One labelled place of an axis.

    Attributes:
        at: from 0 to 1.
        context: what the label omits, shown where it changes: the date of a time of day.
    """

    at: float
    label: str
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A linear axis."""

    first: float
    last: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        """Return the place of a value, from 0 to 1; outside of that range when it is beyond the axis."""
        return (value - self.first) / (self.last - self.first)


def time_step(span_ms: float, most: int) -> int:
    """Return the shortest length of time of which at most ``most`` fit into the span."""
    return next((step for step in TIME_STEPS if span_ms / step <= most), TIME_STEPS[-1])


def time_axis(first: float, last: float, most: int) -> Axis:
    """Return an axis of time with at most about ``most`` ticks.

    Args:
        first: ms, less than ``last``. Both may be outside of the calendar, where there are no ticks.
    """
    # So far from 1970 that the next float is more than 1 ms away, the two may be equal.
    last = max(last, first + 1, math.nextafter(first, math.inf))
    step = time_step(last - first, most)
    ticks = []
    context = None
    for time in _round_times(first, last, step):
        label, its_context = _label(time, step)
        at = (millis_of(time) - first) / (last - first)
        if not 0 <= at <= 1:
            continue
        ticks.append(Tick(at=at, label=label, context="" if its_context == context else its_context))
        context = its_context
    return Axis(first=first, last=last, ticks=tuple(ticks))


def number_axis(most: float, least: float = 0, *, ticks: int = 4) -> Axis:
    """Return an axis of numbers that includes 0."""
    return _linear(least, most, lambda rough: _round_up(max(rough, 1)), short_number, ticks)


def fraction_axis(most: float, least: float = 0, *, ticks: int = 4) -> Axis:
    """Return an axis of numbers that includes 0; its ticks need not be whole."""
    return _linear(least, most, _round_up, short_number, ticks)


def bytes_axis(most: float, *, ticks: int = 4) -> Axis:
    """Return an axis of sizes, by powers of 2."""
    return _linear(0, most, lambda rough: 2.0 ** math.ceil(math.log2(max(rough, 1))), _bytes_label, ticks)


def duration_axis(most: float, least: float = 0, *, ticks: int = 4) -> Axis:
    """Return an axis of durations in ms that includes 0."""
    return _linear(least, most, _duration_step, duration_words, ticks)


def _duration_step(rough: float) -> float:
    if rough > 2 * YEAR:
        return _round_up(rough / YEAR) * YEAR
    return next(step for step in TIME_STEPS if step >= rough)


def _linear(
    least: float, most: float, step_of: Callable[[float], float], label: Callable[[float], str], ticks: int
) -> Axis:
    least, most = min(least, 0), max(most, 0)
    step = step_of(((most - least) or 1) / ticks)
    low = math.floor(least / step)
    high = max(math.ceil(most / step), low + 1)
    span = high - low
    return Axis(
        first=low * step,
        last=high * step,
        ticks=tuple(Tick(at=number / span, label=label((low + number) * step)) for number in range(span + 1)),
    )


def _bytes_label(value: float) -> str:
    return bytes_text(int(value)).replace(".0 ", " ") if value else "0"


def _round_up(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(each * power for each in _ROUND if each * power >= rough * (1 - 1e-9))


def _round_times(first: float, last: float, step: int) -> Iterator[datetime]:
    """Yield round times from ``first`` to ``last``."""
    if step in _MONTHS or step > 364 * DAY:
        yield from _firsts_of_months(first, last, _MONTHS.get(step) or round(step / (364 * DAY)) * 12)
        return
    at = math.ceil(first / step) * step
    while at <= last:
        yield datetime_of(at)
        at += step


def _firsts_of_months(first: float, last: float, months: int) -> Iterator[datetime]:
    begin = datetime_of(first)
    number = math.ceil((begin.year * 12 + begin.month - 1) / months) * months
    while number < 9_999 * 12:
        time = datetime_of(0).replace(year=number // 12, month=number % 12 + 1, day=1)
        at = millis_of(time)
        if at > last:
            return
        if at >= first:
            yield time
        number += months


def _label(time: datetime, step: int) -> tuple[str, str]:
    """Return the label of a tick, and what it omits."""
    if step >= 364 * DAY:
        return f"{time:%Y}", ""
    if step >= 28 * DAY:
        return f"{time:%b}", f"{time:%Y}"
    if step >= DAY:
        return f"{time.day} {time:%b}", f"{time:%Y}"
    if step >= MINUTE:
        return f"{time:%H:%M}", f"{time:%Y-%m-%d}"
    if step >= SECOND:
        return f"{time:%H:%M:%S}", f"{time:%Y-%m-%d}"
    return f"{time:%S}.{time.microsecond // 1000:03}", f"{time:%Y-%m-%d %H:%M}"


def spread(ticks: Sequence[Tick], least: float) -> tuple[Tick, ...]:
    """Return the ticks with a minimum distance to those before them; ticks to keep first are kept in any case."""
    kept: list[Tick] = []
    for tick in ticks:
        if all(abs(tick.at - other.at) >= least for other in kept):
            kept.append(tick)
    return tuple(kept)
