"""A dedicated compaction, stopped before and after each of its calls to storage, refused, and unanswered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.support.garbage import needed_files, stored_files, walk

import penstock
from penstock.clocks import utc_millis
from penstock.errors import CommitUnknownError, TableStoreError
from penstock.testing.file_io import FailingFileIO, Fault, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.io.memory import MemoryFileIO
    from penstock.testing.file_io import Call

ROOT: Final = "memory://compaction-faults"
CRASHES: Final = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
QUEUE: Final = {"bucket": "2", "bucket-key": "k", "manifest.merge-min-count": "4"}
SCALABLE: Final = {"manifest.full-compaction-threshold-size": "1 b"}
LEAST_CALLS: Final = 30


def catalog_on(storage: MemoryFileIO | FailingFileIO) -> penstock.Catalog:
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    return catalog


def load(storage: MemoryFileIO | FailingFileIO) -> penstock.Table:
    return catalog_on(storage).load_table("db.t")


def seed(storage: MemoryFileIO, options: Mapping[str, str]) -> dict[str, bytes]:
    """Four commits into two partitions; the table is write-only, as it is beside a dedicated job."""
    catalog = catalog_on(storage)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "k BIGINT, p STRING", partition_by=["p"], options={**options, "write-only": "true"}
    )
    for first in range(0, 16, 4):
        ks = list(range(first, first + 4))
        table.append(pa.table({"k": pa.array(ks, pa.int64()), "p": ["ab"[k % 2] for k in ks]}))
    return {path: storage.read(path) for path in walk(storage, ROOT)}


def compact(table: penstock.Table) -> Any:
    return table.compact(options={"penstock.compaction.max-tasks": "1"})


def rows_of(storage: MemoryFileIO) -> Any:
    """Rows in the order of a read, which is that of writes within each bucket; sorted where there is none."""
    table = load(storage)
    found = table.to_arrow().sort_by([("p", "ascending")] if "bucket" in table.options else [("k", "ascending")])
    assert table.inspect.fsck(all_snapshots=True).findings == ()
    return found.to_pylist()


def shape_of(storage: MemoryFileIO) -> list[tuple[str, int, int]]:
    rows = load(storage).inspect.buckets().to_pylist()
    return sorted((row["partition"], row["bucket"], row["file_count"]) for row in rows)


@pytest.mark.parametrize("options", [QUEUE, SCALABLE], ids=["queue", "scalable"])
def test_stopped_at_any_call_the_rows_stay_and_doing_it_again_ends_it(
    options: Mapping[str, str],
    new_storage: Callable[[Mapping[str, bytes]], MemoryFileIO],
    faults_at: Callable[[Sequence[Call]], list[tuple[Fault, int]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = seed(new_storage({}), options)
    storage = new_storage(files)
    rows, before = rows_of(storage), shape_of(storage)
    clean = FailingFileIO(storage)
    table = load(clean)
    clean.forget()
    compact(table)
    calls = clean.calls
    after = shape_of(storage)
    assert sum(count for *_, count in after) < sum(count for *_, count in before)
    chosen = faults_at(calls)
    with capsys.disabled():
        print(f"\ncompact: {len(calls)} calls to storage, {len(chosen)} faults", end="")  # noqa: T201 - asked for by those who watch the number
    assert len(calls) >= LEAST_CALLS

    for fault, at in chosen:
        storage = new_storage(files)
        table, error = compact_with(fault, at, storage)
        try:
            assert rows_of(storage) == rows
            found = shape_of(storage)
            # What a failed merge has nothing to do with may have landed.
            whole = zip(before, after, strict=True) if error is not None else zip(after, after, strict=True)
            assert all(each in states for each, states in zip(found, whole, strict=True))
            if fault not in CRASHES and not isinstance(error, CommitUnknownError):
                assert stored_files(load(storage)._ref) == needed_files(load(storage)._ref)
            again = load(storage) if fault in CRASHES else table
            compact(again)
            again.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
            assert stored_files(load(storage)._ref) == needed_files(load(storage)._ref)
            assert (shape_of(storage), rows_of(storage)) == (after, rows)
        except (AssertionError, TableStoreError) as failure:
            failure.add_note(f"{fault} at call {at}: {error!r}")
            raise
        storage.discard()


def compact_with(fault: Fault, at: int, storage: MemoryFileIO) -> tuple[penstock.Table, BaseException | None]:
    """Compact over storage whose call ``at`` fails; return the handle, whose storage is well again, and the error."""
    failing = FailingFileIO(storage)
    table = load(failing)
    failing.forget()
    failing.fault, failing.at = fault, at
    try:
        compact(table)
    except (TableStoreError, ProcessDiedError) as error:
        return table, error
    finally:
        failing.fault = None
    return table, None
