"""Partitions that are done: when they are marked, when again, what tells a job that starts, and what it costs."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.commit_tables import append, committer, new_table, on, partition, rows

from penstock import Catalog, Table
from penstock.errors import InvalidOptionError, NotFoundError, StorageError, UnsupportedFeatureError
from penstock.spec.layout import done_ledger_path, partition_success_path, snapshot_path
from penstock.spec.manifest import FileSource
from penstock.spec.snapshot import CommitKind
from penstock.table.changes import open_committer
from penstock.table.live import load_live_entries
from penstock.table.partition_scope import TouchedPartitions
from penstock.table.request import CommitRequest
from penstock.table.scan import to_wall_clock
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.spec.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def local(text: str) -> int:
    """Ms at which this machine's clock shows a time."""
    return int(time.mktime(time.strptime(text, "%Y-%m-%d"))) * 1000


START = local("2026-01-01")
FIRST, SECOND = "2026-01-01", "2026-01-02"
DAILY = {"partition.time-interval": "1 d", "partition.idle-time-to-done": "15 min"}
BY_WATERMARK = {**DAILY, "partition.mark-done-action.mode": "watermark"}
UTC_START = 1_767_225_600_000


class Job:
    """A stream that commits to a table; its clock moves when it is told to."""

    def __init__(self, ref: TableRef, now: int = START) -> None:
        self.now = now
        self.ref = ref
        self.committer = committer(ref)
        self.committer.clock_millis = lambda: self.now

    def commit(
        self, *partitions: str | None, at: int | None = None, watermark: int | None = None, identifier: int = 1
    ) -> Snapshot:
        """Add a row to each partition at a time; without any make an empty snapshot."""
        self.now = self.now if at is None else at
        made = self.committer.commit(
            append(
                *(self.row(p) for p in partitions), commit_identifier=identifier, watermark=watermark, commit_empty=True
            )
        )
        assert made is not None
        return made

    def row(self, p: str | None) -> CommitMessage:
        message = rows(1, p=p)
        files = tuple(replace(file, creation_millis=to_wall_clock(self.now)) for file in message.new_files)
        return replace(message, new_files=files)

    def merge(self, p: str) -> None:
        """Make one file of those of a partition, as old as the oldest of them."""
        store = MetadataStore(self.ref)
        latest = store.load_latest_snapshot()
        assert latest is not None
        files = [entry.file for entry in load_live_entries(store, latest, lambda data: data == partition(p)).values()]
        merged = replace(
            rows(sum(file.row_count for file in files), p=p).new_files[0],
            creation_millis=min(file.creation_millis or 0 for file in files),
            file_source=FileSource.COMPACT,
        )
        message = replace(rows(p=p), compact_before=tuple(files), compact_after=(merged,))
        self.committer.commit(CommitRequest(commit_user="c", kind=CommitKind.COMPACT, messages=(message,)))


def marks(ref: TableRef, *partitions: str) -> dict[str, tuple[int, int]]:
    """Creation and modification time of the marks that there are, by partition."""
    found = {}
    for p in partitions or (FIRST, SECOND):
        path = partition_success_path(ref.location, f"p={p}")
        if ref.file_io.exists(path):
            said = json.loads(ref.file_io.read(path))
            assert set(said) == {"creationTime", "modificationTime"}
            found[p] = (said["creationTime"], said["modificationTime"])
    return found


# When


def test_a_partition_is_done_when_it_is_over_and_idle() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST, at=START + HOUR)
    job.commit(SECOND, at=START + DAY + 15 * MINUTE)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + 15 * MINUTE + 1)
    at = START + DAY + 15 * MINUTE + 1
    assert marks(ref) == {FIRST: (at, at)}


def test_rows_that_come_behind_its_end_put_it_off() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    job.commit(FIRST, at=START + DAY + 10 * MINUTE)
    job.commit(SECOND, at=START + DAY + 25 * MINUTE)
    assert marks(ref) == {}
    at = START + DAY + 25 * MINUTE + 1
    job.commit(SECOND, at=at)
    assert marks(ref) == {FIRST: (at, at)}


def test_a_late_row_marks_it_again_when_it_is_idle_again() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    first = START + DAY + HOUR
    job.commit(SECOND, at=first)
    job.commit(FIRST, at=first + HOUR)
    job.commit(SECOND, at=first + HOUR + 15 * MINUTE)
    assert marks(ref) == {FIRST: (first, first)}
    again = first + HOUR + 16 * MINUTE
    job.commit(SECOND, at=again)
    job.commit(SECOND, at=again + HOUR)
    assert marks(ref) == {FIRST: (first, again)}


def test_empty_snapshots_tell_the_time_too() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    job.commit(at=START + DAY + HOUR)
    assert list(marks(ref)) == [FIRST]


def test_by_watermark_the_clock_is_the_snapshots() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref, now=START + 100 * DAY)
    job.commit(FIRST, watermark=None)
    job.commit(FIRST, watermark=UTC_START + 5 * HOUR)
    job.commit(SECOND, watermark=UTC_START + DAY + 15 * MINUTE)
    assert marks(ref) == {}
    job.commit(SECOND, watermark=UTC_START + DAY + 15 * MINUTE + 1)
    assert list(marks(ref)) == [FIRST]


def test_by_watermark_a_late_row_counts_from_the_watermark_of_its_snapshot() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    job.commit(FIRST, watermark=UTC_START)
    job.commit(FIRST, watermark=UTC_START + DAY + 14 * MINUTE)
    job.commit(at=job.now + 1, watermark=UTC_START + DAY + 29 * MINUTE)
    assert marks(ref) == {}
    job.commit(at=job.now + 1, watermark=UTC_START + DAY + 30 * MINUTE)
    assert list(marks(ref)) == [FIRST]


def test_a_pattern_tells_the_hour_of_a_partition() -> None:
    ref = new_table(
        {
            "partition.time-interval": "1 h",
            "partition.idle-time-to-done": "0 s",
            "partition.timestamp-formatter": "yyyyMMddHH",
            "partition.timestamp-pattern": "$p",
        }
    )
    job = Job(ref)
    job.commit("2026010101", "2026010102")
    job.commit(at=START + 2 * HOUR + 1)
    assert list(marks(ref, "2026010101", "2026010102")) == ["2026010101"]


def test_partitions_without_a_time_are_never_done_by_time() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit("yesterday", None)
    job.commit(at=START + 100 * DAY)
    job.committer.in_silence()
    assert ref.file_io.list(f"{ref.location}/p=yesterday") == ()


def test_a_partition_that_was_dropped_is_not_marked() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    Table(ref).drop_partitions({"p": FIRST})
    job.commit(SECOND, at=START + DAY + HOUR)
    assert marks(ref) == {}


def test_what_others_write_meanwhile_puts_it_off() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    other = Job(ref.with_options({"partition.idle-time-to-done": "100 d"}), START + DAY + HOUR)
    other.commit(FIRST)
    job.commit(SECOND, at=START + DAY + HOUR + MINUTE)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR + 16 * MINUTE)
    assert list(marks(ref)) == [FIRST]


def test_by_watermark_too() -> None:
    ref = new_table(BY_WATERMARK)
    job = Job(ref)
    job.commit(FIRST, watermark=UTC_START)
    other = Job(ref.with_options({"partition.idle-time-to-done": "100 d"}), job.now + 1000)
    other.commit(FIRST, watermark=UTC_START + DAY + HOUR)
    job.commit(at=job.now + 2000, watermark=UTC_START + DAY + HOUR + 15 * MINUTE)
    assert marks(ref) == {}
    job.commit(at=job.now + 1, watermark=UTC_START + DAY + HOUR + 16 * MINUTE)
    assert list(marks(ref)) == [FIRST]


def test_two_jobs_mark_a_partition_once() -> None:
    ref = new_table(DAILY)
    one, two = Job(ref), Job(ref)
    one.commit(FIRST)
    two.commit(FIRST)
    at = START + DAY + HOUR
    one.commit(SECOND, at=at)
    two.commit(SECOND, at=at + 1)
    assert marks(ref) == {FIRST: (at, at)}


def test_merging_and_sorting_are_no_rows() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    message = job.row(FIRST)
    job.commit(FIRST)
    at = START + DAY + HOUR
    job.commit(SECOND, at=at)
    job.now = at + HOUR
    job.merge(FIRST)
    store = MetadataStore(ref)
    latest = store.load_latest_snapshot()
    assert latest is not None
    (merged,) = load_live_entries(store, latest, lambda data: data == partition(FIRST)).values()
    resorted = replace(merged.file, file_name="sorted", file_source=FileSource.APPEND)
    message = replace(message, new_files=(), compact_before=(merged.file,), compact_after=(resorted,))
    job.committer.commit(CommitRequest(commit_user="s", kind=CommitKind.OVERWRITE, messages=(message,)))
    job.commit(SECOND, at=at + 10 * HOUR)
    assert marks(ref) == {FIRST: (at, at)}
    # An overwrite is.
    job.committer.commit(
        CommitRequest(commit_user="o", kind=CommitKind.OVERWRITE, messages=(job.row(FIRST),), scope=TouchedPartitions())
    )
    job.commit(SECOND, at=at + 20 * HOUR)
    assert marks(ref) == {FIRST: (at, at + 20 * HOUR)}


# At the end of a batch


def batch(ref: TableRef, *partitions: str, now: int = START) -> Job:
    job = Job(ref, now)
    job.commit(*partitions, identifier=2**63 - 1)
    return job


def test_a_batch_marks_the_partitions_that_it_wrote_to_where_that_is_asked_for() -> None:
    ref = new_table({"partition.end-input-to-done": "true"})
    Job(ref).commit(FIRST, SECOND)  # a stream's rows
    assert marks(ref) == {}
    job = batch(ref, FIRST)
    assert marks(ref) == {FIRST: (START, START)}
    job.commit(FIRST, identifier=2**63 - 1, at=START + 5)
    assert marks(ref) == {FIRST: (START, START + 5)}
    job.merge(SECOND)
    Table(ref).drop_partitions({"p": SECOND})
    assert list(marks(ref)) == [FIRST]


def test_rows_through_the_handle_are_a_batch() -> None:
    ref = new_table({"partition.end-input-to-done": "true"})
    table = Table(ref)
    table.append(table.arrow_schema.empty_table())
    assert marks(ref) == {}
    table.append(pa.Table.from_pylist([{"id": 1, "p": FIRST}], table.arrow_schema))
    assert list(marks(ref)) == [FIRST]


def test_batches_mark_by_time_too_each_what_those_before_it_wrote() -> None:
    ref = new_table(DAILY)
    batch(ref, FIRST)
    batch(ref, SECOND, now=START + DAY + 10 * MINUTE)
    assert marks(ref) == {}
    at = START + DAY + 16 * MINUTE
    batch(ref, SECOND, now=at)
    assert marks(ref) == {FIRST: (at, at)}


# After a restart


@pytest.mark.parametrize("options", [DAILY, BY_WATERMARK])
def test_a_job_that_starts_marks_what_the_one_before_it_did_not_live_to_mark(options: dict[str, str]) -> None:
    ref = new_table(options)
    Job(ref).commit(FIRST, SECOND, watermark=UTC_START)
    Job(ref, START + HOUR).commit(SECOND, watermark=UTC_START + HOUR)
    at = START + DAY + HOUR
    Job(ref, at).commit(SECOND, watermark=UTC_START + DAY + HOUR)
    assert marks(ref) == {FIRST: (at, at)}
    Job(ref, at + HOUR).commit(SECOND, watermark=UTC_START + DAY + 2 * HOUR)
    assert marks(ref) == {FIRST: (at, at)}


@pytest.mark.parametrize("has_ledger", [True, False])
def test_neither_a_restart_nor_a_merge_marks_it_again(has_ledger: bool) -> None:  # noqa: FBT001
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    job.commit(FIRST)
    at = START + DAY + HOUR
    job.commit(SECOND, at=at)
    job.now = at + HOUR
    job.merge(FIRST)
    if not has_ledger:
        ref.file_io.delete(done_ledger_path(ref.location))
    Job(ref, at + 10 * HOUR).commit(SECOND)
    Job(ref, at + 20 * HOUR).commit(SECOND)
    assert marks(ref) == {FIRST: (at, at)}


@pytest.mark.parametrize("is_merged", [True, False])
def test_a_late_row_is_told_after_a_restart_also_when_it_was_merged(is_merged: bool) -> None:  # noqa: FBT001
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    at = START + DAY + HOUR
    job.commit(SECOND, at=at)
    job.commit(FIRST, at=at + HOUR)
    if is_merged:
        job.merge(FIRST)
    again = at + 2 * HOUR
    Job(ref, again).commit(SECOND)
    assert marks(ref) == {FIRST: (at, again)}


def test_a_late_row_is_told_without_the_ledger_too_while_it_was_not_merged() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    at = START + DAY + HOUR
    job.commit(SECOND, at=at)
    job.commit(FIRST, at=at + HOUR)
    ref.file_io.write(done_ledger_path(ref.location), b"{")
    Job(ref, at + 2 * HOUR).commit(SECOND)
    assert marks(ref) == {FIRST: (at, at + 2 * HOUR)}


def test_what_was_written_shortly_before_a_restart_is_still_waited_for() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    Job(ref, START + DAY + HOUR).commit(FIRST)
    job = Job(ref, START + DAY + HOUR + 10 * MINUTE)
    job.commit(SECOND)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR + 16 * MINUTE)
    assert list(marks(ref)) == [FIRST]


def test_by_watermark_it_is_waited_for_as_far_as_snapshots_tell() -> None:
    for is_expired, found in ((False, []), (True, [FIRST])):
        ref = new_table({**BY_WATERMARK, "write-only": "true"})
        job = Job(ref)
        job.commit(FIRST, watermark=UTC_START)
        late = job.commit(FIRST, at=START + 1000, watermark=UTC_START + DAY + HOUR)
        job.commit(SECOND, at=START + 2000, watermark=UTC_START + DAY + HOUR)
        if is_expired:
            for snapshot_id in (1, late.id):
                ref.file_io.delete(snapshot_path(ref.location, snapshot_id))
        again = Job(ref, START + 20 * MINUTE)
        again.commit(SECOND, watermark=UTC_START + DAY + HOUR + 10 * MINUTE)
        assert list(marks(ref)) == found
        again.commit(SECOND, watermark=UTC_START + DAY + HOUR + 16 * MINUTE)
        assert list(marks(ref)) == [FIRST]


def test_a_job_does_not_look_back_where_that_is_not_wanted() -> None:
    ref = new_table({**DAILY, "partition.mark-done.recover-from-state": "false"})
    Job(ref).commit(FIRST)
    job = Job(ref, START + DAY + HOUR)
    job.commit(SECOND)
    job.committer.in_silence()
    assert marks(ref) == {}
    job.commit(at=START + 2 * DAY + 2 * HOUR)
    assert list(marks(ref)) == [SECOND]


def test_marks_that_others_have_made_count() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    theirs = {"creationTime": START + DAY, "modificationTime": START + DAY + HOUR}
    ref.file_io.write(partition_success_path(ref.location, f"p={FIRST}"), json.dumps(theirs).encode())
    Job(ref, START + 2 * DAY).commit(FIRST[:-1] + "3")
    assert marks(ref) == {FIRST: (START + DAY, START + DAY + HOUR)}


def test_an_empty_file_that_a_job_of_hadoop_left_is_no_mark() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    ref.file_io.write(partition_success_path(ref.location, f"p={FIRST}"), b"")
    at = START + 2 * DAY
    Job(ref, at).commit(SECOND)
    assert marks(ref)[FIRST] == (at, at)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.sampled_from([FIRST, SECOND]), st.sampled_from([0, 5, 11, 60, 700])),
            st.tuples(st.just("tick"), st.just(""), st.sampled_from([0, 5, 11, 60, 700])),
            st.tuples(st.just("silence"), st.just(""), st.sampled_from([0, 5, 11, 60, 700])),
            st.tuples(st.just("restart"), st.just(""), st.just(0)),
        ),
        max_size=25,
    )
)
def test_restarts_make_no_difference_to_what_is_marked_when(steps: list[tuple[str, str, int]]) -> None:
    """The model keeps what is pending in a state that outlives the job, as Flink does."""
    ref = new_table({"partition.time-interval": "1 d", "partition.idle-time-to-done": "10 min"})
    job = Job(ref)
    job.commit("2025-01-01")  # so that there is a table to look at
    now = START
    pending: dict[str, int] = {}
    expected: dict[str, tuple[int, int]] = {}
    for step, p, minutes in steps:
        now += minutes * MINUTE
        job.now = now
        if step == "restart":
            job = Job(ref, now)
            continue
        if step == "write":
            job.commit(p)
            pending[p] = now
        elif step == "tick":
            job.commit()
        else:
            job.committer.in_silence()
        for each, last in list(pending.items()):
            if now - max(last, local(each) + DAY) > 10 * MINUTE:
                del pending[each]
                expected[each] = (expected.get(each, (now, now))[0], now)
        assert marks(ref) == expected


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["late", "merge", "restart", "tick"]), st.sampled_from([0, 5, 11, 60])), max_size=20
    )
)
def test_every_late_row_is_marked_once_it_is_idle_and_nothing_else_marks_again(steps: list[tuple[str, int]]) -> None:
    ref = new_table({"partition.time-interval": "1 d", "partition.idle-time-to-done": "10 min"})
    job = Job(ref)
    job.commit(FIRST)
    now = START + 2 * DAY
    last_row = START
    job.commit(at=now)
    before = marks(ref)[FIRST]
    for step, minutes in steps:
        now += minutes * MINUTE
        job.now = now
        if step == "late":
            job.commit(FIRST)
            last_row = now
        elif step == "merge":
            job.merge(FIRST)
        elif step == "restart":
            job = Job(ref, now)
        else:
            job.commit()
        (after,) = marks(ref, FIRST).values()
        assert after == before or last_row >= before[1]
        before = after
    job.commit(at=now + HOUR)
    job.commit(at=now + 2 * HOUR)
    assert marks(ref, FIRST)[FIRST][1] >= last_row


# What it costs


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
    ref.file_io.delete(done_ledger_path(ref.location))
    recording = RecordingFileIO(ref.file_io)
    Job(on(ref, recording), START + HOUR).commit(FIRST)
    assert len(calls(recording, "_SUCCESS")) == len(many)
    assert set(marks(ref, *many).values()) == {(START, START)}
    recording = RecordingFileIO(ref.file_io)
    Job(on(ref, recording), START + 2 * HOUR).commit(FIRST)
    assert calls(recording, "_SUCCESS") == []
    assert len(calls(recording, done_ledger_path(ref.location))) == 2  # read and written


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


# Who


def test_a_table_for_writing_only_is_marked_by_its_writers_and_not_by_who_merges() -> None:
    ref = new_table({**DAILY, "write-only": "true"})
    job = Job(ref)
    job.commit(FIRST)
    job.commit(FIRST)
    merger = Job(ref.with_options({"write-only": "false"}), START + DAY + HOUR)
    merger.merge(FIRST)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR)
    assert list(marks(ref)) == [FIRST]


def test_a_thread_of_its_own_does_it_when_that_is_wanted() -> None:
    ref = new_table({**DAILY, "snapshot.expire.execution-mode": "async"})
    Job(ref.with_options({"partition.mark-done.recover-from-state": "false"}), local("2001-01-02")).commit("2001-01-01")
    job = Job(ref)
    job.commit("2999-01-01")
    job.committer.after_commit.__self__.wait()  # type: ignore[attr-defined] # a bound method
    # Its clock is that of the process, which is far behind the first of them.
    assert list(marks(ref, "2001-01-01", "2999-01-01")) == ["2001-01-01"]


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ("done-partition", "'done-partition' needs a metastore, which no table has here: take 'success-file'"),
        ("success-file,mark-event", "'mark-event' needs a metastore"),
        ("http-report", "'http-report' sends requests"),
        ("CUSTOM", "'custom' names a Java class"),
    ],
)
def test_other_marks_are_refused_before_anything_is_written(action: str, says: str) -> None:
    ref = new_table({**DAILY, "partition.mark-done-action": action})
    with pytest.raises(UnsupportedFeatureError, match=f"option 'partition.mark-done-action' = {says}"):
        open_committer(ref)
    with pytest.raises(UnsupportedFeatureError, match=says):
        Table(ref).mark_partitions_done([{"p": FIRST}])
    open_committer(ref.with_options({"partition.mark-done-action": "success-file"}))
    open_committer(new_table({"partition.mark-done-action": action}))  # nothing is to be marked


def test_who_adds_no_rows_need_not_know_how_to_mark() -> None:
    ref = new_table({**DAILY, "partition.mark-done-action": "done-partition", "partition.expiration-time": "1 d"})
    writer = Table(ref.with_options({"partition.mark-done-action": "success-file"}))
    for number in range(6):
        writer.append(pa.Table.from_pylist([{"id": number, "p": "2001-01-01"}], writer.arrow_schema))
    assert len(Table(ref).compact().snapshots) == 1
    assert [each.directory for each in Table(ref).expire_partitions()] == ["p=2001-01-01"]


def test_marks_that_nobody_knows_are_refused() -> None:
    with pytest.raises(
        InvalidOptionError, match=r"expected one of success-file, done-partition, .*, or several of them"
    ):
        open_committer(new_table({**DAILY, "partition.mark-done-action": "success-file,shout"}))


def test_a_pattern_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"'partition.timestamp-pattern' = '.day' names no partition column"):
        open_committer(new_table({**DAILY, "partition.timestamp-pattern": "$day"}))


def test_an_idle_time_without_an_interval_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    ref = new_table({"partition.idle-time-to-done": "1 h"})
    Job(ref).commit(FIRST)
    Job(ref, START + 9 * DAY).commit(SECOND)
    assert marks(ref) == {}
    assert "marks no partition done without 'partition.time-interval'" in caplog.text


class ReadOnlyMarks(RecordingFileIO):
    """Takes no marks until it is told to."""

    is_down = True

    def write(self, path: str, data: bytes) -> None:
        if self.is_down and path.endswith("_SUCCESS"):
            raise StorageError(f"{path}: no")
        super().write(path, data)


def test_what_goes_wrong_fails_no_commit_and_is_done_by_a_later_one(caplog: pytest.LogCaptureFixture) -> None:
    ref = new_table(DAILY)
    storage = ReadOnlyMarks(ref.file_io)
    job = Job(on(ref, storage))
    job.commit(FIRST)
    with caplog.at_level(logging.WARNING):
        job.commit(SECOND, at=START + DAY + HOUR)
    assert marks(ref) == {}
    storage.is_down = False
    assert "after snapshot 2" in caplog.text
    at = START + DAY + 2 * HOUR
    job.commit(SECOND, at=at)
    assert marks(ref) == {FIRST: (at, at)}


def test_neither_orphan_removal_nor_fsck_nor_expiration_minds_the_marks() -> None:
    ref = new_table({**DAILY, "snapshot.clean-empty-directories": "true"})
    job = Job(ref)
    job.commit(FIRST, SECOND)
    job.commit(at=START + 9 * DAY)
    table = Table(ref)
    table.drop_partitions({"p": FIRST})
    far = 4_000_000_000_000
    table.expire_snapshots(retain_min=1, older_than=far)
    found = table.remove_orphan_files(older_than=int(time.time() * 1000), allow_recent=True, dry_run=False)
    assert [each.path for each in found.orphans if "_SUCCESS" in each.path or ".penstock" in each.path] == []
    assert set(marks(ref)) == {FIRST, SECOND}
    assert ref.file_io.exists(done_ledger_path(ref.location))


# In silence


def test_in_silence_the_clock_marks_and_asks_nothing_until_then() -> None:
    ref = new_table(DAILY)
    recording = RecordingFileIO(ref.file_io)
    job = Job(on(ref, recording))
    job.commit(FIRST)
    job.committer.in_silence()
    before = len(recording.calls)
    job.now = START + 30_000
    job.committer.in_silence()
    assert len(recording.calls) == before
    job.now = START + 90_000
    job.committer.in_silence()
    assert [call.path.rpartition("/")[2] for call in recording.calls[before:]] == ["tag"]  # once a minute
    job.now = START + DAY + HOUR
    job.committer.in_silence()
    assert list(marks(ref)) == [FIRST]
    assert MetadataStore(ref).latest_snapshot_id() == 1


def test_in_silence_a_job_that_starts_looks_back_too() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    Job(ref, START + DAY + HOUR).committer.in_silence()
    assert list(marks(ref)) == [FIRST]
    Job(new_table(DAILY)).committer.in_silence()  # nothing was committed yet


def test_in_silence_what_needs_a_snapshot_is_not_done() -> None:
    tags = {"tag.automatic-creation": "process-time", "sink.process-time-zone": "UTC"}
    ref = new_table({**BY_WATERMARK, **tags})
    job = Job(ref)
    job.commit(FIRST, watermark=UTC_START)
    made = MetadataStore(ref).list_tags()
    job.now = START + 9 * DAY
    job.committer.in_silence()
    assert marks(ref) == {}
    assert MetadataStore(ref).list_tags() == made


def test_in_silence_snapshots_and_tags_expire() -> None:
    quick = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 h"}
    ref = new_table(quick)
    job = Job(ref)
    for _ in range(3):
        job.commit(FIRST)
    Table(ref).create_tag("short", time_retained="1 ms")
    time.sleep(0.01)
    job.now = START + 2 * HOUR
    job.committer.in_silence()
    store = MetadataStore(ref)
    assert store.list_snapshot_ids() == (3,)
    assert store.list_tags() == ()


def test_in_silence_a_table_for_writing_only_without_marks_does_nothing() -> None:
    recording = RecordingFileIO(new_table().file_io)
    ref = on(new_table({"write-only": "true"}), recording)
    open_committer(ref).in_silence()
    assert recording.calls == ()


# By hand


def test_partitions_are_marked_by_hand_due_or_not() -> None:
    ref = new_table()
    Job(ref).commit(FIRST, SECOND)
    table = Table(ref)
    would = table.mark_partitions_done([{"p": SECOND}], dry_run=True)
    assert [(each.directory, each.rows) for each in would] == [(f"p={SECOND}", 1)]
    assert marks(ref) == {}
    (done,) = table.mark_partitions_done([{"p": SECOND}])
    assert marks(ref) == {SECOND: (done.creation_millis, done.modification_millis)}
    assert abs(done.creation_millis - time.time() * 1000) < 60_000
    time.sleep(0.002)
    (again,) = table.mark_partitions_done([{"p": SECOND}, {"p": SECOND}])
    assert again.creation_millis == done.creation_millis < again.modification_millis


def test_a_day_without_rows_can_be_marked() -> None:
    ref = new_table()
    (done,) = Table(ref).mark_partitions_done([{"p": FIRST}])
    assert (done.directory, done.rows) == (f"p={FIRST}", 0)
    assert list(marks(ref)) == [FIRST]


@pytest.mark.parametrize(
    ("specs", "error", "says"),
    [
        ([], InvalidOptionError, "name the partitions to mark, such as"),
        ([{}], InvalidOptionError, "name the partitions to mark"),
        ([{"q": "1"}], InvalidOptionError, "'q' is no partition column; partition columns are p"),
    ],
)
def test_wrong_specs_are_refused(specs: list[dict[str, object]], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Table(new_table()).mark_partitions_done(specs)


def test_those_that_are_due_are_marked_by_hand_without_being_named() -> None:
    ref = new_table()
    Job(ref).commit("2001-01-01", "2999-01-01")
    table = Table(ref)
    with pytest.raises(InvalidOptionError, match=r"'partition.idle-time-to-done' and 'partition.time-interval' tells"):
        table.mark_partitions_done()
    table = table.with_options({"partition.idle-time-to-done": "1 s", "partition.time-interval": "1 d"})
    ledger = done_ledger_path(ref.location)
    assert [each.directory for each in table.mark_partitions_done(dry_run=True)] == ["p=2001-01-01"]
    assert (marks(ref, "2001-01-01"), ref.file_io.exists(ledger)) == ({}, False)
    assert [each.directory for each in table.mark_partitions_done()] == ["p=2001-01-01"]
    assert table.mark_partitions_done() == ()


def test_specs_of_several_columns_and_types() -> None:
    catalog = Catalog("memory://marks")
    catalog.create_database("db", if_not_exists=True)
    table = catalog.create_table("db.t", "k INT, d DATE, h INT", partition_by=["d", "h"])
    values = [{"k": 1, "d": date(2026, 1, 1), "h": hour} for hour in (5, 6)]
    table.append(pa.Table.from_pylist(values, table.arrow_schema))

    def directories(*specs: dict[str, object]) -> list[str]:
        return [each.directory for each in table.mark_partitions_done(specs)]

    assert directories({"d": "2026-01-01"}) == ["d=20454/h=5", "d=20454/h=6"]
    assert directories({"d": "2026-01-01", "h": "6"}, {"h": 5}) == ["d=20454/h=5", "d=20454/h=6"]
    assert directories({"d": "2026-01-02", "h": 7}) == ["d=20455/h=7"]
    assert directories({"d": None, "h": 7}) == ["d=__DEFAULT_PARTITION__/h=7"]
    with pytest.raises(NotFoundError, match=r"no partition agrees with .*; to mark one without rows, name all of d, h"):
        directories({"d": "2026-01-02"})
    with pytest.raises(InvalidOptionError, match="'h' = 'noon': expected a"):
        directories({"d": "2026-01-01", "h": "noon"})
