from __future__ import annotations

from dataclasses import replace

from tests.unit.table.metadata_tables import MemoryTable

from penstock.table.metadata_cache import ManifestCache, entry_bytes
from penstock.testing.file_io import Operation, RecordingFileIO


def test_a_manifest_is_forgotten_with_the_last_list_that_names_it() -> None:
    table = MemoryTable()
    for number in range(4):
        table.commit(table.entry(table.file(f"f{number}")))
    store = table.store
    cache = ManifestCache(max_lists=2)
    deltas = [store.load_delta_manifests(store.load_snapshot(number)) for number in range(1, 5)]
    names = [metas[0].file_name for metas in deltas]
    for name in names[:3]:
        cache.put_manifest(name, ())
    cache.put_list("one", deltas[0])
    cache.put_list("both", (*deltas[0], *deltas[1]))
    cache.put_list("both", (*deltas[0], *deltas[1]))
    cache.put_list("three", deltas[2])  # "one" goes; "both" still names the first manifest
    assert [cache.get_manifest(name) is not None for name in names] == [True, True, True, False]
    cache.put_list("four", deltas[3])
    assert [cache.get_manifest(name) is not None for name in names] == [False, False, True, False]
    assert [cache.get_list(name) is not None for name in ("one", "both", "three", "four")] == [False, False, True, True]


def test_a_list_that_is_used_keeps_its_manifests() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("f")))
    store = table.store
    metas = store.load_delta_manifests(store.load_snapshot(1))
    cache = ManifestCache(max_lists=2)
    cache.put_list("kept", metas)
    cache.put_manifest(metas[0].file_name, ())
    for number in range(5):
        assert cache.get_list("kept") is not None
        cache.put_list(f"other {number}", ())
    assert cache.get_manifest(metas[0].file_name) is not None


def test_of_manifests_that_no_list_names_the_last_ones_are_kept() -> None:
    table = MemoryTable()
    table.commit(table.entry(table.file("f")))
    metas = table.store.load_delta_manifests(table.store.load_snapshot(1))
    cache = ManifestCache()
    cache.put_manifest(metas[0].file_name, ())
    cache.put_list("list", metas)
    for number in range(1_000):
        cache.put_manifest(f"lost {number}", ())
    assert [cache.get_manifest(f"lost {number}") is not None for number in (0, 743, 744, 999)] == [
        False,
        False,
        True,
        True,
    ]
    assert cache.get_manifest(metas[0].file_name) is not None


def test_a_store_that_follows_a_table_forgets_what_is_long_past() -> None:
    table = MemoryTable()
    store = table.store
    storage = store.file_io = RecordingFileIO(table.file_io)
    deltas = []
    for number in range(1, 201):
        table.commit(table.entry(table.file(f"f{number}")))
        snapshot = store.load_snapshot(number)
        store.load_delta(snapshot)
        deltas += store.load_delta_manifests(snapshot)
    storage.forget()
    for meta in deltas:
        store.load_manifest(meta.file_name, meta.file_size)
    assert len(storage.paths(Operation.READ)) == 200 - 128


def test_the_manifests_of_a_snapshot_are_read_once() -> None:
    table = MemoryTable()
    for number in range(200):
        table.commit(table.entry(table.file(f"f{number}")))
    store = table.store
    storage = store.file_io = RecordingFileIO(table.file_io)
    latest = store.load_snapshot(200)
    for _ in range(2):
        for meta in store.load_manifests(latest):
            store.load_manifest(meta.file_name, meta.file_size)
    read = [path for path in storage.paths(Operation.READ) if "/manifest/" in path]
    assert len(read) == len(set(read)) >= 200


def test_entries_with_long_statistics_count_for_more() -> None:
    table = MemoryTable()
    table.commit(*(table.entry(table.file(f"f{number}")) for number in range(10)))
    (meta,) = table.store.load_delta_manifests(table.store.load_snapshot(1))
    entries = table.store.load_manifest(meta.file_name, meta.file_size)
    stats = replace(entries[0].file.value_stats, min_values=bytes(5_000), max_values=bytes(5_000))
    wide = [replace(entry, file=replace(entry.file, value_stats=stats)) for entry in entries]
    assert entry_bytes(wide) - entry_bytes(entries) > 90_000
    cache = ManifestCache(max_entry_bytes=2 * entry_bytes(wide))
    for name in ("a", "b", "c"):
        cache.put_manifest(name, wide)
    assert [cache.get_manifest(name) is not None for name in "abc"] == [False, True, True]
