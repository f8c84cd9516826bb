"""Faults of the disk under what works beside streams: merges in the background, and the files of an alignment group."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.faults.machine.cases import MERGING, Case, World, count_handles, rows
from tests.faults.machine.disk import REACHES, FailingDisk, Fault, moments_of

from penstock.errors import StorageError, TableStoreError
from penstock.io.local import LocalFileIO
from penstock.table.compact import background
from penstock.table.compact.background import BackgroundCompactor
from penstock.table.compact.job import merge_one
from penstock.table.lease import acquire
from penstock.table.stream.align.membership import GroupFiles, Membership
from penstock.table.stream.align.progress import AlignmentRule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import penstock

SAMPLES = [4, pytest.param(None, marks=pytest.mark.slow)]
LEASE_MILLIS = 100


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    disk = FailingDisk(tmp_path)
    disk.install(monkeypatch)
    monkeypatch.setattr(background, "acquire", partial(acquire, ttl_ms=LEASE_MILLIS))  # one that is left ends soon
    monkeypatch.setattr(logging.getLogger("penstock"), "disabled", True)
    return disk


def sample(faults: list[Fault], size: int | None) -> list[Fault]:
    return faults if size is None else [faults[(2 * place + 1) * len(faults) // (2 * size)] for place in range(size)]


def fill(table: penstock.Table) -> None:
    for number in range(6):
        table.append(rows(number, number + 10))


def merge_beside(table: penstock.Table) -> None:
    """Merge what can be merged now, as a stream does between its batches."""
    beside = BackgroundCompactor(table._ref, merge_one, commit_user="beside", max_tasks=1, idle_seconds=0.01)
    beside.start()
    beside.finish()


MERGE = Case(name="merge beside a stream", prepare=fill, run=merge_beside, options=MERGING)


@pytest.mark.parametrize("size", SAMPLES)
def test_merges_beside_a_stream_lose_nothing_and_go_on_after_the_fault(
    tmp_path: Path, disk: FailingDisk, size: int | None
) -> None:
    world = World(MERGE, tmp_path / "disk", disk)
    assert len(world.after.snapshot_ids) == len(world.before.snapshot_ids) + 1
    for fault in sample(list(world.faults()), size):
        world.reset()
        table = world.load()
        handles = count_handles()
        disk.begin(fault)
        try:
            with suppress(TableStoreError):  # at its start, before it has a thread
                merge_beside(table)
        finally:
            disk.end()
        where = f"{fault} ({world.calls[fault.at - 1]})"
        assert world.state().rows == world.before.rows, where
        assert count_handles() == handles, where
        time.sleep(LEASE_MILLIS / 1000)
        merge_beside(world.load())
        assert world.state().rows == world.before.rows, where
        assert world.load().files().num_rows == 1, where
        world.check_litter()


RULE = AlignmentRule(group="g", max_drift_ms=10, update_interval_ms=0, idle_ms=60_000, dead_ms=50, path=None)


def go_round(place: Path) -> StorageError | None:
    """Join a group, look, report and leave; return the error that came out."""
    one = Membership(GroupFiles(LocalFileIO(), str(place)), RULE, "d.one", keeps=False)
    try:
        one.join()
        one.look(is_fresh=True)
        one.report(5, has_rows=True, is_held=False)
    except StorageError as error:
        return error
    finally:
        one.leave()
    return None


def alignment_faults(disk: FailingDisk, place: Path) -> Iterator[Fault]:
    disk.begin()
    assert go_round(place) is None
    disk.end()
    calls = tuple(disk.calls)
    for at, (step, _) in enumerate(calls, 1):
        for number in sorted(each for each, reached in REACHES.items() if step in reached):
            for moment in moments_of(step):
                yield from (Fault(number=number, at=at, moment=moment, times=times) for times in (1, None))


@pytest.mark.parametrize("size", [12, pytest.param(None, marks=pytest.mark.slow)])
def test_a_group_removes_a_member_that_met_a_fault(tmp_path: Path, disk: FailingDisk, size: int | None) -> None:
    place = tmp_path / "alignment" / "g"
    for fault in sample(list(alignment_faults(disk, place)), size):
        handles = count_handles()
        disk.begin(fault)
        try:
            error = go_round(place)
        finally:
            disk.end()
        assert error is None or str(place) in str(error), fault
        assert count_handles() == handles, fault
        # Whoever comes next waits for nobody, once the member that could not leave counts as dead.
        time.sleep(2 * RULE.dead_ms / 1000)
        assert go_round(place) is None, fault
        assert [each for each in place.iterdir() if each.name.startswith("member-")] == [], fault


def test_what_a_killed_member_left_half_written_goes(tmp_path: Path) -> None:
    place = tmp_path / "alignment" / "g"
    place.mkdir(parents=True)
    old, young = (place / f".member-{name}.5b1c.tmp" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"{")
    os.utime(old, (1, 1))
    assert go_round(place) is None
    assert not old.exists()
    assert young.exists()
