"""What attempts that were killed have left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit_tables import append, committer, new_table, row_counts, rows

from penstock.errors import CheckpointError
from penstock.table.commit.cleanup import staging_directory
from penstock.table.ref import FileLocator
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

from tests.unit.table.stream_sink.queries import batch, expire, files_of, run, start


def test_what_a_killed_attempt_left_where_spark_writes_goes_with_its_replay() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    first = start(ref, files).begin(batch(0))
    staging = staging_directory(ref, first)
    ref.file_io.write(f"{staging}/part-0", b"x")
    second = start(ref, files).begin(batch(0))
    assert second not in (None, first)
    assert not ref.file_io.exists(staging)


def test_what_killed_attempts_left_in_the_buckets_goes_after_the_replays_commit() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(5))
    message = rows(5)
    directory = FileLocator.of(ref).directory(message.partition, message.bucket)
    left = []
    for _ in range(3):
        job = start(ref, files).begin(batch(1))
        left.append(f"{directory}/data-{job}-0000-0.parquet")
        ref.file_io.write(left[-1], b"x")
    other = f"{directory}/data-{'0' * 8}-0000-0.parquet"
    ref.file_io.write(other, b"x")
    query = start(ref, files)
    query.begin(batch(1))
    assert all(ref.file_io.exists(path) for path in left), "the driver that left them might not be dead"
    recording = RecordingFileIO(ref.file_io)
    query.committer.ref = replace(ref, file_io=recording)
    query.commit(batch(1), (message,))
    assert not any(ref.file_io.exists(path) for path in left)
    assert ref.file_io.exists(other)
    query.begin(batch(2))
    query.commit(batch(2), (rows(1),))
    assert recording.paths(Operation.LIST, containing="bucket-") == (directory,), "once, and no other bucket"


def written_by(ref: TableRef, job_id: str, count: int) -> tuple[CommitMessage, str]:
    """A message with one file that bears the job's id, and its path; the file is there."""
    message = rows(count)
    file = replace(message.new_files[0], file_name=f"data-{job_id}-0.parquet")
    message = replace(message, new_files=(file,))
    return message, files_of(ref, message)[0]


def test_files_of_an_attempt_thought_dead_stay_where_it_lands_after_all() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    paused, again = start(ref, files), start(ref, files)
    first, live_path = written_by(ref, paused.begin(batch(0)), 5)
    second, replayed_path = written_by(ref, again.begin(batch(0)), 5)
    assert paused.commit(batch(0), (first,)).id == 1
    assert again.commit(batch(0), (second,)).id == 1
    assert row_counts(ref) == [5]
    assert ref.file_io.exists(live_path)
    assert not ref.file_io.exists(replayed_path)
    third, next_path = written_by(ref, again.begin(batch(1)), 6)
    again.commit(batch(1), (third,))
    assert ref.file_io.exists(live_path)
    assert ref.file_io.exists(next_path)


def test_files_of_a_batch_of_unknown_outcome_stay_when_it_is_accepted() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    message, path = written_by(ref, query.begin(batch(0)), 5)
    query.commit(batch(0), (message,))
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    again = start(ref.with_options({"penstock.accept-unknown-batch": "true"}), files)
    message, second = written_by(ref, again.begin(batch(0)), 5)
    again.commit(batch(0), (message,))
    assert row_counts(ref) == [5, 9, 9, 9, 5]
    assert ref.file_io.exists(path)
    assert ref.file_io.exists(second)


def test_a_rival_that_was_faster_with_the_same_batch_counts_and_with_another_one_does_not() -> None:
    for digest, lands in (("offsets of 0", True), ("others", False)):
        ref, files = new_table(), MemoryCheckpoint()
        query = start(ref, files)
        query.begin(batch(0))
        run(start(ref, MemoryCheckpoint(dict(files.files))), batch(0, digest), rows(5))
        if lands:
            assert query.commit(batch(0), (rows(5),)).id == 1
        else:
            with pytest.raises(CheckpointError, match="set back"):
                query.commit(batch(0), (rows(5),))
        assert row_counts(ref) == [5]
