"""Errors of queries as Spark's log and their callers see them: one sentence, without traces of Java and Python.

Spark logs the error that ends a streaming query with its stack trace. Where Penstock raised it, the trace shows only
how Spark called Penstock, so it is left out. An error of a ``foreachBatch`` function is logged with the trace of
Spark's own exception around it; so after Spark, Penstock logs the sentence once more.

Source:
    ``StreamExecution.runStream`` and ``ForeachBatchSink`` of Spark; ``CallbackConnection`` of Py4J, which logs what a
    Python object raises, and hands a ``Py4JJavaError`` on as its exception of Java.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from penstock.printable import open_log

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.errors import TableStoreError

_LOG: Final = open_log(__name__)
_LOGGERS: Final = ("py4j.clientserver", "py4j.java_gateway")
_TRACE: Final = "Traceback (most recent call last)"
_RUNS_KEPT: Final = 1_000
_CAUSES: Final = 20


class SparkFailureError(Py4JJavaError):  # type: ignore[misc] # Py4J has no types
    """A JVM exception that a method called by Spark raises."""

    def __init__(self, java_exception: Any) -> None:  # noqa: ANN401 - an object of the JVM
        super().__init__("", java_exception)


def hide_expected_failures() -> None:
    """Stop Py4J from logging a trace for expected exceptions, such as a missing table."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_defect)


def _is_defect(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], SparkFailureError))


def without_trace(java_exception: Any) -> SparkFailureError:  # noqa: ANN401 - an object of the JVM
    """Return a new exception of the JVM as one to raise, without the trace of how Python made it."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - no public way to the JVM
    java_exception.setStackTrace(gateway.new_array(gateway.jvm.java.lang.StackTraceElement, 0))
    FAILURES.note_raised(str(java_exception.getMessage()))
    return SparkFailureError(java_exception)


def batch_failure(error: TableStoreError) -> SparkFailureError:
    """Return what a function of ``foreachBatch`` raises for an error: Spark shows the message of it alone."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - no public way to the JVM
    # Py4J would hand the trace of Python on as the message.
    gateway.callback_server_parameters.propagate_java_exceptions = True
    hide_expected_failures()
    return without_trace(gateway.jvm.java.lang.RuntimeException(f"{type(error).__name__}: {error}"))


def batch_interruption() -> Exception:
    """Return the error by which Spark recognizes that a batch ended because its query was stopped.

    Spark searches the text of the error for it with a pattern that overflows the stack on a long trace; then Spark
    prints a thousand lines instead of ending the query quietly. So this error has a short text.
    """
    kind: type[Exception] = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    return kind("An error occurred while calling foreachBatch.\n: java.lang.InterruptedException")


class FailureLog:
    """Logs once for each run of a query why it failed, as the last line of it. Thread-safe."""

    def __init__(self) -> None:
        self._runs: deque[str] = deque(maxlen=_RUNS_KEPT)
        self._raised: deque[str] = deque(maxlen=_RUNS_KEPT)
        self._lock = threading.Lock()

    def note_raised(self, message: str) -> None:
        """Note the message of an exception that Spark gets, by which the failure of a query is recognized."""
        self._raised.append(message)

    def note_termination(self, query_id: str, run_id: str, exception: str) -> None:
        """Log the failure that Spark reports as a text with traces, if it is one of the exceptions noted before."""
        found = next((each for each in tuple(self._raised) if each in exception), None)
        if found is not None:
            self.note(query_id, run_id, last_sentence(found))

    def note(self, query_id: str, run_id: str, sentence: str) -> None:
        """Log the failure of a run, unless it was logged before."""
        with self._lock:
            if run_id in self._runs:
                return
            self._runs.append(run_id)
        _LOG.error("penstock: query %s failed: %s", query_id, sentence)


FAILURES: Final = FailureLog()


def note_failure(query: StreamingQuery) -> None:
    """Log why a query has failed; not if it has not, or if the JVM is gone."""
    java_query: Any = query._jsq  # noqa: SLF001 - Python has the message with the plan of the query alone
    try:
        failure = java_query.exception()
        if failure.isDefined():
            FAILURES.note(str(query.id), str(query.runId), sentence_of(failure.get().cause()))
    except (Py4JError, OSError):
        return


def sentence_of(thrown: Any) -> str:  # noqa: ANN401 - an object of the JVM
    """Return the message of what caused an exception of the JVM; of a trace of Python its last line."""
    for _ in range(_CAUSES):
        cause = thrown.getCause()
        if cause is None:
            break
        thrown = cause
    return last_sentence(str(thrown.getMessage() or thrown.toString()))


def last_sentence(text: str) -> str:
    """Return what a message says: its first line, or the last one of a trace of Python."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "" if not lines else lines[-1] if _TRACE in text else lines[0]
