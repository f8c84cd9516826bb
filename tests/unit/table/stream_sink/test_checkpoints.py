"""Which checkpoint belongs to which table, and when it was set back."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.commit_tables import append, committer, new_table, row_counts, rows

from penstock import Catalog
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import NotFoundError
from penstock.format.layout import TableLayout
from penstock.format.snapshot import encode_hint
from penstock.table.branches import create_branch, delete_branch, rename_branch
from penstock.table.read.branch import at_branch
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.table.ref import TableRef

from tests.unit.table.stream_sink.queries import QUERY, batch, expire, run, start, unchanged


def test_a_checkpoint_that_was_set_back_is_refused_by_name_and_the_table_stays() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    run(query, batch(0), rows(1))
    older = MemoryCheckpoint(dict(files.files))
    run(query, batch(1), rows(2))
    oldest = MemoryCheckpoint({"table": files.files["table"]})
    text = r"was set back to an older copy: .* query's batches up to 1 \(snapshot 2\); nothing was written"
    unchanged(ref, lambda: run(start(ref, older), batch(1, "others"), rows(2)), text)
    run(query, batch(2), rows(3))
    for copy in (older, oldest):
        unchanged(ref, lambda copy=copy: run(start(ref, copy), batch(1), rows(2)), r"up to 2 \(snapshot 3\)")
    assert row_counts(ref) == [1, 2, 3]


def test_a_checkpoint_set_back_is_refused_when_the_notes_of_later_batches_are_left_in_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(3):
        run(query, batch(batch_id), rows(10 + batch_id))
    assert run(query, batch(3)) is None  # its note has all the others behind it
    for batch_id, digest in ((0, None), (1, None), (1, "others"), (2, "others")):
        again = start(ref, files, has_batches=True)
        which = batch(batch_id, digest)
        unchanged(ref, lambda again=again, which=which: run(again, which, rows(1)), r"up to 2 \(snapshot 3\)")
    assert row_counts(ref) == [10, 11, 12]


def test_a_checkpoint_set_back_with_the_table_goes_on() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    for batch_id in range(4):
        run(query, batch(batch_id), rows(10 + batch_id))
    roll_back(ref, 2)
    assert run(start(ref, files), batch(2, "others"), rows(7)).id == 3
    assert row_counts(ref) == [10, 11, 7]


def roll_back(ref: TableRef, snapshot_id: int) -> None:
    store = MetadataStore(ref)
    for later in range(snapshot_id + 1, (store.latest_snapshot_id() or 0) + 1):
        ref.file_io.delete(ref.layout.snapshot_path(later))
    ref.file_io.write(ref.layout.latest_hint_path, encode_hint(snapshot_id))


def test_a_batch_of_unknown_outcome_is_refused_until_the_user_accepts_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(1))
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 2)
    text = "it is unknown whether batch 0 of query query-1 .* 'penstock.accept-unknown-batch' = 'true'"
    unchanged(ref, lambda: run(start(ref, files), batch(0), rows(1)), text)
    unchanged(ref, lambda: run(start(ref, files), batch(1), rows(1)), "Restore the checkpoint")
    accepting = ref.with_options({"penstock.accept-unknown-batch": "true"})
    assert run(start(accepting, files), batch(1), rows(2)).id == 5
    expire(ref, 4)
    # From there on it is known again.
    assert run(start(ref, files), batch(2), rows(3)).id == 6


def test_snapshots_that_expire_while_the_query_runs_are_nothing_new_to_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    query = start(ref, files)
    run(query, batch(0), rows(1))
    for _ in range(3):
        committer(ref).commit(append(rows(9), user="other"))
    expire(ref, 3)
    assert run(query, batch(1), rows(2)).id == 5


def test_a_checkpoint_belongs_to_one_table() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    other = new_table()
    start(ref, files)
    text = f"belongs to another table, at {ref.location}; use a new checkpoint"
    unchanged(other, lambda: start(other, files, has_batches=True), text)


def test_a_checkpoint_belongs_to_one_branch_which_may_be_renamed() -> None:
    ref = new_table()
    for name in "ab":
        create_branch(ref, name)
    tables = {"main": ref, "a": at_branch(ref, "a"), "b": at_branch(ref, "b")}
    checkpoints = {name: MemoryCheckpoint() for name in tables}
    for name, files in checkpoints.items():
        start(tables[name], files)
        for each in set(tables) - {name}:
            unchanged(
                tables[each],
                lambda files=files, each=each: start(tables[each], files, has_batches=True),
                f"belongs to another branch of the table, at {ref.location}",
            )
    rename_branch(ref, "a", "c")
    start(at_branch(ref, "c"), checkpoints["a"], has_batches=True)
    delete_branch(ref, "b")
    create_branch(ref, "b")
    anew = at_branch(ref, "b")
    unchanged(anew, lambda: start(anew, checkpoints["b"], has_batches=True), "it was dropped and created again")


def test_a_start_that_came_to_no_batch_binds_the_checkpoint_to_no_table() -> None:
    ref, other, files = new_table(), new_table(), MemoryCheckpoint()
    committer(other).commit(append(rows(3), user="other"))
    start(ref, files)
    assert run(start(other, files), batch(0), rows(4)).id == 2
    unchanged(ref, lambda: start(ref, files, has_batches=True), "belongs to another table")
    # A batch that was begun is noted, whatever became of Spark's own files.
    unchanged(ref, lambda: start(ref, files), "belongs to another table")


def test_a_query_goes_on_where_its_table_was_moved_to() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    warehouse = open_warehouse(ref.location.removesuffix("/db.db/t"))
    query = start(ref, files)
    run(query, batch(0), rows(1))
    run(query, batch(1), rows(2))
    warehouse.rename_table("db.t", "db.new")
    with pytest.raises(NotFoundError, match=r"dropped or moved .* start the query with that where the table is now"):
        query.load_ref()
    moved = warehouse.load_table("db.new")
    again = start(moved, files, has_batches=True)
    assert run(again, batch(1), rows(2)) is None
    assert run(again, batch(2), rows(3)).id == 3
    assert run(start(moved, files, has_batches=True), batch(3), rows(4)).id == 4


def test_a_copy_of_the_table_is_not_the_table() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    run(start(ref, files), batch(0), rows(1))
    copy = replace(ref, location=ref.location.removesuffix("t") + "copy")
    copy.file_io.write(TableLayout(copy.location).schema_path(0), ref.file_io.read(ref.layout.schema_path(0)))
    text = f"another table, at {ref.location}; use a new checkpoint for this one, a copy of that; or, if both paths"
    unchanged(copy, lambda: start(copy, files, has_batches=True), text)
    elsewhere = replace(files, files=dict(files.files))
    elsewhere.files["table"] = elsewhere.files["table"].replace(b"memory://", b"s3://")
    unchanged(ref, lambda: start(ref, elsewhere, has_batches=True), r"another table, at s3://.*, a copy of that")


def test_a_table_has_one_checkpoint_by_whatever_path_it_is_loaded(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    catalog = Catalog(str(link))
    catalog.create_database("d")
    catalog.create_table("d.t", "id BIGINT")
    warehouses = [open_warehouse(str(folder)) for folder in (link, real)]
    by_link, by_path = (warehouse.load_table("d.t") for warehouse in warehouses)
    files = MemoryCheckpoint()
    assert run(start(by_link, files), replace(batch(0), watermark=10)).id == 1
    for number, ref in enumerate((by_path, by_link, by_path), 1):
        assert run(start(ref, files, has_batches=True), replace(batch(number), watermark=10 + number)).id == number + 1
    copy = tmp_path / "copy"
    shutil.copytree(real, copy)
    copied = open_warehouse(str(copy)).load_table("d.t")
    unchanged(copied, lambda: start(copied, files, has_batches=True), "a copy of that; or, if both paths lead to one")


def test_a_checkpoint_of_another_sink_is_refused_until_the_user_accepts_it() -> None:
    ref, files = new_table(), MemoryCheckpoint()
    first = append(rows(4), user=QUERY, commit_identifier=7)
    committer(ref).commit(first)
    unchanged(ref, lambda: start(ref, files, has_batches=True), "a query that wrote somewhere else")
    assert files.files == {}
    query = start(ref, files, has_batches=True, accept_unknown=True)
    # Through another entry point the same query wrote here.
    assert run(query, batch(7), rows(4)) is None
    assert run(query, batch(8), rows(5)).id == 2
    start(ref, files, has_batches=True)
