"""What tells a job that starts which partitions are to be marked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.commit_tables import new_table
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
    local,
    marks,
)


@pytest.mark.parametrize("options", [DAILY, BY_WATERMARK])
def test_a_starting_job_marks_what_a_killed_job_left_unmarked(options: dict[str, str]) -> None:
    ref = new_table(options)
    Job(ref).commit(FIRST, SECOND, watermark=UTC_START)
    Job(ref, START + HOUR).commit(SECOND, watermark=UTC_START + HOUR)
    at = START + DAY + HOUR
    Job(ref, at).commit(SECOND, watermark=UTC_START + DAY + HOUR)
    assert marks(ref) == {FIRST: (at, at)}
    Job(ref, at + HOUR).commit(SECOND, watermark=UTC_START + DAY + 2 * HOUR)
    assert marks(ref) == {FIRST: (at, at)}


@pytest.mark.parametrize("has_ledger", [True, False])
def test_neither_a_restart_nor_a_merge_repeats_a_mark(has_ledger: bool) -> None:  # noqa: FBT001
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    job.commit(FIRST)
    at = START + DAY + HOUR
    job.commit(SECOND, at=at)
    job.now = at + HOUR
    job.merge(FIRST)
    if not has_ledger:
        ref.file_io.delete(ref.layout.done_ledger_path)
    Job(ref, at + 10 * HOUR).commit(SECOND)
    Job(ref, at + 20 * HOUR).commit(SECOND)
    assert marks(ref) == {FIRST: (at, at)}


@pytest.mark.parametrize("is_merged", [True, False])
def test_a_late_row_is_found_after_a_restart_even_if_it_was_merged(is_merged: bool) -> None:  # noqa: FBT001
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


def test_a_late_row_that_was_not_merged_is_found_without_the_ledger() -> None:
    ref = new_table(DAILY)
    job = Job(ref)
    job.commit(FIRST)
    at = START + DAY + HOUR
    job.commit(SECOND, at=at)
    job.commit(FIRST, at=at + HOUR)
    ref.file_io.write(ref.layout.done_ledger_path, b"{")
    Job(ref, at + 2 * HOUR).commit(SECOND)
    assert marks(ref) == {FIRST: (at, at + 2 * HOUR)}


def test_a_restart_waits_for_the_idle_time_of_recent_rows() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    Job(ref, START + DAY + HOUR).commit(FIRST)
    job = Job(ref, START + DAY + HOUR + 10 * MINUTE)
    job.commit(SECOND)
    assert marks(ref) == {}
    job.commit(SECOND, at=START + DAY + HOUR + 16 * MINUTE)
    assert list(marks(ref)) == [FIRST]


def test_a_restart_by_watermark_waits_as_long_as_snapshots_show() -> None:
    for is_expired, found in ((False, []), (True, [FIRST])):
        ref = new_table({**BY_WATERMARK, "write-only": "true"})
        job = Job(ref)
        job.commit(FIRST, watermark=UTC_START)
        late = job.commit(FIRST, at=START + 1000, watermark=UTC_START + DAY + HOUR)
        job.commit(SECOND, at=START + 2000, watermark=UTC_START + DAY + HOUR)
        if is_expired:
            for snapshot_id in (1, late.id):
                ref.file_io.delete(ref.layout.snapshot_path(snapshot_id))
        again = Job(ref, START + 20 * MINUTE)
        again.commit(SECOND, watermark=UTC_START + DAY + HOUR + 10 * MINUTE)
        assert list(marks(ref)) == found
        again.commit(SECOND, watermark=UTC_START + DAY + HOUR + 16 * MINUTE)
        assert list(marks(ref)) == [FIRST]


def test_a_job_without_recovery_ignores_earlier_rows() -> None:
    ref = new_table({**DAILY, "partition.mark-done.recover-from-state": "false"})
    Job(ref).commit(FIRST)
    job = Job(ref, START + DAY + HOUR)
    job.commit(SECOND)
    job.committer.on_idle()
    assert marks(ref) == {}
    job.commit(at=START + 2 * DAY + 2 * HOUR)
    assert list(marks(ref)) == [SECOND]


def test_marks_of_other_jobs_count() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    theirs = {"creationTime": START + DAY, "modificationTime": START + DAY + HOUR}
    ref.file_io.write(ref.layout.partition_success_path(f"p={FIRST}"), json.dumps(theirs).encode())
    Job(ref, START + 2 * DAY).commit(FIRST[:-1] + "3")
    assert marks(ref) == {FIRST: (START + DAY, START + DAY + HOUR)}


def test_an_empty_success_file_of_hadoop_is_not_a_mark() -> None:
    ref = new_table(DAILY)
    Job(ref).commit(FIRST)
    ref.file_io.write(ref.layout.partition_success_path(f"p={FIRST}"), b"")
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
def test_restarts_change_neither_marks_nor_their_times(steps: list[tuple[str, str, int]]) -> None:
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
            job.committer.on_idle()
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
def test_each_late_row_causes_one_more_mark_and_nothing_else_does(steps: list[tuple[str, int]]) -> None:
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
