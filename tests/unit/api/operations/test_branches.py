"""Branches of a table: made, read and written apart, made the main one."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.catalog.changes import AddColumn
from penstock.clocks import utc_millis
from penstock.errors import (
    AlreadyExistsError,
    CommitConflictError,
    DataLossError,
    InvalidOptionError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from penstock.format.layout import TableLayout
from penstock.format.text.json import encode_json
from penstock.io.memory import MemoryFileIO
from penstock.table import branches
from penstock.table.assumptions import load_identity
from penstock.table.expire import snapshots
from penstock.table.process import encode_process, this_process
from penstock.table.stream.history import History, snapshot_digest
from penstock.table.stream.offset import Position, StreamOffset

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

NUMBERS = itertools.count()


# Without merges after appends, so that the snapshots are those of the rows.
QUEUE = {"bucket": "1", "bucket-key": "k", "compaction.min.file-num": "100"}


@pytest.fixture
def catalog() -> penstock.Catalog:
    return penstock.Catalog(f"memory://branches-{next(NUMBERS)}")


@pytest.fixture
def table(catalog: penstock.Catalog) -> penstock.Table:
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT", options=QUEUE)
    for k in range(3):
        table.append([{"k": k}])
    table.create_tag("two", snapshot_id=2)
    return table


def keys(table: penstock.Table) -> list[Any]:
    return table.to_arrow().column("k").to_pylist()


def test_a_branch_begins_with_a_tag_a_snapshot_or_nothing(table: penstock.Table) -> None:
    table.versions.create_branch("a", tag="two")
    table.versions.create_branch("b", snapshot_id=1)
    table.versions.create_branch("c")
    assert [keys(table.with_options({"branch": name})) for name in "abc"] == [[0, 1], [0], []]
    assert table.inspect.branches().column("branch_name").to_pylist() == ["a", "b", "c"]
    assert keys(table) == [0, 1, 2]


def test_rows_and_columns_of_a_branch_are_its_own(catalog: penstock.Catalog, table: penstock.Table) -> None:
    table.versions.create_branch("b", tag="two")
    branch = catalog.load_table("db.t$branch_b")
    branch.append([{"k": 10}])
    branch.delete("k = 0")
    catalog.alter_table("db.t", AddColumn(column="n", type="INT"))
    catalog.load_table("db.t").append([{"k": 3, "n": 1}])
    assert keys(catalog.load_table("db.t", {"branch": "b"})) == [1, 10]
    assert branch.schema.field_names == ("k",)
    assert keys(catalog.load_table("db.t")) == [0, 1, 2, 3]
    assert [row["snapshot_id"] for row in branch.snapshots().to_pylist()] == [2, 3, 4]
    assert list(itertools.chain(*(batch.column("k").to_pylist() for batch in branch.follow(once=True)))) == [1, 10]
    for each in (table, branch):
        assert each.inspect.fsck(all_snapshots=True).findings == ()
    assert branch.with_options({"branch": "main"}).latest_snapshot() == table.latest_snapshot()


def test_expiration_and_orphan_removal_spare_branches(table: penstock.Table) -> None:
    table.versions.create_branch("b", tag="two")
    branch = table.with_options({"branch": "b"})
    branch.append([{"k": 10}])
    table.versions.delete_tag("two")
    table.delete("k < 2")
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
    assert keys(branch) == [0, 1, 10]
    assert keys(table) == [2]
    for what in (branch.expire_snapshots, branch.remove_orphan_files):
        with pytest.raises(UnsupportedFeatureError, match="branch"):
            what()
    branch.compact()
    branch.create_tag("x")
    branch.versions.delete_tag("x")
    assert keys(branch) == [0, 1, 10]


def test_fast_forward_gives_the_main_branch_what_the_other_has(table: penstock.Table) -> None:
    table.versions.create_branch("b", snapshot_id=3)
    branch = table.with_options({"branch": "b"})
    branch.append([{"k": 10}])
    branch.append([{"k": 11}])
    branch.create_tag("made")
    assert table.versions.fast_forward("b") == 2
    assert keys(table) == [0, 1, 2, 10, 11]
    assert table.to_arrow(tag="made").num_rows == 5
    table.append([{"k": 12}])
    branch.append([{"k": 13}])
    with pytest.raises(CommitConflictError, match="main branch"):
        table.versions.fast_forward("b")
    assert keys(table) == [0, 1, 2, 10, 11, 12]
    assert keys(branch) == [0, 1, 2, 10, 11, 13]
    assert table.inspect.fsck(all_snapshots=True).findings == ()


@pytest.mark.parametrize("begins", ["files are deleted", "it is announced"])
def test_a_branch_created_during_an_expiration_is_complete_or_refused(
    catalog: penstock.Catalog, table: penstock.Table, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    table.overwrite([{"k": 9}], partition={})
    table.versions.delete_tag("two")
    name = "delete_files" if begins == "files are deleted" else "announce_expiration"
    real = getattr(snapshots, name)
    answers: list[str] = []

    def branching(*args: Any, **named: Any) -> Any:
        if not answers:
            try:
                catalog.load_table("db.t").versions.create_branch("b", snapshot_id=3)
                answers.append("made")
            except NotFoundError as error:
                answers.append(str(error))
        return real(*args, **named)

    monkeypatch.setattr(snapshots, name, branching)
    table.expire_snapshots(retain_min=1, older_than=utc_millis() + 1)
    if begins == "it is announced":
        assert answers == ["made"]
        assert keys(catalog.load_table("db.t$branch_b")) == [0, 1, 2]
    else:
        assert "snapshot 3 is about to expire" in answers[0]
        assert table.inspect.branches().num_rows == 0


def test_fast_forward_on_a_table_that_went_on_and_expired_is_refused(
    catalog: penstock.Catalog, table: penstock.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.versions.create_branch("b", snapshot_id=3)
    table.with_options({"branch": "b"}).append([{"k": 7}])
    real = branches._take_over

    def late(ref: TableRef, theirs: TableRef, path: str, branch: str) -> None:
        if path.endswith("snapshot-4"):
            other = catalog.load_table("db.t")
            for k in (4, 5):
                other.append([{"k": k}])
            other.expire_snapshots(retain_min=1, older_than=utc_millis() + 1)
        real(ref, theirs, path, branch)

    monkeypatch.setattr(branches, "_take_over", late)
    with pytest.raises(CommitConflictError, match="the main branch has commits that branch 'b'"):
        table.versions.fast_forward("b")
    assert keys(catalog.load_table("db.t")) == [0, 1, 2, 4, 5]
    assert catalog.load_table("db.t").snapshots().column("snapshot_id").to_pylist() == [5]


def test_a_fast_forward_that_fails_halfway_says_that_a_repetition_adds_the_rest(
    table: penstock.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.versions.create_branch("b", snapshot_id=3)
    branch = table.with_options({"branch": "b"})
    branch.append([{"k": 10}])
    branch.create_tag("made")
    real = MemoryFileIO.put_if_absent

    def failing(self: MemoryFileIO, path: str, data: bytes) -> bool:
        if path.endswith("tag-made"):
            raise StorageError("no space", True)  # noqa: FBT003
        return real(self, path, data)

    monkeypatch.setattr(MemoryFileIO, "put_if_absent", failing)
    with pytest.raises(StorageError, match=r"db\.t: .*no space.*tags of branch 'b': repeat the fast-forward"):
        table.versions.fast_forward("b")
    monkeypatch.undo()
    assert table.versions.fast_forward("b") == 0
    assert table.to_arrow(tag="made").num_rows == 4


@pytest.mark.parametrize("by_paimon", [False, True])
def test_a_branch_that_is_recreated_is_a_new_branch(
    catalog: penstock.Catalog, table: penstock.Table, *, by_paimon: bool
) -> None:
    """Branches of Paimon have no file with an identity, but their schema files have times."""

    def create() -> penstock.Table:
        table.versions.create_branch("b", tag="two")
        if by_paimon:
            file_io, root = table._ref.file_io, TableLayout(table.location).branch("b").location
            file_io.delete(TableLayout(root).branch_identity_path)
            time.sleep(0.002)
            file_io.write(TableLayout(root).schema_path(0), file_io.read(TableLayout(root).schema_path(0)))
        return catalog.load_table("db.t$branch_b")

    first = create()
    assert len({load_identity(each._ref) for each in (table, first, catalog.load_table("db.t$branch_b"))}) == 2
    table.versions.delete_branch("b")
    with pytest.raises(NotFoundError, match="it was dropped or renamed since it was loaded"):
        first.append([{"k": 5}])
    second = create()
    for use in (lambda: first.append([{"k": 5}]), first.to_arrow, lambda: first.delete("k = 0"), first.compact):
        with pytest.raises(NotFoundError, match="is not the one that was loaded"):
            use()
    second.append([{"k": 6}])
    assert keys(second) == [0, 1, 6]
    if not by_paimon:
        table.versions.rename_branch("b", "c")
        assert load_identity(catalog.load_table("db.t$branch_c")._ref) == second._ref.file_io.identity  # type: ignore[attr-defined]


def test_a_stream_does_not_go_on_in_another_branch(catalog: penstock.Catalog, table: penstock.Table) -> None:
    table.versions.create_branch("b", snapshot_id=3)
    table.versions.create_branch("c", snapshot_id=3)
    tables = [table, catalog.load_table("db.t$branch_b"), catalog.load_table("db.t$branch_c")]
    for one, other in itertools.permutations([History(each._store, fails=True) for each in tables], 2):
        snapshot = table._store.load_snapshot(3)
        offset = StreamOffset(
            position=Position(snapshot_id=4), table=one.load_table_digest(), seen=snapshot_digest(snapshot)
        )
        one.check_table(offset)
        with pytest.raises(DataLossError, match="is another branch"):
            other.check_table(offset)


def test_a_creation_that_another_process_may_be_making_is_not_replaced(table: penstock.Table) -> None:
    root, file_io = TableLayout(table.location).branch("b").location, table._ref.file_io
    alive = encode_json(encode_process(this_process()))
    file_io.write(TableLayout(root).branch_claim_path, alive)
    file_io.write(TableLayout(root).snapshot_path(9), b"half")
    assert table.inspect.branches().num_rows == 0
    with pytest.raises(AlreadyExistsError, match=r"being created by process \d+ on .*; .*delete the branch"):
        table.versions.create_branch("b")
    with pytest.raises(NotFoundError, match="no branch 'b'; there are none but main"):
        table.with_options({"branch": "b"})
    table.versions.delete_branch("b")
    table.versions.create_branch("b", tag="two")
    assert keys(table.with_options({"branch": "b"})) == [0, 1]
    table.versions.delete_branch("b")
    old = MemoryFileIO(file_io.name, clock=lambda: utc_millis() - 601_000)  # type: ignore[attr-defined]
    old.write(TableLayout(root).branch_claim_path, alive)
    old.write(TableLayout(root).snapshot_path(9), b"half")
    table.versions.create_branch("b", tag="two")
    assert keys(table.with_options({"branch": "b"})) == [0, 1]


def test_rename_and_delete(table: penstock.Table) -> None:
    table.versions.create_branch("a", tag="two")
    table.versions.rename_branch("a", "b")
    assert keys(table.with_options({"branch": "b"})) == [0, 1]
    with pytest.raises(NotFoundError, match="there are b"):
        table.with_options({"branch": "a"})
    table.versions.delete_branch("b")
    assert table.inspect.branches().num_rows == 0
    assert keys(table) == [0, 1, 2]


@pytest.mark.parametrize("name", ["main", "7", "a/b", "..", "", "x$y"])
def test_names_that_cannot_be(table: penstock.Table, name: str) -> None:
    with pytest.raises(InvalidOptionError, match="cannot be called"):
        table.versions.create_branch(name)


def test_invalid_changes_of_branches_are_refused(table: penstock.Table) -> None:
    table.versions.create_branch("a")
    with pytest.raises(AlreadyExistsError):
        table.versions.create_branch("a")
    with pytest.raises(NotFoundError):
        table.versions.create_branch("b", tag="none")
    with pytest.raises(NotFoundError):
        table.versions.delete_branch("b")
    with pytest.raises(UnsupportedFeatureError, match="with_options"):
        table.to_arrow(options={"branch": "a"})


def test_in_sql(catalog: penstock.Catalog, table: penstock.Table) -> None:
    result = penstock.sql(
        None,
        catalog,
        """
        CALL sys.create_branch('db.t', 'dev', 'two');
        INSERT INTO db.`t$branch_dev` VALUES (20);
        DELETE FROM db.`t$branch_dev` WHERE k = 0;
        CALL sys.create_branch('db.t', 'old');
        CALL sys.rename_branch('db.t', 'old', 'older');
        CALL sys.delete_branch('db.t', 'older');
        SELECT * FROM db.`t$branch_dev`
        """,
    )
    assert result.column("k").to_pylist() == [1, 20]
    names = penstock.sql(None, catalog, "SELECT branch_name FROM db.`t$branches`")
    assert names.column("branch_name").to_pylist() == ["dev"]
    snapshots = penstock.sql(None, catalog, "SELECT snapshot_id FROM db.`t$branch_dev$snapshots`")
    assert snapshots.column("snapshot_id").to_pylist() == [2, 3, 4]
    hinted = penstock.sql(None, catalog, "SELECT * FROM db.t /*+ OPTIONS('branch' = 'dev') */")
    assert hinted.column("k").to_pylist() == [1, 20]
    assert keys(table) == [0, 1, 2]


def test_fast_forward_in_sql(catalog: penstock.Catalog, table: penstock.Table) -> None:
    penstock.sql(
        None,
        catalog,
        """
        CALL sys.create_tag('db.t', 'three');
        CALL sys.create_branch(`table` => 'db.t', branch => 'next', tag => 'three');
        INSERT INTO db.`t$branch_next` VALUES (30);
        CALL sys.fast_forward(`table` => 'db.t', branch => 'next');
        """,
    )
    assert keys(table) == [0, 1, 2, 30]


def test_the_fallback_branch_in_sql(catalog: penstock.Catalog) -> None:
    """The statements of Paimon's page on branches, in an append table."""
    catalog.create_database("db")
    rows = penstock.sql(
        None,
        catalog,
        """
        CREATE TABLE db.f (k INT, dt STRING) PARTITIONED BY (dt);
        CALL sys.create_branch('db.f', 'old');
        ALTER TABLE db.f SET ('scan.fallback-branch' = 'old');
        ALTER TABLE db.f ADD note STRING;
        ALTER TABLE db.`f$branch_old` ADD note STRING;
        INSERT INTO db.`f$branch_old` VALUES (1, 'x', 'old'), (2, 'y', 'old');
        INSERT INTO db.f VALUES (3, 'x', 'new');
        SELECT k, note FROM db.f
        """,
    )
    assert sorted(rows.to_pydict().items()) == [("k", [2, 3]), ("note", ["old", "new"])]
    hinted = "SELECT k FROM db.f /*+ OPTIONS('scan.fallback-branch' = '') */"
    assert penstock.sql(None, catalog, hinted).column("k").to_pylist() == [3]
    with pytest.raises(InvalidOptionError, match="there is no branch 'b': create the branch first"):
        penstock.sql(None, catalog, "CREATE TABLE db.g (k INT) WITH ('scan.fallback-branch' = 'b')")
    with pytest.raises(InvalidOptionError, match="branch 'old' cannot be deleted, because reads of the table use it"):
        penstock.sql(None, catalog, "CALL sys.delete_branch('db.f', 'old')")
    penstock.sql(
        None, catalog, "ALTER TABLE db.f RESET ('scan.fallback-branch'); CALL sys.delete_branch('db.f', 'old')"
    )
    assert catalog.load_table("db.f").to_arrow(["k"])["k"].to_pylist() == [3]


def test_options_and_columns_of_a_branch_are_changed_by_its_name(
    catalog: penstock.Catalog, table: penstock.Table
) -> None:
    table.versions.create_branch("dev", tag="two")
    changed = catalog.alter_table("db.t$branch_dev", AddColumn(column="note", type="STRING"))
    changed.append([{"k": 20, "note": "new"}])
    assert keys(catalog.load_table("db.`t$branch_dev`")) == [0, 1, 20]
    assert changed.name == "db.t$branch_dev"
    assert catalog.load_table("db.t").schema.field_names == ("k",)
    with pytest.raises(NotFoundError, match="has no branch 'other'; there are dev"):
        catalog.alter_table("db.t$branch_other", AddColumn(column="note", type="STRING"))
