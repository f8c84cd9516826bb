"""Existing files get the indexes of the present options; no row, vector, id or file is lost by it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.unit.table.write.test_file_index import BESIDE, BITMAP, BLOOM, OFF, live_files, stored

import penstock
from penstock.clocks import utc_millis
from penstock.errors import CommitConflictError
from penstock.format.file_index import decode_index_places
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import CommitKind
from penstock.table.actions import file_indexes
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.read.indexes import has_index
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock import Table
    from penstock.format.snapshot import Snapshot

FILES: Final = 5
ALL: Final = {**BLOOM, **BITMAP}


def filled(path: Path, options: dict[str, str] | None = None, **more: Any) -> Table:
    catalog = penstock.Catalog(path)
    catalog.create_database("d", if_not_exists=True)
    table = catalog.create_table("d.t", "k BIGINT, s STRING, n INT", options=options or {}, **more)
    for number in range(FILES):
        keys = [number + FILES * each for each in range(10)]
        n = pa.array([number] * 10, pa.int32())
        table.append(pa.table({"k": keys, "s": [f"s{number}", None] * 5, "n": n}))
    return table


def altered(path: Path, options: dict[str, str]) -> Table:
    changes = [penstock.SetOption(key=key, value=value) for key, value in options.items()]
    return penstock.Catalog(path).alter_table("d.t", *changes)


def keys(table: Table) -> Sequence[int]:
    return sorted(table.to_arrow(["k"]).column("k").to_pylist())


@pytest.mark.parametrize("where", [{}, BESIDE])
@pytest.mark.parametrize("queue", [{}, {"bucket": "2", "bucket-key": "k"}])
def test_all_files_get_indexes_once(tmp_path: Path, where: dict[str, str], queue: dict[str, str]) -> None:
    filled(tmp_path, queue)
    table = altered(tmp_path, {**ALL, **where})
    rows, before = table.to_arrow(), stored(tmp_path)
    count = len(live_files(table))
    assert table.maintenance.rewrite_file_index(dry_run=True).files == count
    assert stored(tmp_path) == before
    done = table.maintenance.rewrite_file_index()
    assert (done.partitions, done.files) == (1, count)
    assert all(map(has_index, live_files(table)))
    assert table.to_arrow() == rows
    where_key = penstock.col("k") == 17
    opened = [each.explain_values(where_key)["files"] for each in (table, table.with_options(OFF))]
    assert opened[0] < opened[1]
    again = table.maintenance.rewrite_file_index()
    assert (again.files, again.snapshot) == (0, None)
    assert not table.inspect.fsck().findings


def test_other_options_give_other_indexes_and_none_take_them_away(tmp_path: Path) -> None:
    filled(tmp_path, {**ALL, **BESIDE})
    before = {name for name in stored(tmp_path) if name.endswith(".index")}
    table = altered(tmp_path, {"file-index.bloom-filter.k.items": "1000"})
    assert table.maintenance.rewrite_file_index().files == FILES
    names = {name for file in live_files(table) for name in file.extra_files}
    assert len(names) == FILES
    assert names.isdisjoint(before)
    table = altered(tmp_path, {"file-index.in-manifest-threshold": "1 mb"})
    assert table.maintenance.rewrite_file_index().files == FILES
    assert all(file.embedded_file_index and not file.extra_files for file in live_files(table))
    catalog = penstock.Catalog(tmp_path)
    table = catalog.alter_table("d.t", *(penstock.RemoveOption(key=key) for key in ALL))
    assert table.maintenance.rewrite_file_index().files == FILES
    assert not any(map(has_index, live_files(table)))


def test_no_manifest_deletes_a_file_that_gets_an_index_back(tmp_path: Path) -> None:
    """Java and pypaimon skip each file of which there is a DELETE entry with the same index, wherever it is."""
    catalog = penstock.Catalog(tmp_path)
    filled(tmp_path, {"file-index.in-manifest-threshold": "1 mb"})
    for _ in range(2):
        altered(tmp_path, ALL).maintenance.rewrite_file_index()
        table = catalog.alter_table("d.t", *(penstock.RemoveOption(key=key) for key in ALL))
        assert table.maintenance.rewrite_file_index().files == FILES
        store = MetadataStore(table._ref)
        latest = store.load_latest_snapshot()
        assert latest is not None
        deleted = {
            entry.identity
            for meta in store.load_manifests(latest)
            for entry in store.load_manifest(meta.file_name, meta.file_size)
            if entry.kind is FileKind.DELETE
        }
        assert len(deleted) == FILES
        assert deleted.isdisjoint(load_live_entries(store, latest))


def test_the_rows_of_a_queue_stay_in_order_if_only_some_of_the_files_of_one_number_change(tmp_path: Path) -> None:
    queue = {"bucket": "1", "bucket-key": "k", "target-file-row-num": "10", "write-only": "true"}
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    options = {**queue, "file-index.bitmap.columns": "s", "file-index.in-manifest-threshold": "1 mb"}
    table = catalog.create_table("d.t", "k BIGINT, s STRING", options=options)
    table.append([{"k": k, "s": "x" * (1 if 10 <= k < 20 else 200 + k)} for k in range(30)])
    altered(tmp_path, {"target-file-row-num": "100"}).compact(options={"compaction.force-rewrite-all-files": "true"})
    altered(tmp_path, {"target-file-row-num": "10"}).delete("k = 13")
    table = altered(tmp_path, {"file-index.in-manifest-threshold": "1000 b"})
    sizes = [len(file.embedded_file_index or b"") for file in live_files(table)]
    assert [size > 1_000 for size in sizes] == [True, False, True]
    assert {file.min_sequence_number for file in live_files(table)} == {0}
    rows = table.to_arrow()
    # All, the second one, whose index is small, with the others; then none, also if all could be in the manifest.
    for count, limit in ((3, "1000 b"), (0, "1000 b"), (0, "1 mb")):
        table = altered(tmp_path, {"file-index.in-manifest-threshold": limit})
        assert table.maintenance.rewrite_file_index().files == count
        assert table.to_arrow() == rows
        assert all(map(has_index, live_files(table)))
    assert not table.inspect.fsck().findings


def test_rows_of_files_that_got_an_index_are_no_difference(tmp_path: Path) -> None:
    before = filled(tmp_path).latest_snapshot()
    table = altered(tmp_path, ALL)
    table.maintenance.rewrite_file_index()
    table.append(pa.table({"k": [1000], "s": ["new"], "n": pa.array([1], pa.int32())}))
    after = table.latest_snapshot()
    assert before is not None
    assert after is not None
    span = {"incremental-between": f"{before.id},{after.id}", "incremental-between-scan-mode": "diff"}
    assert table.to_arrow(["k"], options=span)["k"].to_pylist() == [1000]


def test_expiration_keeps_the_data_files_and_orphans_are_the_old_indexes(tmp_path: Path) -> None:
    """Files are deleted and added in one snapshot; what deletes a file must see that it is the same one."""
    filled(tmp_path, {**ALL, **BESIDE}).create_tag("before", snapshot_id=FILES)
    table = altered(tmp_path, {"file-index.bloom-filter.k.items": "1000"})
    table.versions.create_branch("b", snapshot_id=2)
    table.maintenance.rewrite_file_index()
    expected = keys(table)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert keys(table) == expected
    assert keys(penstock.Catalog(tmp_path).load_table("d.t$branch_b")) == sorted(
        number + FILES * each for number in range(2) for each in range(10)
    )
    table.versions.delete_branch("b")
    table.versions.delete_tag("before")
    assert keys(table) == expected
    assert not table.inspect.fsck().findings
    table.maintenance.compact_manifests()
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert stored(tmp_path) == {name for file in live_files(table) for name in (file.file_name, *file.extra_files)}
    table.compact(options={"compaction.min.file-num": "2"})
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert keys(table) == expected
    assert len(stored(tmp_path)) == 2


def test_deletion_vectors_and_ids_of_rows_stay(tmp_path: Path) -> None:
    table = filled(tmp_path, {"deletion-vectors.enabled": "true", "row-tracking.enabled": "true"})
    table.delete("k < 7")
    table = altered(tmp_path, ALL)
    columns = ["k", "_ROW_ID", "_SEQUENCE_NUMBER"]
    rows = table.to_arrow(columns)
    assert rows.num_rows == 10 * FILES - 7
    assert table.maintenance.rewrite_file_index().files == FILES
    assert table.to_arrow(columns) == rows
    assert table.to_arrow(filter=penstock.col("k") == 3).num_rows == 0
    table.delete("k = 8")
    assert table.to_arrow().num_rows == rows.num_rows - 1


def test_only_named_partitions_and_older_schemas(tmp_path: Path) -> None:
    filled(tmp_path, partition_by=["n"])
    catalog = penstock.Catalog(tmp_path)
    catalog.alter_table("d.t", penstock.RenameColumn(column=("k",), new_name="key"))
    table = catalog.alter_table(
        "d.t",
        penstock.AddColumn(column="more", type="INT"),
        *(
            penstock.SetOption(key=name, value=value)
            for name, value in {"file-index.bloom-filter.columns": "key, more, n", **BITMAP, **BESIDE}.items()
        ),
    )
    assert table.maintenance.rewrite_file_index(where="n < 2").files == 2
    assert table.maintenance.rewrite_file_index(partitions=[{"n": 1}, {"n": 2}]).files == 1
    assert table.maintenance.rewrite_file_index().files == 2
    beside = list(tmp_path.rglob("*.index"))
    assert {column for path in beside for column in decode_index_places(path.read_bytes())} == {"k", "n", "s"}
    where = penstock.col("key") == 11
    assert table.to_arrow(filter=where)["s"].to_pylist() == ["s1"]


def mixed_queue(catalog: penstock.Catalog, name: str) -> Table:
    """Return a queue of two files that begin with one number; the second one lacks the column that gets indexes."""
    options = {"bucket": "1", "bucket-key": "k", "write-only": "true"}
    older = catalog.create_table(name, "k BIGINT, s STRING", options=options)
    table = catalog.alter_table(name, penstock.AddColumn(column="x", type="INT"))
    table.append([{"k": k, "s": "first", "x": k} for k in range(10)])
    older.append([{"k": k, "s": "second"} for k in range(10, 20)])
    # As a writer leaves it that does not number its rows.
    *_, entry = load_live_entries(table._store, _latest(table)).values()
    same = replace(entry.file, file_name=f"same-{entry.file.file_name}", min_sequence_number=0, max_sequence_number=9)
    directory = table.files()["file_path"].to_pylist()[-1].rpartition("/")[0]
    file_io = table._ref.file_io
    file_io.write(f"{directory}/{same.file_name}", file_io.read(f"{directory}/{entry.file.file_name}"))
    like = CommitMessage(partition=entry.partition, bucket=0, total_buckets=1)
    for message in (replace(like, compact_after=(same,)), replace(like, compact_before=(entry.file,))):
        request = CommitRequest(commit_user="other", kind=CommitKind.COMPACT, messages=(message,))
        open_committer(table._ref).commit(request)
    return catalog.alter_table(name, penstock.SetOption(key="file-index.bitmap.columns", value="x"))


def _latest(table: Table) -> Snapshot:
    latest = table.latest_snapshot()
    assert latest is not None
    return latest


def test_a_file_that_gets_no_index_keeps_its_place_in_a_queue(tmp_path: Path) -> None:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = mixed_queue(catalog, "d.t")
    rows = table.to_arrow()
    assert rows["k"].to_pylist() == list(range(20))
    for options in ({}, {"file-index.bitmap.columns": ""}):
        table = altered(tmp_path, options) if options else table
        assert table.maintenance.rewrite_file_index().files == 2
        assert table.to_arrow() == rows
        assert table.to_arrow(filter="x = 3")["k"].to_pylist() == [3]
        assert table.to_arrow(filter="x IS NULL")["k"].to_pylist() == list(range(10, 20))
        assert table.maintenance.rewrite_file_index().files == 0
    assert not table.inspect.fsck().findings


def test_a_rewrite_that_others_overtake_begins_again_and_leaves_no_index_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    table = altered(tmp_path, {**ALL, **BESIDE})
    build = file_indexes._NewIndexes.of
    overtaken = []

    def of(self: Any, entry: Any) -> Any:
        if len(overtaken) < 1:
            overtaken.append(penstock.Catalog(tmp_path).load_table("d.t").overwrite([{"k": 1, "s": "a", "n": 1}]))
        return build(self, entry)

    monkeypatch.setattr(file_indexes._NewIndexes, "of", of)
    monkeypatch.setattr(file_indexes, "_MAX_THREADS", 1)
    assert table.maintenance.rewrite_file_index().files == 0
    names = {name for name in stored(tmp_path) if name.endswith(".index")}
    assert names == {name for file in live_files(table) for name in file.extra_files}
    monkeypatch.setattr(file_indexes, "_TRIES", 1)
    overtaken.clear()
    altered(tmp_path, {"file-index.bloom-filter.k.items": "1000"})
    with pytest.raises(CommitConflictError):
        penstock.Catalog(tmp_path).load_table("d.t").maintenance.rewrite_file_index()
    assert len([name for name in stored(tmp_path) if name.endswith(".index")]) == len(names) + 1


def test_a_merge_goes_on_with_files_that_got_indexes_meanwhile(tmp_path: Path) -> None:
    filled(tmp_path)
    table = altered(tmp_path, {**ALL, **BESIDE})
    expected = keys(table)

    def index(_: int) -> None:
        assert penstock.Catalog(tmp_path).load_table("d.t").maintenance.rewrite_file_index().files == FILES

    result = table.compact(options={"compaction.min.file-num": "2"}, on_start=index)
    assert sum(each.files_in for each in result.partitions) == FILES
    [merged] = live_files(table)
    assert has_index(merged)
    assert keys(table) == expected
    assert table.maintenance.rewrite_file_index().files == 0


def test_files_with_an_older_type_that_has_no_index_stay_without(tmp_path: Path) -> None:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    catalog.create_table("d.t", "k BIGINT, v DECIMAL(9, 2)").append([{"k": 1, "v": Decimal("1.50")}])
    change = penstock.UpdateColumnType(column=("v",), type="STRING", allow_explicit=True)
    table = catalog.alter_table("d.t", change, penstock.SetOption(key="file-index.bitmap.columns", value="k,v"))
    table.append([{"k": 2, "v": "2.50"}])
    assert table.maintenance.rewrite_file_index().files == 1
    found = [decode_index_places(file.embedded_file_index or b"").keys() for file in live_files(table)]
    assert sorted(map(len, found)) == [1, 2]
    assert table.to_arrow(filter="v = '1.50'")["k"].to_pylist() == [1]
