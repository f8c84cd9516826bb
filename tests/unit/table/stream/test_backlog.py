from __future__ import annotations

import pytest
from tests.unit.table.stream.queues import Queue

from penstock.errors import DamagedFileWarning
from penstock.table.store import MetadataStore
from penstock.table.stream import backlog
from penstock.table.stream.backlog import BacklogCache, measure_backlog
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED

EARLIEST = {"scan.mode": "earliest"}


def test_what_is_ahead_is_what_appends_added() -> None:
    queue = Queue()
    queue.append("0:a", "1:b", watermark=1_000)
    queue.append("0:c", watermark=2_000)
    queue.compact("0:d")
    queue.overwrite("0:e")
    queue.append()
    queue.append("1:f", watermark=5_000)
    store = MetadataStore(queue.ref)
    found = measure_backlog(store, queue.ref, 2, BacklogCache())
    assert (found.snapshots, found.files, found.bytes, found.rows) == (2, 2, 2_000, 20)
    assert (found.event_time_lag_ms, found.latest_snapshot_id, found.is_partial) == (4_000, 6, False)
    ref = queue.ref.with_options({"streaming-read-append-overwrite": "true"})
    assert measure_backlog(store, ref, 2, BacklogCache()).snapshots == 3
    at_end = measure_backlog(store, queue.ref, 7, BacklogCache())
    assert (at_end.snapshots, at_end.rows, at_end.event_time_lag_ms) == (0, 0, 0)


def test_a_snapshot_or_full_phase_delivered_in_part_counts_with_its_rest() -> None:
    queue = Queue()
    queue.append("0:a", "0:b", "0:c")
    for options in ({}, EARLIEST):
        follower = queue.with_options(options)
        offset = follower.advance(UNRESOLVED, ReadLimits(max_files=1))
        assert (follower.measure_backlog(offset).files, follower.measure_backlog(offset).snapshots) == (2, 1)
        assert measure_backlog(MetadataStore(queue.ref), queue.ref, offset, BacklogCache()).rows == 20
        done = follower.advance(offset, NO_LIMITS)
        assert follower.measure_backlog(done).files == 0


def test_each_snapshot_is_looked_at_once_and_a_thousand_in_a_call(monkeypatch: object) -> None:
    queue = Queue()
    for number in range(12):
        queue.append(f"0:f{number}")
    store = MetadataStore(queue.with_options({})._ref)
    cache = BacklogCache()
    monkeypatch.setattr(backlog, "_MAX_LOOKS", 5)  # type: ignore[attr-defined]
    found = [measure_backlog(store, queue.ref, 1, cache) for _ in range(4)]
    assert [(each.files, each.is_partial) for each in found] == [(5, True), (10, True), (12, False), (12, False)]
    queue.log.forget()
    queue.append("0:more")
    assert measure_backlog(store, queue.ref, 3, cache).files == 11
    assert len(queue.log.paths(containing="manifest")) == 2
    assert set(cache.sizes) == set(range(2, 14))


def test_a_stream_warns_once_of_a_damaged_older_snapshot_that_counts_as_empty() -> None:
    queue = Queue()
    for name in ("a", "b", "c"):
        queue.append(f"0:{name}")
    follower = queue.with_options(EARLIEST)
    offset = follower.advance(UNRESOLVED, ReadLimits(max_files=1))
    queue.file_io.write(queue.ref.layout.snapshot_path(2), b"")
    with pytest.warns(DamagedFileWarning, match="snapshot 2 cannot be read and is left out") as found:
        assert [follower.measure_backlog(offset).rows for _ in range(2)] == [10, 10]
    assert len(found) == 1


def test_nothing_is_known_of_a_stream_that_has_not_started() -> None:
    queue = Queue()
    assert measure_backlog(MetadataStore(queue.ref), queue.ref, UNRESOLVED, BacklogCache()).is_partial is False
    queue.append("0:a")
    found = measure_backlog(MetadataStore(queue.ref), queue.ref, UNRESOLVED, BacklogCache())
    assert (found.files, found.is_partial, found.latest_snapshot_id) == (0, True, 1)


def test_a_rollback_is_measured_again() -> None:
    queue = Queue()
    for name in "abc":
        queue.append(f"0:{name}")
    cache, store = BacklogCache(), MetadataStore(queue.ref)
    assert measure_backlog(store, queue.ref, 1, cache).files == 3
    queue.roll_back(1)
    assert measure_backlog(store, queue.ref, 1, cache).files == 1
