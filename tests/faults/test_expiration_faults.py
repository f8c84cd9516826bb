"""Expiration and orphan removal, stopped before and after each of their calls to storage, refused, and unanswered."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.support.garbage import needed_files, stored_files, walk

import penstock
from penstock.clocks import utc_millis
from penstock.errors import NotFoundError, TableStoreError
from penstock.format.layout import TableLayout
from penstock.table.store import MetadataStore
from penstock.testing.file_io import FailingFileIO, Fault, Operation, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.io.memory import MemoryFileIO
    from penstock.testing.file_io import Call

ROOT: Final = "memory://expiration-faults"
CRASHES: Final = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
OPTIONS: Final = {
    "manifest.merge-min-count": "3",
    "file-operation.thread-num": "1",  # calls in one order
    "snapshot.clean-empty-directories": "true",
}
STAYING: Final = (6, 7, 8)
FAR: Final = 10**9


def rows(number: int, p: str) -> pa.Table:
    return pa.table({"k": pa.array([number], pa.int64()), "p": [p]})


def load(storage: MemoryFileIO | FailingFileIO) -> penstock.Table:
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    return catalog.load_table("db.t")


def seed(storage: MemoryFileIO) -> None:
    """Eight snapshots; every other one replaces a partition, the third is tagged, a consumer stands at the seventh."""
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"], options=OPTIONS)
    for number in range(1, 8):
        write = table.overwrite if number % 2 else table.append
        write(rows(number, "abc"[number % 3]))
        if number == 3:
            table.create_tag("third")
    table.drop_partitions({"p": "c"})
    storage.write(TableLayout(table.location).consumer_path("reader"), b'{"nextSnapshot": 7}')


def expire(table: penstock.Table) -> Any:
    return table.expire_snapshots(retain_min=3, older_than=utc_millis() + FAR)


def remove_orphans(table: penstock.Table) -> Any:
    return table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)


def leave_orphans(storage: MemoryFileIO) -> None:
    expire(load(storage))
    location = load(storage).location
    for path in (
        "p=a/bucket-0/data-lost-0.parquet",
        "p=z/bucket-0/data-lost-1.parquet",
        "manifest/manifest-lost-0",
        "manifest/manifest-list-lost-0",
        "snapshot/.snapshot-9.5b1c.tmp",
        "schema/.schema-1.5b1c.tmp",
        ".penstock-lost/part-0.parquet",
        "statistics/stat-lost",
    ):
        storage.write(f"{location}/{path}", b"?")


def leave_expired_tag(storage: MemoryFileIO) -> None:
    expire(load(storage))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Something that deletes.

    Attributes:
        needs_orphan_removal: what a stopped run leaves only orphan removal finds.
    """

    name: str
    prepare: Callable[[MemoryFileIO], None]
    run: Callable[[penstock.Table], Any]
    least_calls: int
    needs_orphan_removal: bool = False


CASES: Final = (
    Case(name="expire", prepare=lambda _storage: None, run=expire, least_calls=40),
    Case(name="remove orphans", prepare=leave_orphans, run=remove_orphans, least_calls=30),
    Case(
        name="delete the tag of an expired snapshot",
        prepare=leave_expired_tag,
        run=lambda table: table.versions.delete_tag("third"),
        least_calls=10,
        needs_orphan_removal=True,
    ),
)


def files_of(storage: MemoryFileIO) -> dict[str, bytes]:
    return {path: storage.read(path) for path in walk(storage, ROOT)}


def seeded(case: Case, storage: MemoryFileIO) -> dict[str, bytes]:
    seed(storage)
    case.prepare(storage)
    return files_of(storage)


def reads(storage: MemoryFileIO) -> dict[str, Any]:
    """What everybody may rely on: the snapshots that stay, the tag, the latest."""
    table = load(storage)
    found: dict[str, Any] = {
        str(each): sorted(table.to_arrow(snapshot_id=each).column("k").to_pylist()) for each in STAYING
    }
    found["latest"] = sorted(table.to_arrow().column("k").to_pylist())
    if table._store.list_tags():
        found["third"] = sorted(table.to_arrow(tag="third").column("k").to_pylist())
    return found


def end_state(storage: MemoryFileIO) -> tuple[set[str], tuple[int, ...], int | None]:
    table = load(storage)
    assert table.inspect.fsck(all_snapshots=True).findings == ()
    store = MetadataStore(table._ref)
    return set(walk(storage, ROOT)), store.list_snapshot_ids(), store.earliest_snapshot_id()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stopped_at_any_call_all_that_stays_can_be_read_and_doing_it_again_ends_it(
    case: Case,
    new_storage: Callable[[Mapping[str, bytes]], MemoryFileIO],
    faults_at: Callable[[Sequence[Call]], list[tuple[Fault, int]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = seeded(case, new_storage({}))
    storage = new_storage(files)
    before = reads(storage)
    clean = FailingFileIO(storage)
    table = load(clean)
    clean.forget()
    case.run(table)
    calls = clean.calls
    after = end_state(storage)
    assert set(files) - after[0]
    assert stored_files(load(storage)._ref) == needed_files(load(storage)._ref)
    with capsys.disabled():
        print(f"\n{case.name}: {len(calls)} calls to storage, {len(faults_at(calls))} faults", end="")  # noqa: T201 - asked for by those who watch the number
    assert len(calls) >= case.least_calls

    for fault, at in faults_at(calls):
        storage = new_storage(files)
        failing = FailingFileIO(storage)
        table = load(failing)
        failing.forget()
        failing.fault, failing.at = fault, at
        error: BaseException | None = None
        try:
            case.run(table)
        except (TableStoreError, ProcessDiedError) as raised:
            error = raised
        failing.fault = None
        try:
            found = reads(storage)
            assert found == {key: before[key] for key in found}
            again = load(storage) if fault in CRASHES else table
            try:
                case.run(again)
            except NotFoundError:
                assert case.needs_orphan_removal
            if case.needs_orphan_removal:
                remove_orphans(load(storage))
            assert end_state(storage) == after
        except (AssertionError, TableStoreError) as failure:
            failure.add_note(f"{fault} at call {at}, {calls[at - 1]}: {error!r}")
            raise
        storage.discard()


def test_what_fails_after_a_commit_fails_no_commit(
    new_storage: Callable[[Mapping[str, bytes]], MemoryFileIO],
    faults_at: Callable[[Sequence[Call]], list[tuple[Fault, int]]],
) -> None:
    """Each call to storage that follows the hint of a commit is the housekeeping's."""
    source = new_storage({})
    seed(source)
    files = files_of(source)
    options = {"snapshot.num-retained.min": "3", "snapshot.time-retained": "1 ms"}

    def append(file_io: FailingFileIO) -> None:
        table = load(file_io).with_options(options)
        file_io.forget()
        table.append(rows(50, "a"))

    clean = FailingFileIO(new_storage(files))
    append(clean)
    hints = [
        at for at, call in enumerate(clean.calls, 1) if call.operation is Operation.WRITE and "LATEST" in call.path
    ]
    assert len(clean.calls) > hints[0] + 30
    assert not clean.exists(f"{load(clean).location}/snapshot/snapshot-5")
    chosen = [(fault, at) for fault, at in faults_at(clean.calls) if at > hints[0] and fault not in CRASHES]
    assert len(chosen) > 15
    for fault, at in chosen:
        storage = new_storage(files)
        failing = FailingFileIO(storage, fault, 0)
        table = load(failing).with_options(options)
        failing.forget()
        failing.at = at
        snapshot = table.append(rows(50, "a"))
        assert snapshot is not None
        failing.fault = None
        assert 50 in load(storage).to_arrow().column("k").to_pylist()
        # The next commit ends what this one began.
        table.append(rows(51, "a"))
        store = load(storage)._store
        assert store.list_snapshot_ids() == (7, 8, 9, 10)  # the consumer keeps the seventh
        assert stored_files(table._ref) == needed_files(table._ref)
        storage.discard()


def test_two_that_expire_one_table_at_once_leave_what_one_would(
    new_storage: Callable[[Mapping[str, bytes]], MemoryFileIO],
) -> None:
    """Each is stopped before each of its calls until the other has made one more."""
    source = new_storage({})
    seed(source)
    files = files_of(source)
    alone = new_storage(files)
    expire(load(alone))
    after = end_state(alone)
    for lead in range(0, 60, 6):
        storage = new_storage(files)
        turns = _Turns(lead)

        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(expire_in_turn, storage, turns, which) for which in (0, 1)]:
                future.result()
        expire(load(storage))  # the slower one may have set the hint back
        assert end_state(storage) == after
        storage.discard()


def expire_in_turn(storage: MemoryFileIO, turns: _Turns, which: int) -> None:
    try:
        expire(load(_Stepping(storage, turns, which)))
    finally:
        turns.end(which)


class _Turns:
    """Lets the first make some calls, then both one each in turn."""

    def __init__(self, lead: int) -> None:
        self._condition = threading.Condition()
        self._made = [0, lead]
        self._ended = [False, False]

    def wait(self, which: int) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._ended[1 - which] or self._made[which] <= self._made[1 - which])
            self._made[which] += 1
            self._condition.notify_all()

    def end(self, which: int) -> None:
        with self._condition:
            self._ended[which] = True
            self._condition.notify_all()


class _Stepping(FailingFileIO):
    def __init__(self, inner: MemoryFileIO, turns: _Turns, which: int) -> None:
        super().__init__(inner)
        self._turns = turns
        self._which = which

    def _call(self, operation: Operation, path: str, effect: Callable[[], Any]) -> Any:
        self._turns.wait(self._which)
        return super()._call(operation, path, effect)
