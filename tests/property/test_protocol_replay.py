"""Runs of the protocol's model, taken call by call on the real code."""

from __future__ import annotations

import pytest
from tests.model.engine import Explorer
from tests.model.guards import ALL, Guard
from tests.model.invariants import visible_rows
from tests.model.programs.rollback import roll_back
from tests.model.replay import READER, random_trace, stage_of
from tests.model.scenarios import SCENARIOS, Scenario
from tests.model.shown import broken_without
from tests.model.values import Acknowledged, Leased, Seen

REPLAYED_PROGRAMS = {
    "append",
    "append_and_expire",
    "expire",
    "compact",
    "read_table",
    "leased_batches",
    "hold_lease",
    "roll_back",
    "roll_back_as_planned",
}
REPLAYED = [
    each
    for each in SCENARIOS
    if not each.is_deep and {program.__name__ for _, program, *_ in each.actors} <= REPLAYED_PROGRAMS  # type: ignore[attr-defined]
]
SHOWN = (
    Guard.PUT_IF_ABSENT,
    Guard.HINT_CHECKED,
    Guard.NUMBERS_AT_COMMIT,
    Guard.RETAIN_MIN,
    Guard.DELETIONS_ONLY,
    Guard.LATE_PUT_FOUND,
    Guard.LISTED_AGAIN,
    Guard.OWN_PUT_RECOGNIZED,
    Guard.FILES_KEPT_IF_UNKNOWN,
    Guard.INPUTS_LIVE,
    Guard.CUT_SEARCH_REFUSED,
    Guard.LEASE_CHECKED,
    Guard.TAKEN_LEASE_UNTRUSTED,
    Guard.LEASE_PUT_IF_ABSENT,
    Guard.LATE_EPOCH_GIVEN_BACK,
)


@pytest.mark.parametrize("scenario", REPLAYED, ids=lambda each: each.name)
def test_the_code_does_what_the_model_says(scenario: Scenario) -> None:
    for seed in range(4):
        trace, view = random_trace(scenario.system(ALL), seed)
        replayed = stage_of(scenario).follow(trace, is_strict=True)
        assert sorted(replayed.rows) == sorted(visible_rows(view.content) or ()), seed
        assert replayed.acknowledged == tuple(sorted(note.row for note in view.notes(Acknowledged))), seed
        assert replayed.epochs == tuple(sorted(note.epoch for note in view.notes(Leased))), seed
        assert replayed.seen == tuple(note.rows for note in view.notes(Seen)), seed


@pytest.mark.parametrize(
    "scenario",
    [each for each in SCENARIOS if each.is_deep and any(program is roll_back for _, program, *_ in each.actors)],
    ids=lambda each: each.name,
)
def test_the_code_rolls_back_beside_two_others_as_the_model_does(scenario: Scenario) -> None:
    for seed in range(6):
        trace, view = random_trace(scenario.system(ALL), seed)
        replayed = stage_of(scenario).follow(trace, is_strict=True)
        assert sorted(replayed.rows) == sorted(visible_rows(view.content) or ()), seed
        assert replayed.acknowledged == tuple(sorted(note.row for note in view.notes(Acknowledged))), seed


@pytest.mark.parametrize(
    "guard",
    [Guard.BASE_IN_LINE, Guard.FENCE_PUT, Guard.FENCE_FIRST, Guard.ANNOUNCED_ONLY, Guard.TARGET_STANDS],
    ids=lambda each: each.name,
)
def test_the_code_brings_nothing_back_that_was_rolled_back(guard: Guard) -> None:
    scenario, violation = broken_without(guard)
    replayed = stage_of(scenario).follow(violation.trace, is_strict=False)
    assert replayed.rows[0] == "first"
    assert not {"second", "third"} & set(replayed.rows)
    assert len(set(replayed.rows)) == len(replayed.rows)


@pytest.mark.parametrize("guard", SHOWN, ids=lambda each: each.name)
def test_what_breaks_the_model_without_a_guard_does_not_break_the_code(guard: Guard) -> None:
    scenario, violation = broken_without(guard)
    replayed = stage_of(scenario).follow(violation.trace, is_strict=False)
    wanted = {"first", "second", *replayed.acknowledged}
    assert wanted <= set(replayed.rows)
    assert len(set(replayed.rows)) == len(replayed.rows)
    assert len(set(replayed.epochs)) == len(replayed.epochs)
    for seen in replayed.seen:
        assert {"first", "second"} <= set(seen)


@pytest.mark.parametrize("guard", [Guard.CONSUMERS_SPARED, Guard.POSITION_AFTER_ROWS], ids=lambda each: each.name)
def test_a_consumer_gets_every_row_whatever_breaks_the_model_without_a_guard(guard: Guard) -> None:
    scenario, violation = broken_without(guard)
    replayed = stage_of(scenario).follow(violation.trace, is_strict=False)
    rest = [
        row
        for batch in replayed.table.follow(options={"consumer-id": READER}, once=True)
        for row in batch["a"].to_pylist()
    ]
    assert {"second", *replayed.acknowledged} <= {*replayed.delivered, *rest}
    assert len(set(rest)) == len(rest)


def test_a_good_snapshot_is_not_taken_back_for_a_late_one_below_it() -> None:
    [scenario] = [each for each in SCENARIOS if Guard.LATEST_KEPT in each.shows]
    as_it_is = ALL - {Guard.LATEST_KEPT, Guard.BASE_COMPARED}
    violation = Explorer(scenario.system(as_it_is)).run().violation
    assert violation is not None
    replayed = stage_of(scenario).follow(violation.trace, is_strict=False)
    assert {"first", "second", *replayed.acknowledged} <= set(replayed.rows)
