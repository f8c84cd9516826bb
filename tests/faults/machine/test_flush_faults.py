"""A snapshot whose name is there, and whose directory does not get onto the disk."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.faults.machine.cases import CASES, World
from tests.faults.machine.disk import FailingDisk, Fault, Step

from penstock.errors import CommitUnknownError, StorageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    disk = FailingDisk(tmp_path)
    disk.install(monkeypatch)
    return disk


def flush_fails(number: int, times: int | None) -> Fault:
    return Fault(number=number, times=times, step=Step.FLUSH, path_end="/snapshot")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_commit_is_acknowledged_only_once_its_name_is_on_the_disk(
    tmp_path: Path, disk: FailingDisk, number: int
) -> None:
    world = World(CASES[0], tmp_path / "disk", disk)
    table = world.load()
    disk.begin(flush_fails(number, 1))
    world.case.run(table)
    disk.end()
    linked = max(index for index, (step, _) in enumerate(disk.calls) if step is Step.LINK)
    flushed = [path for step, path in disk.calls[linked:] if step is Step.FLUSH and path.endswith("/snapshot")]
    assert len(flushed) == 1, "what failed is done again"
    assert world.state().rows != world.before.rows


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_commit_whose_name_does_not_get_onto_the_disk_is_unknown(
    tmp_path: Path, disk: FailingDisk, number: int
) -> None:
    world = World(CASES[0], tmp_path / "disk", disk)
    table = world.load()
    disk.begin(flush_fails(number, None))
    with pytest.raises(CommitUnknownError, match=r"table d\.t: the storage did not say whether snapshot 5") as caught:
        world.case.run(table)
    disk.end()
    assert isinstance(caught.value.__cause__.__cause__, OSError)  # type: ignore[union-attr] # the test is about it
    assert world.load().latest_snapshot().id == 5  # type: ignore[union-attr] # it is there


def test_a_tag_is_acknowledged_only_once_its_name_is_on_the_disk(tmp_path: Path, disk: FailingDisk) -> None:
    world = World(CASES[0], tmp_path / "disk", disk)
    table = world.load()
    fault = Fault(number=errno.EIO, step=Step.FLUSH, path_end="/tag")
    disk.begin(fault)
    table.create_tag("x")
    assert [path.endswith("/tag") for step, path in disk.calls if step is Step.FLUSH].count(True) == 2
    disk.begin(replace(fault, times=None))
    with pytest.raises(
        StorageError, match=r"tag-y \(which is there, but a power cut may undo it\): Input/output error"
    ):
        table.create_tag("y")
    disk.end()
    assert world.state().tags == ("x", "y")
