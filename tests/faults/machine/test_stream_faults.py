"""Streams beside failing disks: each batch once, no row left out, and a start after the fault goes on."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.faults.machine import streams
from tests.faults.machine.cases import World
from tests.faults.machine.disk import FailingDisk

from penstock.errors import TableStoreError
from penstock.table.lease import acquire
from penstock.table.stream import consumers, tail

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.machine.disk import Fault

SAMPLES = [4, pytest.param(None, marks=pytest.mark.slow)]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    disk = FailingDisk(tmp_path)
    disk.install(monkeypatch)
    for module in (consumers, tail):
        monkeypatch.setattr(module, "acquire", partial(acquire, ttl_ms=100))  # one that is left ends soon
    return disk


def sample(world: World, size: int | None) -> list[Fault]:
    faults = list(world.faults())
    return faults if size is None else [faults[(2 * place + 1) * len(faults) // (2 * size)] for place in range(size)]


@pytest.mark.parametrize("size", SAMPLES)
def test_a_batch_is_committed_once_whatever_failed(tmp_path: Path, disk: FailingDisk, size: int | None) -> None:
    world = World(streams.BATCH, tmp_path / "disk", disk)
    for fault in sample(world, size):
        world.try_fault(fault)


@pytest.mark.parametrize("size", SAMPLES)
def test_a_reader_leaves_no_row_out_and_goes_on(tmp_path: Path, disk: FailingDisk, size: int | None) -> None:
    world = World(streams.READER, tmp_path / "disk", disk)
    world.reset()
    all_rows = streams.read(world.load())
    assert len(all_rows) == 6
    for fault in sample(world, size):
        world.reset()
        first: list[int] = []
        error = read_with(world, disk, fault, first)
        again = streams.read(world.load())
        where = f"{fault}: {error!r}"
        assert len(first) == len(set(first)), where
        assert len(again) == len(set(again)), where
        # What came before the position was kept comes again; nothing is left out.
        assert set(first) | set(again) == set(all_rows), where
        assert world.state() == world.after, where
        if error is not None:
            assert fault.number == errno.ENOMEM or "retry" in str(error) or "damaged" in str(error), where


def read_with(world: World, disk: FailingDisk, fault: Fault, got: list[int]) -> TableStoreError | None:
    table = world.load()
    disk.begin(fault)
    try:
        streams.read_into(table, got)
    except TableStoreError as error:
        return error
    finally:
        disk.end()
    return None
