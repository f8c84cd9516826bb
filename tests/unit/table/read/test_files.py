"""Plans made from columns equal those made from entries, and decode few entries."""

from __future__ import annotations

import os
import pickle
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.table.metadata_tables import MemoryTable

from penstock.errors import FormatError, NotFoundError
from penstock.format.avro.columns import BlockMemory
from penstock.format.manifest import columns
from penstock.format.manifest import files as manifest_files
from penstock.format.manifest.columns import EncodedEntries, columns_of_entries
from penstock.format.manifest.entry import FileKind, ManifestEntry
from penstock.format.manifest.stats import ColumnStats
from penstock.options import ReadOptions
from penstock.predicate.parse import parse_filter
from penstock.table import store
from penstock.table.compact.plan import plan_compaction
from penstock.table.metadata_cache import MetadataCache, clear_metadata_cache
from penstock.table.read import live, scan
from penstock.table.read.batches import read_arrow
from penstock.table.read.files import FileColumns, LazyEntries, LazyFiles, count_pairs, total
from penstock.table.read.prune_columns import GroupBounds
from penstock.table.read.scan import ScanPlan, live_entries, plan_scan
from penstock.table.read.split import iter_bucket_splits, plan_splits
from penstock.table.ref import ExternalPaths
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.manifest.columns import ManifestColumns

FILTERS = (
    None,
    "dt = 'a'",
    "id = 25",
    "dt <> 'b' and id > 30",
    "id = 3 or dt = 'c'",
    "name is null",
    "id in (1, 2, 55)",
    "id > 1000",
)


@pytest.fixture
def in_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    clear_metadata_cache()
    monkeypatch.setattr(columns, "MIN_RECORDS", 1)
    monkeypatch.setattr(scan, "MIN_COLUMNS", 0)
    monkeypatch.setattr(live, "MIN_COLUMNS", 0)
    yield monkeypatch
    clear_metadata_cache()


def file_of(table: MemoryTable, number: int, **values: Any) -> ManifestEntry:
    stats = {"id": ColumnStats(min=number, max=number + 9, null_count=0)}
    millis, first = 1_000 + number * 7 % 50, number * 5 % 3
    file = table.file(f"data-{number}", stats, creation_millis=millis, min_sequence_number=first, **values)
    return table.entry(file, ["abc"[number % 3]], bucket=number % 4, total_buckets=4)


def assert_same(table: MemoryTable, where: str | None, created: int | None = None) -> None:
    predicate = None if where is None else parse_filter(where)
    plans: list[ScanPlan] = []
    found = []
    for minimum in (0, 0, 10**9):  # the second time, the manifests are cached
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "MIN_RECORDS", 1)
            patch.setattr(scan, "MIN_COLUMNS", minimum)
            plans.append(plan_scan(table.store, table.ref, table.snapshots[-1], predicate, created))
        splits = tuple(iter_bucket_splits(table.ref, plans[-1]))
        assert all(isinstance(split.files, tuple if minimum else LazyFiles) for split in splits)
        external = ExternalPaths.of(table.ref)
        facts = [([*each.by_directory(external)], each.sizes(), each.row_count, each.schema_ids) for each in splits]
        packed = plan_splits(table.ref, plans[-1], ReadOptions(split_target_bytes=3_000, split_open_file_cost_bytes=1))
        copies = pickle.loads(pickle.dumps(splits))
        assert copies == splits
        assert hash(copies) == hash(splits)
        found.append((facts, packed, splits))
    assert found[0] == found[1] == found[2]
    *in_both_ways, by_entries = plans
    for by_columns in in_both_ways:
        assert by_columns.funnel == by_entries.funnel
        assert (by_columns.file_count, by_columns.row_count) == (by_entries.file_count, by_entries.row_count)
        assert [replace(each, entries=tuple(each.entries)) for each in by_columns.partitions] == [
            replace(each, entries=tuple(each.entries)) for each in by_entries.partitions
        ]


# Numbers of files: an even step adds what is not there, an odd one deletes what is there.
STEPS = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=30), min_size=1, max_size=8)


@given(STEPS, st.sampled_from(FILTERS), st.sampled_from(["-1", "4"]), st.sampled_from([None, 20]))
def test_plans_from_columns_equal_plans_from_entries(
    steps: list[list[int]], where: str | None, buckets: str, created: int | None
) -> None:
    clear_metadata_cache()
    table = MemoryTable(partition_keys=("dt",), options={"bucket": buckets, "bucket-key": "id"})
    there: set[int] = set()
    for place, numbers in enumerate(steps):
        distinct = dict.fromkeys(numbers)
        changed = [number for number in distinct if (number in there) == (place % 2 == 1)]
        kind = FileKind.DELETE if place % 2 else FileKind.ADD
        there ^= set(changed)
        if changed:
            table.commit(*(replace(file_of(table, number), kind=kind) for number in changed))
    if table.snapshots:
        assert_same(table, where, created)


@given(STEPS)
def test_live_files_in_columns_are_those_of_the_entries(steps: list[list[int]]) -> None:
    table = MemoryTable(partition_keys=("dt",))
    kinds = (FileKind.ADD, FileKind.DELETE)
    manifests = [
        [replace(file_of(table, number), kind=kinds[(place + number) % 2]) for number in numbers]
        for place, numbers in enumerate(steps)
    ]
    try:
        expected = live_entries(entry for entries in manifests for entry in entries)
    except FormatError:
        with pytest.raises(FormatError, match="added twice"):
            FileColumns.live(map(columns_of_entries, manifests))
    else:
        assert FileColumns.live(map(columns_of_entries, manifests)).entries() == expected


def test_a_plan_of_columns_decodes_the_files_that_are_left(in_columns: pytest.MonkeyPatch) -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(file_of(table, number) for number in range(0, 3_000, 10)))
    decoded: list[int] = []
    entries = EncodedEntries.entries

    def counted(self: EncodedEntries, rows: Any) -> Any:
        decoded.append(len(rows))
        return entries(self, rows)

    in_columns.setattr(EncodedEntries, "entries", counted)
    store, snapshot = table.store, table.snapshots[-1]
    plan = plan_scan(store, table.ref, snapshot)
    assert (plan.file_count, plan.row_count, decoded) == (300, 3_000, [])
    counts = [read_arrow(table.ref, store, plan, [], limit).num_rows for limit in (None, 0, 7, 4_000)]
    assert (counts, decoded) == ([3_000, 0, 7, 3_000], [])
    plan = plan_scan(store, table.ref, snapshot, parse_filter("id = 1234"))
    assert (plan.file_count, decoded) == (1, [])
    (partition,) = plan.partitions
    assert isinstance(partition.entries, LazyEntries)
    assert [entry.file.file_name for entry in partition.entries] == ["data-1230.parquet"]
    assert partition.entries[0] is next(iter(partition.entries))
    assert decoded == [1]


def test_files_that_were_deleted_are_not_decoded_unless_they_were_added_again(in_columns: pytest.MonkeyPatch) -> None:
    table = MemoryTable(partition_keys=("dt",))
    added = [file_of(table, number) for number in range(300)]
    table.commit(*added)
    table.commit(*(replace(entry, kind=FileKind.DELETE) for entry in added[100:]))
    table.commit(*added[290:])
    decoded: list[int] = []
    entries = EncodedEntries.entries

    def counted(self: EncodedEntries, rows: Any) -> Any:
        decoded.append(len(rows))
        return entries(self, rows)

    in_columns.setattr(EncodedEntries, "entries", counted)
    plan = plan_scan(table.store, table.ref, table.snapshots[-1])
    assert (plan.file_count, decoded) == (110, [10, 10, 10])
    names = {entry.file.file_name for entry in plan.entries}
    assert names == {f"data-{number}.parquet" for number in (*range(100), *range(290, 300))}


def test_a_compaction_plan_decodes_partitions_with_small_files_only(in_columns: pytest.MonkeyPatch) -> None:
    table = MemoryTable(partition_keys=("dt",))
    large = [file_of(table, number, file_size=1 << 30, row_count=1 << 30) for number in range(0, 300, 3)]
    small = [file_of(table, number) for number in range(1, 30, 3)]
    table.commit(*large, *small)
    by_columns = plan_compaction(table.ref, table.store)
    decoded: list[int] = []
    entries = EncodedEntries.entries

    def counted(self: EncodedEntries, rows: Any) -> Any:
        decoded.append(len(rows))
        return entries(self, rows)

    in_columns.setattr(EncodedEntries, "entries", counted)
    assert plan_compaction(table.ref, table.store) == by_columns
    assert decoded == [10]
    assert [(each.files, bool(each.tasks)) for each in by_columns.partitions] == [(100, False), (10, True)]
    in_columns.setattr(live, "MIN_COLUMNS", 10**9)
    assert plan_compaction(table.ref, table.store) == by_columns


def test_the_buckets_of_a_partition_read_its_columns_once(in_columns: pytest.MonkeyPatch) -> None:
    table = MemoryTable(partition_keys=("dt",), options={"bucket": "32", "bucket-key": "id"})
    files = [file_of(table, number) for number in range(0, 3 * 64, 3)]
    table.commit(*(replace(entry, bucket=number % 32, total_buckets=32) for number, entry in enumerate(files)))
    splits = tuple(iter_bucket_splits(table.ref, plan_scan(table.store, table.ref, table.snapshots[-1])))
    read: list[str] = []
    column, names = FileColumns.column, FileColumns.names

    def noted(files: FileColumns, name: str) -> Any:
        read.append(name)
        return column(files, name)

    def noted_names(files: FileColumns) -> Any:
        read.append("names")
        return names(files)

    in_columns.setattr(FileColumns, "column", noted)
    in_columns.setattr(FileColumns, "names", noted_names)
    assert [split.bucket for split in splits] == list(range(32))
    external = ExternalPaths.of(table.ref)
    found = [name for split in splits for _, some in split.by_directory(external) for name in some]
    assert sorted(found) == sorted(entry.file.file_name for entry in files)
    assert sum(size for split in splits for size in split.sizes()) == sum(entry.file.file_size for entry in files)
    assert sorted(read) == ["file_size", "is_external", "names"]


def test_a_manifest_in_the_cache_serves_as_columns_and_as_entries(in_columns: pytest.MonkeyPatch) -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(file_of(table, number) for number in range(200)))
    (meta,) = table.store.load_manifests(table.snapshots[-1])
    reads: list[str] = []
    read = MetadataStore._read_whole_manifest

    def counted(self: MetadataStore, name: str, size: int, snapshot_id: int | None) -> bytes:
        reads.append(name)
        return read(self, name, size, snapshot_id)

    in_columns.setattr(MetadataStore, "_read_whole_manifest", counted)
    (first,) = table.store.iter_columns([meta])
    entries = table.store.load_manifest(meta.file_name, meta.file_size)
    (again,) = table.store.iter_columns([meta])
    assert [entry.file.file_name for entry in entries] == [f"data-{number}.parquet" for number in range(200)]
    assert first.entries() == again.entries() == list(entries)
    assert len(reads) == 1


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("group_records", [8192, 30])
def test_manifests_that_a_thread_uncompresses_come_in_their_order(
    cores: int, group_records: int, in_columns: pytest.MonkeyPatch
) -> None:
    in_columns.setattr(manifest_files, "_BLOCK_BYTES", 2_000)
    table = MemoryTable(partition_keys=("dt",))
    for first in range(0, 1_000, 100):
        table.commit(*(file_of(table, number) for number in range(first, first + 100)))
    in_columns.setattr(store, "_MIN_THREADED", 0)
    in_columns.setattr(os, "cpu_count", lambda: cores)
    in_columns.setattr(columns, "_GROUP_RECORDS", group_records)
    take, threads, groups = BlockMemory.take, set[str](), list[int]()

    def noted(self: BlockMemory) -> Any:
        threads.add(threading.current_thread().name)
        return take(self)

    in_columns.setattr(BlockMemory, "take", noted)

    def visit(files: ManifestColumns, _cursor: Any) -> Any:
        assert threading.current_thread() is threading.main_thread()
        groups.append(len(files))
        return files.row_count

    metas = table.store.load_manifests(table.snapshots[-1])
    some = list(table.store.iter_columns(metas[3:5]))
    parts = list(table.store.iter_columns(metas, visit=visit))
    names = [entry.file.file_name for part in parts for entry in part.entries()]
    assert names == [f"data-{number}.parquet" for number in range(1_000)]
    assert [not part.visited for part in parts] == [3 <= place < 5 for place in range(10)]
    assert [len(part) for part in some] == [100, 100]
    assert (len(groups) > 8) == (group_records < 100)
    assert {name.startswith("penstock-manifests") for name in threads} == {cores > 1}
    assert not any(each.name.startswith("penstock-manifests") for each in threading.enumerate())


def test_a_damaged_manifest_ends_the_decoding_of_others_at_once(in_columns: pytest.MonkeyPatch) -> None:
    table = MemoryTable(partition_keys=("dt",))
    for first in range(0, 1_000, 100):
        table.commit(*(file_of(table, number) for number in range(first, first + 100)))
    in_columns.setattr(store, "_MIN_THREADED", 0)
    in_columns.setattr(os, "cpu_count", lambda: 3)
    metas = table.store.load_manifests(table.snapshots[-1])
    path = table.store.layout.manifest_path(metas[4].file_name)
    content = bytearray(table.file_io.read(path))
    content[-20] ^= 0xFF
    table.file_io.delete(path)
    table.file_io.write(path, bytes(content))
    parts = table.store.iter_columns(metas)
    assert [len(next(parts)) for _ in range(4)] == [100] * 4
    with pytest.raises(FormatError, match=metas[4].file_name):
        next(parts)
    assert not any(each.name.startswith("penstock-manifests") for each in threading.enumerate())


@pytest.mark.usefixtures("in_columns")
def test_statistics_of_deleted_files_with_a_lost_schema_do_not_matter() -> None:
    table = MemoryTable(partition_keys=("dt",))
    entries = [file_of(table, number) for number in range(100)]
    lost = [replace(each, file=replace(each.file, schema_id=7)) for each in entries[:50]]
    table.commit(*lost, *entries[50:])
    table.commit(*(replace(each, kind=FileKind.DELETE) for each in lost))
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter("id = 60"))
    assert {entry.file.file_name for entry in plan.entries} == {f"data-{number}.parquet" for number in range(51, 61)}
    plan = plan_scan(table.store, table.ref, table.snapshots[-2], parse_filter("dt = 'x'"))
    assert plan.file_count == 0
    with pytest.raises(NotFoundError, match="schema 7 is missing"):
        plan_scan(table.store, table.ref, table.snapshots[-2], parse_filter("id = 60"))


def test_a_plan_by_columns_of_the_last_one_uncompresses_nothing_but_its_files(in_columns: pytest.MonkeyPatch) -> None:
    in_columns.setattr(columns, "_GROUP_RECORDS", 50)
    in_columns.setattr(manifest_files, "_BLOCK_BYTES", 2_000)
    table = MemoryTable(partition_keys=("dt",))
    both = {"name": ColumnStats(min="x", max="z", null_count=0), "id": ColumnStats(min=3, max=8, null_count=0)}
    others = [replace(file_of(table, number), file=table.file(f"data-{number}", both)) for number in (300, 301)]
    table.commit(*(file_of(table, number) for number in range(300)), *others)
    read: list[int] = []
    statistics = EncodedEntries.statistics

    def counted(self: EncodedEntries, group: Any) -> Any:
        read.append(len(group.starts))
        return statistics(self, group)

    in_columns.setattr(EncodedEntries, "statistics", counted)

    def found(where: str) -> list[str]:
        plan = plan_scan(table.store, table.ref, table.snapshots[-1], parse_filter(where))
        return [entry.file.file_name for entry in plan.entries]

    assert found("id = 7") == [f"data-{number}.parquet" for number in (0, 3, 6, 300, 1, 4, 7, 301, 2, 5)]
    assert found("id = 205 and dt = 'a'") == ["data-198.parquet", "data-201.parquet", "data-204.parquet"]
    assert not read
    # Groups with statistics of another column are read once more.
    expected = [f"data-{number}.parquet" for number in (0, 3, 6, 1, 4, 7, 2, 5)]
    assert found("name = 'y' and id = 7") == found("id = 7 and name = 'y'")
    assert found("name = 'w' and id = 7") == expected
    assert 2 <= sum(read) <= 52
    # What takes too much memory is read again by each plan.
    in_columns.setattr(columns, "_MAX_VISITED_BYTES", 0)
    for place in range(2):
        read.clear()
        assert found("id = 7" if place else "id >= 7 and id < 8") == [
            *expected[:3],
            "data-300.parquet",
            *expected[3:6],
            "data-301.parquet",
            *expected[6:],
        ]
    assert sum(read) == 302


def test_the_cache_counts_the_memory_of_statistics(in_columns: pytest.MonkeyPatch) -> None:
    cache = MetadataCache()
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(file_of(table, number) for number in range(300)))
    sizes: list[int] = []
    put = MetadataCache.put
    in_columns.setattr(MetadataCache, "put", lambda *each: (sizes.append(each[-1]), put(*each))[1])
    for where in (None, "id = 7"):
        cache.clear()
        predicate = None if where is None else parse_filter(where)
        plan_scan(MetadataStore(table.ref, cache=cache), table.ref, table.snapshots[-1], predicate)
    # Two bounds of 8 bytes.
    assert 300 * 16 <= sizes[-1] - sizes[len(sizes) // 2 - 1] < 300 * 17
    again = MetadataStore(table.ref, cache=cache)
    (kept,) = again.iter_columns(again.load_manifests(table.snapshots[-1]))
    (group,) = kept.visited
    assert isinstance(group, GroupBounds)
    arrays = [each for part in group.parts for each in part.stats.arrays()]
    assert sum(map(owned_bytes, arrays)) == group.nbytes


def owned_bytes(array: Any) -> int:
    """The memory that an array keeps alive, of which it may be a part."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return int(array.nbytes)


def test_a_manifest_that_a_plan_uses_is_decoded_once_and_kept_while_the_cache_has_space(
    in_columns: pytest.MonkeyPatch,
) -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(file_of(table, number) for number in range(300)))
    decoded: list[int] = []
    entries = EncodedEntries.entries

    def counted(self: EncodedEntries, rows: Any) -> Any:
        decoded.append(len(rows))
        return entries(self, rows)

    in_columns.setattr(EncodedEntries, "entries", counted)
    in_columns.setattr(MetadataCache, "has_space", lambda _self, _size: len(decoded) > 1)
    for expected in ([300], [300, 300], [300, 300]):
        plan = plan_scan(table.store, table.ref, table.snapshots[-1])
        assert len(plan.entries) == 300
        assert decoded == expected


@pytest.mark.usefixtures("in_columns")
def test_a_manifest_with_more_entries_than_the_limit_is_refused_although_it_is_cached() -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(*(file_of(table, number) for number in range(200)))
    assert plan_scan(table.store, table.ref, table.snapshots[-1]).file_count == 200
    ref = replace(table.ref, dynamic_options=(("penstock.metadata.max-records", "100"),))
    with pytest.raises(FormatError, match="more records"):
        plan_scan(MetadataStore(ref), ref, table.snapshots[-1])


def test_sums_are_exact_and_pairs_are_counted() -> None:
    assert total(np.array([2**63 - 1, 2**63 - 1, -5])) == 2**64 - 7
    assert total(np.zeros(0, np.int64)) == 0
    assert count_pairs(np.array([0, 0, 1, 1]), np.array([5, 5, 5, -(2**40)])) == 3
    assert count_pairs(np.array([0, 0, 1, 1]), np.array([5, 6, 5, 5])) == 3
    assert count_pairs(np.array([0, 10**6, 10**6, 0]), np.array([5, 2**20 - 1, 7, 5])) == 3
