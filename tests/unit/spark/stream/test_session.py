"""What a query's source does between Spark's calls, without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.table.stream.queues import Queue, names

from penstock.errors import InvalidOptionError
from penstock.spark.stream.frame import _check_options
from penstock.spark.stream.session import StreamSession
from penstock.table.stream.consumers import first_protected

FIRST = {"unresolved": True}


def queue_of(count: int) -> Queue:
    """Snapshot n has file fn."""
    queue = Queue()
    for number in range(1, count + 1):
        queue.append(f"0:f{number}")
    return queue


def session_of(queue: Queue, **options: str) -> StreamSession:
    return StreamSession(queue.ref.with_options({"scan.mode": "earliest", **options}))


def test_a_consumer_protects_what_the_first_micro_batch_reads_while_it_runs() -> None:
    queue = queue_of(6)
    options: dict[str, Any] = {"consumer-id": "c", "maxFilesPerTrigger": "3"}
    session = session_of(queue, **options)
    end = session.advance(FIRST)
    assert names(session.plan(FIRST, end)) == [["f1", "f2", "f3"]]
    assert first_protected(queue.store) == 1
    session.advance(end)
    session.commit(end)
    assert first_protected(queue.store) == 4
    session.close()


def test_a_first_micro_batch_that_runs_again_is_protected_too() -> None:
    queue = queue_of(3)
    end = session_of(queue).advance(FIRST)  # as Spark's offset log has kept it
    session = session_of(queue, **{"consumer-id": "c"})
    session.plan(FIRST, end)
    assert first_protected(queue.store) == 1
    session.close()


def test_a_name_that_no_consumer_can_have_is_refused_before_a_row_is_delivered() -> None:
    for name in ("", " ", "a/b"):
        with pytest.raises(InvalidOptionError, match=f"table shop.orders: '{name}' is not a valid name for a consumer"):
            session_of(queue_of(1), **{"consumer-id": name})
        with pytest.raises(InvalidOptionError, match="is not a valid name for a consumer"):
            _check_options(queue_of(1).ref.with_options({"consumer-id": name}))


def test_a_trigger_that_asks_for_everything_overrules_every_limit() -> None:
    for limit in ("maxFilesPerTrigger", "scan.max-snapshot.count"):
        session = session_of(queue_of(4), **{limit: "1"})
        limited = session.advance(FIRST)
        assert names(session.plan(FIRST, limited)) == [["f1"]]
        everything = session.advance(limited, applies_limits=False)
        assert names(session.plan(limited, everything)) == [["f2", "f3", "f4"]]


def test_the_consumer_stands_behind_the_last_micro_batch_when_more_is_asked_for() -> None:
    queue = queue_of(3)
    session = session_of(queue, **{"consumer-id": "c"})
    session.stop_at_latest()
    end = session.advance(FIRST)
    session.plan(FIRST, end)
    assert first_protected(queue.store) == 1
    assert session.advance(end) == end  # that micro-batch is done, and Spark ends the query without another word
    assert first_protected(queue.store) == 4
    session.close()
