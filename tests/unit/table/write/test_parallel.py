"""Jobs of one key run in order, those of different keys side by side."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.table.write.writer import KeyedExecutor


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
