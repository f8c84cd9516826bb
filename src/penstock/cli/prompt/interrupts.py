"""Ctrl-C while a statement runs."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Self

from penstock.api.lazy import lazy_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

_CANCEL_AGAIN_SECONDS: Final = 0.5


class Interrupts:
    """Ends one statement on Ctrl-C. For the main thread.

    Without Spark it raises KeyboardInterrupt in the statement. With Spark it cancels the jobs, and the statement then
    fails: an exception during a call to the JVM would leave the response to be read by the next call. A second Ctrl-C
    raises it anyway.

    Attributes:
        event: set by an interrupt, which may have come before the block began.
    """

    def __init__(self, spark: SparkSession | None) -> None:
        self.event = threading.Event()
        self._ended = threading.Event()
        self._spark = spark
        self._cancel: Callable[[], None] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        # Installed before and removed after the jobs' tag: an interrupt while the JVM sets the tag only sets the event.
        before = signal.signal(signal.SIGINT, self._interrupt)
        self._stack.callback(signal.signal, signal.SIGINT, before)
        try:
            if self._spark is not None:
                self._cancel = self._stack.enter_context(lazy_spark.cancellable_jobs(self._spark))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._stack.close()

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Only set the event while the block runs: the block checks it, and stops the queries itself."""
        before, self._cancel = self._cancel, lambda: None
        try:
            yield
        finally:
            self._cancel = before

    def _interrupt(self, _number: int, _frame: object) -> None:
        cancel = self._cancel
        if (self._spark is None and cancel is None) or self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()
        if cancel is None:
            return
        # In another thread: the main thread may be in the middle of a call to the JVM.
        threading.Thread(target=self._cancel_until_ended, args=(cancel,), daemon=True).start()

    def _cancel_until_ended(self, cancel: Callable[[], None]) -> None:
        """Cancel repeatedly: Spark cancels only jobs that have begun, and the first may begin after the call."""
        cancel()
        while not self._ended.wait(_CANCEL_AGAIN_SECONDS):
            cancel()
