from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.draw.labels import DAY, HOUR, MINUTE
from penstock.cli.draw.scale import (
    TIME_STEPS,
    Axis,
    Tick,
    bytes_axis,
    duration_axis,
    fraction_axis,
    number_axis,
    spread,
    time_axis,
    time_step,
)

# From the year 1 to 9999, with room for a span.
MOMENTS = st.integers(-62_000_000_000_000, 250_000_000_000_000)
SPANS = st.integers(1, 3_000_000_000_000)
T0 = 1_790_000_000_000  # 2026-09-21T14:13:20Z


def labels(axis: Axis) -> list[str]:
    return [f"{tick.label} {tick.context}".strip() for tick in axis.ticks]


@given(MOMENTS, SPANS, st.integers(2, 20))
def test_ticks_of_time_lie_on_the_axis_one_after_the_other(first: int, span: int, most: int) -> None:
    axis = time_axis(first, first + span, most)
    places = [tick.at for tick in axis.ticks]
    assert all(0 <= place <= 1 for place in places)
    assert all(before < after for before, after in pairwise(places))
    assert len(places) <= most + 2


AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-6, 1e15))


@given(AMOUNTS, AMOUNTS.map(lambda amount: -amount), st.sampled_from([number_axis, fraction_axis, duration_axis]))
def test_an_axis_holds_its_values_and_0(most: float, least: float, make: object) -> None:
    axis = make(most, least)  # type: ignore[operator]
    assert axis.first <= least <= 0 <= most <= axis.last
    assert axis.place(axis.first) == 0
    assert axis.place(axis.last) == 1
    assert any(abs(tick.at - axis.place(0)) < 1e-9 for tick in axis.ticks), "the base line is drawn"
    assert 2 <= len(axis.ticks) <= 7
    assert len({tick.label for tick in axis.ticks}) == len(axis.ticks), "no two ticks say the same"


def test_times_get_round_ticks_with_the_date_where_it_changes() -> None:
    assert labels(time_axis(T0, T0 + HOUR, 6)) == [
        "14:20 2026-09-21", "14:30", "14:40", "14:50", "15:00", "15:10",
    ]  # fmt: skip
    assert labels(time_axis(T0, T0 + 12 * HOUR, 5)) == ["15:00 2026-09-21", "18:00", "21:00", "00:00 2026-09-22"]
    assert labels(time_axis(T0, T0 + 400 * DAY, 5)) == ["Oct 2026", "Jan 2027", "Apr", "Jul", "Oct"]
    assert labels(time_axis(T0, T0 + 30 * 365 * DAY, 4)) == ["2030", "2040", "2050"]
    assert labels(time_axis(T0, T0 + 4, 4)) == [
        "20.000 2026-09-21 14:13", "20.001", "20.002", "20.003", "20.004",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (number_axis(1_406), ["0", "500", "1k", "1.5k"]),
        (number_axis(1), ["0", "1"]),
        (number_axis(0), ["0", "1"]),
        (number_axis(60_000, -13_000), ["-20k", "0", "20k", "40k", "60k"]),
        (fraction_axis(0.7), ["0", "0.2", "0.4", "0.6", "0.8"]),
        (bytes_axis(240_000), ["0", "64 KiB", "128 KiB", "192 KiB", "256 KiB"]),
        (bytes_axis(0), ["0", "1 B"]),
        (duration_axis(200_000), ["0 s", "1 min", "2 min", "3 min", "4 min"]),
        (duration_axis(0), ["0 s", "1 ms"]),
        (duration_axis(-1, -5_000), ["-6 s", "-4 s", "-2 s", "0 s"]),
    ],
)
def test_ticks_are_round_numbers_of_their_unit(axis: Axis, expected: list[str]) -> None:
    assert labels(axis) == expected


@given(SPANS, st.integers(1, 200))
def test_a_step_is_the_shortest_that_is_not_too_many(span: int, most: int) -> None:
    step = time_step(span, most)
    assert span / step <= most or step == TIME_STEPS[-1]
    assert all(span / shorter > most for shorter in TIME_STEPS if shorter < step)
    assert time_step(HOUR, 120) == MINUTE / 2


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0.01, 1))
def test_kept_ticks_are_apart_and_the_first_stays(places: list[float], least: float) -> None:
    ticks = [Tick(at=place, label="x") for place in places]
    kept = spread(ticks, least)
    assert list(kept[:1]) == ticks[:1]
    assert all(abs(one.at - other.at) >= least for one, other in pairwise(sorted(kept, key=lambda tick: tick.at)))
