"""Leases on a disk that is full: who cannot give one back keeps nobody waiting."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from tests.faults.machine.disk import FailingDisk, Fault, Step

from penstock.errors import StorageError
from penstock.io.local import LocalFileIO
from penstock.table.lease import Lease, acquire

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    disk = FailingDisk(tmp_path)
    disk.install(monkeypatch)
    return disk


def take(place: Path) -> Lease:
    """Take the lease without waiting."""

    def sleep(_seconds: float) -> None:
        raise AssertionError("it waits for the end of a lease that nobody holds")

    return acquire(LocalFileIO(), str(place), "x", sleep=sleep)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_a_lease_is_given_back_on_a_full_disk(tmp_path: Path, disk: FailingDisk, number: int) -> None:
    lease = take(tmp_path)
    disk.begin(Fault(number=number, times=None, step=Step.CREATE))
    lease.release()
    disk.end()
    take(tmp_path).check()


def test_who_fails_after_its_file_was_made_leaves_none(tmp_path: Path, disk: FailingDisk) -> None:
    take(tmp_path).release()
    disk.begin()
    take(tmp_path).release()
    disk.end()
    (made,) = (number for number, (step, _) in enumerate(disk.calls, 1) if step is Step.LINK)
    disk.begin(Fault(number=errno.EMFILE, at=made, step=Step.LIST))
    with pytest.raises(StorageError, match="ulimit -n"):
        take(tmp_path)
    disk.end()
    take(tmp_path).check()


def test_the_end_of_a_block_gives_the_lease_back_whatever_happened_in_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), take(tmp_path):
        raise ValueError("inside")
    with take(tmp_path) as lease:
        lease.check()
    take(tmp_path).check()
