"""Holds failed merges back until their next retry."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.table.compact.task import CompactTask

_LONGEST_PAUSE_SECONDS: Final = 60.0
_DOUBLINGS: Final = 10


@dataclass(slots=True, kw_only=True)
class RetryQueue:
    """Failed tasks of one round, and the pause before their retry, which grows with each failed round.

    Attributes:
        first_pause_seconds: half of the pause after one failure; each further failure doubles it, up to a minute.
        failures: failures in a row, of rounds and of whole attempts to plan and commit.
    """

    first_pause_seconds: float
    failures: int = 0
    _tasks: list[CompactTask] = field(default_factory=list)
    _due: float = 0.0

    def __bool__(self) -> bool:
        """Whether any task waits for its retry."""
        return bool(self._tasks)

    @property
    def pause_seconds(self) -> float:
        """Pause before the next retry, which depends on ``failures``."""
        return min(self.first_pause_seconds * (1 << min(self.failures, _DOUBLINGS)), _LONGEST_PAUSE_SECONDS)

    def put(self, task: CompactTask) -> None:
        """Add a failed task to the others of its round."""
        if not self._tasks:
            self.failures += 1
            self._due = time.monotonic() + self.pause_seconds
        self._tasks.append(task)

    def take_due(self) -> list[CompactTask]:
        """Remove and return all tasks if their retry is due; else none."""
        return self.take_all() if time.monotonic() >= self._due else []

    def take_all(self) -> list[CompactTask]:
        """Remove and return all tasks."""
        tasks, self._tasks = self._tasks, []
        return tasks
