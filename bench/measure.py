"""Time contenders against each other, round by round."""

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
    """One way to do a task.

    Attributes:
        name: name of the software.
        run: the work, which is timed.
        before: prepares, untimed.
        after: cleans up, untimed.
        seconds_of: extracts the time from the result of ``run``, if the work is timed in another process.
        verify: describes the result of ``run``, untimed and after the first warm-up only; must be equal for all
            contenders.
    """

    name: str
    run: Callable[[], object]
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    verify: Callable[[], object] | None = None
    seconds_of: Callable[[object], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The times of one contender for one task.

    Attributes:
        session: the process that measured it: series are paired only within one.
        seconds: one per round, in order.
        rows: per round; None if rows are not relevant.
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
    """The results of contenders differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One contender's part of a round.

    Attributes:
        seconds: wall time.
        answer: result of its work.
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
        DisagreementError: ``verify`` differs between contenders.
    """
    turns = take_turns(work, contenders, rounds=rounds, warm_ups=warm_ups)
    return tuple(
        Series(work=work, contender=name, session=session, seconds=tuple(each.seconds for each in taken), rows=rows)
        for name, taken in turns.items()
    )


def take_turns(
    work: str, contenders: Sequence[Contender], *, rounds: int, warm_ups: int = 1
) -> dict[str, tuple[Turn, ...]]:
    """Run all contenders once per round, each round in another order, so that drift of the machine affects all alike.

    Returns:
        The turns of each contender by its name, one per round, without warm-ups.

    Raises:
        DisagreementError: ``verify`` differs between contenders.
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
    """Raise ``DisagreementError`` unless all are equal."""
    if len(set(map(repr, said.values()))) > 1:
        message = f"{work}: not the same work: {said}"
        raise DisagreementError(message)


def _run_once(contender: Contender, said: dict[str, object] | None) -> Turn:
    if contender.before:
        contender.before()
    gc.collect()
    os.sync()  # pending writes of others must not count as our time
    started = time.perf_counter()
    answer = contender.run()
    seconds = time.perf_counter() - started
    turn = Turn(seconds=contender.seconds_of(answer) if contender.seconds_of else seconds, answer=answer)
    if said is not None and contender.verify:
        said[contender.name] = contender.verify()
    if contender.after:
        contender.after()
    return turn
