"""Which table is which."""

from __future__ import annotations

import json
import uuid
import warnings
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.counted_requests import memory_store
from tests.support.garbage import stored_files

import penstock
from penstock import (
    Catalog,
    CommitConflictError,
    FormatError,
    MergeUpdate,
    NotFoundError,
    OtherEngineWarning,
    SchemaMismatchError,
    Table,
    UnsupportedFeatureError,
)
from penstock.catalog.changes import AddColumn, DropColumn, SetOption, UpdateColumnType
from penstock.format.snapshot import CommitKind
from penstock.table.actions.changes import open_committer
from penstock.table.assumptions import check_other_engines, check_same_table, load_identity
from penstock.table.commit.delta import CommitRequest
from penstock.table.compact.local import for_compaction, request_compaction, run_here
from penstock.table.compact.plan import plan_compaction
from penstock.table.dml import run
from penstock.table.expire.rollback import apply_rollback, plan_rollback
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


def test_tables_of_the_same_columns_made_at_once_are_different_ones() -> None:
    catalog = penstock.Catalog("memory://identity/w")
    catalog.create_database("d")
    tables = [catalog.create_table(f"d.t{number}", "n BIGINT") for number in range(50)]
    assert len({load_identity(table._ref) for table in tables}) == 50


BIG = 5_000_000_000


def new_table(warehouse: str, columns: str) -> tuple[Catalog, Table]:
    catalog = Catalog(f"memory://stale-schemas-{warehouse}")
    catalog.create_database("db")
    return catalog, catalog.create_table("db.t", columns, options={"write-only": "true"})


def ints(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int32())})


def longs(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def widened(catalog: Catalog) -> Table:
    return catalog.alter_table("db.t", UpdateColumnType(column="a", type="BIGINT"))


def test_a_read_with_the_narrower_type_is_refused() -> None:
    catalog, old = new_table("read", "a INT")
    old.append(ints(1))
    widened(catalog).append(longs(BIG))
    with pytest.raises(SchemaMismatchError, match=r"table db\.t: column 'a' became BIGINT in schema 1.*load the table"):
        old.to_arrow()
    assert catalog.load_table("db.t").to_arrow()["a"].to_pylist() == [1, BIG]


@pytest.mark.parametrize("condition", ["a < 10", "a > 4000000000", "a = 5000000000"])
def test_a_filter_on_the_narrower_type_is_refused_also_where_it_excludes_the_file(condition: str) -> None:
    catalog, old = new_table(f"filter-{condition}", "a INT")
    old.append(ints(1))
    widened(catalog).append(longs(BIG))
    with pytest.raises(SchemaMismatchError, match="load the table again"):
        old.to_arrow(filter=condition)
    for options in ({}, {"scan.mode": "earliest"}):
        with pytest.raises(SchemaMismatchError, match="load the table again"):
            list(old.follow(filter=condition, options=options, once=True))


def test_columns_whose_type_stays_can_still_be_read() -> None:
    catalog, old = new_table("others", "a INT, b INT")
    new = widened(catalog)
    new.append(pa.table({"a": pa.array([BIG], pa.int64()), "b": pa.array([2], pa.int32())}))
    assert old.to_arrow(["b"]).to_pylist() == [{"b": 2}]
    assert [each.num_rows for each in old.follow(["b"], "b = 2", once=True)] == [1]


def test_a_newer_narrower_type_is_read_as_the_wider_one() -> None:
    catalog, old = new_table("narrowed", "a BIGINT")
    narrow = catalog.alter_table("db.t", UpdateColumnType(column="a", type="INT", allow_explicit=True))
    narrow.append(ints(7))
    assert old.to_arrow()["a"].to_pylist() == [7]


def test_a_field_inside_a_row_counts_too() -> None:
    catalog, old = new_table("nested", "r ROW<x INT>")
    new = catalog.alter_table("db.t", UpdateColumnType(column=("r", "x"), type="BIGINT"))
    new.append(pa.table({"r": pa.array([{"x": BIG}], pa.struct([("x", pa.int64())]))}))
    with pytest.raises(SchemaMismatchError, match="column 'r' became"):
        old.to_arrow()


def test_a_reader_that_runs_ends_when_a_wider_value_comes() -> None:
    catalog, old = new_table("follow", "a INT")
    old.append(ints(1))
    batches = old.follow(options={"scan.mode": "earliest"}, once=True)
    assert next(batches)["a"].to_pylist() == [1]
    widened(catalog).append(longs(BIG))
    with pytest.raises(SchemaMismatchError, match="a stream has to be started again"):
        next(batches)


def test_compact_through_a_handle_from_when_a_column_was_narrower_keeps_every_value() -> None:
    catalog, table = new_table("compact", "a BIGINT")
    table.append(longs(BIG))
    narrow = catalog.alter_table("db.t", UpdateColumnType(column="a", type="INT", allow_explicit=True))
    narrow.append(ints(7))
    widened(catalog)
    narrow.compact()
    assert catalog.load_table("db.t").to_arrow()["a"].to_pylist() == [BIG, 7]
    assert catalog.load_table("db.t").files().num_rows == 1


def test_merges_made_with_a_type_that_has_changed_since_are_not_committed() -> None:
    catalog, table = new_table("merges", "a BIGINT")
    table.append(longs(BIG))
    narrow = catalog.alter_table("db.t", UpdateColumnType(column="a", type="INT", allow_explicit=True))
    narrow.append(ints(7))
    ref = for_compaction(narrow._ref)
    store = MetadataStore(ref)
    plan = plan_compaction(ref, store, strategy=request_compaction(ref).strategy)
    tasks = [task for partition in plan.partitions for task in partition.tasks]
    merged = [each.message for each in run_here(ref)(tasks) if each.message is not None]
    widened(catalog)
    with pytest.raises(CommitConflictError, match="became BIGINT while rows were rewritten as INT"):
        open_committer(ref, store).commit(
            CommitRequest(commit_user="merger", kind=CommitKind.COMPACT, messages=tuple(merged))
        )
    assert catalog.load_table("db.t").to_arrow()["a"].to_pylist() == [BIG, 7]


@pytest.mark.parametrize("change", ["update", "delete", "merge"])
def test_a_change_rewrites_files_with_the_columns_that_others_have_added_meanwhile(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(f"memory://stale-schemas-{change}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT, v INT", options={"write-only": "true"})
    table.append([{"id": 0, "v": 0}])
    others = iter([True])

    def others_act(ref: TableRef) -> None:
        if next(others, False):
            added = catalog.alter_table("db.t", AddColumn(column="w", type="STRING"))
            added.append([{"id": 1, "v": 1, "w": "changed"}, {"id": 2, "v": 2, "w": "kept"}])
        check_same_table(ref)

    monkeypatch.setattr(run, "check_same_table", others_act)
    match change:
        case "update":
            table.update({"v": 9}, "id = 1")
        case "delete":
            table.delete("id = 1")
        case _:
            table.merge([{"id": 1, "v": 9}], "id", matched=MergeUpdate())
    found = {row["id"]: (row["v"], row["w"]) for row in catalog.load_table("db.t").to_arrow().to_pylist()}
    changed = {} if change == "delete" else {1: (9, "changed")}
    assert found == {0: (0, None), 2: (2, "kept"), **changed}


def test_a_change_of_a_column_that_others_have_dropped_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, table = new_table("dropped", "id INT, v INT")
    table.append([{"id": 1, "v": 1}])
    others = iter([True])

    def others_act(ref: TableRef) -> None:
        if next(others, False):
            catalog.alter_table("db.t", DropColumn(column="v")).append([{"id": 1}])
        check_same_table(ref)

    monkeypatch.setattr(run, "check_same_table", others_act)
    with pytest.raises(NotFoundError, match="no column 'v' to set"):
        table.update({"v": 2}, "id = 1")
    assert catalog.load_table("db.t").to_arrow().to_pylist() == [{"id": 1}, {"id": 1}]


def test_a_snapshot_from_before_a_change_of_type_can_be_put_back() -> None:
    catalog, table = new_table("back", "a INT")
    table.append(ints(1))
    first = table.latest_snapshot()
    assert first is not None
    table = widened(catalog)
    table.overwrite(longs(BIG))
    table.versions.rollback_to_as_latest(snapshot_id=first.id)
    assert table.to_arrow()["a"].to_pylist() == [1]


ROWS = pa.table({"id": [1, 2, 3]})


def make_table(root: str, options: dict[str, str]) -> Table:
    catalog = Catalog(f"{root}/warehouse", options)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(ROWS)
    return table


@pytest.fixture
def table() -> Table:
    file_io = memory_store(f"engines-{uuid.uuid4()}")
    return make_table(file_io.settings.address.root, dict(file_io.settings.options))


def commit_as_other_engine(table: Table, snapshot_id: int) -> None:
    """Write the next snapshot as an engine that gives no version of its writer."""
    file_io: FileIO = table._ref.file_io  # of a branch, too
    snapshot = json.loads(file_io.read(f"{table.location}/snapshot/snapshot-{snapshot_id - 1}"))
    del snapshot["writerVersion"]
    changed = {**snapshot, "id": snapshot_id, "uuid": str(uuid.uuid4()), "commitUser": "flink-job"}
    file_io.write(f"{table.location}/snapshot/snapshot-{snapshot_id}", json.dumps(changed).encode())
    file_io.write(f"{table.location}/snapshot/LATEST", str(snapshot_id).encode())


def test_a_commit_is_refused_after_that_of_another_engine_unless_an_option_allows_it(table: Table) -> None:
    commit_as_other_engine(table, 2)
    before = {status.path for status in table._ref.file_io.list(f"{table.location}/bucket-0")}
    with pytest.raises(UnsupportedFeatureError, match=r"another engine created snapshot 2 \(commit user flink-job\)"):
        table.append(ROWS)
    with pytest.raises(UnsupportedFeatureError, match=r"'penstock\.object-store\.allow-other-engines' = 'true'"):
        table.truncate()
    assert {status.path for status in table._ref.file_io.list(f"{table.location}/bucket-0")} == before
    allowed = table.with_options({"penstock.object-store.allow-other-engines": "true"})
    allowed.append(ROWS)
    table.append(ROWS)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(ROWS["id"].to_pylist() * 3)


def test_a_reader_is_warned_once(table: Table) -> None:
    commit_as_other_engine(table, 2)
    with pytest.warns(OtherEngineWarning, match="another engine created snapshot 2; reading is safe") as caught:
        assert table.to_arrow().num_rows == 3
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.to_arrow()


def test_a_stream_warns_too(table: Table) -> None:
    commit_as_other_engine(table, 2)
    with pytest.warns(OtherEngineWarning, match="another engine created snapshot 2; reading is safe"):
        assert sum(batch.num_rows for batch in table.follow(once=True)) == 3


def test_a_branch_is_guarded_like_its_table(table: Table) -> None:
    table.versions.create_branch("b", snapshot_id=1)
    branch = table.with_options({"branch": "b"})
    commit_as_other_engine(branch, 2)
    with pytest.raises(UnsupportedFeatureError, match="another engine created snapshot 2"):
        branch.append(ROWS)
    table.append(ROWS)


def test_a_rollback_is_refused_like_a_commit(table: Table) -> None:
    table.append(ROWS)
    commit_as_other_engine(table, 3)
    before = stored_files(table._ref)
    assert table.rollback_to(snapshot_id=1, dry_run=True).snapshot_ids == (3, 2)
    with pytest.raises(UnsupportedFeatureError, match=r"another engine created snapshot 3 \(commit user flink-job\)"):
        table.rollback_to(snapshot_id=1)
    assert stored_files(table._ref) == before
    table.with_options({"penstock.object-store.allow-other-engines": "true"}).rollback_to(snapshot_id=1)
    assert table.to_arrow().num_rows == 3
    table.append(ROWS)


def test_a_rollback_is_refused_if_another_engine_commits_while_it_runs(table: Table) -> None:
    table.append(ROWS)
    store, plan = MetadataStore(table._ref), plan_rollback(MetadataStore(table._ref), snapshot_id=1)
    commit_as_other_engine(table, 3)
    with pytest.raises(UnsupportedFeatureError, match="another engine created snapshot 3"):
        apply_rollback(store, plan, check=lambda latest: check_other_engines(table._ref, latest))
    assert sorted(store.list_snapshot_ids()) == [1, 2, 3]


def test_fast_forward_is_refused_after_a_commit_of_another_engine(table: Table) -> None:
    commit_as_other_engine(table, 2)
    table.versions.create_branch("b", snapshot_id=2)
    branch = table.with_options({"branch": "b", "penstock.object-store.allow-other-engines": "true"})
    branch.append(ROWS)
    with pytest.raises(UnsupportedFeatureError, match="another engine created snapshot 2"):
        table.versions.fast_forward("b")
    allowed = table.with_options({"penstock.object-store.allow-other-engines": "true"})
    assert allowed.versions.fast_forward("b") == 1


def test_a_store_that_lets_two_commits_land_gets_no_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_client: object, _directory: str) -> None:
        raise UnsupportedFeatureError("2 conditional puts succeeded")

    monkeypatch.setattr("penstock.io.object_store.file_io.check_conditional_puts", refuse)
    before = stored_files(table._ref)
    with pytest.raises(UnsupportedFeatureError, match="2 conditional puts"):
        table.append(ROWS)
    assert stored_files(table._ref) == before


def test_on_a_disk_other_engines_commit_as_they_like(tmp_path: Path) -> None:
    table = make_table(str(tmp_path), {})
    commit_as_other_engine(table, 2)
    table.append(ROWS)
    assert table.to_arrow().num_rows == 6


def _table_without_its_latest_schema(name: str, *, alter_again: bool = False) -> tuple[Catalog, Table]:
    """Return a table of which snapshot 1 names schema 0, and snapshot 2 schema 1, whose file is lost."""
    catalog = Catalog(f"memory://lost-schema/{name}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "n BIGINT")
    table.append(pa.table({"n": [1]}))
    table = catalog.alter_table("d.t", AddColumn(column="a", type="STRING"))
    table.append(pa.table({"n": [2], "a": ["x"]}))
    if alter_again:
        catalog.alter_table("d.t", DropColumn(column="a"))
    ref = table._ref
    assert ref.file_io.delete(ref.layout.schema_path(1))
    return catalog, catalog.load_table("d.t")


@pytest.mark.parametrize(
    "change",
    [
        lambda catalog, _: catalog.alter_table("d.t", AddColumn(column="other", type="BIGINT")),
        lambda catalog, _: catalog.alter_table("d.t", SetOption(key="snapshot.num-retained.min", value="3")),
        lambda _, table: table.preview.alter(AddColumn(column="other", type="BIGINT")),
        lambda _, table: table.append(pa.table({"n": [3]})),
        lambda _, table: table.append(pa.table({"n": [3], "a": ["x"]})),
        lambda _, table: table.overwrite(pa.table({"n": [3]})),
        lambda _, table: table.versions.rollback_to_as_latest(snapshot_id=1),
        lambda _, table: table.versions.create_branch("b") or table.versions.fast_forward("b"),
    ],
)
@pytest.mark.parametrize("alter_again", [False, True])
def test_nothing_builds_on_a_snapshot_whose_schema_is_lost(
    change: Callable[[Catalog, Table], object], *, alter_again: bool
) -> None:
    catalog, table = _table_without_its_latest_schema(uuid.uuid4().hex, alter_again=alter_again)
    ids = table._store.list_schema_ids()
    with pytest.raises(FormatError, match=r"schema 1 of snapshot 2 is missing \(.*schema-1\).*copy.*roll back"):
        change(catalog, table)
    assert table._store.list_schema_ids() == ids
    assert table._store.list_snapshot_ids() == (1, 2)


def test_after_a_rollback_to_an_older_schema_the_lost_one_is_not_missed() -> None:
    catalog, table = _table_without_its_latest_schema(uuid.uuid4().hex)
    table.rollback_to(snapshot_id=1)
    table = catalog.alter_table("d.t", AddColumn(column="other", type="BIGINT"))
    table.append(pa.table({"n": [3], "other": [4]}))
    assert table.to_arrow().to_pydict() == {"n": [1, 3], "other": [None, 4]}


def test_a_lost_schema_that_no_later_snapshot_names_is_not_missed() -> None:
    catalog, table = _table_without_its_latest_schema(uuid.uuid4().hex, alter_again=True)
    table.rollback_to(snapshot_id=1)
    table.append(pa.table({"n": [3]}))
    assert catalog.alter_table("d.t", AddColumn(column="other", type="BIGINT"))._ref.schema.id == 3
