"""What Spark says when a query fails while it runs, in a line."""

from __future__ import annotations

import logging
import re
from typing import Final

from penstock.api.deferred import is_spark_object

_NAMED: Final = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\] (?P<said>[^\n]+)")
_OURS: Final = re.compile(r"^penstock\.errors\.\w+: (?P<said>[^\n]+)", re.MULTILINE)
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*")
# They say that something failed, and what is in the text behind them.
_WRAPPERS: Final = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")


# PySpark writes each error that it raises to the error stream, too, as one long line of JSON.
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def tell_once() -> None:
    """Let PySpark's errors be told by who catches them alone."""
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True


def failure_of(error: BaseException) -> str | None:
    """Return the reason of a failure that PySpark reports; None where the error is another's."""
    if not is_spark_object(error) and type(error).__module__.partition(".")[0] != "py4j":
        return None
    text = str(error)
    ours = _OURS.search(text)
    if ours is not None:
        return ours["said"]
    named = [match["said"] for match in _NAMED.finditer(text) if match["name"] not in _WRAPPERS]
    said = named[-1] if named else next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return _STATE.sub("", said).strip()
