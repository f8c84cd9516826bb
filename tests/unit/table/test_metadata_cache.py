"""Which contents of metadata files a process keeps, and for which tables."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.counted_requests import counted_requests, memory_store
from tests.unit.table.metadata_tables import MemoryTable

from penstock import Catalog
from penstock.errors import NotFoundError
from penstock.io.local import LocalFileIO
from penstock.io.memory import MemoryFileIO
from penstock.table.metadata_cache import METADATA, MetadataCache, entry_bytes, meta_bytes
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore
from penstock.testing.file_io import Operation, RecordingFileIO

if TYPE_CHECKING:
    from penstock.format.manifest.entry import ManifestEntry
    from penstock.table.ref import TableRef


def stored(*names: str) -> MemoryFileIO:
    file_io = MemoryFileIO(f"cached {names}")
    for name in names:
        file_io.write(name, name.encode())
    return file_io


def test_what_was_not_used_for_ten_minutes_is_evicted() -> None:
    now = [0.0]
    cache, file_io = MetadataCache(clock=lambda: now[0]), stored(*(f"manifest-{minute}" for minute in range(30)))
    for minute in range(30):
        now[0] = 60.0 * minute
        cache.put(file_io, f"manifest-{minute}", b"content", 7)
        assert cache.get(file_io, "manifest-0") == b"content"
    kept = [minute for minute in range(30) if cache.get(file_io, f"manifest-{minute}") is not None]
    assert kept == [0, *range(19, 30)]


def test_the_least_recently_used_is_evicted_first() -> None:
    now = [0.0]
    cache, file_io = MetadataCache(19, clock=lambda: now[0]), stored("a", "b", "c")
    for name in ("a", "b"):
        cache.put(file_io, name, b"0123456789", 10)
    now[0] = 90.0
    cache.get(file_io, "a")
    cache.put(file_io, "c", b"0123456789", 10)
    assert [cache.get(file_io, name) is not None for name in ("a", "b", "c")] == [True, False, True]
    cache.put(file_io, "a", b"012345678901234", 15)
    assert cache.get(file_io, "a") == b"012345678901234"
    cache.clear()
    assert cache.get(file_io, "a") is None


def test_when_what_is_in_use_exceeds_the_limit_a_part_of_it_stays() -> None:
    cache, file_io = MetadataCache(20), stored(*"abcdef")
    hits = [0] * 4
    for number in range(4):
        for name in "abcdef":
            if cache.get(file_io, name) is None:
                cache.put(file_io, name, name.encode(), 10)
            else:
                hits[number] += 1
    assert hits[0] == 0
    assert min(hits[1:]) >= 2


def test_the_largest_content_is_kept_whatever_its_size() -> None:
    now = [0.0]
    cache = MetadataCache(25, clock=lambda: now[0])
    file_io = stored("small", "large", "next", "last", "larger")
    cache.put(file_io, "small", b"s", 10)
    now[0] = 90.0
    cache.put(file_io, "large", b"l", 1_000)
    cache.put(file_io, "next", b"n", 10)
    assert [cache.get(file_io, name) for name in ("large", "next")] == [b"l", b"n"]
    cache.put(file_io, "last", b"t", 10)
    assert [cache.get(file_io, name) for name in ("small", "large", "next", "last")] == [None, b"l", b"n", b"t"]
    now[0] = 180.0
    cache.put(file_io, "larger", b"r", 1_001)
    assert [cache.get(file_io, name) for name in ("large", "larger")] == [None, b"r"]


def test_a_pickled_cache_is_that_of_the_other_process() -> None:
    cache, file_io = MetadataCache(), stored("a")
    cache.put(file_io, "a", b"content", 7)
    assert pickle.loads(pickle.dumps(cache)) is METADATA
    assert pickle.loads(pickle.dumps(METADATA)) is METADATA


def test_the_same_path_of_another_storage_is_another_file() -> None:
    cache, file_io, other = MetadataCache(), stored("a"), stored("a", "b")
    cache.put(file_io, "a", b"of the first", 12)
    assert cache.get(other, "a") is None
    assert cache.get(file_io, "a") == b"of the first"


def test_a_storage_that_flushes_is_the_same_storage(tmp_path: Path) -> None:
    cache, path = MetadataCache(), str(tmp_path / "manifest")
    LocalFileIO().write(path, b"content")
    cache.put(LocalFileIO().with_durability(durable=True), path, b"content", 7)
    assert cache.get(LocalFileIO(), path) == b"content"


def test_a_replaced_or_deleted_file_of_this_machine_is_read_again(tmp_path: Path) -> None:
    cache, path, file_io = MetadataCache(), str(tmp_path / "manifest"), LocalFileIO()
    file_io.write(path, b"content")
    for replacement in (b"other", b"longer content"):
        cache.put(file_io, path, b"content", 7)
        assert cache.get(file_io, path) == b"content"
        file_io.write(path, replacement)
        assert cache.get(file_io, path) is None
    cache.put(file_io, path, b"content", 7)
    Path(path).unlink()
    assert cache.get(file_io, path) is None
    cache.put(file_io, path, b"content", 7)
    Path(path).write_bytes(b"content")
    assert cache.get(file_io, path) is None


def plan(ref: TableRef, cache: MetadataCache) -> tuple[int, int]:
    """Return how many live files a new store finds, and how many manifests and lists it reads."""
    recording = ref.file_io
    assert isinstance(recording, RecordingFileIO)
    recording.forget()
    store = MetadataStore(ref, cache=cache)
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    files = load_live_entries(store, snapshot)
    return len(files), len(recording.paths(Operation.READ, containing="/manifest/"))


def recorded(table: MemoryTable) -> TableRef:
    return replace(table.ref, file_io=RecordingFileIO(table.file_io))


def test_a_manifest_larger_than_the_cache_is_read_once_for_all_stores() -> None:
    table = MemoryTable()
    table.commit(*(table.entry(table.file(f"f{number}")) for number in range(500)))
    cache, ref = MetadataCache(10_000), recorded(table)
    assert entry_bytes([table.entry(table.file("f"))] * 500) > 20 * 10_000
    assert plan(ref, cache) == (500, 3)
    assert plan(ref, cache) == (500, 0)


def test_a_part_of_a_table_that_exceeds_the_cache_stays_for_the_next_plan() -> None:
    table = MemoryTable()
    for number in range(40):
        table.commit(*(table.entry(table.file(f"f{number}-{file}")) for file in range(20)))
    one = entry_bytes([table.entry(table.file("f"))] * 20)
    cache, ref = MetadataCache(30 * one), recorded(table)
    assert plan(ref, cache) == (800, 42)
    for _ in range(3):
        files, read = plan(ref, cache)
        assert files == 800
        assert 5 < read < 25


def test_the_manifests_of_a_snapshot_are_read_once() -> None:
    table = MemoryTable()
    for number in range(200):
        table.commit(table.entry(table.file(f"f{number}")))
    cache, ref = MetadataCache(), recorded(table)
    assert plan(ref, cache) == (200, 202)
    assert plan(ref, cache) == (200, 0)


def test_entries_with_long_statistics_count_for_more() -> None:
    table = MemoryTable()
    table.commit(*(table.entry(table.file(f"f{number}")) for number in range(10)))
    (meta,) = table.store.load_delta_manifests(table.store.load_snapshot(1))
    entries = table.store.load_manifest(meta.file_name, meta.file_size)
    stats = replace(entries[0].file.value_stats, min_values=bytes(5_000), max_values=bytes(5_000))
    wide: list[ManifestEntry] = [replace(entry, file=replace(entry.file, value_stats=stats)) for entry in entries]
    assert entry_bytes(wide) - entry_bytes(entries) > 90_000
    assert meta_bytes([meta] * 10) > 5 * meta_bytes([meta]) > 0


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def test_a_table_that_is_dropped_and_created_again_has_its_own_rows(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    for numbers in ([1, 2], [3], [4, 5, 6]):
        table = catalog.create_table("db.t", "id BIGINT")
        for number in numbers:
            table.append(rows(number))
        assert sorted(catalog.load_table("db.t").to_arrow()["id"].to_pylist()) == numbers
        catalog.drop_table("db.t")


def test_a_snapshot_id_that_a_rollback_has_freed_has_the_new_rows(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(rows(1))
    for number in (2, 3, 4):
        table.append(rows(number))
        assert sorted(catalog.load_table("db.t").to_arrow()["id"].to_pylist()) == [1, number]
        table.rollback_to(snapshot_id=1)
        assert catalog.load_table("db.t").to_arrow()["id"].to_pylist() == [1]


def test_a_branch_and_its_table_have_their_own_rows(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(rows(1))
    table.create_tag("start")
    table.versions.create_branch("b", tag="start")
    branch = catalog.load_table("db.t$branch_b")
    branch.append(rows(2))
    table.append(rows(3))
    assert sorted(catalog.load_table("db.t").to_arrow()["id"].to_pylist()) == [1, 3]
    assert sorted(catalog.load_table("db.t$branch_b").to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_missing_manifest_is_noticed_although_it_was_read(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(rows(1))
    assert table.to_arrow().num_rows == 1
    for path in Path(table.location, "manifest").glob("manifest-*"):
        path.unlink()
    with pytest.raises(NotFoundError, match="is missing"):
        catalog.load_table("db.t").to_arrow()


def test_another_handle_on_an_object_store_reads_no_manifest() -> None:
    store = memory_store("cached")
    root = store.settings.address.root
    catalog = Catalog(f"{root}/warehouse", dict(store.settings.options))
    catalog.create_database("db")
    catalog.create_table("db.t", "id BIGINT").append(rows(1, 2))
    first = catalog.load_table("db.t")
    with counted_requests(store) as counts:
        assert first.to_arrow().num_rows == 2
    assert not [path for path in counts.names if "/manifest/" in path]
