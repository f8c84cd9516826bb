"""Tables that are created or replaced together with their rows."""

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock import Catalog, CommitConflictError, NotFoundError
from penstock.catalog import staged_tables as tables
from penstock.catalog.changes import SetOption
from penstock.catalog.directory import DirectoryBackend
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.place import list_schema_ids, load_latest_schema
from penstock.catalog.staged_tables import (
    NewState,
    StagedTable,
    Successor,
    abort_staged,
    commit_staged,
    stage_replacement,
    stage_table,
)
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import AlreadyExistsError, StorageError, UnsupportedFeatureError
from penstock.io.memory import MemoryFileIO
from penstock.table.message import CommitMessage
from penstock.table.write.writer import write_arrow
from penstock.testing.file_io import FailingFileIO, Fault

Define = Callable[..., TableDefinition]


@pytest.fixture
def shop(tmp_path: Path) -> DirectoryBackend:
    warehouse = open_warehouse(str(tmp_path))
    warehouse.create_database("d")
    return warehouse


@pytest.fixture
def full(shop: DirectoryBackend) -> penstock.Table:
    """Return a table with one row, in a warehouse at the path of ``shop``."""
    table = Catalog(shop.location).create_table("d.t", "id BIGINT, name STRING")
    table.append([{"id": 1, "name": "old"}])
    return table


def write(staged: StagedTable, **columns: list[Any]) -> tuple[CommitMessage, ...]:
    return write_arrow(staged.ref, pa.table(columns))


def commit(staged: StagedTable, **columns: list[Any]) -> None:
    commit_staged(staged, staged.ref, write(staged, **columns))


def rows(shop: DirectoryBackend, **options: Any) -> list[Mapping[str, Any]]:
    return Catalog(shop.location).load_table("d.t").to_arrow(**options).to_pylist()


def below(shop: DirectoryBackend) -> list[str]:
    root = Path(shop.location)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_a_new_table_exists_once_its_rows_are_there(shop: DirectoryBackend, definition: Define) -> None:
    staged = stage_table(shop, "d.t", definition("id BIGINT"))
    messages = write(staged, id=[1, 2])
    assert shop.list_tables("d") == ()
    commit_staged(staged, staged.ref, messages)
    assert rows(shop) == [{"id": 1}, {"id": 2}]
    with pytest.raises(AlreadyExistsError):
        stage_table(shop, "d.t", definition("id BIGINT"))


def test_an_aborted_table_leaves_nothing(shop: DirectoryBackend, definition: Define) -> None:
    staged = stage_table(shop, "d.t", definition("id BIGINT, dt STRING", partition_by=["dt"]))
    Path(f"{staged.ref.location}/dt=a/bucket-0").mkdir(parents=True)
    abort_staged(staged)
    assert below(shop) == ["d.db"]


def test_of_two_creators_one_wins_and_the_other_leaves_no_file(shop: DirectoryBackend, definition: Define) -> None:
    first, second = (stage_table(shop, "d.t", definition("id BIGINT")) for _ in range(2))
    messages = write(second, id=[3])
    commit(first, id=[1])
    with pytest.raises(AlreadyExistsError):
        commit_staged(second, second.ref, messages)
    assert rows(shop) == [{"id": 1}]
    assert len([path for path in below(shop) if path.endswith(".parquet")]) == 1


def test_a_creation_that_fails_keeps_rows_that_others_have_added(
    shop: DirectoryBackend, definition: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        Catalog(shop.location).load_table("d.t").append([{"id": 7}])
        raise StorageError("the disk is full")

    monkeypatch.setattr(tables, "commit_append", fail)
    staged = stage_table(shop, "d.t", definition("id BIGINT"))
    with pytest.raises(StorageError, match="disk is full"):
        commit(staged, id=[1])
    assert rows(shop) == [{"id": 7}]


def test_a_replacement_keeps_history_and_the_place(
    shop: DirectoryBackend, full: penstock.Table, definition: Define
) -> None:
    full.create_tag("kept")
    staged = stage_replacement(shop, "d.t", definition("id BIGINT, price DOUBLE"))
    messages = write(staged, id=[2], price=[1.5])
    assert rows(shop) == [{"id": 1, "name": "old"}]
    commit_staged(staged, staged.ref, messages)
    assert rows(shop) == [{"id": 2, "price": 1.5}]
    assert rows(shop, snapshot_id=1) == rows(shop, tag="kept") == [{"id": 1, "name": "old"}]
    snapshots = Catalog(shop.location).load_table("d.t").snapshots()
    assert snapshots["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE"]
    assert snapshots["schema_id"].to_pylist() == [0, 1]
    assert Catalog(shop.location).load_table("d.t").inspect.fsck().findings == ()


def test_the_same_definition_makes_one_snapshot_and_no_schema(
    shop: DirectoryBackend, full: penstock.Table, definition: Define
) -> None:
    staged = stage_replacement(shop, "d.t", definition("id BIGINT, name STRING"))
    commit(staged, id=[2], name=["new"])
    assert rows(shop) == [{"id": 2, "name": "new"}]
    assert list_schema_ids(staged.ref.file_io, staged.ref.location) == (0,)
    full.append([{"id": 3, "name": "a handle from before"}])
    assert len(rows(shop)) == 2


def test_rows_that_others_add_meanwhile_are_replaced_too(
    shop: DirectoryBackend, full: penstock.Table, definition: Define
) -> None:
    staged = stage_replacement(shop, "d.t", definition("id BIGINT"))
    messages = write(staged, id=[2])
    full.append([{"id": 5, "name": "meanwhile"}])
    commit_staged(staged, staged.ref, messages)
    assert rows(shop) == [{"id": 2}]
    assert len(rows(shop, snapshot_id=2)) == 2


@pytest.mark.parametrize("columns", ["id BIGINT, name STRING", "id BIGINT"])
@pytest.mark.usefixtures("full")
def test_a_table_that_others_alter_meanwhile_is_not_replaced(
    shop: DirectoryBackend, definition: Define, columns: str
) -> None:
    staged = stage_replacement(shop, "d.t", definition(columns))
    messages = write(staged, **{name: [None] for name in staged.ref.schema.field_names})
    shop.alter_table("d.t", [SetOption(key="snapshot.num-retained.max", value="20")])
    with pytest.raises(CommitConflictError, match="altered"):
        commit_staged(staged, staged.ref, messages)
    assert rows(shop) == [{"id": 1, "name": "old"}]
    assert len([path for path in below(shop) if path.endswith(".parquet")]) == 1


@pytest.mark.parametrize("away", ["dropped", "renamed"])
@pytest.mark.usefixtures("full")
def test_a_table_that_is_gone_meanwhile_does_not_come_back(
    shop: DirectoryBackend, definition: Define, away: str
) -> None:
    staged = stage_replacement(shop, "d.t", definition("id BIGINT"))
    messages = write(staged, id=[2])
    if away == "dropped":
        shop.drop_table("d.t")
    else:
        shop.rename_table("d.t", "d.other")
    with pytest.raises(NotFoundError):
        commit_staged(staged, staged.ref, messages)
    assert shop.list_tables("d") == (("other",) if away == "renamed" else ())


@pytest.mark.usefixtures("full")
def test_other_partition_columns_need_another_directory(shop: DirectoryBackend, definition: Define) -> None:
    staged = stage_replacement(shop, "d.t", definition("id BIGINT, name STRING", partition_by=["name"]))
    assert isinstance(staged, Successor)
    messages = write(staged, id=[2], name=["new"])
    assert shop.list_tables("d") == ("t",)
    commit_staged(staged, staged.ref, messages)
    assert shop.list_tables("d") == ("t",)
    assert rows(shop) == [{"id": 2, "name": "new"}]
    assert Catalog(shop.location).load_table("d.t").snapshots().num_rows == 1
    assert [path for path in below(shop) if path.count("/") < 2] == ["d.db", "d.db/t"]


@pytest.mark.usefixtures("full")
def test_an_aborted_successor_leaves_the_table(shop: DirectoryBackend, definition: Define) -> None:
    before = below(shop)
    staged = stage_replacement(shop, "d.t", definition("id BIGINT, name STRING", partition_by=["name"]))
    Path(f"{staged.ref.location}/name=a/bucket-0").mkdir(parents=True)
    abort_staged(staged)
    assert below(shop) == before


@pytest.mark.usefixtures("full")
def test_a_successor_that_cannot_take_the_name_leaves_the_table(
    shop: DirectoryBackend, definition: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = below(shop)
    renamed: list[str] = []

    rename_table = DirectoryBackend.rename_table

    def rename(warehouse: DirectoryBackend, source: str, target: str) -> None:
        renamed.append(source)
        if len(renamed) == 2:
            raise StorageError("no")
        rename_table(warehouse, source, target)

    monkeypatch.setattr(DirectoryBackend, "rename_table", rename)
    staged = stage_replacement(shop, "d.t", definition("id BIGINT, name STRING", partition_by=["name"]))
    messages = write(staged, id=[2], name=["new"])
    with pytest.raises(StorageError):
        commit_staged(staged, staged.ref, messages)
    assert below(shop) == before


KILLED_BETWEEN_THE_RENAMES = """
import os, signal, sys
import pyarrow as pa
from penstock.catalog.directory import DirectoryBackend
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog import staged_tables as tables
from penstock.catalog.warehouse import open_warehouse
from penstock.format.types.ddl import parse_columns
from penstock.table.write.writer import write_arrow

rename_table = DirectoryBackend.rename_table

def rename(warehouse, source, target):
    if source != "d.t":
        os.kill(os.getpid(), signal.SIGKILL)
    rename_table(warehouse, source, target)

DirectoryBackend.rename_table = rename
definition = TableDefinition(columns=parse_columns("id BIGINT, name STRING"), partition_by=("name",))
staged = tables.stage_replacement(open_warehouse(sys.argv[1]), "d.t", definition)
rows = write_arrow(staged.ref, pa.table({"id": [2], "name": ["new"]}))
tables.commit_staged(staged, staged.ref, rows)
"""


@pytest.mark.usefixtures("full")
def test_a_process_killed_between_the_renames_leaves_both_tables_whole(shop: DirectoryBackend) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_BETWEEN_THE_RENAMES, shop.location], check=False)
    assert killed.returncode == -signal.SIGKILL
    new, old = shop.list_tables("d")
    assert new.startswith("t__new_")
    assert old.startswith("t__old_")
    catalog = Catalog(shop.location)
    assert catalog.load_table(f"d.{new}").to_arrow().to_pylist() == [{"id": 2, "name": "new"}]
    catalog.rename_table(f"d.{old}", "d.t")
    assert catalog.load_table("d.t").to_arrow().to_pylist() == [{"id": 1, "name": "old"}]


def test_a_table_on_an_object_store_keeps_its_directory(
    warehouse: DirectoryBackend, definition: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.create_database("d")
    warehouse.create_table("d.t", definition("id BIGINT, name STRING"))
    table = Catalog(warehouse.location).load_table("d.t")
    table.append([{"id": 1, "name": "old"}])
    monkeypatch.setattr(MemoryFileIO, "is_object_store", True)
    with pytest.raises(UnsupportedFeatureError, match="its partition columns change"):
        stage_replacement(warehouse, "d.t", definition("id BIGINT, name STRING", partition_by=["name"]))
    assert isinstance(stage_replacement(warehouse, "d.t", definition("id BIGINT")), NewState)


def test_after_a_fault_rows_and_columns_are_old_or_new(warehouse: DirectoryBackend, definition: Define) -> None:
    """Each storage call of a replacement fails in each way; a table with rows under other columns is not left."""
    warehouse.create_database("d")
    counted = _replaced_with(warehouse, definition, "d.counted", None, 0)
    assert counted.call_count > 10
    old, new = [{"id": 1, "name": "old"}], [{"id": 2, "price": 1.5}]
    torn = 0
    for fault in (Fault.REFUSED, Fault.ANSWER_LOST, Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        for at in range(counted.call_count):
            name = f"d.{fault.value}_{at}"
            _replaced_with(warehouse, definition, name, fault, at)
            table = Catalog(warehouse.location).load_table(name)
            found = table.to_arrow().to_pylist()
            assert table.to_arrow(snapshot_id=1).to_pylist() == old
            if found not in (old, new):
                # A process that dies between the put of the schema and that of the snapshot.
                assert found == [{"id": 1, "price": None}]
                torn += 1
                assert fault in {Fault.CRASH_BEFORE, Fault.CRASH_AFTER}
    assert torn <= 4


def _replaced_with(
    warehouse: DirectoryBackend, definition: Define, name: str, fault: Fault | None, at: int
) -> FailingFileIO:
    table = Catalog(warehouse.location).create_table(name, "id BIGINT, name STRING")
    table.append([{"id": 1, "name": "old"}])
    staged = stage_replacement(warehouse, name, definition("id BIGINT, price DOUBLE"))
    assert isinstance(staged, NewState)
    messages = write(staged, id=[2], price=[1.5])
    failing = FailingFileIO(warehouse.file_io, fault, at)
    staged = replace(
        staged,
        ref=replace(staged.ref, file_io=failing),
        base=replace(staged.base, file_io=failing),
    )
    with suppress(BaseException):
        commit_staged(staged, staged.ref, messages)
    return failing


@pytest.mark.usefixtures("full")
def test_options_of_the_write_reach_the_commit(shop: DirectoryBackend, definition: Define) -> None:
    staged = stage_replacement(shop, "d.t", definition("id BIGINT"))
    messages = write(staged, id=[2])
    commit_staged(staged, staged.ref.with_options({"commit.user-prefix": "nightly"}), messages)
    assert load_latest_schema(shop.file_io, staged.ref.location, "d.t").field_names == ("id",)
    user = Catalog(shop.location).load_table("d.t").latest_snapshot()
    assert user is not None
    assert user.commit_user.startswith("nightly_")
    assert shop.load_table("d.t").schema.id == 1
