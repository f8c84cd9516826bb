"""What following a table costs, counted in calls to storage."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.unit.table.stream.queues import Queue, batches, flat, names

from penstock.format.manifest import columns
from penstock.format.manifest.columns import EncodedEntries
from penstock.format.manifest.entry import FileKind
from penstock.table.metadata_cache import MetadataCache
from penstock.table.store import MetadataStore
from penstock.table.stream import files as units_module
from penstock.table.stream.files import CreationTracker
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED

EARLIEST = {"scan.mode": "earliest"}


def calls_of_a_step(snapshots: int, *, partitions: int) -> list[str]:
    """Calls of one steady micro-batch, after so many snapshots."""
    queue = Queue(partition_keys=("dt",))
    files = [f"p{number}/0:f" for number in range(partitions)]
    for _ in range(snapshots):
        queue.append(*files)
    follower = queue.with_options(EARLIEST)
    _, offset = batches(follower)
    queue.append(*files)
    offset = follower.advance(offset, NO_LIMITS)
    queue.append(*files)
    queue.log.forget()
    reached = follower.advance(offset, NO_LIMITS)
    assert len(follower.plan_range(offset, reached)[0].splits) == partitions
    return [f"{call.operation} {call.path.rpartition('/')[2].rstrip('0123456789')}" for call in queue.log.calls]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_micro_batch_reads_as_much_however_long_the_history(partitions: int) -> None:
    few, many = (calls_of_a_step(count, partitions=partitions) for count in (10, 100))
    assert few == many
    # The latest id, the predecessor, the snapshot, its list and its manifest; the creation tracker looks at where it
    # stands.
    assert len(few) <= 7 + (partitions > 1)


def test_a_stream_keeps_no_files_of_snapshots_that_it_has_passed() -> None:
    queue = Queue()
    follower = queue.with_options(EARLIEST)
    offset = UNRESOLVED
    for number in range(50):
        queue.append(f"0:f{number}", f"1:g{number}")
        offset = follower.advance(offset, NO_LIMITS)
    assert len(follower._table.files._lists) <= 2


def test_a_long_catch_up_counts_the_cached_files_without_adding_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "_CACHED_UNITS", 20)
    queue = Queue()
    for number in range(40):
        queue.append(f"0:f{number}", f"1:g{number}")
    follower = queue.with_options(EARLIEST)
    lists = follower._table.files
    offset = UNRESOLVED
    for _ in range(3):
        offset = follower.advance(offset, ReadLimits(max_files=30))
        kept = [files for _, files in lists._lists.values()]
        assert lists._listed == sum(map(len, kept)) <= 20
    lists.forget_before(10_000)
    assert lists._listed == len(lists._lists) == 0


def test_looking_at_an_unchanged_table_costs_three_calls() -> None:
    queue = Queue()
    for number in range(20):
        queue.append(f"0:f{number}")
    follower = queue.with_options({})
    _, offset = batches(follower)
    queue.append()
    queue.compact("0:d")
    for _ in range(2):
        follower.advance(offset, NO_LIMITS)
    queue.log.forget()
    assert follower.advance(offset, NO_LIMITS) == offset
    assert len(queue.log.calls) <= 3


def test_rows_that_wait_for_more_are_looked_at_once() -> None:
    queue = Queue()
    queue.append("0:start")
    follower = queue.with_options(EARLIEST)
    _, offset = batches(follower)
    limits = ReadLimits(min_rows=2_000, max_delay_ms=10**9)
    for number in range(100):
        queue.append(f"0:f{number}")
    assert follower.advance(offset, limits) == offset
    queue.log.forget()
    assert follower.advance(offset, limits) == offset
    assert len(queue.log.calls) <= 5
    for number in range(100, 200):
        queue.append(f"0:f{number}")
    queue.log.forget()
    reached = follower.advance(offset, limits)
    assert len(queue.log.paths(containing="/snapshot-")) <= 105
    assert len(flat([names(follower.plan_range(offset, reached))])) == 200


def test_a_reader_far_behind_counts_its_backlog_a_little_with_each_look() -> None:
    queue = Queue()
    for number in range(200):
        queue.append(f"0:f{number}")
    follower = queue.with_options(EARLIEST)
    offset = follower.advance(UNRESOLVED, ReadLimits(max_files=1))
    counted = []
    for _ in range(8):
        queue.log.forget()
        backlog = follower.measure_backlog(offset)
        assert len(queue.log.calls) <= 110
        counted.append((backlog.files, backlog.is_partial))
    assert counted[:2] == [(32, True), (64, True)]
    assert counted[-1] == (199, False)


def test_a_full_phase_of_many_files_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue()
    for block in range(4):
        queue.append(*(f"{number % 2}:f{block}-{number}" for number in range(1_000)))
    scans = []
    plan_scan = units_module.plan_scan
    monkeypatch.setattr(units_module, "plan_scan", lambda *each, **named: scans.append(1) or plan_scan(*each, **named))
    follower = queue.with_options({})
    began = time.process_time()
    offset, files, steps = UNRESOLVED, 0, 0
    while (reached := follower.advance(offset, ReadLimits(max_files=4))) != offset:
        files += sum(len(split.files) for task in follower.plan_range(offset, reached) for split in task.splits)
        offset, steps = reached, steps + 1
    assert (files, steps, len(scans)) == (4_000, 1_000, 1)
    assert time.process_time() - began < 20


def test_creation_times_are_read_without_an_object_for_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MIN_RECORDS", 1)
    queue = Queue(partition_keys=("dt",))
    entries = [queue.entry_of(f"p{number % 3}/0:f{number}@{100 + number}") for number in range(90)]
    queue.commit(*entries)
    store = MetadataStore(queue.ref, cache=MetadataCache())
    follows, starts = CreationTracker(store), CreationTracker(store)
    follows.advance(queue.snapshots[-1])
    queue.commit(*(replace(entry, kind=FileKind.DELETE) for entry in entries[:7]))
    follows.advance(queue.snapshots[-1])
    with monkeypatch.context() as patch:
        patch.setattr(EncodedEntries, "entries", lambda _self, rows: pytest.fail(f"{len(rows)} entries were decoded"))
        starts.advance(queue.snapshots[-1])
    times = [[each.created_millis(entry.partition) for entry in entries[:3]] for each in (follows, starts)]
    assert times == [[109, 107, 108]] * 2
