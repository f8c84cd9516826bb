"""Rows that another engine names by their positions change as they do by ``Table.update`` and ``Table.delete``."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.garbage import stored_files
from tests.unit.table.dml.test_deletion_vectors import NUMBERS, alter, places

import penstock
from penstock.errors import CommitConflictError, StorageError
from penstock.predicate.parse import parse_filter
from penstock.table.actions.changes import open_committer
from penstock.table.dml.by_position import RowDelta, commit_deltas
from penstock.table.dml.replacement import ReadFiles
from penstock.table.read.batches import DeletedRows, TableReader
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import plan_splits
from penstock.table.ref import ExternalPaths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.read.split import DataSplit

# A position to new values, or None for a row that is deleted.
Changes = dict[int, dict[str, Any] | None]


class Deltas:
    """Changes of files, each in several parts and batches."""

    def __init__(self, table: penstock.Table, files: dict[str, list[list[tuple[int, dict[str, Any] | None]]]]) -> None:
        self._schema = table.arrow_schema
        self._files = files
        self.new: list[dict[str, Any]] = []

    def paths(self) -> frozenset[str]:
        return frozenset(self._files)

    def of(self, path: str) -> Sequence[Iterable[RowDelta]]:
        parts = self._files.get(path, [])
        return [[self._delta(rows[start : start + 3]) for start in range(0, len(rows), 3)] for rows in parts]

    def new_rows(self) -> Sequence[Iterable[pa.RecordBatch]]:
        return [[pa.RecordBatch.from_pylist([row], schema=self._schema)] for row in self.new]

    def _delta(self, rows: list[tuple[int, dict[str, Any] | None]]) -> RowDelta:
        return RowDelta(
            positions=np.array([place for place, _ in rows], dtype=np.int64),
            updated=np.array([row is not None for _, row in rows]),
            after=pa.RecordBatch.from_pylist([row for _, row in rows if row is not None], schema=self._schema),
        )


def commit(
    table: penstock.Table, deltas: Deltas, read: Snapshot | None = None, where: str | None = None
) -> Snapshot | None:
    committer = open_committer(table._ref)
    snapshot, predicate = read or committer.store.load_latest_snapshot(), None if where is None else parse_filter(where)
    plan = plan_scan(committer.store, table._ref, snapshot, predicate, with_vectors=True)
    read_files = ReadFiles(snapshot=snapshot, predicate=predicate, splits=plan_splits(table._ref, plan))
    return commit_deltas(committer, read_files, deltas)


def positions(table: penstock.Table) -> dict[int, tuple[str, int]]:
    """Return the file and position of each row, by its key."""
    store, deleted = open_committer(table._ref).store, DeletedRows(table._ref)
    plan = plan_scan(store, table._ref, store.load_latest_snapshot(), with_vectors=True)
    found = {}
    for split in plan_splits(table._ref, plan):
        for file in split.files:
            place = dict(split.vectors).get(file.file_name)
            gone = set() if place is None else set(deleted.load(file, place).tolist())
            path = split.path_of(file, ExternalPaths.of(table._ref))
            rows = TableReader(table._ref, store, ("k",)).read_file(replace(split, vectors=()), file)
            keys = [key for batch in rows for key in batch.column(0).to_pylist()]
            found |= {key: (path, number) for number, key in enumerate(keys) if number not in gone}
    return found


def new_table(options: dict[str, str]) -> penstock.Table:
    catalog = penstock.Catalog(f"memory://positions-{next(NUMBERS)}/w")
    catalog.create_database("d")
    return catalog.create_table("d.t", "k INT, p STRING, n INT", partition_by=["p"], options=options)


KINDS = {
    "vectors": {"deletion-vectors.enabled": "true"},
    "tracked": {"row-tracking.enabled": "true"},
    "both": {"deletion-vectors.enabled": "true", "row-tracking.enabled": "true"},
    "queue": {"bucket": "2", "bucket-key": "k"},
    "split queue": {"bucket": "2", "bucket-key": "k", "target-file-row-num": "3"},
    "marked queue": {"bucket": "2", "bucket-key": "k", "deletion-vectors.enabled": "true"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_random_changes_by_position_are_those_of_the_methods(kind: str) -> None:
    dice = random.Random(kind)  # noqa: S311 - repeatable
    first, second = new_table(KINDS[kind]), new_table(KINDS[kind])
    columns = ["k", "p", "n", *(["_ROW_ID", "_SEQUENCE_NUMBER"] if "row-tracking.enabled" in KINDS[kind] else [])]
    for step in range(8):
        rows = [{"k": 100 * step + k, "p": dice.choice("ab"), "n": 0} for k in range(dice.randrange(4, 12))]
        for table in (first, second):
            # The files of a rewrite begin with one number.
            table.with_options({"target-file-row-num": "100"}).append(rows)
        live = {row["k"]: row for row in first.to_arrow(["k", "p", "n"]).to_pylist()}
        chosen = dice.sample(sorted(live), dice.randrange(1, 1 + len(live) // 2))
        updated = set(dice.sample(chosen, len(chosen) // 2))
        found, files = positions(first), defaultdict[str, Changes](dict)
        new = {key: {**live[key], "n": step, "p": dice.choice(["a", "b", live[key]["p"]])} for key in updated}
        for key in chosen:
            path, place = found[key]
            files[path][place] = new.get(key)
        parts = {path: [sorted(some.items())[half::2] for half in range(2)] for path, some in files.items()}
        deltas = Deltas(first, {path: [part for part in each if part] for path, each in parts.items()})
        deltas.new = [{"k": -step - 1, "p": "b", "n": step}]
        commit(first, deltas, where=f"k IN ({', '.join(map(str, chosen))})")
        source = [{**live[key], "n": -1} if key not in updated else new[key] for key in chosen]
        second.merge(
            pa.Table.from_pylist([*source, *deltas.new], schema=second.arrow_schema),
            ["k"],
            matched=[penstock.MergeDelete(where="source.n < 0"), penstock.MergeUpdate()],
            not_matched=penstock.MergeInsert(),
        )
        ours, theirs = ([tuple(row.values()) for row in each.to_arrow(columns).to_pylist()] for each in (first, second))
        assert sorted(ours) == sorted(theirs), step
        if kind in {"queue", "split queue"}:
            for p in "ab":
                assert [row for row in ours if row[1] == p] == [row for row in theirs if row[1] == p], step


def test_files_of_a_queue_that_begin_with_the_same_number_change_together() -> None:
    table = new_table({"bucket": "1", "bucket-key": "k"})
    table.append([{"k": k, "p": "a", "n": 0} for k in range(12)])
    # The files of a rewrite have its range of numbers.
    table.with_options({"target-file-row-num": "4"}).delete("k = 11")
    numbers = table.files()["min_sequence_number"].to_pylist()
    assert (len(numbers), set(numbers)) == (3, {0})
    path, place = positions(table)[1]
    commit(table, Deltas(table, {path: [[(place, None)]]}))
    assert table.to_arrow()["k"].to_pylist() == [0, *range(2, 11)]
    path, place = positions(table)[10]
    commit(table, Deltas(table, {path: [[(place, {"k": 10, "p": "a", "n": 1})]]}))
    assert table.to_arrow()["k"].to_pylist() == [0, *range(2, 11)]


def peers(options: dict[str, str] | None = None) -> tuple[penstock.Table, list[str]]:
    """Return a queue whose first three files begin with the same number, and the paths of all files."""
    table = new_table({"bucket": "1", "bucket-key": "k", **(options or {})})
    table.append([{"k": k, "p": "a", "n": 0} for k in range(12)])
    table.append([{"k": k, "p": "a", "n": 0} for k in range(20, 24)])
    # The files of a rewrite have its range of numbers.
    table.with_options({"target-file-row-num": "4"}).delete("k = 11")
    assert table.files()["min_sequence_number"].to_pylist().count(0) == 3
    found = positions(table)
    return table, [found[k][0] for k in (0, 4, 8, 20)]


def pruned(table: penstock.Table, where: str, count: int) -> ReadFiles:
    """Return the files that a condition leaves."""
    store, predicate = open_committer(table._ref).store, parse_filter(where)
    read = store.load_latest_snapshot()
    plan = plan_scan(store, table._ref, read, predicate, with_vectors=True)
    assert plan.file_count == count
    return ReadFiles(snapshot=read, predicate=predicate, splits=plan_splits(table._ref, plan))


@pytest.mark.parametrize("meanwhile", ["nothing", "append", "delete", "compact"])
@pytest.mark.parametrize("inserts", [False, True])
def test_files_that_the_condition_excluded_change_with_the_one_that_begins_with_their_number(
    meanwhile: str, *, inserts: bool
) -> None:
    table, paths = peers()
    rest = table.to_arrow().to_pylist()
    read = pruned(table, "k = 5", 1)
    deltas = Deltas(table, {paths[1]: [[(1, None), (2, {"k": 6, "p": "a", "n": 1})]]})
    deltas.new = [{"k": 5, "p": "a", "n": 2}] if inserts else []
    match meanwhile:
        case "append":
            table.append([{"k": 30, "p": "a", "n": 0}])
        case "delete":
            table.delete("k = 9")
        case "compact":
            table.compact(strategy="full", options={"compaction.min.file-num": "2"})
        case _:
            pass
    before = stored_files(table._ref)
    if meanwhile in {"delete", "compact"}:
        latest = table.latest_snapshot()
        with pytest.raises(CommitConflictError, match="others committed after snapshot"):
            commit_deltas(open_committer(table._ref), read, deltas)
        assert (table.latest_snapshot(), stored_files(table._ref)) == (latest, before)
        return
    commit_deltas(open_committer(table._ref), read, deltas)
    rows = [{**row, "n": int(row["k"] == 6)} for row in rest if row["k"] != 5]
    rows += [{"k": 30, "p": "a", "n": 0}] if meanwhile == "append" else []
    assert table.to_arrow().to_pylist() == rows + deltas.new
    assert paths[3] in table.files()["file_path"].to_pylist()
    followed = [row for batch in table.follow(once=True) for row in batch.to_pylist()]
    assert followed == rows + deltas.new


def test_rows_that_a_vector_deletes_in_an_excluded_file_stay_deleted() -> None:
    """A table that has lost the option of deletion vectors may have some still."""
    table, paths = peers({"deletion-vectors.modifiable": "true"})
    alter(table, penstock.SetOption(key="deletion-vectors.enabled", value="true"))
    table = penstock.Table.at(table.location)
    table.delete("k IN (6, 9)")
    assert len(places(table)) == 2
    alter(table, penstock.SetOption(key="deletion-vectors.enabled", value="false"))
    table = penstock.Table.at(table.location)
    commit_deltas(open_committer(table._ref), pruned(table, "k = 5", 1), Deltas(table, {paths[1]: [[(1, None)]]}))
    assert table.to_arrow()["k"].to_pylist() == [0, 1, 2, 3, 4, 7, 8, 10, 20, 21, 22, 23]


def test_files_of_which_all_rows_are_deleted_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table, paths = peers({"deletion-vectors.modifiable": "true"})
    alter(table, penstock.SetOption(key="deletion-vectors.enabled", value="true"))
    penstock.Table.at(table.location).delete("k = 9")
    alter(table, penstock.SetOption(key="deletion-vectors.enabled", value="false"))
    table = penstock.Table.at(table.location)
    whole: list[list[tuple[int, dict[str, Any] | None]]] = [[(0, None), (1, None)], [(1, None), (2, None), (3, None)]]
    deltas = Deltas(table, {paths[0]: whole, paths[1]: whole, paths[2]: [[(0, None), (2, None)]]})
    files: list[str] = []
    read_file = TableReader.read_file

    def noted(self: TableReader, split: DataSplit, file: DataFileMeta) -> Iterator[pa.RecordBatch]:
        files.append(file.file_name)
        return read_file(self, split, file)

    monkeypatch.setattr(TableReader, "read_file", noted)
    commit_deltas(open_committer(table._ref), pruned(table, "k < 11", 3), deltas)
    assert files == []
    assert table.files()["file_path"].to_pylist() == paths[3:]
    assert table.to_arrow()["k"].to_pylist() == [20, 21, 22, 23]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([[(10, None)]], "has 10 rows, but row 10 is to change"),
        ([[(3, None), (3, {"k": 3, "p": "a", "n": 1})]], "is to change twice"),
        ([[(3, None)], [(3, {"k": 3, "p": "a", "n": 1})]], "is to change twice"),
        ([[(3, {"k": 3, "p": "a", "n": 1})], [(3, None)]], "is to change twice"),
        ([[(4, None), (3, None)]], "not in the order"),
    ],
)
@pytest.mark.parametrize("kind", ["vectors", "tracked"])
def test_positions_that_do_not_fit_are_refused(
    parts: list[list[tuple[int, dict[str, Any] | None]]], message: str, kind: str
) -> None:
    table = new_table(KINDS[kind])
    table.append([{"k": k, "p": "a", "n": 0} for k in range(10)])
    (path,) = table.files()["file_path"].to_pylist()
    with pytest.raises(StorageError, match=message):
        commit(table, Deltas(table, {path: parts}))
    with pytest.raises(StorageError, match="which was not read"):
        commit(table, Deltas(table, {"other": parts}))
    assert len(table.files()) == 1
    # Several rows of a source may delete the same row.
    commit(table, Deltas(table, {path: [[(3, None), (3, None), (4, None)]]}))
    assert table.to_arrow()["k"].to_pylist() == [0, 1, 2, 5, 6, 7, 8, 9]


def test_vectors_are_not_written_once_the_table_has_lost_the_option() -> None:
    table = new_table({**KINDS["vectors"], "deletion-vectors.modifiable": "true"})
    table.append([{"k": k, "p": "a", "n": 0} for k in range(10)])
    (path,) = table.files()["file_path"].to_pylist()
    alter(table, penstock.SetOption(key="deletion-vectors.enabled", value="false"))
    with pytest.raises(CommitConflictError, match="was altered while rows changed"):
        commit(table, Deltas(table, {path: [[(3, None)]]}))
    assert table.to_arrow().num_rows == 10


@pytest.mark.parametrize("kind", ["vectors", "tracked"])
@pytest.mark.parametrize("change", ["truncate", "delete"])
def test_new_rows_depend_on_files_that_others_remove(kind: str, change: str) -> None:
    table = new_table(KINDS[kind])
    table.append([{"k": 1, "p": "a", "n": 0}])
    table.append([{"k": 2, "p": "b", "n": 0}])
    read = table.latest_snapshot()
    deltas = Deltas(table, {})
    deltas.new = [{"k": 3, "p": "b", "n": 0}]
    if change == "truncate":
        table.truncate()
    else:
        table.delete("p = 'a'")
    with pytest.raises(CommitConflictError):
        commit(table, deltas, read)
    assert 3 not in table.to_arrow()["k"].to_pylist()
