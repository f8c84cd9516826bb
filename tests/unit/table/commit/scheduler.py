"""Several jobs at once, of which one goes on at a time: a seed says which one does its next call to storage."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.file_io import FileIO


class Scheduler:
    """Runs jobs in threads of their own, one storage call at a time in an order drawn from a seed.

    Args:
        stay: how probable it is that the job that went on last does so again: high values are long pauses.
    """

    def __init__(self, seed: int, *, stay: float) -> None:
        self._random = random.Random(seed)  # noqa: S311 - not for secrets
        self._stay = stay
        self._turns: dict[str, threading.Semaphore] = {}
        self._waiting: list[str] = []
        self._changed = threading.Condition()
        self._running = 0
        self.errors: dict[str, BaseException] = {}
        self.events: list[tuple[str, Operation, str, object]] = []

    def wait_turn(self, name: str) -> None:
        """Wait until the job is the one to go on."""
        with self._changed:
            self._waiting.append(name)
            self._running -= 1
            self._changed.notify_all()
        self._turns[name].acquire()

    def run(self, jobs: dict[str, Callable[[], object]]) -> None:
        """Run jobs to their end."""
        self._turns = {name: threading.Semaphore(0) for name in jobs}
        self._running = len(jobs)
        threads = [threading.Thread(target=self._run_one, args=(name, job)) for name, job in jobs.items()]
        for thread in threads:
            thread.start()
        last = ""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._running == 0)
                if not self._waiting:
                    break
                stays = last in self._waiting and self._random.random() < self._stay
                last = last if stays else self._random.choice(sorted(self._waiting))
                self._waiting.remove(last)
                self._running += 1
            self._turns[last].release()
        for thread in threads:
            thread.join()

    def _run_one(self, name: str, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.errors[name] = error
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


class ScheduledFileIO(RecordingFileIO):
    """Storage of one job, whose calls wait for their turn."""

    def __init__(self, inner: FileIO, scheduler: Scheduler, name: str) -> None:
        super().__init__(inner)
        self._scheduler = scheduler
        self._name = name

    def _call(self, operation: Operation, path: str, effect: Callable[[], Any]) -> Any:
        self._scheduler.wait_turn(self._name)
        result = super()._call(operation, path, effect)
        self._scheduler.events.append((self._name, operation, path, result))
        return result
