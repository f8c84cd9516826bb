"""What is logged of a query that has failed, without Spark."""

from __future__ import annotations

import logging
import re
import traceback

import pytest

from penstock.spark.failures import FailureLog, SparkFailureError, batch_interruption, last_sentence, sentence_of
from penstock.spark.failures import _is_defect as is_defect

TRACE = 'Py4J: Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 5\n\n'


class Thrown:
    """An exception of Java."""

    def __init__(self, message: str | None, cause: Thrown | None = None) -> None:
        self._message, self._cause = message, cause

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> Thrown | None:  # noqa: N802 - Java's name
        return self._cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        return "java.lang.Error"


def test_spark_recognizes_the_interruption_of_a_batch() -> None:
    text = "".join(traceback.format_exception_only(batch_interruption()))
    # The pattern by which Spark finds an exception of Py4J in the text of an error of foreachBatch.
    pattern = r"py4j\.protocol\.Py4JJavaError: An error occurred while calling.*java\.lang\.InterruptedException"
    assert re.search(pattern, text, re.DOTALL)


@pytest.mark.parametrize(
    ("thrown", "sentence"),
    [
        (Thrown("StorageError: it is full\nat x"), "StorageError: it is full"),
        (Thrown("outer", Thrown("inner", Thrown("root"))), "root"),
        (Thrown(None), "java.lang.Error"),
        (Thrown(TRACE), "KeyError: 5"),
    ],
)
def test_the_sentence_is_that_of_the_cause(thrown: Thrown, sentence: str) -> None:
    assert sentence_of(thrown) == sentence
    assert last_sentence("") == ""


def test_a_failure_is_logged_once_for_a_run(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog()
    log.note_termination("q", "r1", "java.lang.Error: of somebody else\n\tat x")
    log.note_raised("NotFoundError: table d.t: gone")
    log.note_termination("q", "r1", "org.SparkRuntimeException: NotFoundError: table d.t: gone\n\tat x")
    log.note("q", "r1", "the same in other words")
    log.note("q", "r2", "StorageError: 's3.secret-key' = 'abc' is wrong")
    assert caplog.messages == [
        "penstock: query q failed: NotFoundError: table d.t: gone",
        "penstock: query q failed: StorageError: 's3.secret-key' = '******' is wrong",
    ]


def test_py4j_logs_no_exception_that_is_expected() -> None:
    def record(error: Exception) -> logging.LogRecord:
        return logging.LogRecord("py4j", logging.ERROR, "x", 1, "text", None, (type(error), error, None))

    assert is_defect(record(KeyError(5)))
    assert not is_defect(record(SparkFailureError.__new__(SparkFailureError)))
