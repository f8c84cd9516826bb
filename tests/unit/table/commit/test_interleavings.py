"""Writers, an expiration and a rollback at once, in orders drawn at random: no acknowledged row is lost or doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.table.commit.interleaved import commit_rows
from tests.unit.table.commit.scheduler import ScheduledFileIO, Scheduler
from tests.unit.table.commit_tables import append, committer, new_table, on, row_counts, rows

from penstock.errors import CommitConflictError, CommitUnknownError
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.expire.snapshots import SnapshotExpirer
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.ref import TableRef

STAYS = (0.3, 0.9, 0.97)


class Run:
    """One run: which jobs there are, and what each append was told."""

    def __init__(self, seed: int) -> None:
        self.ref = new_table({"write-only": "true", "file-operation.thread-num": "1"})
        self.scheduler = Scheduler(seed, stay=STAYS[seed % len(STAYS)])
        self.acknowledged: dict[int, int] = {}
        self.unknown: set[int] = set()
        self.jobs: dict[str, Callable[[], object]] = {}

    def own(self, name: str) -> TableRef:
        return on(self.ref, ScheduledFileIO(self.ref.file_io, self.scheduler, name))

    def add_writer(self, name: str, *counts: int) -> None:
        """Append files of so many rows, one commit each."""

        def write() -> None:
            for count in counts:
                try:
                    snapshot = committer(self.own(name)).commit(append(rows(count)))
                except CommitUnknownError:
                    self.unknown.add(count)
                else:
                    assert snapshot is not None
                    self.acknowledged[count] = snapshot.id

        self.jobs[name] = write

    def add_expiration(self, name: str, times: int) -> None:
        def expire() -> None:
            for _ in range(times):
                ref = self.own(name)
                expirer = SnapshotExpirer(ref, MetadataStore(ref))
                expirer.run(expirer.rules(retain_min=1, retain_max=1, older_than=4_000_000_000_000))

        self.jobs[name] = expire

    def add_rollback(self, name: str, target: int) -> None:
        def roll_back() -> None:
            store = MetadataStore(self.own(name))
            apply_rollback(store, plan_rollback(store, snapshot_id=target))

        self.jobs[name] = roll_back

    def run(self) -> None:
        self.scheduler.run(self.jobs)


def check_expiration(seed: int) -> None:
    run = Run(seed)
    commit_rows(run.ref, 1)
    run.add_writer("a", 10, 11)
    run.add_writer("b", 20, 21, 22)
    run.add_writer("c", 30, 31, 32, 33)
    run.add_expiration("x", 4)
    run.run()
    assert not run.scheduler.errors
    found = row_counts(run.ref)
    assert len(found) == len(set(found)), found
    assert {1, *run.acknowledged} <= set(found), (found, run.acknowledged)
    assert set(found) <= {1, *run.acknowledged, *run.unknown}


def check_rollback(seed: int) -> None:
    run = Run(seed)
    commit_rows(run.ref, 1, 2, 3, 4)
    run.add_writer("a", 10, 11)
    run.add_writer("b", 20, 21, 22)
    run.add_rollback("r", 2)
    run.run()
    assert set(run.scheduler.errors) <= {"r"}
    assert all(isinstance(error, CommitConflictError) for error in run.scheduler.errors.values())
    found = row_counts(run.ref)
    assert len(found) == len(set(found)), found
    assert found[:2] == [1, 2]
    assert not {3, 4} & set(found)
    # What was put after the fence has to be there.
    puts = [
        (name, path)
        for name, operation, path, done in run.scheduler.events
        if operation is Operation.PUT_IF_ABSENT and done and "/snapshot-" in path
    ]
    fence = next(place for place, (name, _) in enumerate(puts) if name == "r")
    later = {path.rpartition("-")[2] for _, path in puts[fence + 1 :]}
    earlier = {path.rpartition("-")[2] for _, path in puts[:fence]}
    for count, snapshot_id in run.acknowledged.items():
        if str(snapshot_id) in later and str(snapshot_id) not in earlier:
            assert count in found, (count, snapshot_id, puts, found)
    before = row_counts(run.ref)
    for number in range(100, 110):
        commit_rows(run.ref, number)
        before.append(number)
        assert row_counts(run.ref) == before


@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_commits_and_expirations_loses_or_doubles_a_row(seed: int) -> None:
    check_expiration(seed)


@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_commits_and_a_rollback_loses_or_doubles_a_row(seed: int) -> None:
    check_rollback(seed)


@pytest.mark.slow
def test_no_order_of_many_loses_or_doubles_a_row() -> None:
    for seed in range(300):
        check_expiration(seed)
        check_rollback(seed)
