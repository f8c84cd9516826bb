"""What breaks without a guard, searched once for all tests that ask."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.model.engine import Explorer
from tests.model.guards import ALL
from tests.model.scenarios import SCENARIOS

if TYPE_CHECKING:
    from tests.model.guards import Guard
    from tests.model.scenarios import Scenario
    from tests.model.views import Violation


@cache
def broken_without(guard: Guard) -> tuple[Scenario, Violation]:
    """Return the scenario that shows what a guard is for, and the way on which it breaks without it."""
    [scenario] = [each for each in SCENARIOS if guard in each.shows]
    violation = Explorer(scenario.system(ALL - {guard})).run().violation
    assert violation is not None, f"nothing breaks without the rule that {guard}"
    return scenario, violation
