"""Times beyond the calendar, as damaged files state, are printed."""

from dataclasses import replace

import pytest

from penstock.cli.describe import describe_snapshot
from penstock.cli.draw.words import moment_of
from penstock.spec.snapshot import CommitKind, Snapshot

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
    assert moment_of(9 * 10**18).isoformat() == "9999-12-31T00:00:00+00:00"
    assert moment_of(-9 * 10**18).isoformat() == "0001-01-02T00:00:00+00:00"
    assert moment_of(0).isoformat() == "1970-01-01T00:00:00+00:00"
