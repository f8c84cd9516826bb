"""What a query's source does between Spark's calls, without Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.unit.table.stream.queues import Queue, names

from penstock.errors import DataLossError, InvalidOptionError
from penstock.spark.connector.stream.frame import _check_options
from penstock.spark.stream.session import StreamSession
from penstock.table.stream.consumers import move_consumers, reset_consumer

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
    assert [position for _, position in queue.store.find_consumers()] == [1]
    session.advance(end)
    session.commit(end)
    assert [position for _, position in queue.store.find_consumers()] == [4]
    session.close()


def test_a_first_micro_batch_that_runs_again_is_protected_too() -> None:
    queue = queue_of(3)
    end = session_of(queue).advance(FIRST)  # as Spark's offset log has kept it
    session = session_of(queue, **{"consumer-id": "c"})
    session.plan(FIRST, end)
    assert [position for _, position in queue.store.find_consumers()] == [1]
    session.close()


def test_a_query_that_begins_earlier_than_its_consumer_protects_what_it_reads() -> None:
    queue = queue_of(4)
    reset_consumer(queue.store, "c", "latest")
    options: dict[str, Any] = {"consumer-id": "c", "maxFilesPerTrigger": "3", "consumer.ignore-progress": "true"}
    session = session_of(queue, **options)
    end = session.advance(FIRST)
    session.plan(FIRST, end)
    assert [position for _, position in queue.store.find_consumers()] == [1]
    session.advance(end)
    assert [position for _, position in queue.store.find_consumers()] == [4]
    session.close()


def test_a_rollback_during_a_micro_batch_keeps_the_consumer_where_it_set_it() -> None:
    for again in (1, 2):
        queue = queue_of(3)
        session = session_of(queue, **{"consumer-id": "c"})
        end = session.advance(FIRST)
        session.plan(FIRST, end)
        queue.roll_back(1)
        reset_consumer_of(queue, 2)
        for number in range(again):  # up to the position of the query, whose next snapshot does not exist
            queue.append(f"0:new{number}")
        with pytest.raises(DataLossError, match="is not in the table's history any more: it was rolled back"):
            session.advance(end)
        assert [position for _, position in queue.store.find_consumers()] == [2]
        session.close()


def reset_consumer_of(queue: Queue, position: int) -> None:
    """Set it as a rollback does, also that of a running query."""
    assert move_consumers(queue.store, range(1, 9), to=position) == ("c",)


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


def test_the_consumer_is_after_the_last_micro_batch_when_more_is_requested() -> None:
    queue = queue_of(3)
    session = session_of(queue, **{"consumer-id": "c"})
    session.stop_at_latest()
    end = session.advance(FIRST)
    session.plan(FIRST, end)
    assert [position for _, position in queue.store.find_consumers()] == [1]
    assert session.advance(end) == end  # that micro-batch is done, and Spark ends the query without another word
    assert [position for _, position in queue.store.find_consumers()] == [4]
    session.close()


def test_parallelism_puts_several_buckets_into_a_task_and_keeps_the_order_of_snapshots() -> None:
    queue = Queue(buckets=5)
    queue.append("0:a0", "1:a1", "2:a2", "4:a4")
    queue.append("0:b0", "2:b2", "3:b3")
    by_bucket = [["a0", "b0"], ["a1"], ["a2", "b2"], ["b3"], ["a4"]]
    for options, expected in (
        ({}, by_bucket),
        ({"scan.parallelism": "2"}, [["a0", "a2", "a4", "b0", "b2"], ["a1", "b3"]]),
        ({"scan.parallelism": "5"}, by_bucket),
        ({"scan.parallelism": "100"}, by_bucket),
    ):
        session = session_of(queue, **options)
        assert names(session.plan(FIRST, session.advance(FIRST))) == expected
    with pytest.raises(InvalidOptionError, match=r"scan\.parallelism"):
        session_of(queue, **{"scan.parallelism": "0"})


def test_buckets_share_as_many_tasks_as_run_at_the_same_time_and_keep_the_order_of_snapshots() -> None:
    queue = Queue(buckets=5)
    queue.append("0:a0", "1:a1", "2:a2", "4:a4")
    queue.append("0:b0", "2:b2", "3:b3")
    by_bucket = [["a0", "b0"], ["a1"], ["a2", "b2"], ["b3"], ["a4"]]
    shared = [["a0", "a1", "a4", "b0"], ["a2", "b2", "b3"]]
    for cores, options, expected in (
        (None, {}, by_bucket),
        (5, {}, by_bucket),
        (2, {}, shared),
        (2, {"source.split.target-size": "1 b"}, by_bucket),
        (2, {"scan.parallelism": "5"}, by_bucket),
    ):
        session = StreamSession(
            queue.ref.with_options({"scan.mode": "earliest", **options}),
            cores=None if cores is None else partial(int, cores),
        )
        assert names(session.plan(FIRST, session.advance(FIRST))) == expected


def test_a_large_bucket_has_a_task_of_its_own() -> None:
    queue = Queue(buckets=5)
    for bucket, size in enumerate((10, 90, 20, 30, 5)):
        entry = queue.entry_of(f"{bucket}:f{bucket}")
        queue.commit(replace(entry, file=replace(entry.file, file_size=size)))
    for size, expected in (
        ("1 kb", [["f1"], ["f0", "f2", "f3", "f4"]]),
        ("38 b", [["f1"], ["f3"], ["f2"], ["f0", "f4"]]),
    ):
        options = {"scan.mode": "earliest", "source.split.target-size": size}
        session = StreamSession(queue.ref.with_options(options), cores=lambda: 2)
        assert names(session.plan(FIRST, session.advance(FIRST))) == expected


def test_parallelism_cuts_the_files_of_a_scalable_table() -> None:
    queue = Queue(buckets=-1, options={"source.split.open-file-cost": "1 b", "source.split.target-size": "1 gb"})
    queue.append("0:a", "0:b", "0:c")
    for count, expected in ((1, [["a", "b", "c"]]), (3, [["a"], ["b"], ["c"]])):
        session = session_of(queue, **{"scan.parallelism": str(count)})
        assert names(session.plan(FIRST, session.advance(FIRST))) == expected
