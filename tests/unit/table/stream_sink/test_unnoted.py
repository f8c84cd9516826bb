"""Batches where no checkpoint can be asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.table.commit.interleaved import commit_rows, expire_to
from tests.unit.table.commit_tables import append, committer, new_table, on, row_counts, rows
from tests.unit.table.stream_sink.queries import batch, expire, files_of, unchanged

from penstock.table.partition_scope import WholeTable
from penstock.table.stream_sink.committer import commit_unnoted
from penstock.testing.file_io import FailingFileIO, Fault, Operation, ProcessDiedError


def test_without_a_checkpoint_a_replay_is_found_and_its_files_go() -> None:
    ref = new_table()
    first = replace(batch(0), digest=None)
    commit_unnoted(ref, first, (rows(3),))
    committer(ref).commit(append(rows(9), user="other"))
    again = rows(3)
    paths = files_of(ref, again)
    assert commit_unnoted(ref, first, (again,)).id == 1
    assert not any(map(ref.file_io.exists, paths))
    assert commit_unnoted(ref, replace(first, id=1), (rows(4),)).properties == ()
    assert row_counts(ref) == [3, 9, 4]
    late = rows(5)
    paths = files_of(ref, late)
    unchanged(ref, lambda: commit_unnoted(ref, first, (late,)), "was set back")
    assert not any(map(ref.file_io.exists, paths))


def test_without_a_checkpoint_a_later_batch_that_may_have_expired_is_refused_and_a_first_one_is_new() -> None:
    ref = new_table()
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    later = replace(batch(1), digest=None)
    unchanged(ref, lambda: commit_unnoted(ref, later, (rows(1),)), "it is unknown whether")
    assert commit_unnoted(ref, replace(later, id=0), (rows(1),)).id == 4
    assert commit_unnoted(ref, later, (rows(2),)).id == 5
    assert commit_unnoted(ref, replace(later, id=2), (rows(2),), scope=WholeTable()).total_record_count == 2


def test_without_a_checkpoint_a_first_batch_without_rows_makes_the_query_known() -> None:
    ref = new_table()
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    first, second, third = (replace(batch(number), digest=None) for number in range(3))
    for _ in range(2):
        assert commit_unnoted(ref, first, ()).id == 4
    assert commit_unnoted(ref, second, ()) is None
    committer(ref).commit(append(rows(9), user="other"))
    assert commit_unnoted(ref, third, (rows(7),)).id == 6
    assert row_counts(ref) == [9, 9, 9, 9, 7]


def test_a_first_batch_whose_snapshot_has_expired_is_not_committed_again() -> None:
    ref = new_table()
    commit_rows(ref, 8, 9)
    first = replace(batch(0), digest=None)
    commit_unnoted(ref, first, (rows(3),))
    commit_rows(ref, 1, 2)
    expire_to(ref, 1)
    again = rows(3)
    paths = files_of(ref, again)
    unchanged(ref, lambda: commit_unnoted(ref, first, (again,)), "it is unknown whether")
    assert not any(map(ref.file_io.exists, paths))
    accepted = ref.with_options({"penstock.accept-unknown-batch": "true"})
    assert commit_unnoted(accepted, first, (rows(3),)) is not None


def test_a_first_batch_that_was_noted_and_not_committed_is_committed_once() -> None:
    ref, other = new_table(), new_table()
    commit_rows(ref, 8, 9)
    commit_rows(other, 8, 9)
    first = replace(batch(0), digest=None)
    failing = FailingFileIO(other.file_io)
    commit_unnoted(on(other, failing), first, (rows(3),))
    at = [call.operation for call in failing.calls].index(Operation.PUT_IF_ABSENT) + 1
    failing = FailingFileIO(ref.file_io, Fault.CRASH_AFTER, at)
    with pytest.raises(ProcessDiedError):
        commit_unnoted(on(ref, failing), first, (rows(3),))
    for _ in range(2):
        assert commit_unnoted(ref, first, (rows(3),)) is not None
    assert row_counts(ref) == [8, 9, 3]


def test_a_batch_that_is_known_to_come_after_a_snapshot_needs_no_note_and_no_older_snapshots() -> None:
    ref = new_table()
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    first = replace(batch(0), digest=None)
    assert commit_unnoted(ref, first, (rows(3),), after_id=3).id == 4
    assert commit_unnoted(ref, first, (rows(3),), after_id=3).id == 4
    assert row_counts(ref) == [9, 9, 9, 3]
    assert not ref.file_io.list(ref.layout.query_directory)
    replaced = replace(first, commit_user="another")
    assert commit_unnoted(ref, replaced, (), after_id=4) is None
    assert commit_unnoted(ref, replaced, (), scope=WholeTable(), after_id=4).total_record_count == 0
    again = replace(first, commit_user="once more")
    assert commit_unnoted(ref, again, (), scope=WholeTable(), after_id=5).id == 6
