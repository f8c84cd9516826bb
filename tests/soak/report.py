"""The figures of a record: what each series does after the warm-up, next to its bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.soak.bounds import Bound, Rule, Trend, is_kept, trend_of
from tests.soak.record import HELD, JVM, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.soak.record import Sample

MEMORY: Final = Bound(rule=Rule.SLOPE, share=0.05)
FLAT: Final = Bound(rule=Rule.LEVEL, share=1.05, floor=2)
"""Of handles and threads, which come and go: one that stays behind with each batch shows within minutes."""

BATCH: Final = Bound(rule=Rule.RATIO, share=1.3)
BOUNDED: Final = Bound(rule=Rule.PEAK, share=1.3, floor=16)
SHOWN: Final = Bound(rule=Rule.NONE)
SHORTEST_SLOPE_SECONDS: Final = 600.0
"""Below, a slope says more about the noise than about the process."""
WORDS: Final = {
    "own_mb": "own memory",
    "heap_mb": "heap after a collection",
    "non_heap_mb": "outside of the heap",
    "jvm_threads": "live threads",
    "metaspace_mb": "classes' memory",
    "code_mb": "compiled code",
}
SPARK: Final = ("driver", "jvm", "workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One measured thing over time."""

    name: str
    unit: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]
    bound: Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A series and what it does.

    Attributes:
        verdict: ``ok``, ``BROKEN``, or nothing where the series is shown only or too short for a slope.
    """

    series: Series
    trend: Trend
    verdict: str


def figures(samples: Sequence[Sample], *, warm_up: float) -> list[Figure]:
    """Judge a record: processes part by part, as each part has its own; tables over all parts."""
    found = []
    for number in sorted({sample.part for sample in samples}):
        part = [sample for sample in samples if sample.part == number]
        for series in _of_processes(part, f"part {number}, " if number else ""):
            found += _judge(series, warm_up)
    for series in _of_tables(samples):
        found += _judge(series, warm_up)
    return found


def to_markdown(found: Iterable[Figure]) -> str:
    """Return the figures as a table."""
    lines = [
        "| what | unit | at the start | an hour | as a share | last quarter / first | peaks of halves | bound | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for figure in found:
        trend, series = figure.trend, figure.series
        before, after = trend.peaks
        lines.append(
            f"| {series.name} | {series.unit} | {trend.level:,.1f} | {trend.per_hour:+,.1f} | "
            f"{trend.share_per_hour:+.1%} | {trend.ratio:.2f} | {before:,.0f}, {after:,.0f} | "
            f"{_text(series.bound)} | {figure.verdict} |"
        )
    return "\n".join(lines)


def _judge(series: Series, warm_up: float) -> list[Figure]:
    trend = trend_of(series.seconds, series.values, warm_up=warm_up)
    if trend is None:
        return []
    rule = series.bound.rule
    is_judged = rule is not Rule.NONE and (rule is not Rule.SLOPE or trend.span_seconds >= SHORTEST_SLOPE_SECONDS)
    verdict = ("ok" if is_kept(trend, series.bound) else "BROKEN") if is_judged else ""
    return [Figure(series=series, trend=trend, verdict=verdict)]


def _of_processes(part: Sequence[Sample], prefix: str) -> Iterator[Series]:
    seconds = tuple(sample.seconds for sample in part)

    def series(name: str, unit: str, values: Iterable[float], bound: Bound) -> Series:
        return Series(name=prefix + name, unit=unit, seconds=seconds, values=tuple(values), bound=bound)

    for name in part[0].held:
        # The JVM takes what heap it is allowed before it collects: what is used after a collection counts.
        memory = SHOWN if name == "jvm" else MEMORY
        for what, unit, bound in (("own_mb", "MB", memory), ("handles", "", FLAT), ("threads", "", FLAT)):
            place = HELD.index(what)
            values = (sample.held[name][place] - _pooled(sample, name, what) for sample in part)
            yield series(f"{name}: {WORDS.get(what, what)}", unit, values, bound)
    for what, unit, bound in (
        ("heap_mb", "MB", MEMORY),
        ("non_heap_mb", "MB", SHOWN),
        ("classes", "", FLAT),
        ("jvm_threads", "", SHOWN),
        ("metaspace_mb", "MB", MEMORY),
        ("code_mb", "MB", SHOWN),
    ):
        if len(part[0].jvm) <= JVM.index(what):
            continue  # a record from before it was measured
        values = (sample.jvm[JVM.index(what)] for sample in part)
        yield series(f"jvm: {WORDS.get(what, what)}", unit, values, bound)
    yield from _of_batches(part, prefix)


def _pooled(sample: Sample, name: str, what: str) -> float:
    """Return how many of the JVM's threads do not count, as Spark's pools have a limit of their own."""
    place = JVM.index("pooled_threads")
    return sample.jvm[place] if (name, what) == ("jvm", "threads") and len(sample.jvm) > place else 0


def _of_batches(part: Sequence[Sample], prefix: str) -> Iterator[Series]:
    place = HELD.index("cpu_s")
    spent = [sum(sample.held[name][place] for name in SPARK) for sample in part]
    cpu, wall = [], []
    for before, after, sample in zip(spent, spent[1:], part[1:], strict=False):
        taken = [each for batches in sample.batches.values() for each in batches]
        if taken:
            # A worker that ended uncollected takes its time along.
            cpu.append((sample.seconds, max(after - before, 0.0) * 1000 / len(taken)))
            wall.append((sample.seconds, sum(taken) / len(taken)))
    for name, values, bound in (("processor time", cpu, BATCH), ("wall time", wall, SHOWN)):
        yield Series(
            name=f"{prefix}micro-batch: {name}",
            unit="ms",
            seconds=tuple(second for second, _ in values),
            values=tuple(value for _, value in values),
            bound=bound,
        )


def _of_tables(samples: Sequence[Sample]) -> Iterator[Series]:
    seconds, before, latest = [], 0.0, 0.0
    for previous, sample in zip([samples[0], *samples], samples, strict=False):
        if sample.part != previous.part:
            before += latest
        latest = sample.seconds
        seconds.append(before + sample.seconds)
    for name, first in samples[0].tables.items():
        for place, what in enumerate(TABLE if len(first) > 1 else ("files",)):
            values = tuple(float(sample.tables[name][place]) for sample in samples)
            label = f"{name}: {what.removesuffix('_kb').replace('_', ' ')}"
            unit = "kB" if what.endswith("_kb") else ""
            yield Series(name=label, unit=unit, seconds=tuple(seconds), values=values, bound=BOUNDED)


def _text(bound: Bound) -> str:
    match bound.rule:
        case Rule.SLOPE:
            return f"<= {bound.share:.0%} an hour" + (f" or {bound.floor:g}" if bound.floor else "")
        case Rule.RATIO:
            return f"<= {bound.share:g}x"
        case Rule.PEAK:
            return f"second half <= {bound.share:g}x or +{bound.floor:g}"
        case Rule.LEVEL:
            return f"last quarter <= {bound.share:g}x or +{bound.floor:g}"
        case Rule.NONE:
            return ""
