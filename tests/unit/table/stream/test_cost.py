"""What following a table costs, counted in calls to storage."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.metadata_tables import MemoryTable
from tests.unit.table.stream.queues import Queue, batches, flat, names

from penstock.format.manifest import columns
from penstock.format.manifest.columns import EncodedEntries
from penstock.format.manifest.entry import FileKind
from penstock.format.row.row import decode_row
from penstock.format.types.data_types import STRING
from penstock.table.metadata_cache import MetadataCache, clear_metadata_cache
from penstock.table.read.split import partition_order
from penstock.table.store import MetadataStore
from penstock.table.stream import files as units_module
from penstock.table.stream.files import CreationTracker, FileLists, interleave
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, Phase, Position

if TYPE_CHECKING:
    from penstock.format.manifest.entry import ManifestEntry

SMALL = st.integers(0, 4)
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
    load = units_module.load_live_files
    monkeypatch.setattr(units_module, "load_live_files", lambda *each: scans.append(1) or load(*each))
    follower = queue.with_options({})
    began = time.process_time()
    offset, files, steps = UNRESOLVED, 0, 0
    while (reached := follower.advance(offset, ReadLimits(max_files=4))) != offset:
        files += sum(len(split.files) for task in follower.plan_range(offset, reached) for split in task.splits)
        offset, steps = reached, steps + 1
    assert (files, steps, len(scans)) == (4_000, 1_000, 1)
    assert time.process_time() - began < 20


def test_a_limited_micro_batch_of_a_full_phase_decodes_few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_module, "_DECODED_FILES", 64)
    queue = Queue(partition_keys=("dt",))
    for block in range(4):
        queue.commit(*(queue.entry_of(f"p{number % 3}/{number % 2}:f{block}-{number}") for number in range(500)))
    decoded: list[int] = []
    decode = EncodedEntries.entries
    monkeypatch.setattr(EncodedEntries, "entries", lambda each, rows: decoded.append(len(rows)) or decode(each, rows))
    clear_metadata_cache()
    follower = queue.with_options({})
    assert follower.advance(UNRESOLVED, NO_LIMITS).position == Position(snapshot_id=5)
    offset = follower.advance(UNRESOLVED, ReadLimits(max_files=40))
    assert sum(map(len, names(follower.plan_range(UNRESOLVED, offset)))) == 40
    backlog = follower.measure_backlog(offset)
    assert (backlog.files, backlog.rows) == (1_960, 1_960 * queue.entry_of("p0/0:f").file.row_count)
    assert sum(decoded) == 64


@given(
    files=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(-1, 3), st.integers(0, 3), st.integers(0, 4)), min_size=1
    ),
    by_value=st.booleans(),
)
def test_the_order_by_columns_is_that_by_entries(files: list[tuple[str, int, int, int]], *, by_value: bool) -> None:
    table = MemoryTable(partition_keys=("dt",))
    entries = [
        table.entry(
            table.file(f"f{number}", min_sequence_number=sequence, creation_millis=number * 7 % 5),
            [partition],
            bucket=bucket,
            total_buckets=total_buckets,
        )
        for number, (partition, total_buckets, bucket, sequence) in enumerate(files)
    ]
    half = len(entries) // 2
    for part in (entries[:half], entries[half:]):
        table.commit(*part)
    by_partition: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        by_partition.setdefault(entry.partition, []).append(entry)

    def key(data: bytes) -> Any:
        created = min(entry.file.creation_millis or 0 for entry in by_partition[data])
        return partition_order(decode_row(data, [STRING]), created, by_value=by_value)

    expected = [entry for data in sorted(by_partition, key=key) for entry in interleave(by_partition[data])]
    for minimum in (1, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "MIN_RECORDS", minimum)
            patch.setattr(units_module, "_DECODED_FILES", 3)
            clear_metadata_cache()
            found = FileLists(table.ref, table.store).load_files(table.snapshots[-1], Phase.FULL, by_value=by_value)
            assert list(found) == expected
            assert list(found[2:][1:4]) == expected[3:6]


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
