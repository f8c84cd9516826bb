"""The commit protocol, searched exhaustively in small settings; without any one of its guards something breaks."""

from __future__ import annotations

import pytest
from tests.model.engine import Explorer
from tests.model.guards import ALL, Guard
from tests.model.scenarios import SCENARIOS, Scenario
from tests.model.shown import broken_without

LONG = {Guard.KEPT_IN_LINE, Guard.KEPT_AGAIN, Guard.ROLLBACK_MARKED}
"""What takes long to show."""

SMALL = [scenario for scenario in SCENARIOS if not scenario.is_deep]


@pytest.mark.parametrize("scenario", SMALL, ids=lambda each: each.name)
def test_no_interleaving_breaks_an_invariant(scenario: Scenario) -> None:
    explored = Explorer(scenario.system(ALL)).run()
    assert explored.violation is None, str(explored.violation)
    assert explored.is_complete
    assert explored.quiet  # some actors do come to the end


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.is_deep], ids=lambda each: each.name)
def test_no_interleaving_of_more_actors_breaks_an_invariant(scenario: Scenario) -> None:
    explored = Explorer(scenario.system(ALL)).run()
    assert explored.violation is None, str(explored.violation)
    assert explored.is_complete


@pytest.mark.parametrize(
    "guard",
    [pytest.param(each, marks=pytest.mark.slow) if each in LONG else each for each in Guard],
    ids=lambda each: each.name,
)
def test_every_guard_is_needed(guard: Guard) -> None:
    assert broken_without(guard)[1].trace, f"it is broken before anything is done without the rule that {guard}"
