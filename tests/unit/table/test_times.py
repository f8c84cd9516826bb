"""Time zones, times of partitions, and the clock of the storage."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from tests.support.counted_requests import memory_store

from penstock import LeaseHeldError, StorageError
from penstock.errors import InvalidOptionError
from penstock.format.types.ddl import parse_columns
from penstock.io.local import LocalFileIO
from penstock.table import times as module
from penstock.table.lease import LeaseKeeper, acquire, find_holder
from penstock.table.times import load_storage_millis, parse_zone, partition_time_parser, storage_clock, wall_clock

if TYPE_CHECKING:
    from pathlib import Path

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


def time_of(columns: str, *values: object, pattern: str | None = None, formatter: str | None = None) -> str | None:
    fields = parse_columns(columns)
    found = partition_time_parser(fields, pattern=pattern, formatter=formatter, table="db.t")(values)
    assert found is None or isinstance(found, datetime)
    return None if found is None else found.isoformat(sep=" ")


def test_the_first_column_is_a_day_or_a_moment() -> None:
    assert time_of("dt STRING", "2026-01-31") == "2026-01-31 00:00:00"
    assert time_of("dt STRING", "2026-1-3") == "2026-01-03 00:00:00"
    assert time_of("dt STRING, hr INT", "2026-01-31 4:05:06.5", 7) == "2026-01-31 04:05:06.500000"


def test_a_date_needs_no_text() -> None:
    assert time_of("dt DATE", 20_000) == "2024-10-04 00:00:00"


def test_a_pattern_takes_columns_by_their_longest_name() -> None:
    assert time_of("d STRING, dh INT", "2026-01-31", 7, pattern="$d $dh:00:00") == "2026-01-31 07:00:00"


def test_a_formatter_says_how_the_time_is_written() -> None:
    assert time_of("dt STRING", "20260131", formatter="yyyyMMdd") == "2026-01-31 00:00:00"
    assert time_of("dt INT", 2026013123, formatter="yyyyMMddHH") == "2026-01-31 23:00:00"
    assert time_of("dt STRING", "2026-01-31T05:06", formatter="yyyy-MM-dd'T'HH:mm") == "2026-01-31 05:06:00"


@pytest.mark.parametrize("value", [None, "", "today", "2026-13-01", "2026-01-31x", "__DEFAULT_PARTITION__", "20260131"])
def test_what_is_no_time_has_none(value: str | None) -> None:
    assert time_of("dt STRING", value) is None


def test_a_formatter_refuses_values_of_another_length() -> None:
    assert time_of("dt STRING", "2026131", formatter="yyyyMMdd") is None


def test_a_pattern_without_a_column_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"names no partition column: take \$dt"):
        time_of("dt STRING", "x", pattern="$day")


@pytest.mark.parametrize("formatter", ["EEE", "yyyy-yyyy", "yyyy-MM-dd'T"])
def test_letters_that_are_not_known_are_refused(formatter: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"only y, M, d, H, m, s, S"):
        time_of("dt STRING", "x", formatter=formatter)


MINUTES = 10 * 60_000


@pytest.mark.parametrize("wrong_by", [MINUTES, -MINUTES])
def test_a_lease_is_held_whatever_the_clock_of_the_next_machine_shows(
    wrong_by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_io = memory_store(f"lease-{uuid.uuid4()}")
    location = f"{file_io.settings.address.root}/t"
    with LeaseKeeper(acquire(file_io, location, "consumer-a", ttl_ms=3_000)):
        monkeypatch.setattr(module, "utc_millis", lambda: time.time_ns() // 1_000_000 + wrong_by)
        with pytest.raises(LeaseHeldError, match="'consumer-a' is in use"):
            acquire(file_io, location, "consumer-a", ttl_ms=3_000)
        assert find_holder(file_io, location, "consumer-a") is not None
    assert find_holder(file_io, location, "consumer-a") is None
    acquire(file_io, location, "consumer-a", ttl_ms=3_000).release()


def test_a_holder_whose_machine_was_suspended_renews_its_lease_to_a_time_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file_io = memory_store(f"lease-{uuid.uuid4()}")
    location = f"{file_io.settings.address.root}/t"
    suspended = [0.0]
    monkeypatch.setattr(module, "elapsed_seconds", lambda: time.monotonic() + suspended[0])
    lease = acquire(file_io, location, "consumer-a")
    held = lease._record
    suspended[0] = MINUTES / 1000
    lease.renew()
    assert lease._record.expires_millis - held.expires_millis >= MINUTES


def test_the_clock_is_that_of_the_storage_and_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    file_io = memory_store(f"clock-{uuid.uuid4()}")
    location = f"{file_io.settings.address.root}/t"
    now = time.time_ns() // 1_000_000
    monkeypatch.setattr(module, "utc_millis", lambda: now + MINUTES)
    clock = storage_clock(file_io, location)
    assert abs(clock() - now) < MINUTES / 2
    assert (load_storage_millis(file_io, location) or 0) > 0
    assert file_io.list(f"{location}/.penstock") == ()


@pytest.mark.parametrize("retryable", [True, False])
def test_a_storage_that_fails_for_a_moment_is_not_dated_by_the_machine(
    *, retryable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_io = memory_store(f"clock-{uuid.uuid4()}")

    def fail(_self: object, path: str, _data: bytes) -> None:
        raise StorageError(f"cannot write {path}: 503", retryable)

    monkeypatch.setattr(type(file_io), "write", fail)
    location = f"{file_io.settings.address.root}/t"
    if retryable:
        with pytest.raises(StorageError, match="503"):
            storage_clock(file_io, location)
    else:
        assert storage_clock(file_io, location) is module.utc_millis


@pytest.mark.parametrize(("wrong_by", "shown"), [(MINUTES, 0), (-MINUTES, 0), (1_000, 1_000)])
def test_a_wrong_clock_is_corrected_by_the_times_of_files(
    wrong_by: int, shown: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = time.time_ns() // 1_000_000
    monkeypatch.setattr(module, "utc_millis", lambda: time.time_ns() // 1_000_000 + wrong_by)
    assert abs(storage_clock(LocalFileIO(), str(tmp_path))() - now - shown) < 60_000
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
