"""Stop queries whose sources have all reached their bounds; Spark would let them idle forever."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import ref as weak

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.errors import TableStoreError
from penstock.printable import open_log
from penstock.spark.stream.checkpoint import Checkpoint
from penstock.table.stream.checkpoint import decode_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOG: Final = open_log(__name__)


class StreamEnder:
    """Stops queries of one session between two micro-batches. Thread-safe."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = weak(spark)
        self._begun: set[str] = set()
        self._lock = threading.Lock()

    def end(self, query_id: str, run_id: str) -> None:
        """Stop a query whose sources have ended, once its pending rows are processed; returns immediately."""
        self._once(run_id, query_id, is_sure=True)

    def end_if_done(self, query_id: str, run_id: str) -> None:
        """Do the same for an idle query if its checkpoint shows that its sources had ended before it was restarted."""
        self._once(f"{run_id} idle", query_id, is_sure=False)

    def forget(self, run_id: str) -> None:
        """Forget a run that has ended."""
        with self._lock:
            self._begun -= {run_id, f"{run_id} idle"}

    def _once(self, key: str, query_id: str, *, is_sure: bool) -> None:
        with self._lock:
            if key in self._begun:
                return
            self._begun.add(key)
        # Not on the listener's thread: it delivers the event that a stopping query waits for.
        run = partial(self._run, query_id, is_sure=is_sure)
        threading.Thread(target=run, name=f"end of bounded query {query_id}", daemon=True).start()

    def _run(self, query_id: str, *, is_sure: bool) -> None:
        spark = self._spark()
        # Callers get the failure, or the end of the session, from the query itself.
        with suppress(PySparkException, Py4JError):
            query = None if spark is None else spark.streams.get(query_id)
            if spark is None or query is None or not (is_sure or _is_done(spark, query)):
                return
            # Spark may still run a micro-batch without input rows, which emits the rows held by aggregates.
            query.processAllAvailable()
            query.stop()


def _is_done(spark: SparkSession, query: StreamingQuery) -> bool:
    """Whether all sources are penstock tables, and the newest batch reached the bounds of all of them."""
    given: Any = query._jsq  # noqa: SLF001 - Python does not say where the checkpoint is
    try:
        checkpoint = Checkpoint(spark, str(given.streamingQuery().resolvedCheckpointRoot()))
        data = checkpoint.load_newest_offsets()
        sources = () if data is None else decode_batch(data, checkpoint.place).sources
    except TableStoreError as error:
        _LOG.warning("query %s: cannot find out whether it has ended: %s", query.id, error)
        return False
    return bool(sources) and all(source is not None and source.ended for source in sources)
