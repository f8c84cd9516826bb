"""What a checkpoint keeps for us."""

from __future__ import annotations

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint

from penstock.table.stream_sink.batch_log import BatchNote, BatchNotes, CheckpointMark


def note(batch_id: int) -> BatchNote:
    return BatchNote(batch_id=batch_id, base_id=batch_id * 10, job_id=f"job-{batch_id}")


def test_the_newest_note_is_found_by_number_and_the_last_two_are_kept() -> None:
    files = MemoryCheckpoint()
    for batch_id in range(8, 12):
        BatchNotes(files).write(note(batch_id))
        assert BatchNotes(files).load_newest() == note(batch_id)
    assert sorted(files.files) == ["base-10", "base-11"]


def test_one_process_keeps_two_notes_without_asking_again_which_there_are() -> None:
    files = MemoryCheckpoint()
    notes = BatchNotes(files)
    notes.write(note(0))
    files.list = None  # type: ignore[assignment] # whoever calls it fails
    for batch_id in range(1, 5):
        notes.write(note(batch_id))
    assert sorted(files.files) == ["base-3", "base-4"]


def test_a_replay_replaces_its_note_and_keeps_the_one_before() -> None:
    files = MemoryCheckpoint()
    for batch_id in (1, 2, 2):
        BatchNotes(files).write(note(batch_id))
    assert sorted(files.files) == ["base-1", "base-2"]
    again = BatchNote(batch_id=2, base_id=99, job_id="again")
    BatchNotes(files).write(again)
    assert BatchNotes(files).load_newest() == again


def test_notes_of_later_batches_go_when_the_query_goes_on_before_them() -> None:
    files = MemoryCheckpoint()
    for batch_id in (7, 8):
        BatchNotes(files).write(note(batch_id))
    BatchNotes(files).write(note(5))
    assert sorted(files.files) == ["base-5"]


@pytest.mark.parametrize("damage", [b"", b'{"batch": 4, "ba', b"[]", b'{"batch": 4}'])
def test_a_note_that_was_cut_off_counts_as_not_there(damage: bytes) -> None:
    files = MemoryCheckpoint()
    for batch_id in (3, 4):
        BatchNotes(files).write(note(batch_id))
    files.files["base-4"] = damage
    assert BatchNotes(files).load_newest() == note(3)
    files.files["base-3"] = damage
    assert BatchNotes(files).load_newest() is None


def test_the_mark_is_no_note_and_survives() -> None:
    files = MemoryCheckpoint({"base-x": b"1", "other": b"2"})
    mark = CheckpointMark(location="/t", identity="i", base_id=3)
    notes = BatchNotes(files)
    assert notes.load_mark() is None
    notes.write_mark(mark)
    for batch_id in range(4):
        notes.write(note(batch_id))
    assert BatchNotes(files).load_mark() == mark
    assert {"base-x", "other"} <= files.files.keys()
    files.files["table"] = files.files["table"][:9]
    assert BatchNotes(files).load_mark() is None
