"""The arithmetic of slopes and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.soak.bounds import HOUR, Bound, Rule, is_kept, trend_of
from tests.soak.record import Sample
from tests.soak.report import figures, to_markdown

TIMES = [10.0 * number for number in range(100)]
FINITE = st.floats(-1e6, 1e6)


@given(level=FINITE, per_second=st.floats(-1e3, 1e3), warm_up=st.floats(0, 500))
def test_a_line_has_its_own_slope(level: float, per_second: float, warm_up: float) -> None:
    trend = trend_of(TIMES, [level + per_second * time for time in TIMES], warm_up=warm_up)
    assert trend is not None
    assert trend.per_hour == pytest.approx(per_second * HOUR, rel=1e-6, abs=1e-2)
    begin = min(time for time in TIMES if time >= warm_up)
    assert trend.level == pytest.approx(level + per_second * begin, rel=1e-6, abs=1e-2)


@given(values=st.lists(st.floats(1, 1e6), min_size=100, max_size=100), junk=st.floats(0, 1e9))
def test_what_was_measured_in_the_warm_up_does_not_count(values: list[float], junk: float) -> None:
    spoilt = [junk if time < 300 else value for time, value in zip(TIMES, values, strict=True)]
    assert trend_of(TIMES, spoilt, warm_up=300) == trend_of(TIMES, values, warm_up=300)


@given(st.lists(st.floats(1, 1e6), min_size=100, max_size=100), st.floats(0.5, 100))
def test_another_unit_changes_no_verdict_on_a_share(values: list[float], factor: float) -> None:
    bounds = [Bound(rule=rule, share=1.3) for rule in (Rule.RATIO, Rule.PEAK)]
    one, other = (trend_of(TIMES, [each * by for each in values], warm_up=0) for by in (1.0, factor))
    assert one is not None
    assert other is not None
    assert other.ratio == pytest.approx(one.ratio)
    assert other.share_per_hour == pytest.approx(one.share_per_hour, rel=1e-4, abs=1e-6)
    for bound in bounds:
        before, after = one.peaks
        if abs(one.ratio - 1.3) > 1e-6 and abs(after / before - 1.3) > 1e-6:
            assert is_kept(one, bound) == is_kept(other, bound)


@pytest.mark.parametrize(
    ("growth", "bound", "kept"),
    [
        # 100 at the start; a leak of 6 an hour, and one of 4.
        (6 / HOUR, Bound(rule=Rule.SLOPE, share=0.05), False),
        (4 / HOUR, Bound(rule=Rule.SLOPE, share=0.05), True),
        (6 / HOUR, Bound(rule=Rule.SLOPE, share=0.05, floor=10), True),
        (-60 / HOUR, Bound(rule=Rule.SLOPE, share=0.05), True),
        (0.06, Bound(rule=Rule.RATIO, share=1.3), False),
        (0.03, Bound(rule=Rule.RATIO, share=1.3), True),
        (0.1, Bound(rule=Rule.PEAK, share=1.3), False),
        (0.1, Bound(rule=Rule.PEAK, share=1.3, floor=60), True),
        (0.1, Bound(rule=Rule.LEVEL, share=1.05), False),
        (0.1, Bound(rule=Rule.LEVEL, share=1.05, floor=80), True),
        (0.005, Bound(rule=Rule.LEVEL, share=1.05), True),
        (9.0, Bound(rule=Rule.NONE), True),
    ],
)
def test_growth_beyond_the_bound_is_found(growth: float, bound: Bound, *, kept: bool) -> None:
    trend = trend_of(TIMES, [100 + growth * time for time in TIMES], warm_up=0)
    assert trend is not None
    assert is_kept(trend, bound) is kept


def test_a_saw_tooth_is_bounded_and_a_growing_one_is_not() -> None:
    teeth = [number % 20 * 10.0 for number in range(100)]
    growing = [tooth * (1 + number / 50) for number, tooth in enumerate(teeth)]
    bound = Bound(rule=Rule.PEAK, share=1.3, floor=16)
    for values, kept in ((teeth, True), (growing, False)):
        trend = trend_of(TIMES, values, warm_up=100)
        assert trend is not None
        assert is_kept(trend, bound) is kept


def test_what_comes_and_goes_keeps_its_level() -> None:
    bound = Bound(rule=Rule.LEVEL, share=1.05, floor=2)
    spikes = [3.0 + 7.0 * (number % 11 == number // 50) for number in range(100)]
    trend = trend_of(TIMES, spikes, warm_up=0)
    assert trend is not None
    assert is_kept(trend, bound)


def test_too_few_samples_have_no_trend() -> None:
    assert trend_of(TIMES[:10], [1.0] * 10, warm_up=40) is None
    assert trend_of(TIMES[:10], [1.0] * 10, warm_up=20) is not None


def test_a_leak_in_the_second_part_is_found_in_that_part() -> None:
    samples = [_sample(part, 10.0 * number, leak=part * number * 0.01) for part in (0, 1) for number in range(120)]
    found = figures(samples, warm_up=60)
    broken = [figure.series.name for figure in found if figure.verdict == "BROKEN"]
    assert broken == ["part 1, driver: own memory"]
    # Tables go on from part to part: their time does, too.
    live = next(figure for figure in found if figure.series.name == "queue: live files")
    assert live.trend.span_seconds == pytest.approx(2 * 1190 - 60)
    assert to_markdown(found).count("BROKEN") == 1


def _sample(part: int, seconds: float, *, leak: float) -> Sample:
    held = [100.0, 50.0 + leak, 20, 10, seconds / 2, 1]
    return Sample(
        part=part,
        seconds=seconds,
        held={"driver": held, "jvm": [100.0, 50.0, 20, 10, seconds, 1], "workers": [0, 0, 0, 0, 0, 0]},
        jvm=(60, 120, 18000, 200),
        tables={"queue": [10, 20, 30, 100, 20, 8, 2], "scratch": [3]},
        batches={"queue": [500]},
        notes={"produced": seconds},
    )
