"""Full, broken and read-only disks, and too few handles, at every call to the operating system."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.faults.machine.cases import CASES, World
from tests.faults.machine.disk import FailingDisk

from penstock.table.lease import acquire
from penstock.table.stream import consumers

if TYPE_CHECKING:
    from pathlib import Path

_SAMPLE = 3


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    disk = FailingDisk(tmp_path)
    disk.install(monkeypatch)
    monkeypatch.setattr(consumers, "acquire", partial(acquire, ttl_ms=100))  # one that is left ends soon
    return World(request.param, tmp_path / "disk", disk)


@pytest.mark.parametrize("world", CASES, ids=lambda case: case.name, indirect=True)
def test_a_sample_of_faults_leaves_the_table_as_it_was_or_as_it_should_be(world: World) -> None:
    faults = list(world.faults())
    for place in range(_SAMPLE):
        # Another call, error, moment and duration each time.
        world.try_fault(faults[(2 * place + 1) * len(faults) // (2 * _SAMPLE)])
    assert world.count.faults == _SAMPLE


@pytest.mark.slow
@pytest.mark.parametrize("world", CASES, ids=lambda case: case.name, indirect=True)
def test_every_fault_leaves_the_table_as_it_was_or_as_it_should_be(
    world: World, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    for fault in world.faults():
        world.try_fault(fault)
    with capsys.disabled():
        name = request.node.callspec.id
        print(f"\n{name}: {world.count}", end="")  # noqa: T201 - asked for by those who watch the number
