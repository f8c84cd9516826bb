"""A driver that goes on after another one has taken its place, and after the snapshots that would show it are gone."""

from __future__ import annotations

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit.interleaved import commit_rows, expire_to
from tests.unit.table.commit_tables import new_table, row_counts, rows
from tests.unit.table.stream_sink.queries import FakeOwnership, batch, run, start

from penstock.errors import CheckpointError, LeaseHeldError


def test_a_batch_that_a_successor_may_have_committed_is_not_committed_again() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    paused = start(ref, files)
    run(paused, batch(0), rows(10))
    assert paused.begin(batch(1)) is not None
    successor = start(ref, files, has_batches=True)
    run(successor, batch(1), rows(11))
    commit_rows(ref, 1, 2, 3)
    expire_to(ref, 1)
    with pytest.raises(CheckpointError, match=r"batch 1 of query .* it is unknown whether"):
        paused.commit(batch(1), (rows(11),))
    assert row_counts(ref) == [10, 11, 1, 2, 3]


def test_who_has_lost_the_query_learns_it_then() -> None:
    ref, files, ownership = new_table(), MemoryCheckpoint(), FakeOwnership()
    paused = start(ref, files, ownership=ownership)
    run(paused, batch(0), rows(10))
    assert paused.begin(batch(1)) is not None
    run(start(ref, files, has_batches=True), batch(1), rows(11))
    commit_rows(ref, 1, 2, 3)
    expire_to(ref, 1)
    ownership.is_lost = True
    with pytest.raises(LeaseHeldError):
        paused.commit(batch(1), (rows(11),))
    assert row_counts(ref) == [10, 11, 1, 2, 3]


def test_a_batch_that_took_longer_than_snapshots_are_kept_is_committed_by_who_still_has_the_query() -> None:
    ref, ownership = new_table(), FakeOwnership()
    query = start(ref, MemoryCheckpoint(), ownership=ownership)
    run(query, batch(0), rows(10))
    assert query.begin(batch(1)) is not None
    commit_rows(ref, 1, 2, 3)
    expire_to(ref, 1)
    assert query.commit(batch(1), (rows(11),)) is not None
    assert row_counts(ref) == [10, 1, 2, 3, 11]
    assert ownership.looks == 1, "the lease is looked at only where the snapshots cannot say"


def test_the_option_to_accept_such_a_batch_holds_here_too() -> None:
    ref = new_table().with_options({"penstock.accept-unknown-batch": "true"})
    query = start(ref, MemoryCheckpoint())
    run(query, batch(0), rows(10))
    assert query.begin(batch(1)) is not None
    commit_rows(ref, 1, 2, 3)
    expire_to(ref, 1)
    assert query.commit(batch(1), (rows(11),)) is not None
    assert row_counts(ref) == [10, 1, 2, 3, 11]


def test_a_driver_that_replaced_one_that_may_be_alive_does_not_commit_a_batch_of_unknown_outcome() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    paused = start(ref, files)
    run(paused, batch(0), rows(10))
    assert paused.begin(batch(1)) is not None
    successor = start(ref, files, has_batches=True, ownership=FakeOwnership(may_have_rival=True))
    assert successor.begin(batch(1)) is not None
    paused.commit(batch(1), (rows(11),))  # it was about to put its snapshot when its lease was over
    commit_rows(ref, 1, 2)
    expire_to(ref, 1)
    with pytest.raises(CheckpointError, match="start the query again"):
        successor.commit(batch(1), (rows(11),))
    assert row_counts(ref) == [10, 11, 1, 2]


def test_once_it_has_committed_a_batch_it_commits_what_takes_longer_than_snapshots_are_kept() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(10))
    successor = start(ref, files, has_batches=True, ownership=FakeOwnership(may_have_rival=True))
    run(successor, batch(1), rows(11))
    assert successor.begin(batch(2)) is not None
    commit_rows(ref, 1, 2)
    expire_to(ref, 1)
    successor.commit(batch(2), (rows(12),))
    assert row_counts(ref) == [10, 11, 1, 2, 12]


def test_who_finds_its_batch_committed_by_another_one_looks_who_runs_the_query() -> None:
    ref, files, ownership = new_table(), MemoryCheckpoint(), FakeOwnership()
    paused = start(ref, files, ownership=ownership)
    run(paused, batch(0), rows(10))
    assert paused.begin(batch(1)) is not None
    run(start(ref, files, has_batches=True), batch(1), rows(11))
    ownership.is_lost = True
    with pytest.raises(LeaseHeldError):
        paused.begin(batch(1))
    with pytest.raises(LeaseHeldError):
        paused.commit(batch(1), (rows(11),))
    commit_rows(ref, 1, 2, 3)
    expire_to(ref, 1)
    with pytest.raises(LeaseHeldError):
        paused.begin(batch(2))
    assert row_counts(ref) == [10, 11, 1, 2, 3]
