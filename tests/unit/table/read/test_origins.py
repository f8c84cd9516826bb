"""Which snapshot has added a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.table.metadata_tables import MemoryTable

from penstock.format.manifest.entry import FileKind
from penstock.table.read.origins import load_origins

if TYPE_CHECKING:
    import pytest


def origins(table: MemoryTable, number: int, *names: str) -> dict[str, int]:
    keys = [table.entry(table.file(name)).key for name in names]
    found = load_origins(table.store, table.snapshots[number - 1], keys)
    return {key.file_name.removesuffix(".parquet"): snapshot.id for key, snapshot in found.items()}


def history() -> MemoryTable:
    """Snapshot 3 replaces a by c; 4 replaces b by itself, as for an index, and adds d; 5 adds nothing."""
    table = MemoryTable()
    entries = {name: table.entry(table.file(name)) for name in "abcd"}
    gone = {name: table.entry(table.file(name), kind=FileKind.DELETE) for name in "ab"}
    table.commit(entries["a"])
    table.commit(entries["b"])
    table.commit(gone["a"], entries["c"])
    table.commit(gone["b"], entries["b"], entries["d"])
    table.commit()
    return table


def test_the_last_snapshot_that_added_a_file_counts() -> None:
    table = history()
    assert origins(table, 5, "b", "c", "d") == {"b": 4, "c": 3, "d": 4}
    assert origins(table, 3, "b", "c") == {"b": 2, "c": 3}
    assert origins(table, 2, "a", "b") == {"a": 1, "b": 2}
    assert load_origins(table.store, None, ()) == {}


def test_files_of_expired_snapshots_have_none() -> None:
    table = history()
    table.expire(1)
    table.expire(2)
    assert origins(table, 3, "b", "c") == {"c": 3}
    # As a tag: the snapshot that is read says itself what it has added.
    table.expire(3)
    assert origins(table, 3, "b", "c") == {"c": 3}
    assert origins(table, 2, "a", "b") == {"b": 2}


def test_changes_are_read_down_to_the_last_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table, read = history(), set[str]()
    load = table.store.file_io.read

    def noting(_: object, path: str) -> bytes:
        read.add(path.rpartition("/")[2])
        return load(path)

    monkeypatch.setattr(type(table.file_io), "read", noting)
    assert origins(table, 5, "d") == {"d": 4}
    lists = {table.snapshots[place].delta_manifest_list for place in (3, 4)}
    (manifest,) = {name for name in read if name.startswith("manifest-") and name not in lists}
    assert read == {"snapshot-4", *lists, manifest}
