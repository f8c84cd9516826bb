"""A DELETE, an UPDATE and a MERGE, stopped before and after each call to storage, refused, and unanswered."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pytest
from tests.support.garbage import needed_files, stored_files, walk

import penstock
from penstock import MergeDelete, MergeInsert, MergeUpdate
from penstock.clocks import utc_millis
from penstock.errors import CommitUnknownError, TableStoreError
from penstock.io.memory import MemoryFileIO
from penstock.testing.file_io import FailingFileIO, Fault, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.testing.file_io import Call

ROOT: Final = "memory://row-change-faults"
STORES: Final = itertools.count()
CRASHES: Final = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
QUEUE: Final = {"bucket": "2", "bucket-key": "k", "write-only": "true"}
MARKED: Final = {"deletion-vectors.enabled": "true", "write-only": "true"}
LEAST_CALLS: Final = 15


def delete(table: penstock.Table) -> Any:
    return table.delete("k IN (1, 6, 9)")


def update(table: penstock.Table) -> Any:
    return table.update({"k": 100, "p": "c"}, "k IN (1, 6, 9)")


def merge(table: penstock.Table) -> Any:
    source = [{"k": 1, "p": "b"}, {"k": 6, "p": "c"}, {"k": 50, "p": "a"}]
    return table.merge(
        source,
        "k",
        matched=[MergeDelete(where=pc.field("source.p") == "b"), MergeUpdate()],
        not_matched=MergeInsert(where=pc.field("source.p") != "b"),
    )


def storage_of(files: Mapping[str, bytes]) -> MemoryFileIO:
    storage = MemoryFileIO(f"row-change-faults-{next(STORES)}")
    for path, data in files.items():
        storage.write(path, data)
    return storage


def catalog_on(storage: MemoryFileIO | FailingFileIO) -> penstock.Catalog:
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    return catalog


def load(storage: MemoryFileIO | FailingFileIO) -> penstock.Table:
    return catalog_on(storage).load_table("db.t")


def seed(options: Mapping[str, str]) -> dict[str, bytes]:
    storage = storage_of({})
    catalog = catalog_on(storage)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"], options=options)
    for first in range(0, 12, 4):
        table.append([{"k": k, "p": "ab"[k % 2]} for k in range(first, first + 4)])
    files = {path: storage.read(path) for path in walk(storage, ROOT)}
    storage.discard()
    return files


def rows_of(storage: MemoryFileIO) -> list[tuple[str, int]]:
    table = load(storage)
    assert table.inspect.fsck(all_snapshots=True).findings == ()
    return sorted((row["p"], row["k"]) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize("options", [QUEUE, MARKED], ids=["rewritten", "marked"])
@pytest.mark.parametrize(
    "change", [delete, pytest.param(update, marks=pytest.mark.slow), pytest.param(merge, marks=pytest.mark.slow)]
)
def test_stopped_at_any_call_all_rows_are_changed_or_none(
    options: Mapping[str, str],
    change: Callable[[penstock.Table], Any],
    faults_at: Callable[[Sequence[Call]], list[tuple[Fault, int]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = seed(options)
    storage = storage_of(files)
    before = rows_of(storage)
    clean = FailingFileIO(storage)
    table = load(clean)
    clean.forget()
    change(table)
    calls = clean.calls
    after = rows_of(storage)
    assert before != after
    chosen = faults_at(calls)
    with capsys.disabled():
        print(f"\n{change.__name__}: {len(calls)} calls to storage, {len(chosen)} faults", end="")  # noqa: T201 - asked for by those who watch the number
    assert len(calls) >= LEAST_CALLS
    for fault, at in chosen:
        storage = storage_of(files)
        try:
            check_fault(storage, change, fault, at, (before, after))
        except (AssertionError, TableStoreError) as failure:
            failure.add_note(f"{fault} at call {at}")
            raise
        storage.discard()


def check_fault(
    storage: MemoryFileIO,
    change: Callable[[penstock.Table], Any],
    fault: Fault,
    at: int,
    states: tuple[list[tuple[str, int]], list[tuple[str, int]]],
) -> None:
    failing = FailingFileIO(storage)
    table = load(failing)
    failing.forget()
    failing.fault, failing.at = fault, at
    error: BaseException | None = None
    try:
        change(table)
    except (TableStoreError, ProcessDiedError) as failure:
        error = failure
    failing.fault = None
    found = rows_of(storage)
    assert found in states
    if error is None:
        assert found == states[1]
    if fault not in CRASHES and not isinstance(error, CommitUnknownError):
        assert stored_files(load(storage)._ref) == needed_files(load(storage)._ref)
    again = load(storage)
    change(again)
    again.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
    assert stored_files(load(storage)._ref) == needed_files(load(storage)._ref)
    assert rows_of(storage) == states[1]
