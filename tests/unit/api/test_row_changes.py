"""DELETE and UPDATE through the handle on a table: which rows, which files, and what others do meanwhile."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.support.garbage import needed_files, stored_files

import penstock
from penstock.catalog.changes import AddColumn
from penstock.errors import (
    CommitConflictError,
    InvalidFilterError,
    InvalidOptionError,
    NotFoundError,
    SchemaMismatchError,
)
from penstock.format.snapshot import CommitKind
from penstock.table.commit.committer import TableCommitter

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = itertools.count()
QUEUE = {"bucket": "1", "bucket-key": "k"}
COLUMNS = "k BIGINT, p STRING, price DECIMAL(8, 2), note STRING"


def new_table(options: dict[str, str] | None = None, columns: str = COLUMNS) -> penstock.Table:
    catalog = penstock.Catalog(f"memory://row-changes-{next(NUMBERS)}")
    catalog.create_database("db")
    return catalog.create_table("db.t", columns, partition_by=["p"], options=options or {})


def rows(ks: range, p: str = "a") -> list[dict[str, Any]]:
    return [{"k": k, "p": p, "price": k, "note": None if k % 2 else f"n{k}"} for k in ks]


def keys(table: penstock.Table, where: str | None = None) -> list[Any]:
    return table.to_arrow(["k"], where).column("k").to_pylist()


def names(table: penstock.Table) -> set[str]:
    return {row["file_path"] for row in table.files().to_pylist()}


def check_clean(table: penstock.Table) -> None:
    assert table.inspect.fsck(all_snapshots=True).findings == ()
    assert stored_files(table._ref) == needed_files(table._ref)


def during_commit(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[], object]) -> None:
    """Do something right before each of the next commits, by which time the change has been computed."""
    commit, waiting = TableCommitter.commit, list(actions)

    def later(self: TableCommitter, request: Any) -> Any:
        if request.has_read and waiting:
            waiting.pop(0)()
        return commit(self, request)

    monkeypatch.setattr(TableCommitter, "commit", later)


@pytest.mark.parametrize("options", [None, QUEUE], ids=["scalable", "queue"])
def test_delete_replaces_only_files_with_hits_and_keeps_the_order(options: dict[str, str] | None) -> None:
    table = new_table(options)
    for first in range(0, 30, 10):
        table.append(rows(range(first, first + 10)))
    before = names(table)
    result = table.delete("k >= 12 AND k < 15")
    assert result.snapshot is not None
    assert result.snapshot.commit_kind is CommitKind.OVERWRITE
    assert (result.rows_deleted, result.rows_updated, result.files_added) == (3, 0, 1)
    assert [(each.partition, each.rows, each.deleted) for each in result.files] == [("p=a", 10, 3)]
    assert len(before & names(table)) == 2
    found = keys(table)
    assert (found if options else sorted(found)) == [*range(12), *range(15, 30)]
    assert result.snapshot.total_record_count == 27
    check_clean(table)


def test_unknown_is_not_true_so_such_rows_stay() -> None:
    table = new_table()
    table.append(rows(range(10)))
    assert table.delete("note <> 'n2'").rows_deleted == 4
    assert sorted(keys(table)) == [1, 2, 3, 5, 7, 9]


def test_conditions_are_arrow_expressions_too() -> None:
    table = new_table()
    table.append(rows(range(6)))
    assert table.delete(pc.field("note") == "n2").rows_deleted == 1
    assert table.update({"note": "u"}, pc.field("k").isin([0, 1]) & pc.field("note").is_null()).rows_updated == 1
    assert table.to_arrow(["k", "note"], "note = 'u'").to_pylist() == [{"k": 1, "note": "u"}]
    assert table.delete(pc.field("k") > 3, dry_run=True).rows_deleted == 2
    with pytest.raises(InvalidFilterError, match=r"add_checked\(k, 1\) is not a condition"):
        table.delete(pc.field("k") + 1 > 3)
    assert keys(table) == [0, 1, 3, 4, 5]


def test_a_whole_partition_goes_without_a_read_of_its_files() -> None:
    table = new_table()
    table.append(rows(range(5)))
    table.append(rows(range(5, 9), "b"))
    for path in table._ref.file_io.list(f"{table.location}/p=a/bucket-0"):
        table._ref.file_io.write(path.path, b"not a data file")
    result = table.delete("p = 'a'")
    assert (result.rows_deleted, result.files_added) == (5, 0)
    assert sorted(keys(table)) == [5, 6, 7, 8]


def test_without_hits_there_is_no_snapshot() -> None:
    table = new_table()
    assert table.delete("k = 1").snapshot is None
    table.append(rows(range(3)))
    assert table.delete("k = 7").snapshot is None
    assert table.update({"note": "x"}, "k = 7").files == ()
    assert table.snapshots().num_rows == 1


def test_dry_run_says_what_would_change_and_writes_nothing() -> None:
    table = new_table()
    table.append(rows(range(10)))
    stored = stored_files(table._ref)
    dry = table.delete("k < 4", dry_run=True)
    assert (dry.snapshot, dry.is_dry_run, dry.rows_deleted) == (None, True, 4)
    assert table.update({"note": "x"}, "k < 4", dry_run=True).rows_updated == 4
    assert stored_files(table._ref) == stored
    assert table.delete("k < 4").files == dry.files


def test_update_sets_constants_and_expressions_of_the_row_before() -> None:
    table = new_table(QUEUE)
    table.append(rows(range(6)))
    result = table.update({"price": pc.field("price") * Decimal(2), "note": "seen"}, "k IN (1, 4)")
    assert (result.rows_updated, result.rows_deleted) == (2, 0)
    found = table.to_arrow().to_pylist()
    assert [(row["k"], float(row["price"]), row["note"]) for row in found] == [
        (0, 0, "n0"), (1, 2, "seen"), (2, 2, "n2"), (3, 3, None), (4, 8, "seen"), (5, 5, None)
    ]  # fmt: skip
    table.update({"note": None}, "k = 4")
    assert table.to_arrow(["note"], "k = 4").to_pylist() == [{"note": None}]


@pytest.mark.parametrize("options", [None, {"bucket": "3", "bucket-key": "k"}], ids=["scalable", "buckets"])
def test_rows_whose_partition_or_bucket_key_changes_move(options: dict[str, str] | None) -> None:
    table = new_table(options)
    table.append(rows(range(12)))
    assert table.update({"p": "b", "k": pc.field("k") + 100}, "k >= 3 AND k < 6").rows_updated == 3
    assert sorted(keys(table, "p = 'b'")) == [103, 104, 105]
    assert sorted(keys(table, "p = 'a'")) == [0, 1, 2, *range(6, 12)]
    assert [row["k"] for k in (104, 7) for row in table.to_arrow(["k"], f"k = {k}").to_pylist()] == [104, 7]
    check_clean(table)


def test_values_that_do_not_fit_change_nothing() -> None:
    table = new_table()
    table.append(rows(range(5)))
    stored = stored_files(table._ref)
    with pytest.raises(SchemaMismatchError, match="price"):
        table.update({"price": pc.field("price") * Decimal(1_000_000)}, "k > 0")
    with pytest.raises(SchemaMismatchError, match="column 'price' takes a number, not 'dear'"):
        table.update({"price": "dear"}, "k > 0")
    with pytest.raises(NotFoundError, match="no column 'cost'"):
        table.update({"cost": 1}, "k > 0")
    with pytest.raises(InvalidOptionError, match="name the columns"):
        table.update({}, "k > 0")
    with pytest.raises(InvalidOptionError, match="cannot be evaluated"):
        table.update({"price": pc.field("cost")}, "k > 0")
    with pytest.raises(InvalidFilterError, match="unknown column 'q'"):
        table.delete("q = 1")
    assert stored_files(table._ref) == stored


@pytest.mark.parametrize("options", [None, QUEUE], ids=["scalable", "queue"])
def test_rows_appended_meanwhile_are_changed_too(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str] | None
) -> None:
    table = new_table(options)
    table.append(rows(range(10)))
    other = penstock.Table.at(table.location)
    during_commit(
        monkeypatch, lambda: other.append(rows(range(100, 104))), lambda: other.append(rows(range(3, 7), "b"))
    )
    result = table.delete("k = 5 OR k = 101")
    assert result.rows_deleted == 3
    assert sorted(keys(table)) == [0, 1, 2, 3, 3, 4, 4, 6, 6, 7, 8, 9, 100, 102, 103]
    check_clean(table)


@pytest.mark.parametrize("options", [None, QUEUE], ids=["scalable", "queue"])
def test_a_compaction_meanwhile_makes_it_evaluate_again(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str] | None
) -> None:
    table = new_table(options)
    for first in range(0, 40, 5):
        table.append(rows(range(first, first + 5)))
    other = penstock.Table.at(table.location)
    during_commit(monkeypatch, other.compact)
    assert table.update({"note": "x"}, "k >= 8 AND k < 12").rows_updated == 4
    found = keys(table)
    assert (found if options else sorted(found)) == list(range(40))
    assert sorted(keys(table, "note = 'x'")) == [8, 9, 10, 11]
    table.compact()
    assert len(keys(table)) == 40
    assert table.inspect.fsck(all_snapshots=True).findings == ()


def test_rows_deleted_by_others_meanwhile_stay_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    table.append(rows(range(10)))
    other = penstock.Table.at(table.location)
    during_commit(monkeypatch, lambda: None, lambda: None)
    monkeypatch.undo()
    during_commit(monkeypatch, lambda: other.delete("k < 4"))
    assert table.update({"note": "x"}, "k < 6").rows_updated == 2
    assert sorted(keys(table)) == [4, 5, 6, 7, 8, 9]


def test_endless_conflicts_raise_an_error_and_leave_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table({"commit.max-retries": "2"})
    table.append(rows(range(10)))
    other = penstock.Table.at(table.location)
    during_commit(monkeypatch, *[lambda: other.append(rows(range(1)))] * 5)
    with pytest.raises(CommitConflictError, match="retry"):
        table.delete("k = 5")
    assert sorted(keys(table)) == [0, 0, 0, 0, *range(1, 10)]
    check_clean(table)


def test_a_change_counts_for_rows_with_columns_that_were_added_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = penstock.Catalog(f"memory://row-changes-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS, partition_by=["p"])
    table.append(rows(range(10)))

    def alter() -> None:
        catalog.alter_table("db.t", AddColumn(column="late", type="INT"))
        catalog.load_table("db.t").append([{**rows(range(1))[0], "late": 1}])

    during_commit(monkeypatch, alter)
    assert table.delete("k = 0").rows_deleted == 2
    assert catalog.load_table("db.t").to_arrow(["late"]).num_rows == 9


def test_files_that_share_a_sequence_number_are_replaced_together() -> None:
    """Writers of other engines number rows before they commit, so their ranges may be the same."""
    table = new_table(QUEUE)
    table.append(rows(range(4)))
    table.append(rows(range(4, 8)))
    order = keys(table)
    table.delete("k = 1")
    table.delete("k = 6")
    assert keys(table) == [k for k in order if k not in {1, 6}]
    table.append(rows(range(8, 10)))
    assert keys(table) == [k for k in [*order, 8, 9] if k not in {1, 6}]


def test_an_ordinary_stream_ignores_changes() -> None:
    table = new_table(QUEUE)
    table.append(rows(range(4)))
    tail = table.follow(["k"], options={"scan.mode": "latest-full"}, once=True)
    assert sum(batch.num_rows for batch in tail) == 4
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    table.delete("k = 1")
    table.append(rows(range(4, 6)))
    given = {"scan.mode": "from-snapshot", "scan.snapshot-id": str(snapshot.id + 1)}
    batches = list(table.follow(["k"], options=given, once=True))
    assert pa.Table.from_batches(batches).column("k").to_pylist() == [4, 5]


@pytest.mark.parametrize("option", [{"scan.snapshot-id": "1"}, {"scan.tag-name": "t"}, {"scan.timestamp-millis": "1"}])
def test_rows_are_not_changed_through_a_handle_on_another_state(option: dict[str, str]) -> None:
    table = new_table()
    table.append(rows(range(3)))
    table.append(rows(range(3, 6)))
    old = table.with_options(option)
    for change in (
        lambda: old.delete("k = 4"),
        lambda: old.update({"p": "x"}, "k = 4"),
        lambda: old.merge(rows(range(4)), "k", matched=penstock.MergeDelete()),
    ):
        with pytest.raises(InvalidOptionError, match=f"not those that '{next(iter(option))}' selects"):
            change()
    assert len(keys(table)) == 6
    table.with_options({"scan.mode": "latest-full"}).delete("k = 4")
    assert len(keys(table)) == 5


def test_decimals_times_an_int_say_by_what_they_can_be_multiplied() -> None:
    table = new_table(columns="k BIGINT, p STRING, price DECIMAL(18, 2)")
    table.append([{"k": 1, "p": "a", "price": Decimal("1.50")}])
    with pytest.raises(
        InvalidOptionError, match=r"Precision is not great enough.*multiply decimals by a decimal\.Decimal"
    ):
        table.update({"price": pc.field("price") * 2}, "k = 1")
    table.update({"price": pc.field("price") * Decimal(2)}, "k = 1")
    assert table.to_arrow()["price"].to_pylist() == [Decimal("3.00")]
