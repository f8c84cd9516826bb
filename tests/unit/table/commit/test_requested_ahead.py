"""Commits on an object store, where what an attempt reads first was requested before its data files were written."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.counted_requests import memory_store

from penstock import AddColumn, Catalog, CommitUnknownError
from penstock.table.commit.expiring import announce_expiration
from penstock.table.commit.reused_ids import record_freed_ids
from penstock.table.store import MetadataStore
from penstock.table.write import writer as writer_module

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def catalog() -> Catalog:
    file_io = memory_store(f"ahead-{uuid.uuid4()}")
    catalog = Catalog(f"{file_io.settings.address.root}/warehouse", dict(file_io.settings.options))
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    for _ in range(3):
        table.append(ROWS)
    return catalog


def while_rows_are_written(monkeypatch: pytest.MonkeyPatch, others_do: Callable[[], object]) -> None:
    """Have others do something after the requests were answered, before the data files are there."""
    prepare = writer_module.TableWriter.prepare_commit

    def prepare_commit(self: writer_module.TableWriter) -> object:
        found = prepare(self)
        monkeypatch.setattr(writer_module.TableWriter, "prepare_commit", prepare)
        others = threading.Thread(target=others_do)  # what this thread changes, drops its answers
        others.start()
        others.join()
        return found

    monkeypatch.setattr(writer_module.TableWriter, "prepare_commit", prepare_commit)


def test_rows_that_others_commit_meanwhile_stay(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.load_table("db.t")
    while_rows_are_written(monkeypatch, lambda: catalog.load_table("db.t").append(ROWS))
    snapshot = table.append(ROWS)
    assert snapshot is not None
    assert snapshot.id == 5
    assert table.to_arrow().num_rows == 15


def test_a_schema_that_is_added_meanwhile_is_that_of_the_snapshot(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.load_table("db.t")
    change = AddColumn(column="name", type="STRING")
    while_rows_are_written(monkeypatch, lambda: catalog.alter_table("db.t", change))
    snapshot = table.append(ROWS)
    assert snapshot is not None
    assert (snapshot.id, snapshot.schema_id) == (4, 1)


def test_ids_that_are_freed_meanwhile_are_seen(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = catalog.load_table("db.t")
    store = MetadataStore(table._ref)
    while_rows_are_written(monkeypatch, lambda: record_freed_ids(store, 1, 3))
    looked: list[object] = []
    built_on = "penstock.table.commit.reused_ids.is_built_on_previous"
    monkeypatch.setattr(built_on, lambda _store, _latest, freed_ids: looked.append(freed_ids) or True)
    assert table.append(ROWS) is not None
    assert looked == [(), (range(3, 6),)]


def test_a_snapshot_whose_successor_expired_before_it_is_unknown(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One request deletes many snapshots, in no order: here number 5 has gone, while 3 and 4 are still there.
    table = catalog.load_table("db.t")
    store = MetadataStore(table._ref)
    put = type(store.file_io).put_if_absent

    def others_expire(self: object, path: str, data: bytes) -> bool:
        done = put(self, path, data)  # type: ignore[arg-type] # the storage
        if path.endswith("/snapshot-4"):
            monkeypatch.setattr(type(store.file_io), "put_if_absent", put)
            others = catalog.load_table("db.t")
            others.append(ROWS)
            others.append(ROWS)
            announce_expiration(store, 6)
            store.file_io.delete(store.layout.snapshot_path(5))
        return done

    monkeypatch.setattr(type(store.file_io), "put_if_absent", others_expire)
    with pytest.raises(CommitUnknownError, match="look at the latest snapshots"):
        table.append(ROWS)
    assert catalog.load_table("db.t").to_arrow().num_rows == 18
