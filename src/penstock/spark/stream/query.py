"""A streaming query whose end is the end of all that it has begun."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread

__all__ = ["TableStreamingQuery"]


class TableStreamingQuery(StreamingQuery):
    """Spark's query, and the work beside it: who waits for the one waits for the other.

    Without it a script that drops the table after ``awaitTermination``, or ends, would do so under a merge.

    Args:
        query: as Spark has started it.
        tail: ends after the query, when what runs beside it has ended too.
        cancel: ends what runs beside the query at once.
    """

    def __init__(self, query: StreamingQuery, tail: Thread, *, cancel: Callable[[], None]) -> None:
        super().__init__(query._jsq)  # noqa: SLF001 - the only way to one with methods of our own
        self._tail = tail
        self._cancel = cancel

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - PySpark's name
        """Wait for the end as Spark does, then for the compaction beside the query.

        Args:
            timeout: seconds for both; None for as long as it takes.

        Raises:
            StreamingQueryException: the query has failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            has_ended = super().awaitTermination(timeout)  # type: ignore[arg-type] # it takes parts of a second too
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
        """Stop as Spark does, and cancel the compaction beside the query; returns when nothing of it is left."""
        super().stop()
        # A query that ends by itself lets it finish, and to its tail a query that was stopped looks like that.
        self._cancel()
        self._tail.join()
