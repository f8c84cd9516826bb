"""What is done to a table while the disk fails, and what the table holds before and afterwards."""

from __future__ import annotations

import errno
import glob
import itertools
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from tests.faults.machine.disk import REACHES, FailingDisk, Fault, moments_of
from tests.support.garbage import needed_files

import penstock
from penstock.clocks import utc_millis
from penstock.datafile.types import to_arrow_schema
from penstock.errors import CommitUnknownError, TableStoreError
from penstock.table.actions.changes import commit_append
from penstock.table.commit.cleanup import delete_new_files, delete_staging, staging_directory
from penstock.table.compact.local import run_here
from penstock.table.compact.write import merge_before_commit
from penstock.table.inspect.fsck import check_table
from penstock.table.store import MetadataStore
from penstock.table.write.imports import import_parquet_files
from penstock.table.write.rolling import new_job_id
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.table.message import CommitMessage

# Few tries, and no waiting: what is retried is retried at once.
OPTIONS: Final = {"commit.max-retries": "2", "commit.min-retry-wait": "1 ms", "file-operation.thread-num": "1"}
TIMES: Final = (1, 3, None)


def rows(*numbers: int, p: str = "a") -> pa.Table:
    return pa.table({"k": pa.array(numbers, pa.int64()), "p": [p] * len(numbers)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An operation on a table that ``prepare`` has filled.

    Attributes:
        is_commit: an error means that nothing happened, unless it is ``CommitUnknownError``.
        is_atomic: it has happened or not; else a part of it may have, and done again it does the rest.
        is_idempotent: done again after it happened, it changes nothing.
    """

    name: str
    run: Callable[[penstock.Table], Any]
    prepare: Callable[[penstock.Table], Any]
    options: Mapping[str, str] = field(default_factory=dict)
    is_commit: bool = False
    is_atomic: bool = True
    is_idempotent: bool = False


@dataclass(slots=True, kw_only=True)
class Count:
    """What was tried."""

    calls: int = 0
    faults: int = 0
    errors: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a table holds."""

    rows: tuple[tuple[int, str], ...]
    snapshot_ids: tuple[int, ...]
    tags: tuple[str, ...]
    consumers: tuple[tuple[str, int | None], ...]
    columns: tuple[str, ...]
    tables: tuple[str, ...]


class World:
    """A table that can be set back, on a disk that fails."""

    def __init__(self, case: Case, place: Path, disk: FailingDisk) -> None:
        self.case = case
        self._place = place
        self._disk = disk
        self._saved = place.with_name(f"{place.name}-saved")
        catalog = penstock.Catalog(str(place))
        catalog.create_database("d")
        options = {**OPTIONS, **case.options}
        case.prepare(catalog.create_table("d.t", "k BIGINT, p STRING", partition_by=["p"], options=options))
        shutil.copytree(place, self._saved)
        self.before = self.state()
        table = self.load()
        self._disk.begin()
        case.run(table)
        self._disk.end()
        self.calls = tuple(self._disk.calls)
        self.after = self.state()
        self.count = Count(calls=len(self.calls))

    def reset(self) -> None:
        """Put everything back to how it was before the operation."""
        shutil.rmtree(self._place)
        shutil.copytree(self._saved, self._place)

    def load(self) -> penstock.Table:
        """Return what a new process gets."""
        return penstock.Catalog(str(self._place)).load_table("d.t")

    def state(self) -> State:
        """Return what is there for a new process; every file that is needed is whole."""
        table = self.load()
        store = table._store
        assert check_table(table._ref).findings == ()
        return State(
            rows=tuple(sorted((row["k"], row["p"]) for row in table.to_arrow().to_pylist())),
            snapshot_ids=store.list_snapshot_ids(),
            tags=store.list_tags(),
            consumers=tuple((name, store.load_consumer(name)) for name in store.list_consumers()),
            columns=table.schema.field_names,
            tables=tuple(_catalog_of(table).list_tables("d")),
        )

    def faults(self, numbers: Sequence[int] = tuple(REACHES)) -> Iterator[Fault]:
        """Every call of the operation, failing with every error that it can have, once, thrice, and for good."""
        for (at, (step, _)), number in itertools.product(enumerate(self.calls, 1), numbers):
            if step in REACHES[number]:
                for moment, times in itertools.product(moments_of(step), TIMES):
                    yield Fault(number=number, at=at, moment=moment, times=times)

    def try_fault(self, fault: Fault) -> None:
        """Run the operation with the fault, look, run it again without, look, and clear up."""
        self.reset()
        table = self.load()
        handles = count_handles()
        error = self._run(table, fault)
        where = f"{fault} ({self.calls[fault.at - 1]}): {error!r}"
        try:
            self.count.faults += 1
            if error is not None:
                self._check_error(error, fault)
            has_happened = self._check_state(error)
            del error
            assert count_handles() == handles, "handles are left open"
            if self.case.is_idempotent or not has_happened:
                self.case.run(table)
            assert self.state() == self.after
            self.check_litter()
        except BaseException as failure:
            failure.add_note(where)
            raise

    def _run(self, table: penstock.Table, fault: Fault) -> BaseException | None:
        self._disk.begin(fault)
        try:
            self.case.run(table)
        except Exception as error:  # noqa: BLE001 - looked at afterwards
            return error
        finally:
            self._disk.end()
        return None

    def _check_error(self, error: BaseException, fault: Fault) -> None:
        assert isinstance(error, TableStoreError), "an error that is none of ours"
        self.count.errors += 1
        self.count.unknown += isinstance(error, CommitUnknownError)
        text = str(error)
        assert "\n" not in text
        assert "d.t" in text or str(self._place) in text
        assert len(text) < 1_000
        causes = list(chain(error))
        if fault.number == errno.ENOMEM:
            assert any(isinstance(each, MemoryError) for each in causes)
        else:
            assert any(isinstance(each, OSError) and each.errno == fault.number for each in causes)

    def _check_state(self, error: BaseException | None) -> bool:
        """Whether the operation has happened; halfway is neither."""
        state = self.state()
        if error is None:
            assert state == self.after
        elif not self.case.is_atomic:
            assert state.rows in (self.before.rows, self.after.rows)
        elif self.case.is_commit and not isinstance(error, CommitUnknownError):
            assert state == self.before
        else:
            assert state in (self.before, self.after)
        return self.case.is_atomic and state == self.after != self.before

    def check_litter(self) -> None:
        """After orphan removal nothing is there that nobody needs."""
        table = self.load()
        for name in glob.iglob(f"{table.location}/.penstock/leases/.*.tmp"):  # noqa: PTH207 - Path is watched
            os.utime(name, (1, 1))  # leases are younger than an hour for orphan removal, whatever is asked of it
        table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
        left = {str(Path(place, name)) for place, _, names in os.walk(table.location) for name in names}
        assert left - known_files(table) == set()


def known_files(table: penstock.Table) -> set[str]:
    """What has a reason to be there."""
    ref, store = table._ref, MetadataStore(table._ref)
    known = needed_files(ref) | {ref.layout.snapshot_path(each) for each in store.list_snapshot_ids()}
    known |= {ref.layout.tag_path(name) for name in store.list_tags()}
    known |= {ref.layout.earliest_hint_path, ref.layout.latest_hint_path}
    for directory in (ref.layout.schema_directory, ref.layout.consumer_directory, ref.layout.own_directory):
        for place, _, names in os.walk(directory):
            known |= {str(Path(place, name)) for name in names if not name.endswith(".tmp")}
    return known


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__


def count_handles() -> int:
    """Return how many files this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only counted


def _fill(table: penstock.Table) -> None:
    for number in range(3):
        table.append(rows(number, number + 10, p="ab"[number % 2]))


def _fill_one_partition(table: penstock.Table) -> None:
    for number in range(5):
        table.append(rows(number, number + 10))


def _fill_with_replaced(table: penstock.Table) -> None:
    """Eight snapshots, a tag, a consumer; every other one replaces a partition."""
    for number in range(1, 8):
        write = table.overwrite if number % 2 else table.append
        write(rows(number, p="abc"[number % 3]))
        if number == 3:
            table.create_tag("third")
    table.maintenance.reset_consumer("reader", 7)
    table.drop_partitions({"p": "c"})


def _leave_orphans(table: penstock.Table) -> None:
    _fill(table)
    for name in (
        "p=a/bucket-0/data-lost-0.parquet",
        "p=z/bucket-0/data-lost-1.parquet",
        "manifest/manifest-lost-0",
        "snapshot/.snapshot-9.5b1c.tmp",
        ".penstock-lost/part-0.parquet",
    ):
        path = Path(table.location, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"?")


def _tag(table: penstock.Table) -> None:
    _fill(table)
    table.create_tag("first", snapshot_id=1)


def _follow(table: penstock.Table) -> None:
    _fill(table)
    table.maintenance.reset_consumer("reader", 1)


def _append_merged(table: penstock.Table) -> None:
    """Append what several tasks have written, merged before the commit."""
    ref = table._ref
    messages: tuple[CommitMessage, ...] = ()
    try:
        for number in (50, 51, 52):
            messages += write_arrow(ref, rows(number))
    except BaseException:
        delete_new_files(ref, messages)
        raise
    commit_append(table._handle.committer(), merge_before_commit(messages, ref, run_here(ref)))


def _import_files(table: penstock.Table) -> None:
    """Append what another writer has left in a directory beside the table's own, as Spark does."""
    ref, job_id = table._ref, new_job_id()
    staging = staging_directory(ref, job_id)
    os.makedirs(staging, exist_ok=True)  # noqa: PTH103 - Path is watched
    schema = to_arrow_schema(ref.schema.fields)
    for number, partition in ((50, "a"), (51, "a"), (52, "new")):
        pq.write_table(rows(number, p=partition).cast(schema), f"{staging}/part-{number}.parquet")
    try:
        paths = [f"{staging}/part-{number}.parquet" for number in (50, 51, 52)]
        messages = import_parquet_files(ref, paths, job_id=job_id, row_count=3)
    finally:
        delete_staging(ref, job_id)
    assert messages is not None
    commit_append(table._handle.committer(), messages)


def _catalog_of(table: penstock.Table) -> penstock.Catalog:
    return penstock.Catalog(str(Path(table.location).parents[1]))


def _add_column(table: penstock.Table) -> None:
    _catalog_of(table).alter_table("d.t", penstock.AddColumn(column="n", type="INT"))


def _create_table(table: penstock.Table) -> None:
    _catalog_of(table).create_table("d.u", "n INT", if_not_exists=True)


QUEUE: Final = {"bucket": "2", "bucket-key": "k", "manifest.merge-min-count": "2"}
MERGING: Final = {"compaction.min.file-num": "2"}

CASES: Final = (
    Case(name="append", prepare=_fill, run=lambda table: table.append(rows(50, 51)), is_commit=True),
    Case(
        name="append to a queue",
        prepare=_fill,
        run=lambda table: table.append(pa.concat_tables([rows(50, 51), rows(52, p="new")])),
        options=QUEUE,
        is_commit=True,
    ),
    Case(
        name="append ORC",
        prepare=_fill,
        run=lambda t: t.append(rows(50)),
        options={"file.format": "orc"},
        is_commit=True,
    ),
    Case(
        name="append Avro",
        prepare=_fill,
        run=lambda t: t.append(rows(50)),
        options={"file.format": "avro"},
        is_commit=True,
    ),
    Case(
        name="overwrite",
        prepare=_fill,
        run=lambda table: table.overwrite(rows(50), partition={"p": "a"}),
        is_commit=True,
    ),
    Case(name="compact", prepare=_fill, run=lambda table: table.compact(), options=MERGING),
    Case(
        name="compact a queue",
        prepare=_fill_one_partition,
        run=lambda table: table.compact(),
        options={**QUEUE, **MERGING},
    ),
    Case(
        name="expire",
        prepare=_fill_with_replaced,
        run=lambda table: table.expire_snapshots(retain_min=3, older_than=utc_millis()),
        is_atomic=False,
    ),
    Case(
        name="remove orphans",
        prepare=_leave_orphans,
        run=lambda table: table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True),
        is_atomic=False,
    ),
    Case(name="alter", prepare=_fill, run=_add_column),
    Case(name="create a table", prepare=_fill, run=_create_table, is_idempotent=True),
    Case(name="create tag", prepare=_fill, run=lambda table: table.create_tag("second", snapshot_id=2)),
    Case(name="delete tag", prepare=_tag, run=lambda table: table.versions.delete_tag("first")),
    Case(name="roll back", prepare=_fill, run=lambda table: table.rollback_to(snapshot_id=2), is_atomic=False),
    Case(name="reset consumer", prepare=_follow, run=lambda table: table.maintenance.reset_consumer("reader", 3)),
    Case(name="delete consumer", prepare=_follow, run=lambda table: table.maintenance.delete_consumer("reader")),
    Case(
        name="append spilled rows",
        prepare=_fill,
        run=lambda table: table.append(pa.concat_tables([rows(50, 51), rows(52, p="new"), rows(53, 54)])),
        options={**QUEUE, "write-max-writers-to-spill": "0", "write-buffer-size": "2 b"},
        is_commit=True,
    ),
    Case(name="append merged files", prepare=_fill, run=_append_merged, is_commit=True),
    Case(name="import files", prepare=_fill, run=_import_files, is_commit=True),
    Case(name="drop a partition", prepare=_fill, run=lambda table: table.drop_partitions({"p": "a"}), is_commit=True),
)
