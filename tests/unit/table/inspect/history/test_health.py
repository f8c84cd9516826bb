from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.table.inspect.history.histories import commit, history, reader

from penstock.table.inspect.history.buckets import Order
from penstock.table.inspect.history.health import HealthStatus, evaluate
from penstock.table.inspect.history.history import Debt

MINUTE = 60_000
# One commit with rows every ten minutes; the patience is a hundred minutes.
STEADY = tuple(commit(number, number * 10 * MINUTE, number) for number in range(1, 8))
END = 70 * MINUTE


def test_ten_usual_pauses_are_the_patience() -> None:
    assert evaluate(history(*STEADY)).usual_pause_ms == 10 * MINUTE
    assert evaluate(history(*STEADY, seen_millis=END + 100 * MINUTE)).flow is HealthStatus.GOOD
    assert evaluate(history(*STEADY, seen_millis=END + 100 * MINUTE + 1)).flow is HealthStatus.LOOK


def test_merges_are_no_flow() -> None:
    merges = tuple(commit(10 + number, END + number * MINUTE, 7, rows=0) for number in range(200))
    assert evaluate(history(*STEADY, *merges)).flow is HealthStatus.LOOK


def test_no_warning_appears_within_a_minute() -> None:
    quick = tuple(commit(number, number, number) for number in range(1, 8))
    assert evaluate(history(*quick, seen_millis=7 + MINUTE)).flow is HealthStatus.GOOD
    assert evaluate(history(*quick, seen_millis=8 + MINUTE)).flow is HealthStatus.LOOK


def test_too_few_commits_give_no_usual_interval() -> None:
    verdicts = evaluate(history(*STEADY[:3], seen_millis=END * 1000, readers=(reader(unread_since_millis=0),)))
    assert (verdicts.usual_pause_ms, verdicts.flow, verdicts.readers) == (
        None,
        HealthStatus.UNKNOWN,
        HealthStatus.UNKNOWN,
    )
    nothing = evaluate(history())
    assert {nothing.flow, nothing.watermark, nothing.files, nothing.readers, nothing.order} == {HealthStatus.UNKNOWN}


def test_a_watermark_that_stalls_too_long_needs_attention() -> None:
    def stuck(commits: int) -> tuple[Any, ...]:
        return (*STEADY, *(commit(10 + each, END + each * 10 * MINUTE, 7) for each in range(1, commits + 1)))

    assert evaluate(history(*STEADY)).watermark is HealthStatus.GOOD
    assert evaluate(history(*stuck(10))).watermark is HealthStatus.GOOD
    assert evaluate(history(*stuck(11))).watermark is HealthStatus.LOOK
    moved = (*stuck(11), commit(99, END + 500 * MINUTE, 8))
    assert evaluate(history(*moved)).watermark is HealthStatus.GOOD
    assert (
        evaluate(history(*(commit(number, number * MINUTE) for number in range(9)))).watermark is HealthStatus.UNKNOWN
    )


def test_more_small_files_than_a_compaction_leaves_are_worth_a_look() -> None:
    debt = Debt(small_files=10, small_bytes=1, waiting_files=0, waiting_bytes=0, usual_small_files=10)
    assert evaluate(history(*STEADY, debt=debt)).files is HealthStatus.GOOD
    assert evaluate(history(*STEADY, debt=replace(debt, small_files=11))).files is HealthStatus.LOOK
    assert evaluate(history(*STEADY, debt=None, no_debt="not here")).files is HealthStatus.UNKNOWN


@pytest.mark.parametrize(
    ("readers", "verdict"),
    [
        ([], HealthStatus.UNKNOWN),
        ([{}], HealthStatus.GOOD),
        ([{"unread_since_millis": END - 100 * MINUTE}], HealthStatus.GOOD),
        ([{}, {"unread_since_millis": END - 100 * MINUTE - 1}], HealthStatus.LOOK),
        ([{"expired_snapshots": 1}], HealthStatus.LOOK),
    ],
)
def test_a_reader_is_behind_by_the_age_of_what_it_has_not_read(
    readers: list[dict[str, int]], verdict: HealthStatus
) -> None:
    assert evaluate(history(*STEADY, readers=tuple(reader(**each) for each in readers))).readers is verdict


def test_an_overlap_is_worth_a_look() -> None:
    order = Order(buckets=1, files=2, overlaps=0, shown=())
    assert evaluate(history(*STEADY, order=order)).order is HealthStatus.GOOD
    assert evaluate(history(*STEADY, order=replace(order, overlaps=1))).order is HealthStatus.LOOK
    assert evaluate(history(*STEADY, order=replace(order, files=0))).order is HealthStatus.UNKNOWN
