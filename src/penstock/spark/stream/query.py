"""A streaming query that waits for its background work when it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException, PySparkValueError
from pyspark.sql.streaming.query import StreamingQuery

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread

__all__ = ["TableStreamingQuery"]


class TableStreamingQuery(StreamingQuery):
    """Spark's query with its background work: waiting for the query also waits for that work.

    Without it, a script could drop the table after ``awaitTermination``, or exit, while a merge is running.

    Args:
        query: the query that Spark started.
        tail: thread that ends when the query and its background work have ended.
        cancel: cancels the background work.
    """

    def __init__(self, query: StreamingQuery, tail: Thread, *, cancel: Callable[[], None]) -> None:
        super().__init__(query._jsq)  # noqa: SLF001 - the only way to one with methods of our own
        self._tail = tail
        self._cancel = cancel

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - PySpark's name
        """Wait for the end of the query as Spark does, then for its background compaction.

        Args:
            timeout: seconds for both; None for no limit.

        Raises:
            StreamingQueryException: the query has failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            has_ended = super().awaitTermination(timeout)  # type: ignore[arg-type] # it takes parts of a second too
        except PySparkValueError:  # not a valid number of seconds: the query continues
            raise
        except PySparkException:
            self._tail.join()
            raise
        if deadline is None:
            self._tail.join()
            return has_ended
        if has_ended:
            self._tail.join(max(0.0, deadline - time.monotonic()))
        return bool(has_ended) and not self._tail.is_alive()

    def stop(self) -> None:
        """Stop the query as Spark does, cancel its background compaction, and wait until that has ended."""
        super().stop()
        # The tail lets the compaction finish if a query ends by itself, and a stopped query looks the same to it.
        self._cancel()
        self._tail.join()
