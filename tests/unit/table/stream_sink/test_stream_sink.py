"""Micro-batches become snapshots once, whatever happens to the process."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit_tables import append, committer, new_table, on, row_counts, rows
from tests.unit.table.stream_sink.queries import (
    QUERY,
    batch,
    run,
    snapshot_of,
    start,
    unchanged,
)

from penstock.errors import CommitUnknownError, StorageError
from penstock.format.snapshot import CommitKind
from penstock.table.store import MetadataStore
from penstock.table.stream_sink.committer import (
    BATCH_DIGEST,
)
from penstock.testing.file_io import FailingFileIO, Fault, ProcessDiedError, RecordingFileIO


def test_each_batch_is_one_snapshot_that_says_which() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(3):
        run(query, batch(batch_id), rows(10 + batch_id))
    assert row_counts(ref) == [10, 11, 12]
    for batch_id in range(3):
        snapshot = snapshot_of(ref, batch_id + 1)
        assert (snapshot.commit_user, snapshot.commit_identifier) == (QUERY, batch_id)
        assert snapshot.commit_kind is CommitKind.APPEND
        assert dict(snapshot.properties) == {BATCH_DIGEST: f"offsets of {batch_id}"}


def test_a_batch_without_rows_makes_no_snapshot_unless_that_is_wanted() -> None:
    ref = new_table()
    query = start(ref, MemoryCheckpoint())
    assert run(query, batch(0)) is None
    assert run(query, batch(1), rows()) is None
    assert MetadataStore(ref).latest_snapshot_id() is None
    forced = start(ref.with_options({"commit.force-create-snapshot": "true"}), MemoryCheckpoint())
    assert run(forced, batch(0)).total_record_count == 0


def test_a_batch_without_rows_makes_a_snapshot_where_the_watermark_moves() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    marks = [None, 50, 50, 40, None, 60]
    found = [run(query, replace(batch(number), watermark=mark)) for number, mark in enumerate(marks)]
    assert [None if each is None else (each.id, each.watermark) for each in found] == [
        None,
        (1, 50),
        None,
        None,
        None,
        (2, 60),
    ]
    behind = run(query, replace(batch(6), watermark=55), rows(1))
    assert behind is not None
    assert behind.watermark == 60


def test_snapshots_without_a_batch_show_which_one_they_follow_when_its_own_has_expired() -> None:
    ref = new_table().with_options({"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    files = MemoryCheckpoint()
    query, first = start(ref, files), replace(batch(0), upstream_times='{"a":5}')
    run(query, first, rows(5))
    for _ in range(4):
        query.commit_on_idle(first, None, is_forced=True)
    assert MetadataStore(ref).earliest_snapshot_id() == 4
    again = start(ref, files, has_batches=True)
    assert run(again, batch(0), rows(5)) is None
    assert again.upstream_times == '{"a":5}'
    assert run(start(ref, files, has_batches=True), batch(1), rows(6)).total_record_count == 11
    unchanged(ref, lambda: run(start(ref, files), batch(0), rows(5)), "up to 1 ")
    query = start(ref, files)
    query.commit_on_idle(batch(1), None, is_forced=True)
    unchanged(ref, lambda: run(start(ref, files), batch(1, "others"), rows(5)), "has the query's batches up to 1 ")


def test_what_partitions_came_to_in_a_batch_without_a_snapshot_is_known_after_a_restart() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    run(query, replace(batch(0), upstream_times='{"a":10}'), rows(5))
    assert run(query, replace(batch(1), upstream_times='{"a":50,"b":5}')) is None
    again = start(ref, files, has_batches=True)
    assert again.begin(batch(2)) is not None
    assert again.upstream_times == '{"a":50,"b":5}'


def test_a_replay_in_a_new_process_finds_itself_and_writes_nothing() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(5))
    committer(ref).commit(append(rows(1), user="other"))
    again = start(ref, files)
    assert run(again, batch(0), rows(5)) is None
    assert run(again, batch(1), rows(6)).id == 3
    assert row_counts(ref) == [5, 1, 6]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_process_that_dies_at_any_call_leaves_the_batch_there_once_after_its_replay(fault: Fault) -> None:
    for at in itertools.count(1):
        ref, files = new_table(), MemoryCheckpoint()
        run(start(ref, files), batch(0), rows(5))
        storage = FailingFileIO(ref.file_io, fault, at)
        try:
            run(start(on(ref, storage), files), batch(1), rows(6))
            died = False
        except ProcessDiedError:
            died = True
        again = start(ref, files)
        run(again, batch(1), rows(6))
        run(again, batch(2), rows(7))
        assert row_counts(ref) == [5, 6, 7], f"call {at}"
        if not died:
            break
    assert at > 15


def test_an_unknown_outcome_is_known_after_the_restart() -> None:
    ref, files = new_table(), MemoryCheckpoint()

    class Deaf(RecordingFileIO):
        """Puts snapshots, but says that it failed; then reads nothing any more."""

        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.inner.put_if_absent(path, data)
            raise StorageError("no answer", True)  # noqa: FBT003

        def read(self, path: str) -> bytes:
            if "/snapshot-" in path:
                raise StorageError("no answer", True)  # noqa: FBT003
            return self.inner.read(path)

    query = start(on(ref, Deaf(ref.file_io)), files)
    with pytest.raises(CommitUnknownError):
        run(query, batch(0), rows(5))
    assert run(start(ref, files), batch(0), rows(5)) is None
    assert row_counts(ref) == [5]


def test_complete_output_replaces_all_rows_each_time() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files, is_overwrite=True)
    assert run(query, batch(0)) is None
    run(query, batch(1), rows(4), rows(5, p="b"))
    last = run(query, batch(2), rows(6))
    assert (last.commit_kind, last.total_record_count) == (CommitKind.OVERWRITE, 6)
    assert run(start(ref, files, is_overwrite=True), batch(2), rows(6)) is None
    assert run(query, batch(3)).total_record_count == 0
    assert run(query, batch(4)) is None
