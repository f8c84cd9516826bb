"""Files that another engine writes in place of those that it read: what others may commit meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.deletion_vectors import delete_keys

import penstock
from penstock import CommitConflictError
from penstock.datafile.types import to_arrow_schema
from penstock.predicate.parse import parse_filter
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.commit.committer import TableCommitter
from penstock.table.dml.replacement import ReadFiles, commit_changes, commit_replacement
from penstock.table.message import CommitMessage
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import plan_splits
from penstock.table.store import MetadataStore
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from penstock import Table
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.delta import CommitRequest


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, p STRING", partition_by=["p"], options={"bucket": "-1"})
    table.append([{"k": k, "p": "ab"[k % 2]} for k in range(6)])
    return table


def _read(table: Table, where: str) -> ReadFiles:
    store = MetadataStore(table._ref)
    snapshot = store.load_latest_snapshot()
    predicate = parse_filter(where)
    splits = plan_splits(table._ref, plan_scan(store, table._ref, snapshot, predicate, with_vectors=True))
    return ReadFiles(snapshot=snapshot, predicate=predicate, splits=splits)


def _write(table: Table, keys: list[int], partition: str) -> tuple[CommitMessage, ...]:
    rows = pa.Table.from_pylist([{"k": k, "p": partition} for k in keys], schema=table.arrow_schema)
    return write_arrow(table._ref, rows)


def _keys(table: Table) -> list[int]:
    return sorted(table.to_arrow(["k"])["k"].to_pylist())


def _files(table: Table) -> int:
    return len(list(Path(table.location).rglob("*.parquet")))


def test_exactly_the_files_read_are_replaced(table: Table) -> None:
    read, written = _read(table, "p = 'b'"), _write(table, [11, 3], "b")
    snapshot = commit_replacement(open_committer(table._ref), read, written)
    assert snapshot is not None
    assert snapshot.commit_kind == "OVERWRITE"
    assert _keys(table) == [0, 2, 3, 4, 11]
    created = {row["partition"]: row["creation_time"] for row in table.files().to_pylist()}
    assert len(created) == 2
    assert (
        commit_replacement(open_committer(table._ref), ReadFiles(snapshot=snapshot, predicate=None, splits=()), ())
        is None
    )


def test_files_that_the_filter_excludes_may_come_meanwhile(table: Table) -> None:
    read, written = _read(table, "p = 'b'"), _write(table, [11], "b")
    table.append([{"k": 20, "p": "a"}])
    table.append([{"k": 22, "p": "c"}])
    commit_replacement(open_committer(table._ref), read, written)
    assert _keys(table) == [0, 2, 4, 11, 20, 22]


@pytest.mark.parametrize("change", ["append", "delete", "compact", "alter"])
def test_a_change_of_what_was_read_fails_and_leaves_no_file(table: Table, change: str) -> None:
    table.append([{"k": 7, "p": "b"}])
    read, written = _read(table, "p = 'b'"), _write(table, [11], "b")
    match change:
        case "append":
            table.append([{"k": 9, "p": "b"}])
        case "delete":
            table.delete("k = 3")
        case "compact":
            table.compact(strategy="full", options={"compaction.min.file-num": "2"})
        case _:
            catalog = penstock.Catalog(Path(table.location).parents[1])
            catalog.alter_table("d.t", penstock.AddColumn(column="n", type="INT"))
            table.append([{"k": 21, "p": "z"}])
    before, keys = _files(table), _keys(table)
    with pytest.raises(CommitConflictError, match="others committed after snapshot"):
        commit_replacement(open_committer(table._ref), read, written)
    assert _files(table) == before - 1
    assert _keys(table) == keys


def test_a_conflict_that_no_other_commit_causes_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = penstock.Catalog("memory://replaced-once")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, p STRING", options={"bucket": "1", "bucket-key": "k"})
    table.append([{"k": k, "p": "a"} for k in range(8)])
    # Two files, which begin with the same sequence number.
    table.with_options({"target-file-row-num": "4"}).delete("k = 7")
    read = _read(table, "k < 3")
    ((split, file),) = [(split, file) for split in read.splits for file in split.files]
    message = CommitMessage(
        partition=split.partition,
        bucket=0,
        total_buckets=1,
        compact_before=(file,),
        compact_after=(replace(file, file_name="data-new.parquet"),),
    )
    commit, requests = TableCommitter.commit, list[object]()

    def once(self: TableCommitter, request: CommitRequest) -> Snapshot | None:
        requests.append(request)
        assert len(requests) == 1
        return commit(self, request)

    monkeypatch.setattr(TableCommitter, "commit", once)
    with pytest.raises(CommitConflictError, match="begins with the same sequence number"):
        commit_changes(open_committer(table._ref), read, (message,))
    assert len(requests) == 1


_OLD = [(1, None, "x"), (2, "longer", "x"), (3, "abc", None)]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (_OLD, None),
        (_OLD[1:], None),
        ([*_OLD, (4, "abc", "y")], None),
        ([*_OLD, (4, None, "y")], "'v' is NOT NULL"),
        ([*_OLD, _OLD[0]], "'v' is NOT NULL"),
        ([*_OLD[:2], (3, None, None)], "'v' is NOT NULL"),
        ([*_OLD, (4, "abcd", "y")], "has a value of length 4"),
        ([*_OLD, (4, "abc", None)], r"'r\.a' is NOT NULL"),
    ],
)
def test_only_rows_that_are_new_must_keep_the_rules(
    tmp_path: Path, rows: list[tuple[int, str | None, str | None]], error: str | None
) -> None:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    options = {"alter-column-null-to-not-null.disabled": "false"}
    table = catalog.create_table("d.t", "k INT, v VARCHAR(3), r ROW<a STRING>", options=options)
    _append(table, _OLD)
    table = catalog.alter_table(
        "d.t",
        penstock.UpdateColumnDefault(column="v", default="def"),
        penstock.UpdateColumnNullability(column="v", nullable=False),
        penstock.UpdateColumnNullability(column=("r", "a"), nullable=False),
    )
    read, written = _read(table, "k > 0"), _write_as_they_are(table, rows)
    if error is None:
        commit_replacement(open_committer(table._ref), read, written)
    else:
        with pytest.raises(penstock.SchemaMismatchError, match=error):
            commit_replacement(open_committer(table._ref), read, written)
        assert _files(table) == 1
    found = [(row["k"], row["v"], row["r"]["a"]) for row in catalog.load_table("d.t").to_arrow().to_pylist()]
    assert found == (rows if error is None else _OLD)


def _append(table: Table, rows: list[tuple[int, str | None, str | None]]) -> None:
    commit_append(open_committer(table._ref), _write_as_they_are(table, rows))


def _write_as_they_are(table: Table, rows: list[tuple[int, str | None, str | None]]) -> tuple[CommitMessage, ...]:
    """Write rows as other engines do, which do not check lengths."""
    target = for_existing_rows(table._ref, keep_lengths=False)
    given = [{"k": k, "v": v, "r": {"a": a}} for k, v, a in rows]
    return write_arrow(target, pa.Table.from_pylist(given, to_arrow_schema(target.schema.fields)))


def test_files_with_a_newer_schema_are_not_replaced(table: Table) -> None:
    new = penstock.Catalog(Path(table.location).parents[1]).alter_table(
        "d.t", penstock.AddColumn(column="n", type="INT")
    )
    new.append([{"k": 11, "p": "b", "n": 1}])
    read, written = _read(new, "p = 'b'"), _write(table, [11, 3], "b")
    with pytest.raises(CommitConflictError, match="schema 1 was rewritten with schema 0, which may lack"):
        commit_replacement(open_committer(table._ref), read, written)
    assert new.to_arrow(filter="k = 11").to_pylist() == [{"k": 11, "p": "b", "n": 1}]


@pytest.mark.parametrize("deletes", [False, True])
def test_a_vector_may_move_meanwhile_but_not_change(tmp_path: Path, deletes: bool) -> None:  # noqa: FBT001 - a case
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, p STRING", options={"deletion-vectors.enabled": "true"})
    for first in (0, 10):
        table.append([{"k": k, "p": "b"} for k in range(first, first + 10)])
    delete_keys(table, "k", {1, 11})
    read = _read(table, "k >= 10")
    written = _write(table, [100, *range(12, 20)], "b")
    (old,) = {place for split in read.splits for _, place in split.vectors}
    # It removes the other file, whose vector is in the same index file, before that of this one.
    table.delete("k < 10") if not deletes else delete_keys(table, "k", {12})
    (new,) = {place for split in _read(table, "k >= 10").splits for _, place in split.vectors}
    assert old != new
    if deletes:
        with pytest.raises(CommitConflictError, match="others committed after snapshot"):
            commit_replacement(open_committer(table._ref), read, written)
        assert _keys(table) == [0, *range(2, 10), 10, *range(13, 20)]
    else:
        commit_replacement(open_committer(table._ref), read, written)
        assert _keys(table) == [*range(12, 20), 100]
