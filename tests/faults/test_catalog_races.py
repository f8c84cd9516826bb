"""Several writers of schemas at once, and a storage that fails in the middle."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.starting_line import run_together

from penstock.catalog.changes import AddColumn, RenameColumn, SetOption
from penstock.catalog.directory import DirectoryBackend
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.place import list_schema_ids, load_schema
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import AlreadyExistsError, NotFoundError, StorageError
from penstock.format.schema import iter_fields
from penstock.format.snapshot import CommitKind, Snapshot, encode_snapshot
from penstock.format.types.ddl import parse_columns
from penstock.io.memory import MemoryFileIO
from penstock.testing.file_io import MUTATIONS, FailingFileIO, Fault, Operation, ProcessDiedError

THREADS = 6
CHANGES_EACH = 12


def _definition(columns: str = "a INT, b STRING") -> TableDefinition:
    return TableDefinition(columns=parse_columns(columns))


def _shop(location: str) -> DirectoryBackend:
    warehouse = open_warehouse(location)
    warehouse.create_database("shop")
    return warehouse


def _assert_nothing_lost(warehouse: DirectoryBackend, added: set[str], last_id: int) -> None:
    ref = warehouse.load_table("shop.orders")
    assert set(ref.schema.field_names) == {"a", "b"} | added
    ids = [field.id for field in iter_fields(ref.schema.fields)]
    assert len(set(ids)) == len(ids)
    assert ref.schema.highest_field_id == max(ids)
    assert ref.schema.id == last_id
    assert list_schema_ids(ref.file_io, ref.location) == tuple(range(last_id + 1))


def _together(work: Callable[[int], None], count: int) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(me: int) -> None:
        start.wait()
        try:
            work(me)
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(me,)) for me in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def test_threads_that_alter_one_table_lose_no_change(tmp_path: Path) -> None:
    warehouse = _shop(str(tmp_path))
    warehouse.create_table("shop.orders", _definition())

    def work(me: int) -> None:
        for number in range(CHANGES_EACH):
            ref = warehouse.alter_table("shop.orders", [AddColumn(column=f"c{me}_{number}", type="ROW<x INT>")])
            assert f"c{me}_{number}" in ref.schema.field_names

    _together(work, THREADS)
    added = {f"c{me}_{number}" for me in range(THREADS) for number in range(CHANGES_EACH)}
    _assert_nothing_lost(warehouse, added, THREADS * CHANGES_EACH)


def test_of_threads_that_rename_one_column_each_name_was_there_once(tmp_path: Path) -> None:
    warehouse = _shop(str(tmp_path))
    warehouse.create_table("shop.orders", _definition())
    outcomes: list[str] = []

    def work(me: int) -> None:
        try:
            warehouse.alter_table("shop.orders", [RenameColumn(column="a", new_name=f"a{me}")])
            outcomes.append(f"a{me}")
        except NotFoundError:
            outcomes.append("")

    _together(work, THREADS)
    ref = warehouse.load_table("shop.orders")
    winners = [name for name in outcomes if name]
    assert len(winners) == 1
    assert ref.schema.field_names == (winners[0], "b")
    assert ref.schema.id == 1


def test_of_threads_that_make_one_table_one_wins(tmp_path: Path) -> None:
    warehouse = _shop(str(tmp_path))
    winners: list[int] = []

    def work(me: int) -> None:
        try:
            warehouse.create_table("shop.orders", _definition(f"mine{me} INT"))
            winners.append(me)
        except AlreadyExistsError:
            returned = warehouse.create_table("shop.orders", _definition(f"mine{me} INT"), if_not_exists=True)
            assert returned.schema.field_names != (f"mine{me}",)

    _together(work, THREADS)
    assert len(winners) == 1
    assert warehouse.load_table("shop.orders").schema.field_names == (f"mine{winners[0]}",)


PROCESS = """
import json, sys, time
from penstock.catalog.changes import AddColumn, SetOption
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.warehouse import open_warehouse
from penstock.errors import AlreadyExistsError
from penstock.format.types.ddl import parse_columns

location, me, count, what = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
warehouse = open_warehouse(location)
print("ready", flush=True)
start = float(sys.stdin.readline())
while time.monotonic() < start:
    pass
done = []
for number in range(count):
    if what == "alter":
        change = AddColumn(column=f"{me}_{number}", type="INT")
        done.append(warehouse.alter_table("shop.orders", [change]).schema.id)
    else:
        while time.monotonic() < start + number * 0.004:
            pass
        try:
            warehouse.create_table(f"shop.t{number}", TableDefinition(columns=parse_columns(f"{me} INT")))
            done.append(number)
        except AlreadyExistsError:
            pass
print(json.dumps(done))
"""


def _in_processes(location: str, names: list[str], count: int, what: str) -> list[list[int]]:
    return run_together(PROCESS, [(location, name, str(count), what) for name in names])


def test_processes_that_alter_one_table_lose_no_change(tmp_path: Path) -> None:
    warehouse = _shop(str(tmp_path))
    warehouse.create_table("shop.orders", _definition())
    count = 60
    made = _in_processes(str(tmp_path), ["p", "q"], count, "alter")
    added = {f"{name}_{number}" for name in "pq" for number in range(count)}
    _assert_nothing_lost(warehouse, added, 2 * count)
    assert sorted(made[0] + made[1]) == list(range(1, 2 * count + 1))
    # One after the other would prove nothing.
    assert min(made[1]) < max(made[0])
    assert min(made[0]) < max(made[1])


def test_of_processes_that_create_one_table_one_wins_and_its_columns_are_kept(tmp_path: Path) -> None:
    warehouse = _shop(str(tmp_path))
    count = 100
    names = ["p", "q", "r"]
    won = _in_processes(str(tmp_path), names, count, "create")
    assert sorted(number for numbers in won for number in numbers) == list(range(count))
    assert sum(bool(numbers) for numbers in won) > 1
    for name, numbers in zip(names, won, strict=True):
        for number in numbers:
            ref = warehouse.load_table(f"shop.t{number}")
            assert ref.schema.field_names == (name,)
            assert list_schema_ids(ref.file_io, ref.location) == (0,)


# Faults


@pytest.fixture
def warehouse() -> Iterator[DirectoryBackend]:
    file_io = MemoryFileIO("catalog-faults")
    file_io.discard()
    yield DirectoryBackend(location="memory://catalog-faults/warehouse", file_io=file_io)
    file_io.discard()


FILES = {
    "snapshot/snapshot-1": encode_snapshot(
        Snapshot(
            id=1,
            schema_id=1,
            total_record_count=0,
            delta_record_count=0,
            base_manifest_list="list-0",
            delta_manifest_list="list-1",
            commit_user="user",
            commit_identifier=1,
            commit_kind=CommitKind.APPEND,
            time_millis=0,
        )
    ),
    "manifest/manifest-1": b"manifest",
    "bucket-0/data-1.parquet": b"data",
}


def _fill(warehouse: DirectoryBackend) -> None:
    warehouse.create_database("shop")
    warehouse.create_database("archive")
    ref = warehouse.create_table("shop.orders", _definition())
    warehouse.alter_table("shop.orders", [AddColumn(column="c", type="INT")])
    for name, content in FILES.items():
        warehouse.file_io.write(f"{ref.location}/{name}", content)


def _tables(warehouse: DirectoryBackend) -> dict[str, tuple[str, ...]]:
    """Columns of every table that can be seen; a table that is there but not whole fails the test."""
    found = {}
    for database in warehouse.list_databases():
        for table in warehouse.list_tables(database):
            name = f"{database}.{table}"
            ref = warehouse.load_table(name)
            ids = list_schema_ids(ref.file_io, ref.location)
            assert ids == tuple(range(ref.schema.id + 1))
            for schema_id in ids:
                load_schema(ref.file_io, ref.location, schema_id)
            if "c" in ref.schema.field_names:
                for part, content in FILES.items():
                    assert ref.file_io.read(f"{ref.location}/{part}") == content
            found[name] = ref.schema.field_names
    return found


def _create(warehouse: DirectoryBackend) -> None:
    warehouse.create_table("shop.new", _definition("n INT"))


def _alter(warehouse: DirectoryBackend) -> None:
    warehouse.alter_table("shop.orders", [AddColumn(column="d", type="INT"), SetOption(key="write-only", value="true")])


def _rename(warehouse: DirectoryBackend) -> None:
    warehouse.rename_table("shop.orders", "archive.old")


def _drop(warehouse: DirectoryBackend) -> None:
    warehouse.drop_table("shop.orders")


def _drop_database(warehouse: DirectoryBackend) -> None:
    warehouse.drop_database("shop", cascade=True)


def _create_database(warehouse: DirectoryBackend) -> None:
    warehouse.create_database("new")


BEFORE = {"shop.orders": ("a", "b", "c")}
OPERATIONS: list[tuple[Callable[[DirectoryBackend], None], dict[str, tuple[str, ...]], int]] = [
    (_create, {**BEFORE, "shop.new": ("n",)}, 4),
    (_alter, {"shop.orders": ("a", "b", "c", "d")}, 5),
    (_rename, {"archive.old": ("a", "b", "c")}, 3),
    (_drop, {}, 5),
    (_drop_database, {}, 7),
    (_create_database, BEFORE, 4),
]


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize(
    ("operation", "after", "least_calls"), OPERATIONS, ids=lambda value: getattr(value, "__name__", "")
)
def test_an_operation_that_fails_anywhere_has_happened_or_not(
    operation: Callable[[DirectoryBackend], None],
    after: dict[str, tuple[str, ...]],
    least_calls: int,
    fault: Fault,
    warehouse: DirectoryBackend,
) -> None:
    _fill(warehouse)
    counting = FailingFileIO(warehouse.file_io)
    operation(replace(warehouse, file_io=counting))
    assert counting.call_count >= least_calls
    assert _tables(warehouse) == after
    for call in range(1, counting.call_count + 1):
        _restart(warehouse)
        failing = FailingFileIO(warehouse.file_io, fault, call)
        fails = (StorageError, ProcessDiedError)
        if fault is Fault.ANSWER_LOST and counting.calls[call - 1].operation is Operation.PUT_IF_ABSENT:
            expected: AbstractContextManager[Any] = nullcontext()  # the file is read back
        else:
            expected = suppress(*fails) if _forgives(operation, counting, call) else pytest.raises(fails)
        with expected:
            operation(replace(warehouse, file_io=failing))
        found = _tables(warehouse)
        assert found in (BEFORE, after), f"call {call}: {counting.calls[call - 1]}"
        _finish(operation, warehouse, found == after)
        assert _tables(warehouse) == after, f"again after call {call}: {counting.calls[call - 1]}"


def _restart(warehouse: DirectoryBackend) -> None:
    file_io: Any = warehouse.file_io
    file_io.discard()
    _fill(warehouse)


def _finish(operation: Callable[[DirectoryBackend], None], warehouse: DirectoryBackend, happened: bool) -> None:  # noqa: FBT001
    """Do it again, as a user would who does not know whether it happened."""
    try:
        operation(warehouse)
    except (AlreadyExistsError, NotFoundError):
        assert happened


def _forgives(operation: Callable[[DirectoryBackend], None], counting: FailingFileIO, call: int) -> bool:
    """Whether the call only tidies up after a drop, so that its failure is left for the next time."""
    renames = [number for number, each in enumerate(counting.calls, 1) if each.operation is Operation.RENAME_DIR]
    return operation in (_drop, _drop_database) and call > renames[0] + 1


def test_what_a_crashed_drop_left_is_deleted_by_the_next(warehouse: DirectoryBackend) -> None:
    _fill(warehouse)
    warehouse.create_table("shop.other", _definition())
    failing = FailingFileIO(warehouse.file_io)
    replace(warehouse, file_io=failing).drop_table("shop.orders")
    renamed = [number for number, call in enumerate(failing.calls, 1) if call.operation is Operation.RENAME_DIR]
    _restart(warehouse)
    warehouse.create_table("shop.other", _definition())
    with pytest.raises(ProcessDiedError):
        replace(warehouse, file_io=FailingFileIO(warehouse.file_io, Fault.CRASH_AFTER, renamed[0])).drop_table(
            "shop.orders"
        )
    trash = f"{warehouse.location}/.dropped"
    assert warehouse.file_io.exists(trash)
    assert _tables(warehouse) == {"shop.other": ("a", "b")}
    warehouse.create_table("shop.orders", _definition("fresh INT"))
    warehouse.drop_table("shop.other")
    assert not warehouse.file_io.exists(trash)
    assert _tables(warehouse) == {"shop.orders": ("fresh",)}


def test_a_failed_creation_leaves_nothing_but_what_it_was_to_make(warehouse: DirectoryBackend) -> None:
    _fill(warehouse)
    counting = FailingFileIO(warehouse.file_io)
    _create(replace(warehouse, file_io=counting))
    written = [call for call in counting.calls if call.operation in MUTATIONS]
    assert [(call.operation, call.path.removeprefix(warehouse.location)) for call in written] == [
        (Operation.PUT_IF_ABSENT, "/shop.db/new/schema/schema-0")
    ]
