"""Leases between machines whose clocks disagree by minutes."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest

from penstock import LeaseHeldError, StorageError
from penstock.io.local import LocalFileIO
from penstock.table import storage_clock as module
from penstock.table.lease.holder import LeaseKeeper, acquire, find_holder
from penstock.table.storage_clock import load_storage_millis, storage_clock
from penstock.testing.requests import memory_store

if TYPE_CHECKING:
    from pathlib import Path

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
