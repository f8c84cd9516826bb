"""Writing rows: sorted by group, jobs side by side, and a batch that begins too many files."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.catalog import Catalog
from penstock.table.message import CommitMessage
from penstock.table.write.spill import split_sorted, stable_order
from penstock.table.write.writer import KeyedExecutor, warn_too_many_writers

if TYPE_CHECKING:
    from penstock.table.ref import TableRef


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 300), st.integers(0, 70_000), st.integers(0, 2**31 - 1))))
def test_order_is_that_of_a_stable_sort(ids: list[int]) -> None:
    array = np.array(ids, dtype=np.int32)
    assert stable_order(array).tolist() == sorted(range(len(ids)), key=lambda place: ids[place])


@given(st.lists(st.integers(0, 5)))
def test_stretches_cover_sorted_rows_once(ids: list[int]) -> None:
    ids.sort()
    stretches = list(split_sorted(np.array(ids, dtype=np.int32)))
    assert [stretch.group for stretch in stretches] == sorted(set(ids))
    assert [stretch.group for stretch in stretches for _ in range(stretch.start, stretch.stop)] == ids


@pytest.mark.parametrize("count", [1, 2, 3])
def test_jobs_of_a_key_run_in_the_order_they_were_given(count: int) -> None:
    done: list[tuple[int, int]] = []
    with KeyedExecutor(count) as threads:
        for number in range(50):
            for key in range(5):
                threads.submit(key, lambda key=key, number=number: done.append((key, number)))  # type: ignore[misc]
            threads.end_round()
        threads.wait()
    assert len(done) == 250
    for key in range(5):
        assert [number for other, number in done if other == key] == list(range(50))


def test_jobs_of_two_lanes_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)
    with KeyedExecutor(2) as threads:
        threads.submit(0, lambda: meeting.wait() and None)
        threads.submit(1, lambda: meeting.wait() and None)
        threads.wait()


def test_a_single_lane_uses_no_thread() -> None:
    threads: list[threading.Thread] = []
    with KeyedExecutor(1) as executor:
        executor.submit(0, lambda: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()]


def test_rounds_in_flight_are_bounded() -> None:
    gate = threading.Event()
    with KeyedExecutor(2) as threads:
        threads.submit(0, lambda: gate.wait(10) and None)
        threads.end_round()
        threading.Timer(0.05, gate.set).start()
        begun = time.monotonic()
        for _ in range(3):
            threads.end_round()
        assert gate.is_set()
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_of_a_job_comes_out_of_the_wait(count: int) -> None:
    def fail() -> None:
        raise ValueError("disk is full")

    def submit_and_wait(threads: KeyedExecutor) -> None:
        threads.submit(0, fail)
        threads.wait()

    with KeyedExecutor(count) as threads, pytest.raises(ValueError, match="disk is full"):
        submit_and_wait(threads)


_NUMBERS = itertools.count()


def ref_of(**options: str) -> TableRef:
    catalog = Catalog(f"memory://rule-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p BIGINT", partition_by=["p"], options=options)
    return table._ref


def messages(partitions: int, buckets: int) -> list[CommitMessage]:
    return [
        CommitMessage(partition=bytes([p]), bucket=b, total_buckets=buckets)
        for p in range(partitions)
        for b in range(buckets)
    ]


def test_ninety_nine_writers_a_task_are_fine(caplog: pytest.LogCaptureFixture) -> None:
    warn_too_many_writers(ref_of(), messages(99, 2), tasks=2)
    warn_too_many_writers(ref_of(), [], tasks=0)
    assert caplog.text == ""


def test_a_hundred_are_reported_once_an_hour_with_the_option_to_set(caplog: pytest.LogCaptureFixture) -> None:
    ref = ref_of(bucket="4", **{"bucket-key": "k"})
    warn_too_many_writers(ref, messages(50, 4), tasks=2, clock=lambda: 0.0)
    warn_too_many_writers(ref, messages(50, 4), tasks=2, clock=lambda: 3_599.0)
    assert len(caplog.records) == 1
    text = caplog.text
    assert "table db.t: an append wrote 200 files in 2 tasks" in text
    assert "write fewer than 100 per task" in text
    assert "write fewer than 50 partitions at a time, or use fewer than 4 buckets, or set" in text
    assert "'partition.sink-strategy' = 'hash', so that" in text
    warn_too_many_writers(ref, messages(50, 4), tasks=2, clock=lambda: 3_600.0)
    assert len(caplog.records) == 2


def test_of_one_partition_only_the_buckets_are_too_many(caplog: pytest.LogCaptureFixture) -> None:
    warn_too_many_writers(ref_of(bucket="512", **{"bucket-key": "k"}), messages(1, 512), tasks=1)
    assert "open writers take memory: use fewer than 512 buckets, or write with" in caplog.text


def test_an_append_without_spark_is_one_task(caplog: pytest.LogCaptureFixture) -> None:
    catalog = Catalog(f"memory://rule-{next(_NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.many", "k BIGINT, p BIGINT", partition_by=["p"])
    table.append(pa.table({"k": list(range(99)), "p": list(range(99))}))
    assert caplog.text == ""
    table.append(pa.table({"k": list(range(100)), "p": list(range(100))}))
    assert "db.many: an append wrote 100 files in 1 task," in caplog.text
