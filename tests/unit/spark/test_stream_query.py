"""The query that ``write_stream`` returns, without Spark."""

from __future__ import annotations

from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkValueError

from penstock.spark.stream.sink import TableStreamingQuery


def test_a_wrong_number_of_seconds_is_refused_at_once_while_the_query_runs() -> None:
    ended = Event()
    tail = Thread(target=ended.wait, daemon=True)
    tail.start()
    running: Any = SimpleNamespace(_jsq=object())
    with pytest.raises(PySparkValueError):
        TableStreamingQuery(running, tail, cancel=ended.set).awaitTermination(0)
    assert tail.is_alive()
    ended.set()
