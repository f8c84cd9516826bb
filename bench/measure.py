"""Timing contenders against each other, round by round."""

from __future__ import annotations

import gc
import os
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do a piece of work.

    Attributes:
        name: who does it.
        run: the work, which is timed.
        before: makes ready, untimed.
        after: cleans up, untimed.
        seconds_of: takes the time from what the run returns, where the work is timed in another process.
        verify: what the run has made, untimed and after the first warm-up only; all contenders must say the same.
    """

    name: str
    run: Callable[[], object]
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    verify: Callable[[], object] | None = None
    seconds_of: Callable[[object], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The times of one contender at one piece of work.

    Attributes:
        session: which process measured it: series are paired only inside of one.
        seconds: one a round, in the order of the rounds.
        rows: that each round handled; None where rows are not what counts.
    """

    work: str
    contender: str
    session: str
    seconds: tuple[float, ...]
    rows: int | None = None

    @property
    def median(self) -> float:
        """Median in seconds."""
        return statistics.median(self.seconds)


class DisagreementError(Exception):
    """Contenders did not do the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One contender's part of a round.

    Attributes:
        seconds: of wall time.
        answer: what its work returned.
    """

    seconds: float
    answer: object


def race(
    work: str,
    contenders: Sequence[Contender],
    *,
    rounds: int,
    warm_ups: int = 1,
    session: str = "",
    rows: int | None = None,
) -> tuple[Series, ...]:
    """Time all contenders in turns; see ``take_turns``.

    Raises:
        DisagreementError: ``verify`` does not say the same of all.
    """
    turns = take_turns(work, contenders, rounds=rounds, warm_ups=warm_ups)
    return tuple(
        Series(work=work, contender=name, session=session, seconds=tuple(each.seconds for each in taken), rows=rows)
        for name, taken in turns.items()
    )


def take_turns(
    work: str, contenders: Sequence[Contender], *, rounds: int, warm_ups: int = 1
) -> dict[str, tuple[Turn, ...]]:
    """Run all contenders once a round, each round in another order, so that drift of the machine hits all alike.

    Returns:
        The turns of each contender by its name, one a round, warm-ups left out.

    Raises:
        DisagreementError: ``verify`` does not say the same of all.
    """
    turns: dict[str, list[Turn]] = {contender.name: [] for contender in contenders}
    said: dict[str, object] = {}
    for round_number in range(-warm_ups, rounds):
        first = round_number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            turn = _run_once(contender, said if round_number == -warm_ups else None)
            if round_number >= 0:
                turns[contender.name].append(turn)
        if round_number == -warm_ups:
            check_agreement(work, said)
    return {name: tuple(taken) for name, taken in turns.items()}


def check_agreement(work: str, said: dict[str, object]) -> None:
    """Raise ``DisagreementError`` unless everybody said the same."""
    if len(set(map(repr, said.values()))) > 1:
        message = f"{work}: not the same work: {said}"
        raise DisagreementError(message)


def _run_once(contender: Contender, said: dict[str, object] | None) -> Turn:
    if contender.before:
        contender.before()
    gc.collect()
    os.sync()  # what others left to be written must not be written on our time
    started = time.perf_counter()
    answer = contender.run()
    seconds = time.perf_counter() - started
    turn = Turn(seconds=contender.seconds_of(answer) if contender.seconds_of else seconds, answer=answer)
    if said is not None and contender.verify:
        said[contender.name] = contender.verify()
    if contender.after:
        contender.after()
    return turn
