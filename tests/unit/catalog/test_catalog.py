"""Databases and tables on storage."""

import errno
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.changes import AddColumn, RenameColumn, SchemaChange, SetOption, UpdateColumnType
from penstock.catalog.directory import DirectoryBackend
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.place import load_location
from penstock.catalog.selection import select_tables
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    InvalidSchemaError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from penstock.format.layout import TableLayout, table_path
from penstock.format.schema import decode_schema, encode_schema
from penstock.format.snapshot import CommitKind
from penstock.format.types.ddl import parse_columns
from penstock.io.file_io import FileIO
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.compact.write import open_appender
from penstock.table.write.writer import write_arrow
from penstock.testing.file_io import RecordingFileIO

GOLDEN = Path(__file__).parents[2] / "golden/data/warehouse"
Define = Callable[..., TableDefinition]


def _files(file_io: FileIO, path: str) -> list[str]:
    found: list[str] = []
    for status in file_io.list(path):
        found += _files(file_io, status.path) if status.is_dir else [status.path]
    return found


def _below(warehouse: DirectoryBackend) -> list[str]:
    return [path.removeprefix(warehouse.location + "/") for path in _files(warehouse.file_io, warehouse.location)]


@pytest.fixture
def shop(warehouse: DirectoryBackend, definition: Define) -> DirectoryBackend:
    warehouse.create_database("shop")
    warehouse.create_table("shop.orders", definition("a INT, dt STRING", partition_by=["dt"]))
    return warehouse


@pytest.fixture(params=["memory", "local"])
def any_warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> DirectoryBackend:
    if request.param == "local":
        return open_warehouse(str(tmp_path / "warehouse"))
    found: DirectoryBackend = request.getfixturevalue("warehouse")
    return found


def test_an_empty_database_is_there_on_every_storage(any_warehouse: DirectoryBackend) -> None:
    assert any_warehouse.list_databases() == ()
    any_warehouse.create_database("shop")
    any_warehouse.create_database("a")
    assert any_warehouse.list_databases() == ("a", "shop")
    assert any_warehouse.list_tables("shop") == ()
    with pytest.raises(AlreadyExistsError, match="database shop already exists"):
        any_warehouse.create_database("shop")
    any_warehouse.create_database("shop", if_not_exists=True)
    any_warehouse.drop_database("shop")
    assert any_warehouse.list_databases() == ("a",)


def test_an_empty_database_of_a_file_system_is_an_empty_directory(tmp_path: Path) -> None:
    open_warehouse(str(tmp_path)).create_database("shop")
    assert [path.name for path in tmp_path.rglob("*")] == ["shop.db"]


def test_a_file_is_not_a_warehouse_without_databases(tmp_path: Path) -> None:
    file = tmp_path / "orders.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(InvalidOptionError, match=r"the warehouse .*orders\.parquet is a file: give the directory"):
        open_warehouse(str(file)).list_databases()


def test_a_database_survives_its_last_table(any_warehouse: DirectoryBackend, definition: Define) -> None:
    any_warehouse.create_database("shop")
    any_warehouse.create_table("shop.orders", definition("a INT"))
    any_warehouse.drop_table("shop.orders")
    assert any_warehouse.list_databases() == ("shop",)
    assert any_warehouse.list_tables("shop") == ()


def test_a_database_with_tables_is_dropped_only_with_cascade(shop: DirectoryBackend) -> None:
    with pytest.raises(InvalidOptionError, match=r"it has orders;.*cascade"):
        shop.drop_database("shop")
    assert shop.list_tables("shop") == ("orders",)
    shop.drop_database("shop", cascade=True)
    assert _below(shop) == []
    with pytest.raises(NotFoundError, match="database shop does not exist"):
        shop.drop_database("shop")
    shop.drop_database("shop", if_exists=True)


@pytest.mark.parametrize("name", ["", " ", "sys", "a/b", ".."])
def test_a_database_needs_a_proper_name(name: str, warehouse: DirectoryBackend) -> None:
    for call in (warehouse.create_database, warehouse.drop_database, warehouse.list_tables):
        with pytest.raises(InvalidSchemaError, match="database name"):
            call(name)
    assert _below(warehouse) == []


def test_directories_whose_names_no_catalog_takes_are_not_listed(tmp_path: Path, definition: Define) -> None:
    warehouse = open_warehouse(str(tmp_path))
    warehouse.create_database("shop")
    warehouse.create_table("shop.orders", definition("id INT"))
    shutil.copytree(tmp_path / "shop.db" / "orders", tmp_path / "shop.db" / "or\x1b[31mders")
    shutil.copytree(tmp_path / "shop.db", tmp_path / "sh\nop.db")
    assert warehouse.list_databases() == ("shop",)
    assert warehouse.list_tables("shop") == ("orders",)
    assert select_tables(warehouse) == ("shop.orders",)
    warehouse.drop_table("shop.orders")
    with pytest.raises(InvalidOptionError, match="not empty"):
        warehouse.drop_database("shop")


def test_a_new_table_is_its_first_schema_and_nothing_else(any_warehouse: DirectoryBackend, definition: Define) -> None:
    any_warehouse.create_database("shop")
    ref = any_warehouse.create_table("shop.orders", definition("a INT", comment="x", options={"write-only": "true"}))
    files = [path for path in _below(any_warehouse) if not path.endswith("/.database")]
    assert files == ["shop.db/orders/schema/schema-0"]
    assert (ref.name, ref.schema.id, ref.schema.comment) == ("shop.orders", 0, "x")
    assert ref.location == f"{any_warehouse.location}/shop.db/orders"
    assert any_warehouse.load_table("shop.orders") == ref
    assert load_location(ref.location) == replace(ref, name=ref.location)
    assert any_warehouse.list_tables("shop") == ("orders",)


def test_a_table_can_lie_anywhere(warehouse: DirectoryBackend, definition: Define, tmp_path: Path) -> None:
    location = str(tmp_path / "some" / "table")
    ref = warehouse.create_table(location, definition("a INT"))
    assert (ref.name, ref.location) == (location, location)
    assert warehouse.load_table(f"file://{location}").schema == ref.schema
    warehouse.drop_table(location)
    assert [path.name for path in tmp_path.rglob("*")] == ["some"]


def test_a_second_table_of_that_name_is_refused_or_returned(shop: DirectoryBackend, definition: Define) -> None:
    with pytest.raises(AlreadyExistsError, match=r"table shop\.orders already exists"):
        shop.create_table("shop.orders", definition("b INT"))
    ref = shop.create_table("shop.orders", definition("b INT"), if_not_exists=True)
    assert ref.schema.field_names == ("a", "dt")


def test_a_table_needs_a_database(warehouse: DirectoryBackend, definition: Define) -> None:
    with pytest.raises(NotFoundError, match=r"database shop does not exist.*create it first"):
        warehouse.create_table("shop.orders", definition("a INT"))
    assert _below(warehouse) == []
    warehouse.create_database("shop")
    with pytest.raises(NotFoundError, match=r"database shp does not exist.*did you mean shop\?"):
        warehouse.create_table("shp.orders", definition("a INT"))
    with pytest.raises(NotFoundError, match=r"database other does not exist in \S+ \(there: shop\)$"):
        warehouse.drop_database("other")


def test_a_table_that_cannot_be_leaves_nothing_on_storage(warehouse: DirectoryBackend, definition: Define) -> None:
    warehouse.create_database("shop")
    recording = RecordingFileIO(warehouse.file_io)
    watched = replace(warehouse, file_io=recording)
    for bad in (
        definition("a INT, a INT"),
        definition("a INT", options={"bucket": "2"}),
        definition("a INT", options={"primary-key": "a"}),
        definition("a INT", watermark=("a", "INTERVAL '5' SECOND")),
    ):
        with pytest.raises((InvalidSchemaError, InvalidOptionError, UnsupportedFeatureError)):
            watched.create_table("shop.orders", bad)
    assert {call.operation for call in recording.calls} <= {"list", "exists"}


def test_the_catalog_options_reach_new_tables(warehouse: DirectoryBackend, definition: Define) -> None:
    defaulting = replace(warehouse, options=(("table-default.bucket", "1"),))
    defaulting.create_database("shop")
    assert defaulting.create_table("shop.orders", definition("a INT")).options["bucket-key"] == "a"


def test_what_is_not_there_is_not_found(shop: DirectoryBackend) -> None:
    with pytest.raises(NotFoundError, match=r"table shop\.nope does not exist"):
        shop.load_table("shop.nope")
    with pytest.raises(NotFoundError, match="database nope does not exist"):
        shop.load_table("nope.orders")
    with pytest.raises(NotFoundError, match="database nope does not exist"):
        shop.list_tables("nope")
    with pytest.raises(NotFoundError, match=r"shop\.nope"):
        shop.drop_table("shop.nope")
    shop.drop_table("shop.nope", if_exists=True)
    with pytest.raises(NotFoundError, match=r"shop\.nope"):
        shop.rename_table("shop.nope", "shop.other")
    with pytest.raises(NotFoundError, match=r"shop\.nope"):
        shop.alter_table("shop.nope", [SetOption(key="write-only", value="true")])
    with pytest.raises(InvalidSchemaError, match="system tables"):
        shop.load_table("shop.orders$snapshots")


def test_the_latest_schema_is_the_highest_number(shop: DirectoryBackend) -> None:
    for number in range(12):
        shop.alter_table("shop.orders", [AddColumn(column=f"c{number}", type="INT")])
    assert shop.load_table("shop.orders").schema.id == 12


def test_a_directory_without_a_schema_is_no_table(shop: DirectoryBackend) -> None:
    shop.file_io.write(f"{shop.location}/shop.db/stray/data/file", b"x")
    shop.file_io.write(f"{shop.location}/shop.db/notes.txt", b"x")
    assert shop.list_tables("shop") == ("orders",)


def test_a_damaged_schema_names_its_file(shop: DirectoryBackend) -> None:
    shop.file_io.write(TableLayout(f"{shop.location}/shop.db/orders").schema_path(1), b"")
    with pytest.raises(FormatError, match=r"orders/schema/schema-1"):
        shop.load_table("shop.orders")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"primary_keys": ("a",)}, UnsupportedFeatureError),
        ({"options": (("type", "format-table"),)}, UnsupportedFeatureError),
        ({"options": (("bucket", "-2"),)}, InvalidOptionError),
        ({"partition_keys": ("z",)}, InvalidSchemaError),
    ],
)
def test_a_table_that_breaks_a_rule_is_not_loaded(
    change: dict[str, object], error: type[Exception], shop: DirectoryBackend
) -> None:
    schema = replace(shop.load_table("shop.orders").schema, **change)
    shop.file_io.write(TableLayout(table_path(shop.location, "shop", "orders")).schema_path(0), encode_schema(schema))
    with pytest.raises(error, match=r"shop\.orders"):
        shop.load_table("shop.orders")


def test_a_queue_of_the_first_releases_is_loaded(shop: DirectoryBackend) -> None:
    path = TableLayout(table_path(shop.location, "shop", "old")).schema_path(0)
    old = b'{"id": 0, "fields": [{"id": 0, "name": "a", "type": "INT"}], "highestFieldId": 0,'
    shop.file_io.write(path, old + b' "partitionKeys": [], "primaryKeys": [], "options": {}}')
    ref = shop.load_table("shop.old")
    assert (ref.options["bucket"], ref.options["file.format"]) == ("1", "orc")


def test_every_golden_table_is_loaded() -> None:
    golden = open_warehouse(str(GOLDEN))
    names = [f"{database}.{table}" for database in golden.list_databases() for table in golden.list_tables(database)]
    assert len(names) > 50
    for name in names:
        assert golden.load_table(name).name == name


def test_a_dropped_table_is_gone_with_all_its_files(any_warehouse: DirectoryBackend, definition: Define) -> None:
    any_warehouse.create_database("shop")
    ref = any_warehouse.create_table("shop.orders", definition("a INT"))
    any_warehouse.file_io.write(f"{ref.location}/bucket-0/data-1.parquet", b"x")
    any_warehouse.drop_table("shop.orders")
    assert not any_warehouse.file_io.exists(ref.location)
    assert not any_warehouse.file_io.exists(f"{any_warehouse.location}/.dropped")
    any_warehouse.create_table("shop.orders", definition("b INT"))
    assert any_warehouse.load_table("shop.orders").schema.field_names == ("b",)


def test_what_a_late_writer_leaves_of_a_dropped_table_is_not_taken_for_rows_of_the_next(
    shop: DirectoryBackend, definition: Define
) -> None:
    location = shop.load_table("shop.orders").location
    shop.drop_table("shop.orders")
    shop.file_io.write(TableLayout(location).snapshot_path(7), b"{}")
    assert shop.list_tables("shop") == ()
    with pytest.raises(FormatError, match=r"has snapshots, but no schema.*delete .* with the tools of the storage"):
        shop.create_table("shop.orders", definition("b INT"))
    shop.file_io.delete(location, recursive=True)
    shop.create_table("shop.orders", definition("b INT"))


@pytest.mark.parametrize("lost", ["schema", "schema and snapshot"])
def test_a_table_whose_schemas_are_lost_is_neither_created_nor_dropped(
    shop: DirectoryBackend, definition: Define, lost: str
) -> None:
    ref = shop.load_table("shop.orders")
    commit_append(open_appender(ref), write_arrow(ref, pa.table({"a": pa.array([1], pa.int32()), "dt": ["x"]})))
    for name in lost.split(" and "):
        shop.file_io.delete(f"{ref.location}/{name}", recursive=True)
    files = _below(shop)
    for call in (
        lambda: shop.load_table("shop.orders"),
        lambda: shop.create_table("shop.orders", definition("a INT")),
        lambda: shop.create_table("shop.orders", definition("a INT"), if_not_exists=True),
        lambda: shop.drop_table("shop.orders"),
        lambda: shop.drop_table("shop.orders", if_exists=True),
        lambda: shop.drop_database("shop"),
        lambda: shop.drop_database("shop", cascade=True),
    ):
        with pytest.raises(FormatError, match=r"table shop.orders has .*, but no schema file .*: restore the files"):
            call()
    assert _below(shop) == files


def test_data_files_without_metadata_are_dropped(shop: DirectoryBackend, definition: Define) -> None:
    location = shop.load_table("shop.orders").location
    shop.drop_table("shop.orders")
    shop.file_io.write(f"{location}/bucket-0/data-0.parquet", b"x")
    with pytest.raises(AlreadyExistsError, match=r"holds bucket-0 but no schema.*drop_table removes it"):
        shop.create_table("shop.orders", definition("b INT"))
    shop.drop_table("shop.orders")
    shop.create_table("shop.orders", definition("b INT"))


def test_a_directory_that_is_no_table_is_not_dropped_by_its_path(warehouse: DirectoryBackend, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(NotFoundError, match="photos"):
        warehouse.drop_table(str(tmp_path / "photos"))
    assert (tmp_path / "photos").is_dir()


def test_a_renamed_table_takes_everything_along(any_warehouse: DirectoryBackend, definition: Define) -> None:
    any_warehouse.create_database("shop")
    any_warehouse.create_database("archive")
    ref = any_warehouse.create_table("shop.orders", definition("a INT"))
    any_warehouse.file_io.write(f"{ref.location}/bucket-0/data-1.parquet", b"x")
    any_warehouse.rename_table("shop.orders", "archive.old")
    moved = any_warehouse.load_table("archive.old")
    assert moved.schema == ref.schema
    assert any_warehouse.file_io.read(f"{moved.location}/bucket-0/data-1.parquet") == b"x"
    assert any_warehouse.list_tables("shop") == ()


def test_a_table_is_not_renamed_onto_another_or_out_of_the_warehouse(
    shop: DirectoryBackend, definition: Define
) -> None:
    shop.create_table("shop.other", definition("b INT"))
    with pytest.raises(AlreadyExistsError, match=r"shop\.orders to shop\.other"):
        shop.rename_table("shop.orders", "shop.other")
    with pytest.raises(AlreadyExistsError):
        shop.rename_table("shop.orders", "shop.orders")
    with pytest.raises(NotFoundError, match="database nope"):
        shop.rename_table("shop.orders", "nope.orders")
    with pytest.raises(InvalidSchemaError, match=r"must be database\.table"):
        shop.rename_table("shop.orders", "/elsewhere")
    assert shop.list_tables("shop") == ("orders", "other")


def test_an_alteration_is_one_new_schema_file(shop: DirectoryBackend) -> None:
    before = _below(shop)
    changes: list[SchemaChange] = [
        AddColumn(column="b", type="INT"),
        RenameColumn(column="b", new_name="c"),
        SetOption(key="write-only", value="true"),
    ]
    ref = shop.alter_table("shop.orders", changes)
    assert set(_below(shop)) - set(before) == {"shop.db/orders/schema/schema-1"}
    path = ref.layout.schema_path(1)
    assert decode_schema(shop.file_io.read(path), path) == ref.schema == shop.load_table("shop.orders").schema
    assert ref.schema.field_names == ("a", "dt", "c")
    again = shop.alter_table("shop.orders", [SetOption(key="write-only", value="true")])
    assert again == ref
    assert len(_below(shop)) == len(before) + 1


def test_a_refused_alteration_writes_nothing(shop: DirectoryBackend) -> None:
    before = _below(shop)
    with pytest.raises(NotFoundError, match="no column 'z'"):
        shop.alter_table("shop.orders", [AddColumn(column="b", type="INT"), RenameColumn(column="z", new_name="y")])
    assert _below(shop) == before


def test_the_layout_is_fixed_by_the_first_snapshot_on_storage(shop: DirectoryBackend) -> None:
    changes = [SetOption(key="bucket", value="2"), SetOption(key="bucket-key", value="a")]
    open_committer(shop.load_table("shop.orders")).commit(
        CommitRequest(commit_user="user", kind=CommitKind.APPEND, messages=(), commit_empty=True)
    )
    with pytest.raises(InvalidOptionError, match="once there are snapshots"):
        shop.alter_table("shop.orders", changes)


def test_a_type_must_be_reachable_from_every_type_that_rows_were_written_with(
    warehouse: DirectoryBackend, definition: Define
) -> None:
    warehouse.create_database("shop")
    warehouse.create_table("shop.orders", definition("a INT, r ROW<x INT>, l ARRAY<INT>"))
    path: str | tuple[str, ...]
    for path in ("a", ("r", "x"), ("l", "element")):
        warehouse.alter_table("shop.orders", [UpdateColumnType(column=path, type="STRING", allow_explicit=True)])
        with pytest.raises(InvalidSchemaError, match=r"schema-0 could not be read.*INT to DATE"):
            warehouse.alter_table("shop.orders", [UpdateColumnType(column=path, type="DATE", allow_explicit=True)])
        warehouse.alter_table("shop.orders", [UpdateColumnType(column=path, type="DOUBLE", allow_explicit=True)])
    assert warehouse.load_table("shop.orders").schema.id == 6


class _Racing(RecordingFileIO):
    """Lets somebody else do something just before each of our first few schema files."""

    def __init__(self, inner: FileIO, race: Callable[[int], None], times: int) -> None:
        super().__init__(inner)
        self.race = race
        self.left = times

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self.left:
            self.left -= 1
            self.race(self.left)
        return super().put_if_absent(path, data)


def test_an_alteration_that_lost_the_race_is_applied_to_the_schema_of_the_winner(shop: DirectoryBackend) -> None:
    def race(number: int) -> None:
        shop.alter_table("shop.orders", [AddColumn(column=f"other{number}", type="INT")])

    racing = replace(shop, file_io=_Racing(shop.file_io, race, 3))
    ref = racing.alter_table("shop.orders", [AddColumn(column="ours", type="INT")])
    assert ref.schema.field_names == ("a", "dt", "other2", "other1", "other0", "ours")
    assert len({field.id for field in ref.schema.fields}) == 6
    assert ref.schema.id == 4


def test_an_alteration_that_lost_the_race_is_checked_again(shop: DirectoryBackend) -> None:
    def race(_: int) -> None:
        shop.alter_table("shop.orders", [AddColumn(column="ours", type="INT")])

    racing = replace(shop, file_io=_Racing(shop.file_io, race, 1))
    with pytest.raises(AlreadyExistsError, match="'ours' already"):
        racing.alter_table("shop.orders", [AddColumn(column="ours", type="STRING")])


def test_an_alteration_does_not_bring_a_dropped_table_back(shop: DirectoryBackend) -> None:
    racing = replace(shop, file_io=_Racing(shop.file_io, lambda _: shop.drop_table("shop.orders"), 1))
    with pytest.raises(NotFoundError, match="dropped or renamed"):
        racing.alter_table("shop.orders", [AddColumn(column="b", type="INT")])
    assert shop.list_tables("shop") == ()


class _Refusing(RecordingFileIO):
    def put_if_absent(self, path: str, data: bytes) -> bool:
        del path, data
        return False


def test_a_storage_that_always_refuses_is_given_up_on(shop: DirectoryBackend) -> None:
    with pytest.raises(StorageError, match=r"schema-1.*refused"):
        replace(shop, file_io=_Refusing(shop.file_io)).alter_table("shop.orders", [AddColumn(column="b", type="INT")])


def test_a_creator_that_lost_the_race_gets_the_table_of_the_winner(shop: DirectoryBackend, definition: Define) -> None:
    def race(_: int) -> None:
        shop.create_table("shop.new", definition("theirs INT"))

    racing = replace(shop, file_io=_Racing(shop.file_io, race, 1))
    with pytest.raises(AlreadyExistsError, match=r"shop\.new"):
        racing.create_table("shop.new", definition("ours INT"))
    shop.drop_table("shop.new")
    racing = replace(shop, file_io=_Racing(shop.file_io, race, 1))
    ref = racing.create_table("shop.new", definition("ours INT"), if_not_exists=True)
    assert ref.schema.field_names == ("theirs",)
    assert shop.load_table("shop.new").schema == ref.schema


def test_references_are_pickled(shop: DirectoryBackend) -> None:
    ref = shop.load_table("shop.orders")
    assert pickle.loads(pickle.dumps(ref)) == ref
    assert pickle.loads(pickle.dumps(shop)) == shop


def test_a_link_in_the_place_of_schemas_leads_to_no_other_table(tmp_path: Path, definition: Define) -> None:
    warehouse = open_warehouse(str(tmp_path))
    warehouse.create_database("d")
    warehouse.create_table("d.other", definition("a INT"))
    there = tmp_path / "d.db" / "other" / "schema"
    (tmp_path / "d.db" / "linked").mkdir()
    (tmp_path / "d.db" / "linked" / "schema").symlink_to(there)
    with pytest.raises(StorageError, match="symbolic link"):
        warehouse.load_table("d.linked")
    with pytest.raises(StorageError, match="symbolic link"):
        warehouse.alter_table("d.linked", [AddColumn(column="b", type="INT")])
    warehouse.drop_table("d.linked")
    assert [path.name for path in there.iterdir()] == ["schema-0"]


def test_a_name_is_free_where_a_killed_rename_left_an_empty_directory(tmp_path: Path, definition: Define) -> None:
    warehouse = open_warehouse(str(tmp_path))
    warehouse.create_database("d")
    warehouse.create_table("d.old", definition("a INT"))
    for name in ("renamed", "created"):
        (tmp_path / "d.db" / name).mkdir()
    warehouse.rename_table("d.old", "d.renamed")
    warehouse.create_table("d.created", definition("a INT"))
    assert warehouse.list_tables("d") == ("created", "renamed")
    with pytest.raises(AlreadyExistsError):
        warehouse.rename_table("d.created", "d.renamed")


@pytest.mark.parametrize("failures", [1, 2])
def test_a_change_whose_flush_fails_is_flushed_again_or_reported_as_committed(
    tmp_path: Path, definition: Define, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    warehouse = open_warehouse(str(tmp_path / "warehouse"), {"penstock.durable": "true"})
    warehouse.create_database("shop")
    warehouse.create_table("shop.orders", definition("id INT"))
    left = [failures]

    def flush(_path: Path) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(errno.EIO, "the disk fails")

    monkeypatch.setattr("penstock.io.local.sync", flush)
    monkeypatch.setattr("penstock.io.local.sync_tree", lambda _files, root: flush(Path(root)))
    change = AddColumn(column="note", type="STRING")
    if failures == 1:
        assert warehouse.alter_table("shop.orders", [change]).schema.id == 1
    else:
        with pytest.raises(StorageError, match="schema-1 was written and counts, so do not repeat the change"):
            warehouse.alter_table("shop.orders", [change])
    assert [field.name for field in warehouse.load_table("shop.orders").schema.fields] == ["id", "note"]


def test_a_lost_schema_is_no_missing_table(shop: DirectoryBackend) -> None:
    location = shop.load_table("shop.orders").location
    shop.file_io.write(TableLayout(location).snapshot_path(1), b"{}")
    shop.file_io.delete(TableLayout(location).schema_path(0))
    with pytest.raises(FormatError, match=r"shop\.orders has snapshots.*restore.*do not create the table again"):
        shop.load_table("shop.orders")


def test_what_a_late_writer_has_left_in_a_dropped_table_names_its_cure(shop: DirectoryBackend) -> None:
    ref = shop.load_table("shop.orders")
    shop.drop_table("shop.orders")
    ref.file_io.write(ref.layout.snapshot_path(1), b"{}")
    cure = rf"If it was dropped, a job.*stop the job, and delete {ref.location} with the tools of the storage"
    for use in (
        lambda: shop.load_table("shop.orders"),
        lambda: shop.create_table("shop.orders", TableDefinition(columns=parse_columns("id INT"))),
        lambda: shop.drop_table("shop.orders"),
    ):
        with pytest.raises(FormatError, match=cure):
            use()
    shop.file_io.delete(ref.location, recursive=True)
    shop.create_table("shop.orders", TableDefinition(columns=parse_columns("id INT")))


def test_a_table_is_not_created_at_a_relative_path_that_may_be_a_wrong_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    warehouse = open_warehouse(str(tmp_path / "w"))
    definition = TableDefinition(columns=parse_columns("id INT"))
    with pytest.raises(InvalidOptionError, match=r"a table of the warehouse is named 'database.table'.*'./a/t'"):
        warehouse.create_table("a/t", definition)
    assert not (tmp_path / "a").exists()
    assert warehouse.create_table("./a/t", definition).location == str(tmp_path / "a" / "t")
