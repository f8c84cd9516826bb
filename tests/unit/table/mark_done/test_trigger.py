"""When partitions are marked done while jobs write, by which job, and with how many requests."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.unit.table.commit_tables import new_table, on, partition
from tests.unit.table.mark_done.marking import (
    BY_WATERMARK,
    DAILY,
    DAY,
    FIRST,
    HOUR,
    MINUTE,
    SECOND,
    START,
    UTC_START,
    Job,
    batch,
    local,
    marks,
)

from penstock import Table
from penstock.errors import InvalidOptionError, StorageError, UnsupportedFeatureError
from penstock.format.manifest.entry import FileSource
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.partition_scope import WrittenPartitions
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO


def test_a_partition_is_done_when_it_is_over_and_idle() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST, at=START + HOUR)
    job.commit(SECOND, at=START + DAY + 15 * MINUTE)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + 15 * MINUTE + 1)
    at = START + DAY + 15 * MINUTE + 1
    assert marks(ref) == {FIRST: (at, at)}


def test_rows_after_the_end_of_a_partition_postpone_its_mark() -> None:
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


def test_empty_snapshots_advance_the_clock() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    job.commit(at=START + DAY + HOUR)
    assert list(marks(ref)) == [FIRST]


def test_by_watermark_the_clock_is_that_of_the_snapshots() -> None:
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


def test_a_pattern_parses_the_hour_of_a_partition() -> None:
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
    job.committer.on_idle()
    assert ref.file_io.list(f"{ref.location}/p=yesterday") == ()


def test_a_partition_that_was_dropped_is_not_marked() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    Table(ref).drop_partitions({"p": FIRST})
    job.commit(SECOND, at=START + DAY + HOUR)
    assert marks(ref) == {}


def test_rows_of_other_jobs_postpone_a_mark() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    other = Job(ref.with_options({"partition.idle-time-to-done": "100 d"}), START + DAY + HOUR)
    other.commit(FIRST)
    job.commit(SECOND, at=START + DAY + HOUR + MINUTE)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR + 16 * MINUTE)
    assert list(marks(ref)) == [FIRST]


def test_rows_of_other_jobs_postpone_a_mark_by_watermark() -> None:
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


def test_compaction_and_sorting_do_not_count_as_rows() -> None:
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
        CommitRequest(commit_user="o", kind=CommitKind.OVERWRITE, messages=(job.row(FIRST),), scope=WrittenPartitions())
    )
    job.commit(SECOND, at=at + 20 * HOUR)
    assert marks(ref) == {FIRST: (at, at + 20 * HOUR)}


def test_a_batch_marks_the_partitions_that_it_wrote_to_if_the_option_is_set() -> None:
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


def test_a_batch_marks_by_time_what_earlier_batches_wrote() -> None:
    ref = new_table(DAILY)
    batch(ref, FIRST)
    batch(ref, SECOND, now=START + DAY + 10 * MINUTE)
    assert marks(ref) == {}
    at = START + DAY + 16 * MINUTE
    batch(ref, SECOND, now=at)
    assert marks(ref) == {FIRST: (at, at)}


def calls(recording: RecordingFileIO, text: str = "") -> list[str]:
    return list(recording.paths(containing=text))


def test_commits_send_no_requests_while_no_partition_is_due() -> None:
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


def test_a_starting_job_reads_the_mark_of_each_partition_once() -> None:
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


def test_consecutive_short_jobs_check_all_partitions_once_per_idle_time() -> None:
    ref = new_table({**DAILY, "partition.idle-time-to-done": "1 h"})
    looks = []
    for minutes in (0, 1, 30, 59, 61, 62):
        recording = RecordingFileIO(ref.file_io)
        batch(on(ref, recording), FIRST, now=START + minutes * MINUTE)
        looks.append(Operation.WRITE in {call.operation for call in recording.calls if "done-partitions" in call.path})
    assert looks == [True, False, False, False, True, False]


def test_no_short_job_misses_a_due_partition() -> None:
    ref = new_table({**DAILY, "partition.idle-time-to-done": "1 h"})
    batch(ref, FIRST)
    batch(ref, SECOND, now=START + DAY + 59 * MINUTE)  # has looked
    at = START + DAY + 61 * MINUTE
    batch(ref, SECOND, now=at)
    assert marks(ref) == {FIRST: (at, at)}


def test_a_write_only_table_is_marked_by_its_writers_and_not_by_compaction_jobs() -> None:
    ref = new_table({**DAILY, "write-only": "true"})
    job = Job(ref)
    job.commit(FIRST)
    job.commit(FIRST)
    merger = Job(ref.with_options({"write-only": "false"}), START + DAY + HOUR)
    merger.merge(FIRST)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR)
    assert list(marks(ref)) == [FIRST]


def test_marks_are_made_in_a_thread_if_the_option_is_set() -> None:
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
def test_unsupported_mark_actions_are_refused_before_anything_is_written(action: str, says: str) -> None:
    ref = new_table({**DAILY, "partition.mark-done-action": action})
    with pytest.raises(UnsupportedFeatureError, match=f"option 'partition.mark-done-action' = {says}"):
        open_committer(ref)
    with pytest.raises(UnsupportedFeatureError, match=says):
        Table(ref).maintenance.mark_partitions_done([{"p": FIRST}])
    open_committer(ref.with_options({"partition.mark-done-action": "success-file"}))
    open_committer(new_table({"partition.mark-done-action": action}))  # nothing is to be marked


def test_a_job_that_adds_no_rows_ignores_unsupported_mark_actions() -> None:
    ref = new_table({**DAILY, "partition.mark-done-action": "done-partition", "partition.expiration-time": "1 d"})
    writer = Table(ref.with_options({"partition.mark-done-action": "success-file"}))
    for number in range(6):
        writer.append(pa.Table.from_pylist([{"id": number, "p": "2001-01-01"}], writer.arrow_schema))
    assert len(Table(ref).compact().snapshots) == 1
    assert [each.directory for each in Table(ref).maintenance.expire_partitions()] == ["p=2001-01-01"]


def test_unknown_mark_actions_are_refused() -> None:
    with pytest.raises(
        InvalidOptionError, match=r"expected one of success-file, done-partition, .*, or several of them"
    ):
        open_committer(new_table({**DAILY, "partition.mark-done-action": "success-file,shout"}))


def test_a_pattern_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"'partition.timestamp-pattern' = '.day' names no partition column"):
        open_committer(new_table({**DAILY, "partition.timestamp-pattern": "$day"}))


def test_an_idle_time_without_an_interval_causes_a_warning(caplog: pytest.LogCaptureFixture) -> None:
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


def test_a_failed_mark_fails_no_commit_and_is_made_by_a_later_one(caplog: pytest.LogCaptureFixture) -> None:
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


def test_orphan_removal_fsck_and_expiration_ignore_the_marks() -> None:
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
    assert ref.file_io.exists(ref.layout.done_ledger_path)
