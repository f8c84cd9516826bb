"""What the listener of a session keeps, without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.unit.table.stream.queues import Queue

from penstock.spark.stream import progress
from penstock.spark.stream.progress import ProgressListener, decode_offset_text
from penstock.spark.stream.session import StreamSession
from penstock.spark.versions.python_api import report_of
from penstock.table.stream.consumers import move_consumers

if TYPE_CHECKING:
    import pytest


class Event:
    """Spark's report of a micro-batch."""

    def __init__(self, reader: str, session: StreamSession, end: dict[str, Any]) -> None:
        self.progress: Any = {
            "id": f"query of {reader}",
            "runId": "run",
            "name": None,
            "batchId": 0,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "sources": [
                {
                    "latestOffset": {**(session.report() or {}), "reader": reader},
                    "endOffset": end,
                    "numInputRows": 1,
                    "processedRowsPerSecond": 1.0,
                }
            ],
        }


def test_a_listener_keeps_the_consumers_of_readers_that_moved_and_forgets_the_oldest_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "_QUERIES_KEPT", 3)
    queue = Queue()
    queue.append("0:a")
    session = StreamSession(queue.ref.with_options({"scan.mode": "earliest"}))
    end = session.advance({"unresolved": True})
    listener = ProgressListener()
    for number in range(10):
        listener.follow(f"reader {number}", queue.ref.with_options({"consumer-id": f"c{number}"}))
        event: Any = Event("reader 0", session, end)
        listener.onQueryProgress(event)
    assert len(listener._consumers) == 3
    assert queue.store.list_consumers() == ("c0",)
    late: Any = Event("reader 9", session, end)
    listener.onQueryProgress(late)
    assert queue.store.list_consumers() == ("c0", "c9")
    gone: Any = Event("reader 1", session, end)
    listener.onQueryProgress(gone)
    assert queue.store.list_consumers() == ("c0", "c9")


def test_a_report_that_comes_after_a_rollback_moves_no_consumer(caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue()
    for name in ("a", "b", "c"):
        queue.append(f"0:{name}")
    ref = queue.ref.with_options({"scan.mode": "earliest", "consumer-id": "c"})
    session, listener = StreamSession(ref), ProgressListener()
    first = {"unresolved": True}
    end = session.advance(first)
    session.plan(first, end)
    listener.follow("reader", ref)
    queue.roll_back(1)
    move_consumers(queue.store, range(1, 9), to=2)
    queue.append("0:new")
    event: Any = Event("reader", session, end)
    listener.onQueryProgress(event)
    session.close()
    assert [position for _, position in queue.store.find_consumers()] == [2]
    assert "consumer 'c' was not moved" in caplog.text


def test_offsets_of_reports_are_decoded_in_each_form_that_versions_of_spark_give_them() -> None:
    offset = {"position": {"snapshot_id": 3, "phase": "it's", "is_full": False}, "start": None}
    for given in (offset, json.dumps(offset), str(offset)):
        assert decode_offset_text(given) == offset
    assert decode_offset_text("None") is decode_offset_text("null") is None


def test_a_report_that_is_an_object_is_read_by_its_keys() -> None:
    report = {"id": "q", "sources": []}
    assert report_of(SimpleNamespace(json=json.dumps(report))) == report_of(report) == report
