"""Expiration on a full disk, which it is to free."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from tests.faults.machine.cases import CASES, World
from tests.faults.machine.disk import FailingDisk, Fault, Step

from penstock.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    disk = FailingDisk(tmp_path)
    disk.install(monkeypatch)
    return disk


def test_expiration_on_a_full_disk_makes_place_for_what_it_has_to_write(tmp_path: Path, disk: FailingDisk) -> None:
    world = World(next(case for case in CASES if case.name == "expire"), tmp_path / "disk", disk)
    world.reset()
    table = world.load()
    disk.begin(Fault(number=errno.ENOSPC, step=Step.CREATE))  # that of the announcement is the first
    world.case.run(table)
    disk.end()
    failed, again = [path for step, path in disk.calls if step is Step.CREATE][:2]
    assert failed.rpartition(".expiring.")[0] == again.rpartition(".expiring.")[0] != ""
    assert world.state() == world.after


def test_expiration_fails_where_deleting_the_hints_frees_nothing(tmp_path: Path, disk: FailingDisk) -> None:
    world = World(next(case for case in CASES if case.name == "expire"), tmp_path / "disk", disk)
    world.reset()
    disk.begin(Fault(number=errno.EDQUOT, step=Step.CREATE, times=None))
    with pytest.raises(StorageError, match="have the quota raised"):
        world.case.run(world.load())
    disk.end()
    assert world.state() == world.before
