from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.table.inspect.history.stories import commit, reader, story

from penstock.table.inspect.history.buckets import Order
from penstock.table.inspect.history.health import Verdict, judge
from penstock.table.inspect.history.history import Debt

MINUTE = 60_000
# One commit with rows every ten minutes; the patience is a hundred minutes.
STEADY = tuple(commit(number, number * 10 * MINUTE, number) for number in range(1, 8))
END = 70 * MINUTE


def test_ten_usual_pauses_are_the_patience() -> None:
    assert judge(story(*STEADY)).usual_pause_ms == 10 * MINUTE
    assert judge(story(*STEADY, seen_millis=END + 100 * MINUTE)).flow is Verdict.GOOD
    assert judge(story(*STEADY, seen_millis=END + 100 * MINUTE + 1)).flow is Verdict.LOOK


def test_merges_are_no_flow() -> None:
    merges = tuple(commit(10 + number, END + number * MINUTE, 7, rows=0) for number in range(200))
    assert judge(story(*STEADY, *merges)).flow is Verdict.LOOK


def test_nobody_is_asked_to_look_within_a_minute() -> None:
    quick = tuple(commit(number, number, number) for number in range(1, 8))
    assert judge(story(*quick, seen_millis=7 + MINUTE)).flow is Verdict.GOOD
    assert judge(story(*quick, seen_millis=8 + MINUTE)).flow is Verdict.LOOK


def test_too_few_commits_tell_nothing_usual() -> None:
    verdicts = judge(story(*STEADY[:3], seen_millis=END * 1000, readers=(reader(unread_since_millis=0),)))
    assert (verdicts.usual_pause_ms, verdicts.flow, verdicts.readers) == (None, Verdict.UNKNOWN, Verdict.UNKNOWN)
    nothing = judge(story())
    assert {nothing.flow, nothing.watermark, nothing.files, nothing.readers, nothing.order} == {Verdict.UNKNOWN}


def test_a_watermark_that_stands_still_too_long_is_worth_a_look() -> None:
    def stuck(commits: int) -> tuple[Any, ...]:
        return (*STEADY, *(commit(10 + each, END + each * 10 * MINUTE, 7) for each in range(1, commits + 1)))

    assert judge(story(*STEADY)).watermark is Verdict.GOOD
    assert judge(story(*stuck(10))).watermark is Verdict.GOOD
    assert judge(story(*stuck(11))).watermark is Verdict.LOOK
    moved = (*stuck(11), commit(99, END + 500 * MINUTE, 8))
    assert judge(story(*moved)).watermark is Verdict.GOOD
    assert judge(story(*(commit(number, number * MINUTE) for number in range(9)))).watermark is Verdict.UNKNOWN


def test_more_small_files_than_a_compaction_leaves_are_worth_a_look() -> None:
    debt = Debt(small_files=10, small_bytes=1, waiting_files=0, waiting_bytes=0, usual_small_files=10)
    assert judge(story(*STEADY, debt=debt)).files is Verdict.GOOD
    assert judge(story(*STEADY, debt=replace(debt, small_files=11))).files is Verdict.LOOK
    assert judge(story(*STEADY, debt=None, no_debt="not here")).files is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("readers", "verdict"),
    [
        ([], Verdict.UNKNOWN),
        ([{}], Verdict.GOOD),
        ([{"unread_since_millis": END - 100 * MINUTE}], Verdict.GOOD),
        ([{}, {"unread_since_millis": END - 100 * MINUTE - 1}], Verdict.LOOK),
        ([{"expired_snapshots": 1}], Verdict.LOOK),
    ],
)
def test_a_reader_is_behind_by_the_age_of_what_it_has_not_read(readers: list[dict[str, int]], verdict: Verdict) -> None:
    assert judge(story(*STEADY, readers=tuple(reader(**each) for each in readers))).readers is verdict


def test_an_overlap_is_worth_a_look() -> None:
    order = Order(buckets=1, files=2, overlaps=0, shown=())
    assert judge(story(*STEADY, order=order)).order is Verdict.GOOD
    assert judge(story(*STEADY, order=replace(order, overlaps=1))).order is Verdict.LOOK
    assert judge(story(*STEADY, order=replace(order, files=0))).order is Verdict.UNKNOWN
