"""Going back to an older state by a new snapshot."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

import penstock
from penstock import Catalog, InvalidOptionError, NotFoundError, Table
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import CommitKind, encode_snapshot
from penstock.table.store import MetadataStore


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    options = {"bucket": "2", "bucket-key": "k", "write-only": "true"}
    table = catalog.create_table("d.t", "k INT, n INT", options=options)
    for number in range(3):
        table.append([{"k": k, "n": number} for k in range(4)])
    return catalog


def numbers(table: Table) -> list[int]:
    return sorted({row["n"] for row in table.to_arrow().to_pylist()})


def test_the_older_state_is_the_latest_and_those_between_stay(catalog: Catalog) -> None:
    table = catalog.load_table("d.t")
    landed = table.versions.rollback_to_as_latest(snapshot_id=1)
    assert landed is not None
    assert (landed.id, landed.commit_kind, landed.total_record_count) == (4, CommitKind.OVERWRITE, 4)
    assert numbers(table) == [0]
    assert table.to_arrow(snapshot_id=3).num_rows == 12
    (tag,) = table.inspect.tags()["tag_name"].to_pylist()
    assert tag.startswith("rollback-to-as-latest-1-")
    table.append([{"k": 1, "n": 7}])
    assert [row["n"] for row in table.to_arrow(filter="k = 1").to_pylist()] == [0, 7]
    assert table.versions.rollback_to_as_latest(snapshot_id=5) is None
    assert table.inspect.tags().num_rows == 1


def test_files_that_are_in_use_again_outlive_the_snapshots_between(catalog: Catalog) -> None:
    table = catalog.load_table("d.t")
    table.create_tag("full", snapshot_id=3)
    table.truncate()
    table.versions.rollback_to_as_latest(tag="full")
    assert table.inspect.tags()["tag_name"].to_pylist() == ["full"]
    table.versions.delete_tag("full")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.snapshots().num_rows == 1
    assert (numbers(table), table.inspect.fsck().findings) == ([0, 1, 2], ())


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("gone", [(), ("with",), ("again",), ("with", "again"), ("without",)])
def test_tags_keep_files_that_a_tag_between_them_lacks(gone: tuple[str, ...], *, is_ours: bool) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT", options={"write-only": "true"})
    rows = {"with": [1], "without": [2], "again": [1]}
    table.append([{"k": 1}])
    table.create_tag("with")
    table.overwrite([{"k": 2}])
    table.create_tag("without")
    restored = table.versions.rollback_to_as_latest(tag="with")
    assert restored is not None
    if not is_ours:  # as another engine writes it
        ref = table._handle.ref
        foreign = replace(restored, properties=(), writer_version=None)
        ref.file_io.write(ref.layout.snapshot_path(restored.id), encode_snapshot(foreign))
        ref.file_io.delete(f"{ref.location}/.penstock/restored")
    table = catalog.load_table("d.t")
    if "again" in gone or not is_ours:
        table.create_tag("again")
    else:
        del rows["again"]
    for number in (3, 4):
        table.overwrite([{"k": number}])
        table.expire_snapshots(retain_max=1, retain_min=1)
    for name in gone:
        if name in rows:
            table.versions.delete_tag(name)
            del rows[name]
    found = {name: table.to_arrow(tag=name)["k"].to_pylist() for name in rows}
    assert (found, table.to_arrow()["k"].to_pylist()) == (rows, [4])
    assert not Table.at(table.location).inspect.fsck(all_snapshots=True).findings


def test_files_get_the_deletion_vectors_of_the_older_state() -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT", options={"deletion-vectors.enabled": "true", "write-only": "true"})
    for first in range(0, 40, 10):
        table.append([{"k": k} for k in range(first, first + 10)])
    states = {4: list(range(40))}

    def note() -> None:
        latest = table.latest_snapshot()
        assert latest is not None
        states[latest.id] = sorted(table.to_arrow()["k"].to_pylist())

    for condition in ("k IN (1, 11)", "k IN (2, 21)", "k < 10"):
        table.delete(condition)
        note()
    table.compact(options={"compaction.min.file-num": "2"})
    note()
    before = dict(states)
    for snapshot_id, rows in before.items():
        landed = table.versions.rollback_to_as_latest(snapshot_id=snapshot_id)
        assert (landed is None) == (snapshot_id == max(before) and len(states) == len(before))
        assert sorted(table.to_arrow()["k"].to_pylist()) == rows
        note()
    table.versions.rollback_to_as_latest(snapshot_id=6)
    for tag in table.inspect.tags()["tag_name"].to_pylist():
        table.versions.delete_tag(tag)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert sorted(table.to_arrow()["k"].to_pylist()) == before[6]
    assert table.delete("k = 12").rows_deleted == 1
    assert sorted(table.to_arrow()["k"].to_pylist()) == [k for k in before[6] if k != 12]
    assert not Table.at(table.location).inspect.fsck(all_snapshots=True).findings


def test_no_manifest_deletes_a_file_that_is_live(catalog: Catalog) -> None:
    # Java takes a file for deleted wherever the DELETE entry is.
    table = catalog.load_table("d.t")
    table.compact(strategy="full")
    table.append([{"k": 1, "n": 7}])
    for target in (1, 3, 5, 2):
        table.versions.rollback_to_as_latest(snapshot_id=target)
        store = MetadataStore(table._handle.ref)
        latest = store.load_latest_snapshot()
        assert latest is not None
        entries = [
            entry
            for meta in store.load_manifests(latest)
            for entry in store.load_manifest(meta.file_name, meta.file_size)
        ]
        added, deleted = (
            {entry.file.file_name for entry in entries if entry.kind is kind}
            for kind in (FileKind.ADD, FileKind.DELETE)
        )
        live = {path.rpartition("/")[2] for path in table.files()["file_path"].to_pylist()}
        assert live <= added
        assert not live & deleted


def test_what_cannot_be_gone_back_to_leaves_no_tag(catalog: Catalog) -> None:
    table = catalog.load_table("d.t")
    with pytest.raises(NotFoundError, match="snapshot 9"):
        table.versions.rollback_to_as_latest(snapshot_id=9)
    with pytest.raises(NotFoundError):
        table.versions.rollback_to_as_latest(tag="none")
    with pytest.raises(InvalidOptionError, match="either a snapshot id or a tag"):
        table.versions.rollback_to_as_latest()
    assert table.inspect.tags().num_rows == 0


def test_the_procedure_says_where_it_came_from(catalog: Catalog) -> None:
    rows = penstock.sql(None, catalog, "CALL sys.rollback_to_as_latest('d.t', cast(null as string), 2)")
    assert rows.to_pylist() == [{"previous_snapshot_id": 3, "rolled_back_snapshot_id": 2, "current_snapshot_id": 4}]
    assert numbers(catalog.load_table("d.t")) == [0, 1]
