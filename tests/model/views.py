"""What is searched, what invariants see of it, and what a search came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tests.model.calls import Call, Op

Content: TypeAlias = "dict[str, Hashable]"
"""What is stored: path to value."""


class Status(StrEnum):
    """How far an actor is."""

    RUNNING = "running"
    DONE = "done"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of an actor from outside."""

    status: Status
    notes: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What an invariant looks at.

    Attributes:
        content: must not be changed.
        outcomes: by the actor's name.
    """

    content: Content
    outcomes: dict[str, Outcome]

    def notes(self, kind: type) -> list[Any]:
        """Notes of one kind, of all actors."""
        return [note for outcome in self.outcomes.values() for note in outcome.notes if isinstance(note, kind)]

    @property
    def is_quiet(self) -> bool:
        """Whether nobody does anything any more."""
        return all(outcome.status is not Status.RUNNING for outcome in self.outcomes.values())

    @property
    def is_whole(self) -> bool:
        """Whether everybody came to the end."""
        return all(outcome.status is Status.DONE for outcome in self.outcomes.values())


Invariant: TypeAlias = "Callable[[View], str | None]"
"""Says what is wrong; None where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What is explored.

    Attributes:
        actors: name to program and its arguments.
        crashes: how many actors may be stopped for good.
        lost_answers: how many puts may go unanswered, done or not.
    """

    content: tuple[tuple[str, Hashable], ...]
    actors: tuple[tuple[str, Call], ...]
    invariants: tuple[tuple[str, Invariant], ...]
    crashes: int = 0
    lost_answers: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace.

    Attributes:
        fault: None, or how it went wrong: ``crash``, ``lost`` (without effect) or ``lost after``.
    """

    actor: str
    op: Op
    answer: Hashable
    fault: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.actor}: "
            + ("is stopped before " if self.fault == "crash" else "")
            + f"{self.op}"
            + ("" if self.fault == "crash" else f" -> {self.answer}")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that does not hold, with a shortest way there."""

    invariant: str
    text: str
    trace: tuple[Step, ...]
    view: View

    def __str__(self) -> str:
        return "\n".join([f"{self.invariant}: {self.text}", *(f"  {step}" for step in self.trace)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What a search came to.

    Attributes:
        depth: steps of the longest shortest way to a state.
        is_complete: whether no state was left out for the limit.
        quiet: states in which nobody does anything any more.
    """

    states: int
    transitions: int
    depth: int
    seconds: float
    is_complete: bool
    quiet: int
    violation: Violation | None
