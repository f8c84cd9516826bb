"""The reason of a query that Spark failed, in one line."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from penstock.api.lazy import is_spark_object, lazy_spark
from penstock.cli.output.render import note
from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from penstock.cli.session import Session

_NAMED: Final = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\] (?P<said>[^\n]+)")
_OURS: Final = re.compile(r"^penstock\.errors\.\w+: (?P<said>[^\n]+)", re.MULTILINE)
# Py4J gives the stack trace of Java, whose last cause is the first one that happened.
_CAUSE: Final = re.compile(r"^(?:Caused by)?: [\w.$]+: (?P<said>[^\n]+)", re.MULTILINE)
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*")
# Wrappers: the reason is in the text after them.
_WRAPPERS: Final = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")


# PySpark writes each error that it raises to the error stream, too, as one long line of JSON.
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def disable_error_logs() -> None:
    """Disable PySpark's logging of errors; the caller that catches them prints them."""
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True


def open_spark(session: Session, master: str, conf: Mapping[str, str]) -> SparkSession:
    """Return Spark's session, started if there is none."""
    try:
        return lazy_spark.open_session(master, conf, shows_start=session.debug)
    except TableStoreError:
        raise
    except Exception as error:
        failure = failure_of(error)
        if failure is None or session.debug:
            raise
        for text in getattr(error, "__notes__", ()):
            note(session, text)
        raise TableStoreError(f"Spark could not start with master '{master}': {failure}") from error


def failure_of(error: BaseException) -> str | None:
    """Return the reason of a failure that PySpark reports; None for an error of another library."""
    if not is_spark_object(error) and type(error).__module__.partition(".")[0] != "py4j":
        return None
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        return ours["said"]
    named = [match["said"] for match in _NAMED.finditer(text) if match["name"] not in _WRAPPERS]
    named = named or [match["said"] for match in _CAUSE.finditer(text)]
    said = named[-1] if named else next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return _STATE.sub("", said).strip()
