"""When a partition is marked as time goes by, and when again."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.table.commit_tables import new_table, partition
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
    marks,
)

from penstock import Table
from penstock.format.manifest.entry import FileSource
from penstock.format.snapshot import CommitKind
from penstock.table.commit.request import CommitRequest
from penstock.table.partition_scope import WrittenPartitions
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore


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
    job.committer.on_idle()
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
        CommitRequest(commit_user="o", kind=CommitKind.OVERWRITE, messages=(job.row(FIRST),), scope=WrittenPartitions())
    )
    job.commit(SECOND, at=at + 20 * HOUR)
    assert marks(ref) == {FIRST: (at, at + 20 * HOUR)}
