"""Merges that failed, and stay out of the way of the others until it is time to try again."""

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
    """Tasks of one round that failed, and how long to wait after how many such rounds.

    Attributes:
        first_pause_seconds: half of the pause after one failure; each further one doubles it, up to a minute.
        failures: rounds in a row, and looks at the table, that failed.
    """

    first_pause_seconds: float
    failures: int = 0
    _tasks: list[CompactTask] = field(default_factory=list)
    _due: float = 0.0

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._tasks)

    @property
    def pause_seconds(self) -> float:
        """How long to wait after so many failures."""
        return min(self.first_pause_seconds * (1 << min(self.failures, _DOUBLINGS)), _LONGEST_PAUSE_SECONDS)

    def put(self, task: CompactTask) -> None:
        """Put a failed task to the others of its round."""
        if not self._tasks:
            self.failures += 1
            self._due = time.monotonic() + self.pause_seconds
        self._tasks.append(task)

    def take_due(self) -> list[CompactTask]:
        """Take all out when it is time to try again; none before."""
        return self.take_all() if time.monotonic() >= self._due else []

    def take_all(self) -> list[CompactTask]:
        """Take all out."""
        tasks, self._tasks = self._tasks, []
        return tasks
