"""Progress and lag of streaming queries on penstock tables.

Spark reports progress after every micro-batch. Penstock's source adds its lag as
``query.lastProgress["sources"][0]["latestOffset"]``; this module decodes it. The progress of writes, which Spark's
reports cannot include, is noted by the query that commits them.
"""

from __future__ import annotations

import ast
import atexit
import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import ref as weak

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import JStreamingQueryListener, StreamingQueryListener

from penstock.errors import InvalidOptionError, TableStoreError
from penstock.options import ConsumerOptions
from penstock.printable import Result, open_log
from penstock.spark.failures import FAILURES
from penstock.spark.stream.checkpoint import Checkpoint
from penstock.spark.stream.session import next_undelivered_snapshot
from penstock.spark.versions.python_api import report_of
from penstock.table.store import MetadataStore
from penstock.table.stream.checkpoint import decode_batch
from penstock.table.stream.consumers import record_progress
from penstock.table.stream.history import History
from penstock.table.stream.offset import decode_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.table.compact.task import CompactionState
    from penstock.table.ref import TableRef
    from penstock.table.stream.offset import StreamOffset

__all__ = ["ProgressListener", "StreamProgress", "WriteProgress", "decode_progress", "last_progress", "last_write"]

_Value = TypeVar("_Value")

_LOG: Final = open_log(__name__)
# Includes queries that have ended.
_QUERIES_KEPT: Final = 1_000
# A limit, because another listener may hang; the last reports of a program take much less.
_LAST_REPORTS_MS: Final = 10_000
# By id of the session in Spark, which may have several objects in Python: each session has its own query manager, which
# calls only its own listeners.
_LISTENERS: Final[dict[str, tuple[weak[SparkSession], ProgressListener]]] = {}
_LISTENERS_LOCK: Final = Lock()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamProgress(Result):
    """One source of a query, after a micro-batch.

    Attributes:
        query_id: the same after a restart from the checkpoint.
        run_id: of this start of the query.
        timestamp: when the micro-batch began, ISO 8601, UTC.
        table: name of the table that is read.
        rows: of the micro-batch.
        rows_per_second: of the micro-batch, of this source; 0 when it had none.
        position: everything before it is delivered.
        latest_snapshot_id: of the table; None when nothing was ever committed.
        snapshots_behind: snapshots with rows that are not delivered; this and the following when the micro-batch was
            planned, so behind its end.
        is_partial: whether not all of the lag was counted.
        event_time_lag_ms: difference between the table's watermark and that of the delivered rows; None without
            watermarks.
        stream_id: which DataFrame of ``read_stream``; empty for ``readStream.format``.
    """

    query_id: str
    run_id: str
    query_name: str | None
    batch_id: int
    timestamp: str
    table: str
    rows: int
    rows_per_second: float
    position: StreamOffset
    latest_snapshot_id: int | None
    snapshots_behind: int
    files_behind: int
    bytes_behind: int
    rows_behind: int
    is_partial: bool
    event_time_lag_ms: int | None
    stream_id: str


def decode_progress(progress: Mapping[str, Any]) -> tuple[StreamProgress, ...]:
    """Decode a progress report, such as ``query.lastProgress``: one value for each source that is a penstock table."""
    found = []
    for source in progress["sources"]:
        latest = decode_offset_text(source.get("latestOffset"))
        if not isinstance(latest, dict) or "snapshots_behind" not in latest:
            continue
        found.append(
            StreamProgress(
                query_id=str(progress["id"]),
                run_id=str(progress["runId"]),
                query_name=progress.get("name"),
                batch_id=progress["batchId"],
                timestamp=progress["timestamp"],
                table=latest["table"],
                rows=source["numInputRows"],
                rows_per_second=source.get("processedRowsPerSecond") or 0.0,
                position=decode_offset(decode_offset_text(source["endOffset"])),
                latest_snapshot_id=latest.get("snapshot"),
                snapshots_behind=latest["snapshots_behind"],
                files_behind=latest["files_behind"],
                bytes_behind=latest["bytes_behind"],
                rows_behind=latest["rows_behind"],
                is_partial=latest["is_partial"],
                event_time_lag_ms=latest.get("event_time_lag_ms"),
                stream_id=latest["reader"],
            )
        )
    return tuple(found)


class ProgressListener(StreamingQueryListener):
    """Stores the last progress of queries on penstock tables, and moves the consumers of ``read_stream``.

    ``Table.read_stream`` adds one to its session; ``last_progress`` reads that one. To be called for every micro-batch,
    create another one and pass it to ``spark.streams.addListener``.

    Args:
        on_progress: called with each value, on a Spark thread.
        on_write: called in the same way with the progress of ``write_stream`` queries of this process.
        ender: stops queries that have reached the bounds of all their sources; None to let them idle.
    """

    def __init__(
        self,
        on_progress: Callable[[StreamProgress], None] | None = None,
        on_write: Callable[[WriteProgress], None] | None = None,
        *,
        ender: StreamEnder | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._on_write = on_write
        self._ender = ender
        self._last: dict[str, tuple[StreamProgress, ...]] = {}
        self._consumers: dict[str, tuple[TableRef, str]] = {}
        self._lock = Lock()

    @property
    def last(self) -> Mapping[str, tuple[StreamProgress, ...]]:
        """The last progress by query id, one value per source; the query with the newest progress is last."""
        with self._lock:
            return dict(self._last)

    def follow(self, stream_id: str, ref: TableRef) -> None:
        """Move the consumer that the table's options name, if any, after every micro-batch of this stream."""
        consumer = ref.parsed(ConsumerOptions).consumer_id
        if consumer is not None:
            with self._lock:
                _put_last(self._consumers, stream_id, (ref, consumer))

    def take_events(self, spark: SparkSession) -> None:
        """Have the JVM of a session call this object for all events but the start of a query."""
        jvm: Any = SparkContext._jvm  # noqa: SLF001 - no public way to the JVM
        if hasattr(spark, "_jsparkSession"):
            streaming = jvm.org.apache.spark.sql.streaming
            self._jlistenerobj = streaming.PythonStreamingQueryListenerWrapper(_ProgressEvents(self))

    def use(self, spark: SparkSession) -> None:
        """End queries by this object of the session, as an earlier one may be gone."""
        if self._ender is not None:
            self._ender.use(spark)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - PySpark's name
        """Do nothing: a query has no progress yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - PySpark's name
        """Record a micro-batch, which is already in Spark's commit log."""
        write = last_write(str(event.progress.id)) if self._on_write is not None else None
        if write is not None and self._on_write is not None:
            self._on_write(write)
        report = report_of(event.progress)
        found = decode_progress(report)
        if not found:
            return
        with self._lock:
            _put_last(self._last, found[0].query_id, found)
        for each in found:
            self._move_consumer(each)
            if self._on_progress is not None:
                self._on_progress(each)
        is_over = len(found) == len(report["sources"]) and all(each.position.ended for each in found)
        if self._ender is not None and is_over:
            self._ender.end(found[0].query_id, found[0].run_id)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - PySpark's name
        """Stop a query that was restarted after it had reached its bounds."""
        if self._ender is not None:
            self._ender.end_if_done(str(event.id), str(event.runId))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - PySpark's name
        """Forget the query, whose last micro-batch was reported before; log its failure, if Penstock raised it."""
        if event.exception is not None:
            FAILURES.note_termination(str(event.id), str(event.runId), event.exception)
        if self._ender is not None:
            self._ender.forget(str(event.runId))

    def _move_consumer(self, progress: StreamProgress) -> None:
        following = next_undelivered_snapshot(progress.position)
        with self._lock:
            target = self._consumers.get(progress.stream_id)
            if target is not None:  # no event ends a stream: evict the least recent one
                _put_last(self._consumers, progress.stream_id, target)
        if target is None or following is None:
            return
        ref, consumer = target
        try:
            store = MetadataStore(ref)
            History(store, fails=True).check_delivered(progress.position)
            record_progress(store, consumer, following)
        except TableStoreError as error:
            # No caller to raise to; the next micro-batch tries again.
            _LOG.warning("table %s: consumer '%s' was not moved: %s", ref.name, consumer, error)


class _ProgressEvents(JStreamingQueryListener):
    """Events from the JVM, without that of a start, which PySpark fails to decode if the query has job tags."""

    def onQueryStarted(self, jevent: object) -> None:  # noqa: N802 - PySpark's name
        """Do nothing."""


def _put_last(kept: dict[str, _Value], key: str, value: _Value) -> None:
    """Put a value at the end; evict the first ones if there are too many."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _QUERIES_KEPT:
        kept.pop(next(iter(kept)))


def listen(spark: SparkSession) -> ProgressListener:
    """Return the session's listener; the first call creates and adds it."""
    with _LISTENERS_LOCK:
        session = _id_of(spark)
        if session in _LISTENERS:
            listener = _LISTENERS[session][1]
        else:
            if not _LISTENERS:
                atexit.unregister(_detach_all)
                atexit.register(_detach_all)
            listener = ProgressListener(ender=StreamEnder(spark))
            listener.take_events(spark)
            spark.streams.addListener(listener)
        listener.use(spark)
        _LISTENERS[session] = weak(spark), listener
        return listener


def _id_of(spark: Any) -> str:  # noqa: ANN401 - of one of PySpark's two kinds
    is_remote = not hasattr(spark, "_jsparkSession")
    return str(spark.session_id if is_remote else spark._jsparkSession.sessionUUID())  # noqa: SLF001 - no public name


def _detach_all() -> None:
    """Wait for pending reports, then remove all listeners; otherwise Spark would call into a process that has ended."""
    with _LISTENERS_LOCK:
        listeners = [(spark(), listener) for spark, listener in _LISTENERS.values()]
        _LISTENERS.clear()
    for spark, listener in listeners:
        if spark is None:
            continue
        # The session or its JVM may have ended; then there is nothing to detach.
        with suppress(PySparkException, Py4JError, Py4JNetworkError, OSError, AttributeError):
            context: Any = spark.sparkContext
            if context._jsc is None:  # noqa: SLF001 - the only sign of a stopped context
                continue
            try:
                context._jsc.sc().listenerBus().waitUntilEmpty(_LAST_REPORTS_MS)  # noqa: SLF001 - see above
            finally:
                spark.streams.removeListener(listener)


def last_progress(spark: SparkSession, query_id: str | None = None) -> tuple[StreamProgress, ...]:
    """Return the last progress of the session's queries on penstock tables.

    Progress is recorded from the first ``read_stream`` of the session, or the first call of this function. Reports
    arrive some milliseconds after their micro-batch.

    Args:
        query_id: ``query.id`` of one query; None for all queries.

    Returns:
        A value for each source; empty if no micro-batch was reported yet.

    Raises:
        InvalidOptionError: not a session.
    """
    if not hasattr(spark, "streams"):
        raise InvalidOptionError(f"last_progress: expected a SparkSession, not a {type(spark).__name__}")
    last = listen(spark).last
    if query_id is not None:
        return last.get(str(query_id), ())
    return tuple(each for found in last.values() for each in found)


def decode_offset_text(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Decode an offset: listeners get JSON; reports of a query have it decoded or, before 4.2, as text of Python."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return ast.literal_eval(value)


class StreamEnder:
    """Stops queries whose sources have all reached their bounds; Spark would let them idle forever.

    It stops them between two micro-batches. Thread-safe.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.use(spark)
        self._begun: set[str] = set()
        self._lock = threading.Lock()

    def use(self, spark: SparkSession) -> None:
        """Find queries by this object of the session."""
        self._spark = weak(spark)

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
    java_query: Any = query._jsq  # noqa: SLF001 - Python does not say where the checkpoint is
    try:
        checkpoint = Checkpoint(spark, str(java_query.streamingQuery().resolvedCheckpointRoot()))
        data = checkpoint.load_newest_offsets()
        sources = () if data is None else decode_batch(data, checkpoint.place).sources
    except TableStoreError as error:
        _LOG.warning("query %s: cannot find out whether it has ended: %s", query.id, error)
        return False
    return bool(sources) and all(source is not None and source.ended for source in sources)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WriteProgress(Result):
    """A micro-batch of a ``write_stream`` query, after its commit.

    Attributes:
        query_id: the same after a restart from the checkpoint.
        table: name of the table that is written.
        snapshot_id: of the micro-batch; None if it had no rows, or was already committed.
        watermark: after the micro-batch, ms of event time; None if unknown. The watermark of a snapshot is never lower
            than its predecessor's.
        rows: written.
        files: data files written, with ``bytes``.
        compaction: what background merges have done, and the pending small files; None before the first commit, and if
            the query does not compact (``write-only``, output mode ``complete``).
    """

    query_id: str
    batch_id: int
    table: str
    snapshot_id: int | None
    watermark: int | None
    rows: int
    files: int
    bytes: int
    compaction: CompactionState | None


class _WriteBoard:
    """Stores the last write of each query of this process. Thread-safe."""

    def __init__(self) -> None:
        self._sources: dict[str, Callable[[], WriteProgress]] = {}
        self._lock = Lock()

    def note(self, query_id: str, ask: Callable[[], WriteProgress]) -> None:
        with self._lock:
            self._sources.pop(query_id, None)
            self._sources[query_id] = ask
            while len(self._sources) > _QUERIES_KEPT:
                self._sources.pop(next(iter(self._sources)))

    def ask(self, query_id: str) -> WriteProgress | None:
        with self._lock:
            ask = self._sources.get(query_id)
        return None if ask is None else ask()


_BOARD: Final = _WriteBoard()


def note_write(query_id: str, ask: Callable[[], WriteProgress]) -> None:
    """Record that a query has written; ``ask`` returns the progress, with the current state of the compaction."""
    _BOARD.note(query_id, ask)


def last_write(query_id: str) -> WriteProgress | None:
    """Return the last micro-batch that a ``write_stream`` query of this process has committed.

    Args:
        query_id: ``query.id``.

    Returns:
        None if it has committed none since it was started.
    """
    return _BOARD.ask(str(query_id))
