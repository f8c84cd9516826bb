"""A table that a stream writes to for long stays as it was early on: files, metadata, the cost of a batch."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from bench.flat_history import run_course
from bench.history_flat import COURSES, TARGET_SIZES, amplification_checks, amplification_course, flat_checks
from bench.paimon_rule import rewritten_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from bench.result import Check

_NUMBERS = itertools.count()
IN_TURN = [name for name, course in COURSES.items() if not course.is_beside]
BESIDE = [name for name, course in COURSES.items() if course.is_beside]


def warehouse() -> str:
    return f"memory://flat-{next(_NUMBERS)}"


def missed(checks: list[Check]) -> list[str]:
    """What does not hold, with the figures."""
    return [f"{check.name}: {check.value} {check.unit}" for check in checks if check.verdict not in {"", "PASS"}]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", IN_TURN)
def test_many_batches_leave_files_metadata_and_calls_to_storage_flat(kind: str) -> None:
    # Snapshots expire from the 21st batch on, so in most of the batches that are compared.
    options = {"snapshot.num-retained.max": "20"}
    history = run_course(warehouse(), replace(COURSES[kind], batches=300, options=options))
    assert history.merges > 200
    assert max(step.metadata_bytes for step in history.steps) < 500_000
    # Times would speak of whoever else uses the machine; the calls to storage do not.
    assert missed(flat_checks(kind, history, is_timed=False)) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", BESIDE)
def test_compaction_on_a_thread_keeps_up_with_the_batches_and_loses_nothing(kind: str) -> None:
    options = {"snapshot.num-retained.max": "30"}
    history = run_course(warehouse(), replace(COURSES[kind], batches=60, options=options))
    assert history.is_whole
    assert history.merges > 12
    # 240 files were written; on a busy machine the thread may be some batches late.
    assert history.steps[-1].live_files < 100


@pytest.mark.timeout(300)
def test_many_commits_to_a_queue_are_rewritten_a_handful_of_times() -> None:
    history = run_course(warehouse(), amplification_course(250, "1 mb"))
    ours, theirs = amplification_checks("1 mb", history)
    assert missed([ours]) == []
    assert theirs.value > 2 * ours.value
    assert history.is_whole


@pytest.mark.parametrize(
    ("appended", "rewritten"),
    [
        ([10] * 4, 0),
        ([10] * 5, 50),
        # The 50 are small still, and merged again with four more; so are the 90, which leave as large enough.
        ([10] * 13, 50 + 90),
        ([150, 60, 10, 10, 10], 0),
        ([150, 60, 10, 10, 10, 10], 100),
    ],
)
def test_the_rule_that_ours_is_compared_with_is_paimons(appended: list[int], rewritten: int) -> None:
    assert rewritten_bytes(appended, target_bytes=100, small_bytes=70, min_files=5) == rewritten


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("kind", COURSES)
def test_ten_thousand_batches_leave_files_metadata_and_the_time_of_a_batch_flat(kind: str, tmp_path: Path) -> None:
    history = run_course(str(tmp_path / "warehouse"), replace(COURSES[kind], batches=10_000))
    assert missed(flat_checks(kind, history)) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", TARGET_SIZES)
def test_what_is_rewritten_stays_in_bounds_whatever_the_target_size(target: str) -> None:
    history = run_course(warehouse(), amplification_course(1_000, target))
    assert missed(amplification_checks(target, history)) == []
