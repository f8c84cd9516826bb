"""What is explored: tables with some actors, small enough that every interleaving is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.model.calls import Call
from tests.model.guards import Guard
from tests.model.invariants import INVARIANTS
from tests.model.programs.cleaning import expire
from tests.model.programs.writers import append, compact
from tests.model.values import first_content
from tests.model.views import System

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tests.model.guards import Guards

ROWS: Final = (("first",), ("second",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Actors beside each other on one table.

    Attributes:
        actors: name, program and its arguments behind the guards.
        shows: guards without which one of its invariants breaks.
        is_deep: takes longer than the tests that always run may.
    """

    name: str
    actors: tuple[tuple[object, ...], ...]
    shows: tuple[Guard, ...] = ()
    crashes: int = 0
    lost_answers: int = 0
    content: tuple[tuple[str, Hashable], ...] = first_content(*ROWS)
    is_deep: bool = False

    def system(self, guards: Guards) -> System:
        """Return what is to be searched."""
        return System(
            content=self.content,
            actors=tuple(
                (name, Call(program, (guards, *args)))  # type: ignore[arg-type,misc]
                for name, program, *args in self.actors
            ),
            invariants=tuple(INVARIANTS.items()),
            crashes=self.crashes,
            lost_answers=self.lost_answers,
        )


SCENARIOS: Final = (
    Scenario(
        name="two appends, an expiration",
        actors=(("a", append, ("a",)), ("b", append, ("b",)), ("expire", expire)),
        shows=(
            Guard.PUT_IF_ABSENT,
            Guard.HINT_CHECKED,
            Guard.NUMBERS_AT_COMMIT,
            Guard.RETAIN_MIN,
            Guard.DELETIONS_ONLY,
        ),
    ),
    Scenario(
        name="three appends by two writers, an expiration",
        actors=(("a", append, ("a",)), ("b", append, ("b", "c")), ("expire", expire)),
        shows=(Guard.LATE_PUT_FOUND, Guard.LISTED_AGAIN),
    ),
    Scenario(
        name="two appends, answers of puts are lost",
        actors=(("a", append, ("a",)), ("b", append, ("b",))),
        lost_answers=2,
        shows=(Guard.OWN_PUT_RECOGNIZED, Guard.FILES_KEPT_IF_UNKNOWN),
    ),
    Scenario(
        name="an append, a compaction, an expiration, one crash",
        actors=(("a", append, ("a",)), ("compact", compact, "compact"), ("expire", expire)),
        crashes=1,
    ),
    Scenario(
        name="an append, two compactions",
        actors=(("a", append, ("a",)), ("compact", compact, "compact"), ("other", compact, "other")),
        shows=(Guard.INPUTS_LIVE,),
    ),
    Scenario(
        name="two appends, a compaction, an expiration",
        actors=(
            ("a", append, ("a",)),
            ("b", append, ("b",)),
            ("compact", compact, "compact"),
            ("expire", expire),
        ),
        is_deep=True,
    ),
)
