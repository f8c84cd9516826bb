"""Each operation on a table, stopped before and after each of its calls to storage, refused, and unanswered."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.support.model import by_group

import penstock
from penstock.catalog.changes import AddColumn, SetOption
from penstock.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    NotFoundError,
    StorageError,
    TableStoreError,
)
from penstock.format.row.bucket import bucket_of
from penstock.format.snapshot import ROLLED_BACK_TO, CommitKind
from penstock.format.types.data_types import BIGINT
from penstock.io.memory import MemoryFileIO
from penstock.table.actions.changes import open_committer
from penstock.table.commit import reused_ids
from penstock.table.commit.cleanup import commit_or_discard
from penstock.table.commit.delta import CommitRequest
from penstock.table.read.live import load_live_entries
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore
from penstock.table.write.writer import write_arrow
from penstock.testing.file_io import FailingFileIO, Fault, Operation, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.io.file_io import FileIO
    from penstock.testing.file_io import Call

ROOT: Final = "memory://faults"
CRASHES: Final = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
STORES: Final = itertools.count()

QUEUE: Final = {"bucket": "2", "bucket-key": "k", "manifest.merge-min-count": "2"}
SCALABLE: Final = {"manifest.full-compaction-threshold-size": "1 b"}


def rows(*numbers: int, p: str = "a") -> pa.Table:
    return pa.table({"k": pa.array(numbers, pa.int64()), "p": [p] * len(numbers)})


@dataclass(slots=True)
class Process:
    """One process with handles of its own on the shared storage; its first call to storage is the operation's."""

    file_io: FailingFileIO
    catalog: penstock.Catalog
    table: penstock.Table

    @staticmethod
    def start(storage: MemoryFileIO) -> Process:
        file_io = FailingFileIO(storage)
        catalog = penstock.Catalog(ROOT)
        catalog._warehouse = replace(catalog._warehouse, file_io=file_io)
        process = Process(file_io, catalog, catalog.load_table("db.t"))
        file_io.forget()
        return process

    def commit_batch(self) -> None:
        """A micro-batch of a stream: done again it must find itself landed."""
        ref = self.table._ref
        request = CommitRequest(
            commit_user="query",
            kind=CommitKind.APPEND,
            commit_identifier=8,
            messages=write_arrow(ref, rows(70, 71)),
            check_committed=True,
        )
        commit_or_discard(open_committer(ref), request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An operation.

    Attributes:
        least_calls: the test is worth something only while there are so many calls to fail.
        is_commit: makes a snapshot, so that an error (but ``CommitUnknownError``) means that nothing happened.
        is_idempotent: done again after it happened, it changes nothing and raises nothing.
    """

    name: str
    run: Callable[[Process], Any]
    options: Mapping[str, str]
    least_calls: int = 5
    is_commit: bool = False
    is_idempotent: bool = True


CASES: Final = (
    Case(
        name="create table",
        run=lambda process: process.catalog.create_table("db.new", "n INT"),
        options=QUEUE,
        least_calls=4,  # is the database there, is the table there, is the place vacant, put the schema
        is_idempotent=False,
    ),
    Case(
        name="append to a queue",
        run=lambda process: process.table.append(rows(50, 51)),
        options=QUEUE,
        is_commit=True,
        is_idempotent=False,
    ),
    Case(
        name="append to a scalable table",
        run=lambda process: process.table.append(rows(50, 51)),
        options=SCALABLE,
        is_commit=True,
        is_idempotent=False,
    ),
    Case(name="commit a micro-batch", run=Process.commit_batch, options=QUEUE, is_commit=True),
    Case(
        name="overwrite partitions of a queue",
        run=lambda process: process.table.overwrite(rows(50, 51)),
        options=QUEUE,
        is_commit=True,
    ),
    Case(
        name="overwrite a scalable table",
        run=lambda process: process.table.overwrite(rows(50), partition={}),
        options=SCALABLE,
        is_commit=True,
    ),
    Case(name="truncate", run=lambda process: process.table.truncate(), options=QUEUE, is_commit=True),
    Case(
        name="drop a partition",
        run=lambda process: process.table.drop_partitions({"p": "a"}),
        options=QUEUE,
        is_commit=True,
    ),
    Case(
        name="alter",
        run=lambda process: process.catalog.alter_table(
            "db.t", AddColumn(column="n", type="INT"), SetOption(key="write-only", value="true")
        ),
        options=QUEUE,
        is_idempotent=False,
    ),
    Case(
        name="drop table",
        run=lambda process: process.catalog.drop_table("db.t"),
        options=QUEUE,
        is_idempotent=False,
    ),
    Case(
        name="create tag",
        run=lambda process: process.table.create_tag("t3", snapshot_id=3),
        options=QUEUE,
        least_calls=2,  # read the snapshot, put the tag
        is_idempotent=False,
    ),
    Case(
        name="delete tag",
        run=lambda process: process.table.versions.delete_tag("t2"),
        options=QUEUE,
        least_calls=2,  # read the tag, delete it
        is_idempotent=False,
    ),
    Case(name="roll back", run=lambda process: process.table.rollback_to(snapshot_id=2), options=QUEUE),
    Case(name="roll back to a tag", run=lambda process: process.table.rollback_to(tag="t2"), options=QUEUE),
)


def seed(storage: MemoryFileIO, options: Mapping[str, str]) -> dict[str, bytes]:
    """Files of a table with five snapshots and two tags."""
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"], options=options)
    for number in range(4):
        table.append(rows(number, number + 10, p="ab"[number % 2]))
    ref = table._ref
    request = CommitRequest(
        commit_user="query", kind=CommitKind.APPEND, commit_identifier=7, messages=write_arrow(ref, rows(30))
    )
    commit_or_discard(open_committer(ref), request)
    table.create_tag("t2", snapshot_id=2)
    table.create_tag("t4", snapshot_id=4)
    return {path: storage.read(path) for path in walk(storage, ROOT)}


def walk(storage: FileIO, directory: str) -> Iterator[str]:
    for status in storage.list(directory):
        if status.is_dir:
            yield from walk(storage, status.path)
        else:
            yield status.path


def state(storage: MemoryFileIO) -> dict[str, Any]:
    """What a fresh process finds; looks at every snapshot's every file on the way."""
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    found: dict[str, Any] = {}
    for name in catalog.list_tables("db"):
        table = catalog.load_table(f"db.{name}")
        ids = table._store.list_snapshot_ids()
        latest = table._store.load_latest_snapshot()
        is_rolled_back_halfway = latest is not None and ROLLED_BACK_TO in dict(latest.properties)
        assert is_rolled_back_halfway or ids == tuple(range(1, len(ids) + 1))
        named_files(storage, must_exist=True)
        found[name] = (table.schema.field_names, ids, table._store.list_tags(), by_group(rows_of(table), bucket))
    return found


def rows_of(table: penstock.Table) -> list[dict[str, Any]]:
    found = table.to_arrow()
    latest = table.latest_snapshot()
    assert found.num_rows == ((latest.total_record_count or 0) if latest else 0)
    unordered = table.options.get("bucket", "-1") == "-1"
    return sorted(found.to_pylist(), key=lambda row: row["k"]) if unordered else found.to_pylist()


def bucket(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["p"], bucket_of([row["k"]], [BIGINT], 2)


def named_files(storage: MemoryFileIO, *, must_exist: bool = False) -> set[str]:
    """Manifests and data files that some snapshot or tag of ``db.t`` names."""
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    try:
        ref = catalog.load_table("db.t")._ref
    except NotFoundError:
        return set()
    store, locator = MetadataStore(ref), FileLocator.of(ref)
    named: set[str] = set()
    for snapshot in (*store.snapshots_between(), *(store.load_tag(name).snapshot for name in store.list_tags())):
        names = {snapshot.base_manifest_list, snapshot.delta_manifest_list}
        names |= {meta.file_name for meta in store.load_manifests(snapshot)}
        entries = load_live_entries(store, snapshot).values()
        paths = {f"{ref.location}/manifest/{name}" for name in names}
        paths |= {locator.path(entry.partition, entry.bucket, entry.file) for entry in entries}
        for path in paths if must_exist else ():
            assert storage.exists(path), f"snapshot {snapshot.id} needs {path}"
        named |= paths
    return named


def unnamed_files(storage: MemoryFileIO, known: set[str]) -> set[str]:
    there = {path for path in walk(storage, f"{ROOT}/db.db") if "/manifest/" in path or "/bucket-" in path}
    return there - named_files(storage) - known


def attempt(case: Case, process: Process, fault: Fault, at: int) -> BaseException | None:
    process.file_io.fault, process.file_io.at = fault, at
    try:
        case.run(process)
    except (TableStoreError, ProcessDiedError) as error:
        return error
    finally:
        process.file_io.fault = None
    return None


def check_outcome(
    case: Case, storage: MemoryFileIO, error: BaseException | None, before: dict[str, Any], after: dict[str, Any]
) -> bool:
    """Whether it happened; never half of it, never unknown when it says so."""
    found = state(storage)
    if error is None:
        assert found == after
    elif case.is_commit and not isinstance(error, ProcessDiedError | CommitUnknownError):
        assert found == before
    elif not case.name.startswith("roll back"):
        assert found in (before, after)
    else:  # between the two snapshots and tags go one by one, and nobody sees that in the rows
        assert found["t"][3] in (before["t"][3], after["t"][3])
    return bool(found == after)


def do_again(case: Case, process: Process, *, happened: bool) -> None:
    try:
        case.run(process)
    except (AlreadyExistsError, NotFoundError):
        assert happened
        assert not case.is_idempotent


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer waits for a rollback that goes on beside it; here each one that is left was stopped for good."""
    monkeypatch.setattr(reused_ids, "_CHECK_INTERVAL_SECONDS", 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stopped_at_any_call_an_operation_has_happened_or_not_and_can_be_done_again(
    case: Case,
    new_storage: Callable[[Mapping[str, bytes]], MemoryFileIO],
    faults_at: Callable[[Sequence[Call]], list[tuple[Fault, int]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = seed(new_storage({}), case.options)
    storage = new_storage(files)
    before = state(storage)
    known = named_files(storage)
    clean = Process.start(storage)
    case.run(clean)
    calls = clean.file_io.calls
    after = state(storage)
    assert after != before
    assert unnamed_files(storage, known) == set()
    case_again = new_storage({path: storage.read(path) for path in walk(storage, ROOT)})
    do_again(case, Process.start(case_again) if "t" in after else clean, happened=True)
    twice = state(case_again)
    chosen = faults_at(calls)
    with capsys.disabled():
        print(f"\n{case.name}: {len(calls)} calls to storage, {len(chosen)} faults", end="")  # noqa: T201 - asked for by those who watch the number
    assert len(calls) >= case.least_calls

    for fault, at in chosen:
        storage = new_storage(files)
        process = Process.start(storage)
        error = attempt(case, process, fault, at)
        where = f"{fault} at call {at}, {calls[at - 1]}: {error!r}"
        try:
            happened = check_outcome(case, storage, error, before, after)
            if fault not in CRASHES and not isinstance(error, CommitUnknownError):
                # What a rollback leaves of its two fences is two manifest lists of each.
                assert len(unnamed_files(storage, known)) <= (4 if case.name.startswith("roll back") else 0)
            is_gone = happened and "t" not in after
            again = process if fault not in CRASHES or is_gone else Process.start(storage)
            if not (fault in CRASHES and is_gone):
                do_again(case, again, happened=happened)
            if case.is_idempotent:
                # An overwrite done twice is one snapshot more, of the same rows.
                assert rows_in(state(storage)) == rows_in(after)
            else:
                assert state(storage) == (twice if happened else after)
        except (AssertionError, TableStoreError) as failure:
            failure.add_note(where)
            raise
        storage.discard()


def rows_in(found: dict[str, Any]) -> Any:
    return found["t"][3]


def test_every_fault_of_the_snapshots_own_creation_is_tried() -> None:
    """The call that decides is among those that the test above fails."""
    storage = MemoryFileIO(f"faults-{next(STORES)}")
    seed(storage, QUEUE)
    process = Process.start(storage)
    process.table.append(rows(50))
    puts = [call for call in process.file_io.calls if call.operation is Operation.PUT_IF_ABSENT]
    assert [call.path.rpartition("/")[2] for call in puts] == ["snapshot-6"]
    storage.discard()


class Outage(FailingFileIO):
    """Storage that is down from call ``at`` on; what that call and later ones do may happen all the same."""

    has_effect = False
    has_put = False

    def _call(self, operation: Operation, path: str, effect: Callable[[], Any]) -> Any:
        if not self.at or self._note(operation, path) < self.at:
            self.has_put |= operation is Operation.PUT_IF_ABSENT
            return effect()
        if self.has_effect and operation is Operation.PUT_IF_ABSENT:
            effect()
        raise StorageError(f"{operation} {path}: down", True)  # noqa: FBT003 - positional, so that pickling works


@pytest.mark.parametrize(
    ("case", "has_effect"),
    [
        pytest.param(
            case,
            has_effect,
            id=f"{case.name}-{has_effect}",
            # The put is the same in all: each case once, and one of them in both ways.
            marks=() if has_effect or case.name == "append to a queue" else pytest.mark.slow,
        )
        for case in CASES
        if case.is_commit
        for has_effect in (False, True)
    ],
)
def test_a_storage_that_goes_down_leaves_a_commit_done_undone_or_unknown(
    case: Case,
    has_effect: bool,  # noqa: FBT001 - a parameter of the test
    new_storage: Callable[[Mapping[str, bytes]], MemoryFileIO],
) -> None:
    files = seed(new_storage({}), {**case.options, "commit.max-retries": "1"})
    storage = new_storage(files)
    before = state(storage)
    clean = Process.start(storage)
    case.run(clean)
    after = state(storage)
    unknown = 0
    for at in range(1, len(clean.file_io.calls) + 1):
        storage = new_storage(files)
        process = Process.start(storage)
        outage = Outage(storage, at=at)
        outage.has_effect = has_effect
        process = replace(process, table=penstock.Table(replace(process.table._ref, file_io=outage)))
        try:
            case.run(process)
        except CommitUnknownError:
            unknown += 1
            assert state(storage) == (after if has_effect or outage.has_put else before)
        except StorageError:
            assert state(storage) == before
        else:
            assert state(storage) == after
        storage.discard()
    # The put itself, and the look after it that shows whether it came in time.
    assert unknown == 2
