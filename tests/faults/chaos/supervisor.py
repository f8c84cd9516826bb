"""Starts all processes of a chaos run, kills them one after the other, and counts."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from tests.faults.chaos.checker import Delivered
from tests.faults.chaos.workers import NAMES, PRODUCERS, Death

if TYPE_CHECKING:
    import random

    from tests.faults.chaos.scene import Scene
    from tests.faults.forking import Forker

END_SECONDS = 60
LATE_SECONDS = 300
# Part of the processes that are started to end at a call to storage.
DYING = 0.4


class Supervisor:
    """Keeps all processes running but for the kills.

    Args:
        pace: how many times as long as on a disk everything takes.

    Attributes:
        kills: of each process, at a moment that nobody chose.
        deaths: of each process, at a drawn call to storage.
    """

    def __init__(self, scene: Scene, forker: Forker, chance: random.Random, *, pace: float = 1.0) -> None:
        self.scene = scene
        self.kills: Counter[str] = Counter()
        self.deaths: Counter[str] = Counter()
        self.delivered = Delivered(scene)
        self._forker = forker
        self._pace = pace
        self._chance = chance
        self._pids: dict[str, int] = {}
        self._turn: list[str] = []

    @property
    def kill_count(self) -> int:
        return self.kills.total() + self.deaths.total()

    def run(self, kills: int, seconds: float, needed: frozenset[str]) -> None:
        """Start everything, kill so often and for so long, and let everything come to its end.

        Args:
            needed: what has to be noted by somebody before that end.
        """
        started = time.monotonic()
        for name in NAMES:
            self._start(name)
        time.sleep(1)
        missing = needed
        while self.kill_count < kills or time.monotonic() - started < seconds or missing:
            assert time.monotonic() - started < seconds + LATE_SECONDS * self._pace, f"never seen: {missing}"
            time.sleep(self._chance.uniform(0.1, 0.9) * self._pace)
            self._start_ended()
            self._kill_next()
            self.delivered.check(PRODUCERS)
            missing = needed - {key for _, event in self.scene.events() for key, value in event.items() if value}
        # The reader last, so that it gets everything; the compactors find their work until then.
        for role in ("producer", "compactor", "beside", "scanner", "expirer", "remover", "reader"):
            self._end(role)
        self.delivered.finish(PRODUCERS)

    def _start(self, name: str, *, may_die: bool = True) -> None:
        dies = may_die and self._chance.random() < DYING
        self._pids[name] = self._forker.start(
            name=name,
            root=str(self.scene.root),
            buckets=self.scene.buckets,
            death=asdict(Death.draw(name, self._chance)) if dies else None,
        )

    def _kill_next(self) -> None:
        """Kill one process; all get their turn, in another order each time."""
        if not self._turn:
            self._turn = self._chance.sample(NAMES, len(NAMES))
        name = self._turn.pop()
        self._forker.kill(self._pids[name])
        assert self._forker.wait(self._pids[name]) == -9
        self.kills[name] += 1
        self._start(name)

    def _start_ended(self) -> None:
        """Start those again that have killed themselves; nobody may end in another way."""
        for name in NAMES:
            code = self._forker.poll(self._pids[name])
            if code is not None:
                assert code == -9, f"{name} failed: see what it wrote"
                self.deaths[name] += 1
                self._start(name)

    def _end(self, role: str) -> None:
        """Let the processes of a role come to an end; those that die on the way are started once more."""
        self.scene.stop(role)
        running = {name for name in NAMES if name.rpartition("-")[0] == role}
        deadline = time.monotonic() + END_SECONDS * self._pace
        while running:
            assert time.monotonic() < deadline, f"{running} do not end"
            time.sleep(0.02)
            for name in tuple(running):
                code = self._forker.poll(self._pids[name])
                assert code in {None, 0, -9}, f"{name} failed: see what it wrote"
                if code == 0:
                    running.remove(name)
                elif code == -9:
                    self.deaths[name] += 1
                    self._start(name, may_die=False)
