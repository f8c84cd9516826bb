"""Times beyond the calendar, as damaged files state, are printed."""

from dataclasses import replace

import pytest

from penstock.cli.draw.labels import datetime_of
from penstock.cli.draw.scale import time_axis
from penstock.cli.output.describe import describe_snapshot
from penstock.cli.times import instant_text
from penstock.clocks import to_wall_clock
from penstock.format.snapshot import CommitKind, Snapshot
from penstock.table.read.wait import shortfall

SNAPSHOT = Snapshot(
    id=1,
    schema_id=0,
    base_manifest_list="a",
    delta_manifest_list="b",
    commit_user="u",
    commit_identifier=1,
    commit_kind=CommitKind.APPEND,
    time_millis=0,
    total_record_count=0,
    delta_record_count=0,
)


@pytest.mark.parametrize("millis", [9 * 10**18, -9 * 10**18])
def test_a_commit_time_beyond_the_calendar_is_printed_as_a_number(millis: int) -> None:
    described = describe_snapshot(replace(SNAPSHOT, time_millis=millis))
    assert described["commit_time"] == f"{millis} ms, which is beyond the calendar"


def test_what_is_drawn_ends_with_the_calendar() -> None:
    assert datetime_of(9 * 10**18).isoformat() == "9999-12-31T00:00:00+00:00"
    assert datetime_of(-9 * 10**18).isoformat() == "0001-01-02T00:00:00+00:00"
    assert datetime_of(0).isoformat() == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("first", [9 * 10**18, -9 * 10**18, 253_402_300_800_000])
@pytest.mark.parametrize("span", [0, 1, 500, 10**18])
def test_an_axis_of_times_beyond_the_calendar_has_no_ticks(first: int, span: int) -> None:
    axis = time_axis(float(first), float(first + span), 4)
    assert axis.ticks == ()
    assert axis.place(axis.first) == 0
    assert axis.place(axis.last) == 1


def test_the_distance_to_a_watermark_is_shown_beyond_the_calendar() -> None:
    said = shortfall(9 * 10**18, replace(SNAPSHOT, watermark=-9 * 10**18))
    assert said.endswith(f"has a time beyond the calendar ({-9 * 10**18}), {18 * 10**18} ms behind")


@pytest.mark.parametrize("millis", [9 * 10**18, -9 * 10**18])
def test_times_of_files_beyond_the_calendar_are_kept(millis: int) -> None:
    assert instant_text(millis) == f"{millis} ms, which is beyond the calendar"
    assert to_wall_clock(millis) == millis
