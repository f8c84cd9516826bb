"""Times as files store them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from penstock.clocks import local_now, local_wall_millis, to_millis, to_wall_clock, utc_millis

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_a_wall_clock_is_the_local_time_as_if_it_were_utc() -> None:
    for moment in (datetime(2026, 1, 15, 12, tzinfo=UTC), datetime(2026, 7, 15, 12, tzinfo=UTC)):
        local = moment.astimezone().replace(tzinfo=UTC)
        assert to_wall_clock(to_millis(moment)) == to_millis(local)


@pytest.mark.usefixtures("zone")
def test_the_current_times_agree() -> None:
    assert abs(utc_millis() - time.time() * 1000) < 60_000
    assert abs(local_wall_millis() - to_millis(local_now())) < 60_000


def test_a_moment_is_ms_or_a_datetime_of_any_zone() -> None:
    assert to_millis(1_500) == 1_500
    assert to_millis(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
