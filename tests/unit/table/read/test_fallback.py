"""``scan.fallback-branch``: partitions that a branch does not have come from another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from tests.deletion_vectors import delete_by_vectors

import penstock
from penstock import AddColumn, InvalidOptionError, RemoveOption, SetOption, UnsupportedFeatureError
from penstock.catalog.changes import RenameColumn

if TYPE_CHECKING:
    from pathlib import Path

    from penstock import Catalog, Table

FALLBACK = {"scan.fallback-branch": "b"}
SET = SetOption(key="scan.fallback-branch", value="b")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return penstock.Catalog(tmp_path)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, dt STRING", partition_by=["dt"])
    table.versions.create_branch("b")
    table.with_options({"branch": "b"}).append([{"k": k, "dt": dt} for k, dt in [(1, "x"), (2, "y"), (3, "z")]])
    return table


def _keys(table: Table, where: str | None = None, **more: object) -> list[int]:
    return sorted(table.to_arrow(["k"], where, **more)["k"].to_pylist())  # type: ignore[arg-type]


def test_partitions_that_are_missing_come_from_the_other_branch(table: Table) -> None:
    read = table.with_options(FALLBACK)
    assert _keys(read) == [1, 2, 3]
    table.append([{"k": 10, "dt": "x"}, {"k": 11, "dt": "w"}])
    assert _keys(read) == [2, 3, 10, 11]
    assert _keys(read, "dt > 'x'") == [2, 3]
    # The partition is there, even if none of its files holds such a row.
    assert _keys(read, "k = 1") == []
    assert _keys(table) == [10, 11]
    assert _keys(table, options=FALLBACK) == [2, 3, 10, 11]
    table.drop_partitions({"dt": "x"})
    assert _keys(read) == [1, 2, 3, 11]


def test_the_greatest_partition_may_be_in_the_other_branch(table: Table) -> None:
    table.append([{"k": 11, "dt": "w"}])
    assert _keys(table, options={"scan.partitions": "max_pt()"}) == [11]
    assert _keys(table, options={**FALLBACK, "scan.partitions": "max_pt()"}) == [3]
    assert _keys(table, options={**FALLBACK, "scan.partitions": "max_two_pt()"}) == [2, 3]
    table.append([{"k": 12, "dt": "z"}])
    assert _keys(table, options={**FALLBACK, "scan.partitions": "max_pt()"}) == [12]


def test_the_option_is_stored_once_the_branch_is_there(catalog: Catalog, table: Table) -> None:
    with pytest.raises(InvalidOptionError, match="because there is no branch 'b': create the branch first"):
        catalog.create_table("d.u", "k INT", options=FALLBACK)
    with pytest.raises(InvalidOptionError, match="because there is no branch 'c'"):
        catalog.alter_table("d.t", SetOption(key="scan.fallback-branch", value="c"))
    with pytest.raises(InvalidOptionError, match="because there is no branch 'c'"):
        table.preview.alter(SetOption(key="scan.fallback-branch", value="c"))
    table = catalog.alter_table("d.t", SET)
    assert _keys(table) == [1, 2, 3]
    assert sum(batch.num_rows for batch in table.to_batches(["k"])) == 3
    assert table.to_dataset().to_table(columns=["k"]).num_rows == 3
    assert "3 files" in table.explain()
    assert _keys(catalog.alter_table("d.t", RemoveOption(key="scan.fallback-branch"))) == []


def test_a_past_state_is_that_of_both_branches(catalog: Catalog, table: Table) -> None:
    other = table.with_options({"branch": "b"})
    table = catalog.alter_table("d.t", SET)
    table.append([{"k": 10, "dt": "x"}])
    time.sleep(0.002)
    other.append([{"k": 4, "dt": "v"}])
    table.create_tag("first")
    time.sleep(0.002)
    table.append([{"k": 11, "dt": "y"}])
    assert _keys(table) == [3, 4, 10, 11]
    # By the time of the snapshot; the ids of the branch differ.
    assert _keys(table, snapshot_id=1) == [2, 3, 10]
    assert _keys(table, snapshot_id=2) == [3, 4, 10, 11]
    # By the given time, at which the branch has the row already.
    latest = other.latest_snapshot()
    assert latest is not None
    assert _keys(table, timestamp_millis=latest.time_millis) == [2, 3, 4, 10]
    # By the tag, where both branches have it, else by the time of its snapshot.
    assert _keys(table, tag="first") == [2, 3, 10]
    other.create_tag("first", snapshot_id=2)
    assert _keys(table, tag="first") == [2, 3, 4, 10]
    assert _keys(table, options={"scan.version": "first"}) == [2, 3, 4, 10]


def test_a_state_before_the_other_branch_began_is_read_without_it(catalog: Catalog) -> None:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, dt STRING", partition_by=["dt"])
    table.append([{"k": 1, "dt": "x"}])
    table.versions.create_branch("b")
    table = catalog.alter_table("d.t", SET)
    time.sleep(0.002)
    table.with_options({"branch": "b"}).append([{"k": 2, "dt": "y"}])
    assert (_keys(table), _keys(table, snapshot_id=1)) == ([1, 2], [1])
    for name in ("d.t", "d.t$branch_b"):
        catalog.alter_table(name, RenameColumn(column="k", new_name="n"))
    table = catalog.load_table("d.t")
    assert table.to_arrow(["n"])["n"].to_pylist() == [1, 2]
    # The branch had no columns of other names then.
    assert _keys(table, "k < 5", snapshot_id=1) == [1]


def test_changes_are_not_read_with_it_unless_it_is_set_to_nothing(catalog: Catalog, table: Table) -> None:
    table = catalog.alter_table("d.t", SET)
    table.append([{"k": 10, "dt": "x"}])
    table.append([{"k": 11, "dt": "x"}])
    changes = {"incremental-between": "1,2"}
    with pytest.raises(UnsupportedFeatureError, match="not to one of changes or of new files; set the opt"):
        table.to_arrow(options=changes)
    with pytest.raises(UnsupportedFeatureError, match="not to one of changes or of new files"):
        table.to_arrow(options={"scan.file-creation-time-millis": "1"})
    assert _keys(table, options={**changes, "scan.fallback-branch": ""}) == [11]


def test_columns_change_in_both_branches(catalog: Catalog, table: Table) -> None:
    """As in Paimon's ``BranchSqlITCase.testMainAndFallbackNoPrimaryKeys``: ids of their schemas differ then."""
    table.append([{"k": 10, "dt": "x"}])
    catalog.alter_table("d.t", SET)
    changed = catalog.alter_table("d.t", AddColumn(column="extra", type="INT"))
    with pytest.raises(UnsupportedFeatureError, match=r"names d\.t\$branch_b, whose columns differ: \(k INT, d"):
        changed.to_arrow()
    other = catalog.alter_table("d.`t$branch_b`", AddColumn(column="extra", type="INT"))
    assert (changed.schema.id, other.schema.id) == (2, 1)
    other.append([{"k": 4, "dt": "v", "extra": 7}])
    rows = changed.to_arrow(["k", "extra"], "k <> 10").to_pylist()
    assert sorted((row["k"], row["extra"]) for row in rows) == [(2, None), (3, None), (4, 7)]
    assert _keys(changed, "extra = 7") == [4]


def test_files_without_a_schema_of_the_same_columns_are_refused(catalog: Catalog, table: Table) -> None:
    """Both branches end with the same columns, but a file of the other one has columns that never were here."""
    other = catalog.alter_table("d.t$branch_b", AddColumn(column="other", type="INT"))
    other.append([{"k": 4, "dt": "v", "other": 1}])
    catalog.alter_table("d.t$branch_b", RenameColumn(column="other", new_name="extra"))
    table = catalog.alter_table("d.t", AddColumn(column="extra", type="INT"))
    with pytest.raises(UnsupportedFeatureError, match="files of schema 1, and no schema here has the same columns"):
        table.to_arrow(options=FALLBACK)


def test_a_branch_that_is_missing_is_not_passed_over(table: Table) -> None:
    with pytest.raises(penstock.NotFoundError, match="has no branch 'c'; there are b; ALTER TABLE"):
        table.to_arrow(options={"scan.fallback-branch": "c"})
    with pytest.raises(InvalidOptionError, match="cannot be called '7'"):
        table.to_arrow(options={"scan.fallback-branch": "7"})


def test_the_branch_is_neither_deleted_nor_renamed_while_it_is_the_fallback(catalog: Catalog, table: Table) -> None:
    catalog.alter_table("d.t", SET)
    for change in (table.versions.delete_branch, lambda name: table.versions.rename_branch(name, "c")):
        with pytest.raises(InvalidOptionError, match=r"by 'scan\.fallback-branch': remove that option first"):
            change("b")
    catalog.alter_table("d.t", RemoveOption(key="scan.fallback-branch"))
    table.versions.rename_branch("b", "c")
    table.versions.delete_branch("c")


def test_row_changes_and_compaction_take_the_main_branch_only(catalog: Catalog, table: Table) -> None:
    table = catalog.alter_table("d.t", SET)
    for k in (10, 11):
        table.append([{"k": k, "dt": "x"}])
    assert table.delete("k = 2").rows_deleted == 0
    assert table.update({"k": pc.field("k") + 10}, "k >= 2").rows_updated == 2
    assert table.merge([{"k": 3, "dt": "z"}], "k", matched=penstock.MergeDelete()).rows_deleted == 0
    table.compact(options={"compaction.min.file-num": "2"})
    assert _keys(table) == [2, 3, 20, 21]
    assert table.files().num_rows == 1
    assert _keys(table.with_options({"branch": "b"})) == [1, 2, 3]
    table.overwrite([{"k": 5, "dt": "y"}])
    assert _keys(table) == [3, 5, 20, 21]


def test_streams_read_the_branch_alone_and_say_so_where_it_is_given(catalog: Catalog, table: Table) -> None:
    stored = catalog.alter_table("d.t", SET)
    stored.append([{"k": 10, "dt": "x"}])
    assert [row["k"] for batch in stored.follow(["k"], once=True) for row in batch.to_pylist()] == [10]
    with pytest.warns(penstock.OptionWarning, match="is one of batch reads and has no effect on a stream"):
        rows = list(table.follow(["k"], once=True, options=FALLBACK))
    assert sum(batch.num_rows for batch in rows) == 1


def test_system_tables_show_the_branch_itself(catalog: Catalog, table: Table) -> None:
    table = catalog.alter_table("d.t", SET)
    table.append([{"k": 10, "dt": "x"}])
    assert (table.files().num_rows, table.partitions().num_rows) == (1, 1)
    assert table.inspect.system_table("files").num_rows == 1
    assert table.inspect.system_table("ro").num_rows == 3


def test_rows_that_vectors_delete_in_the_other_branch_are_still_here(catalog: Catalog) -> None:
    """A branch shares files with the one from which it was created."""
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT, dt STRING", partition_by=["dt"])
    table.append([{"k": k, "dt": dt} for k, dt in [(1, "x"), (2, "x"), (3, "y"), (4, "y")]])
    table.create_tag("first")
    table.versions.create_branch("b", tag="first")
    delete_by_vectors(
        table.with_options({"branch": "b"}),
        {path.rpartition("/")[2]: [0] for path in table.files()["file_path"].to_pylist()},
    )
    table.drop_partitions({"dt": "y"})
    assert _keys(table.with_options({"branch": "b"})) == [2, 4]
    assert _keys(table.with_options(FALLBACK)) == [1, 2, 4]
