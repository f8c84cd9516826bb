"""The end of a query and of what runs beside it, without Spark."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from penstock.spark.stream.micro_batches import IdleTimer, MicroBatches
from penstock.spark.stream.sink import TableStreamingQuery


class EndedQuery:
    """Spark's query, which ends when it is stopped, or by itself; either way without an error."""

    def __init__(self) -> None:
        self.has_ended = threading.Event()
        self._jsq = self

    def stop(self) -> None:
        self.has_ended.set()

    def awaitTermination(self) -> None:  # noqa: N802 - PySpark's name
        self.has_ended.wait()


class Lease:
    def give_back(self) -> None:
        pass


class Compaction:
    """One that always has something to merge."""

    def __init__(self) -> None:
        self.is_finishing = threading.Event()
        self.is_cancelled = threading.Event()
        self._is_over = False

    def end(self, *, is_at_once: bool) -> None:
        is_first, self._is_over = not self._is_over, True
        if is_at_once:
            self.is_cancelled.set()
        elif is_first:
            self.is_finishing.set()
            assert self.is_cancelled.wait(10), "nobody has cancelled it"


def query_of(compaction: Compaction, spark_query: EndedQuery, *, finishes: bool) -> TableStreamingQuery:
    batches: Any = object.__new__(MicroBatches)
    batches.query, batches.lease, batches._compaction, batches._is_to_finish = (
        spark_query,
        Lease(),
        compaction,
        finishes,
    )
    batches._silence, batches._has_ended = IdleTimer(lambda: None, "a query"), False
    tail = threading.Thread(target=batches.tidy_up)
    tail.start()
    return TableStreamingQuery(spark_query, tail, cancel=batches.cancel_compaction)  # type: ignore[arg-type]


@pytest.mark.parametrize("finishes", [False, True], ids=["processing time", "available now"])
def test_a_query_that_is_stopped_cancels_its_compaction_whatever_its_trigger(finishes: bool) -> None:  # noqa: FBT001
    compaction, spark_query = Compaction(), EndedQuery()
    query_of(compaction, spark_query, finishes=finishes).stop()
    assert compaction.is_cancelled.is_set()


def test_a_query_that_has_ended_by_itself_can_be_stopped_while_its_compaction_goes_on() -> None:
    compaction, spark_query = Compaction(), EndedQuery()
    query = query_of(compaction, spark_query, finishes=True)
    spark_query.has_ended.set()
    assert compaction.is_finishing.wait(10)
    assert not compaction.is_cancelled.is_set()
    query.stop()
    assert compaction.is_cancelled.is_set()
