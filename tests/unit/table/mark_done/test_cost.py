"""What it costs to know which partitions are done."""

from __future__ import annotations

import time

from tests.unit.table.commit_tables import new_table, on
from tests.unit.table.mark_done.marking import DAILY, DAY, FIRST, HOUR, MINUTE, SECOND, START, Job, batch, marks

from penstock.testing.file_io import Operation, RecordingFileIO


def calls(recording: RecordingFileIO, text: str = "") -> list[str]:
    return list(recording.paths(containing=text))


def test_commits_ask_the_storage_nothing_for_it_while_nothing_is_due() -> None:
    counts = []
    for options in ({}, DAILY):
        ref = new_table(options)
        Job(ref).commit(FIRST, SECOND)
        recording = RecordingFileIO(ref.file_io)
        job = Job(on(ref, recording), START + HOUR)
        job.commit(FIRST)
        before = len(recording.calls)
        job.commit(FIRST, at=START + 2 * HOUR)
        job.commit(SECOND, at=START + 3 * HOUR)
        counts.append(len(recording.calls) - before)
    assert counts[0] == counts[1]


def days(count: int) -> list[str]:
    return [time.strftime("%Y-%m-%d", time.localtime((START - (number + 2) * DAY) / 1000)) for number in range(count)]


def test_a_job_that_starts_asks_for_each_of_many_partitions_once_and_then_for_none() -> None:
    ref = new_table(DAILY)
    many = sorted(set(days(300)))
    Job(ref, START - 400 * DAY).commit(*many)
    recording = RecordingFileIO(ref.file_io)
    Job(on(ref, recording)).commit(FIRST)
    assert len(marks(ref, *many)) == len(many)
    ref.file_io.delete(ref.layout.done_ledger_path)
    recording = RecordingFileIO(ref.file_io)
    Job(on(ref, recording), START + HOUR).commit(FIRST)
    assert len(calls(recording, "_SUCCESS")) == len(many)
    assert set(marks(ref, *many).values()) == {(START, START)}
    recording = RecordingFileIO(ref.file_io)
    Job(on(ref, recording), START + 2 * HOUR).commit(FIRST)
    assert calls(recording, "_SUCCESS") == []
    assert len(calls(recording, ref.layout.done_ledger_path)) == 2  # read and written


def test_short_jobs_that_follow_each_other_look_once_an_idle_time() -> None:
    ref = new_table({**DAILY, "partition.idle-time-to-done": "1 h"})
    looks = []
    for minutes in (0, 1, 30, 59, 61, 62):
        recording = RecordingFileIO(ref.file_io)
        batch(on(ref, recording), FIRST, now=START + minutes * MINUTE)
        looks.append(Operation.WRITE in {call.operation for call in recording.calls if "done-partitions" in call.path})
    assert looks == [True, False, False, False, True, False]


def test_but_none_comes_too_late_for_what_is_due() -> None:
    ref = new_table({**DAILY, "partition.idle-time-to-done": "1 h"})
    batch(ref, FIRST)
    batch(ref, SECOND, now=START + DAY + 59 * MINUTE)  # has looked
    at = START + DAY + 61 * MINUTE
    batch(ref, SECOND, now=at)
    assert marks(ref) == {FIRST: (at, at)}
