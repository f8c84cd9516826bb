"""Times as files store them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

import pytest

from penstock.clocks import elapsed_seconds, local_now, local_wall_millis, to_millis, to_wall_clock, utc_millis

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


def test_elapsed_time_grows() -> None:
    before = elapsed_seconds()
    time.sleep(0.01)
    assert 0.01 <= elapsed_seconds() - before < 60


# In a namespace of time, the clock that counts suspensions is ahead by as much as if the machine had been suspended.
SUSPENDED: Final = ("unshare", "-T", "--boottime", "5000", "--fork")


@pytest.mark.skipif(
    sys.platform != "linux"
    or os.geteuid() != 0
    or subprocess.run([*SUSPENDED, "true"], check=False, capture_output=True).returncode != 0,
    reason="needs a namespace of time",
)
def test_elapsed_time_includes_that_of_a_suspended_machine() -> None:
    program = "import time; from penstock.clocks import elapsed_seconds; print(elapsed_seconds() - time.monotonic())"
    here, there = (
        float(subprocess.run([*apart, sys.executable, "-c", program], check=True, capture_output=True).stdout)
        for apart in ((), SUSPENDED)
    )
    assert there - here == pytest.approx(5000, abs=1)


def test_a_moment_is_ms_or_a_datetime_of_any_zone() -> None:
    assert to_millis(1_500) == 1_500
    assert to_millis(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
