from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.draw.labels import (
    DAY,
    HOUR,
    YEAR,
    count_text,
    duration_words,
    name_text,
    rate_words,
    short_number,
    time_text,
)


@pytest.mark.parametrize(
    ("millis", "words"),
    [
        (0, "0 s"),
        (850, "850 ms"),
        (1_000, "1 s"),
        (9_940, "9.9 s"),
        (12_400, "12 s"),
        (59_999, "1 min"),
        (200_000, "3 min 20 s"),
        (HOUR, "1 h"),
        (5 * HOUR + 12 * 60_000 + 59_000, "5 h 12 min"),
        (2 * DAY + 4 * HOUR, "2 d 4 h"),
        (DAY + 59_000, "1 d"),
        (61 * DAY, "61 d"),
        (12.9 * YEAR, "12.9 years"),
        (-12_400, "-12 s"),
    ],
)
def test_durations_have_two_units_at_most(millis: float, words: str) -> None:
    assert duration_words(millis) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (0.25, "0.25"), (999.6, "1000"), (1_000, "1k"), (1_406, "1.41k"), (2_500_000, "2.5M"),
     (-20_000, "-20k"), (123_456, "123k"), (4e12, "4T")],
)  # fmt: skip
def test_numbers_of_an_axis_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


def test_times_outside_of_every_calendar_have_words() -> None:
    assert time_text(0) == "1970-01-01 00:00:00"
    assert time_text(-1, spec="milliseconds") == "1969-12-31 23:59:59.999"
    assert time_text(2**63 - 1) == "end of time"
    assert time_text(-(2**62)) == "before all time"


@given(st.integers(-(2**63), 2**63 - 1))
def test_no_watermark_is_too_strange_to_be_shown(millis: int) -> None:
    assert time_text(millis)
    assert duration_words(millis)


def test_names_are_cut_in_their_middle_and_show_what_would_act_on_a_terminal() -> None:
    assert name_text("short", 10) == "short"
    assert name_text("region=north/dt=2026-01-01", 16) == "region=…26-01-01"
    assert len(name_text("x" * 50, 17)) == 17
    assert name_text("a\x1b[31m\n") == r"a\x1b[31m\n"


def test_counts_and_rates_are_grammar() -> None:
    assert (count_text(1, "file"), count_text(1_234, "file")) == ("1 file", "1,234 files")
    assert (rate_words(60_000), rate_words(10_000)) == ("minute", "10 s")
