"""Periods of tags and their names, as Java has them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidOptionError
from penstock.options import TagOptions
from penstock.table.tags.periods import tag_periods

at = datetime.fromisoformat


def options(**keys: str) -> TagOptions:
    return TagOptions.parse({f"tag.{key.replace('_', '-')}": value for key, value in keys.items()})


DAILY, HOURLY = options(), options(creation_period="hourly")
EVERY = [
    options(creation_period=period, period_formatter=formatter)
    for period in ("daily", "hourly", "two-hours")
    for formatter in ("with_dashes", "without_dashes", "without_dashes_and_spaces")
] + [options(creation_period_duration="15 min")]


@pytest.mark.parametrize(
    ("given_options", "name"),
    [
        (DAILY, "2023-07-18"),
        (options(period_formatter="without_dashes"), "20230718"),
        (options(period_formatter="without_dashes_and_spaces"), "20230718"),
        (HOURLY, "2023-07-19 11"),
        (options(creation_period="hourly", period_formatter="without_dashes"), "20230719 11"),
        (options(creation_period="hourly", period_formatter="without_dashes_and_spaces"), "2023071911"),
        (options(creation_period="two-hours", period_formatter="without_dashes"), "2023-07-19 10"),
        (options(creation_period_duration="5 min"), "202307191205"),
        (options(creation_period="hourly", creation_period_duration="1 d"), "202307180000"),
    ],
)
def test_the_period_that_has_ended_has_the_name_that_java_gives_it(given_options: TagOptions, name: str) -> None:
    periods = tag_periods(given_options, "db.t")
    time = at("2023-07-19T12:12:19.123000")
    assert periods.name_of(periods.last_ended(time)) == name


@given(time=st.datetimes(min_value=at("1970-01-03"), max_value=at("9998-01-01")), periods=st.sampled_from(EVERY))
def test_a_name_leads_back_to_its_period(time: datetime, periods: TagOptions) -> None:
    found = tag_periods(periods, "db.t")
    ended = found.last_ended(time)
    assert found.beginning_of(found.name_of(ended)) == ended
    assert timedelta(0) < time - ended < 2 * found.length or time - ended == found.length


@pytest.mark.parametrize(
    ("given_options", "name", "beginning"),
    [
        (DAILY, "2024-02-29", at("2024-02-29")),
        (DAILY, "2024-02-29 10", at("2024-02-29")),  # an hourly one counts as a day's
        (DAILY, "2023-02-29", None),
        (DAILY, "2024-2-9", None),
        (DAILY, "", None),
        (DAILY, " 2024-02-29", None),
        (DAILY, "before-the-sale", None),
        (DAILY, "٢٠٢٤-٠٢-٢٩", None),
        (HOURLY, "2024-02-29 23", at("2024-02-29T23:00:00")),
        (HOURLY, "2024-02-29 24", None),
        (HOURLY, "2024-02-29", None),
        (HOURLY, "2024-02-29 10 x", None),
    ],
)
def test_which_names_are_those_of_periods(given_options: TagOptions, name: str, beginning: datetime | None) -> None:
    assert tag_periods(given_options, "db.t").beginning_of(name) == beginning


def test_times_before_1970_are_cut_off_towards_it_as_java_divides() -> None:
    periods = tag_periods(DAILY, "db.t")
    assert periods.last_ended(at("1969-12-31T12:00:00")) == at("1969-12-31")
    assert periods.last_ended(at("1970-01-01T12:00:00")) == at("1969-12-31")


def test_a_delay_has_to_be_shorter_than_a_period() -> None:
    tag_periods(options(creation_period="hourly", creation_delay="59 min"), "db.t")
    with pytest.raises(
        InvalidOptionError, match=r"table db.t: option 'tag.creation-delay' = '1 h': expected less .* 1 h"
    ):
        tag_periods(options(creation_period="hourly", creation_delay="60 min"), "db.t")
    with pytest.raises(InvalidOptionError, match="'0 ms': expected less than the period of the tags, 0 ms"):
        tag_periods(options(creation_period_duration="0 s"), "db.t")
