"""Parallel jobs on threads; jobs with the same key run one after another."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

MAX_ROUNDS: Final = 2


class KeyedExecutor:
    """Runs the jobs of one key in order on one thread; jobs of other keys may run in parallel.

    Args:
        count: number of threads; with 1, every job runs immediately in the caller's thread.
    """

    def __init__(self, count: int) -> None:
        self._executors = [ThreadPoolExecutor(1, thread_name_prefix="penstock-write") for _ in range(count)]
        self._rounds: deque[list[Future[None]]] = deque([[]])
        if count == 1:
            self._executors.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, key: int, job: Callable[[], None]) -> None:
        """Run the job after all earlier jobs of the key. This call or a later one raises the job's error."""
        if not self._executors:
            job()
        else:
            executor = self._executors[key % len(self._executors)]
            self._rounds[-1].append(executor.submit(job))

    def end_round(self) -> None:
        """Wait until at most ``MAX_ROUNDS`` rounds of jobs are unfinished, to bound the memory of their data."""
        self._rounds.append([])
        while len(self._rounds) > MAX_ROUNDS:
            _wait(self._rounds.popleft())

    def wait(self) -> None:
        """Wait for all jobs."""
        while self._rounds:
            _wait(self._rounds.popleft())
        self._rounds.append([])

    def close(self) -> None:
        """Stop: cancel jobs that have not started, and wait for those that are running."""
        for executor in self._executors:
            executor.shutdown(cancel_futures=True)
        self._rounds = deque([[]])


def _wait(futures: list[Future[None]]) -> None:
    for future in futures:
        future.result()
