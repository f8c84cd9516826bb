from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from penstock.errors import InvalidOptionError
from penstock.table.zones import parse_zone, wall_clock

at = datetime.fromisoformat

NOON = 1_767_268_800_000  # 2026-01-01 12:00 UTC


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("UTC", 12), ("Z", 12), ("GMT", 12), ("UT", 12), ("+08:00", 20), ("-08:00", 4), ("GMT+08:00", 20), ("UTC-5", 7),
        ("+0530", 17), ("America/Los_Angeles", 4), ("Europe/Berlin", 13), ("+8", 20),
    ],
)  # fmt: skip
def test_zones_have_the_names_that_java_gives_them(text: str, hour: int) -> None:
    clock = wall_clock(NOON, parse_zone(text, "k", "db.t"))
    assert clock is not None
    assert (clock.hour, clock.tzinfo) == (hour, None)


@pytest.mark.parametrize("text", ["", "Mars/Olympus", "+19:00", "+08:60", "8", "../etc/passwd", "Europe"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"table db.t: option 'k' = '.*': expected the name of a zone such as"):
        parse_zone(text, "k", "db.t")


def test_no_zone_is_that_of_this_machine() -> None:
    assert parse_zone(None, "k", "db.t") is None
    assert wall_clock(NOON, None) == datetime.fromtimestamp(NOON / 1000, UTC).astimezone().replace(tzinfo=None)


def test_days_of_23_hours_and_times_beyond_the_calendar() -> None:
    berlin = parse_zone("Europe/Berlin", "k", "db.t")
    before = datetime(2026, 3, 29, 1, 59, 59, 999_000, tzinfo=timezone(timedelta(hours=1)))
    millis = int(before.timestamp() * 1000)
    assert wall_clock(millis, berlin) == at("2026-03-29T01:59:59.999000")
    assert wall_clock(millis + 1, berlin) == at("2026-03-29T03:00:00")
    assert wall_clock(2**63 - 1, berlin) is None
    assert wall_clock(-(2**62), UTC) is None
