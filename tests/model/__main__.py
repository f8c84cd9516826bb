"""Search all scenarios, the deep ones too, and print what came out: ``python -m tests.model [--quick]``."""

from __future__ import annotations

import sys

from tests.model.engine import Explorer
from tests.model.guards import ALL, Guard
from tests.model.scenarios import SCENARIOS


def main() -> int:
    """Return how many scenarios came out wrong."""
    wrong = 0
    is_quick = "--quick" in sys.argv
    print("| scenario | states | transitions | depth | seconds | outcome |\n|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        if scenario.is_deep and is_quick:
            continue
        explored = Explorer(scenario.system(ALL)).run()
        wrong += explored.violation is not None
        outcome = explored.violation.invariant if explored.violation else "every invariant holds"
        print(
            f"| {scenario.name} | {explored.states:,} | {explored.transitions:,} | {explored.depth} | "
            f"{explored.seconds:.1f} | {outcome} |",
            flush=True,
        )
        if explored.violation is not None:
            print(explored.violation, file=sys.stderr)
    print("\n| without the rule that ... | breaks | steps |\n|---|---|---|")
    for guard in Guard:
        for scenario in SCENARIOS:
            if guard in scenario.shows:
                found = Explorer(scenario.system(ALL - {guard})).run().violation
                wrong += found is None
                print(f"| {guard} | {found.invariant if found else 'nothing'} | {len(found.trace) if found else ''} |")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
