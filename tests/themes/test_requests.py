"""How many requests to an object store wait for one another, operation by operation, with the most that is allowed."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.counted_requests import counted_requests, memory_store
from tests.unit.table.checkpoints import MemoryCheckpoint
from tests.unit.table.metadata_tables import MemoryTable
from tests.unit.table.stream_sink.queries import batch, start

from penstock import Catalog, Table
from penstock.format.snapshot import CommitKind, encode_hint, encode_snapshot
from penstock.options import ReadOptions
from penstock.options.choices import ScanMode
from penstock.spark.stream.session import StreamSession
from penstock.table.metadata_cache import clear_metadata_cache
from penstock.table.read.origins import load_origins
from penstock.table.read.scan import plan_scan
from penstock.table.read.travel import resolve_read
from penstock.table.store import MetadataStore
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.object_store.file_io import ObjectFileIO


class Warehouse:
    """A catalog in the memory of this process, and a table in it."""

    def __init__(self, buckets: int | None = None, **given: str) -> None:
        self.file_io: ObjectFileIO = memory_store(f"requests-{uuid.uuid4()}")
        root = self.file_io.settings.address.root
        self.catalog = Catalog(f"{root}/warehouse", dict(self.file_io.settings.options))
        self.catalog.create_database("db")
        options = {} if buckets is None else {"bucket": str(buckets), "bucket-key": "id"}
        self.table = self.catalog.create_table("db.t", "id BIGINT, name STRING", options={**options, **given})

    def fresh(self) -> Table:
        """Load the table as another process would."""
        clear_metadata_cache()
        return self.catalog.load_table("db.t")

    def serial(self, operation: Callable[[], object]) -> int:
        with counted_requests(self.file_io) as counts:
            operation()
        return counts.serial


def rows(first: int, count: int = 100) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "name": ["x"] * count})


@pytest.fixture(scope="module")
def long_history() -> Warehouse:
    """A table of 105 files and as many snapshots."""
    warehouse = Warehouse()
    table = warehouse.table.with_options({"snapshot.num-retained.max": "1000"})
    for number in range(105):
        table.append(rows(number * 100))
    return warehouse


def test_a_table_is_opened_with_2(long_history: Warehouse) -> None:
    assert long_history.serial(long_history.fresh) <= 2


@pytest.mark.parametrize(("buckets", "most"), [(None, 5), (8, 6)])
def test_rows_are_appended_with_5_and_to_8_buckets_with_6(buckets: int | None, most: int) -> None:
    warehouse = Warehouse(buckets, **{"compaction.min.file-num": "100"})
    for number in range(5):
        warehouse.table.append(rows(number * 100))
    for number in range(5, 8):
        assert warehouse.serial(lambda number=number: warehouse.table.append(rows(number * 100))) <= most  # type: ignore[misc]
    fresh = warehouse.fresh()
    assert warehouse.serial(lambda: fresh.append(rows(0))) <= 11
    assert warehouse.table.to_arrow().num_rows == 900


def test_files_of_buffered_rows_are_written_at_the_same_time() -> None:
    options = {"compaction.min.file-num": "100", "write-buffer-for-append": "true"}
    few, many = Warehouse(2, **options), Warehouse(16, **options)
    for number in range(5):
        few.table.append(rows(number * 100))
        many.table.append(rows(number * 100))
    assert many.serial(lambda: many.table.append(rows(0))) <= few.serial(lambda: few.table.append(rows(0))) + 1


def test_a_branch_waits_for_no_more_requests_than_its_table() -> None:
    warehouse = Warehouse(**{"write-only": "true"})
    for number in range(5):
        warehouse.table.append(rows(number * 100))
    warehouse.table.versions.create_branch("b")
    branch = warehouse.catalog.load_table("db.t$branch_b")
    branch.append(rows(0))  # the first one looks where the latest snapshot is
    for operation in (
        lambda table: table.append(rows(0)),
        lambda table: table.to_arrow(),
        lambda table: table.snapshots(),
        lambda table: table.explain(),
    ):
        clear_metadata_cache()
        with counted_requests(warehouse.file_io) as of_table:
            operation(warehouse.table)
        clear_metadata_cache()
        with counted_requests(warehouse.file_io) as of_branch:
            operation(branch)
        assert of_branch.serial <= of_table.serial
        assert of_branch.total <= of_table.total + 2  # what identifies a branch is in two files more


def test_small_files_of_8_buckets_are_merged_with_30() -> None:
    warehouse = Warehouse(8)
    serial = {False: [0], True: [0]}
    for number in range(12):
        count = warehouse.serial(lambda number=number: warehouse.table.append(rows(number * 100)))  # type: ignore[misc]
        latest = warehouse.table.latest_snapshot()
        assert latest is not None
        serial[latest.commit_kind is CommitKind.COMPACT].append(count)
    assert 1 < len(serial[True]) <= 4
    assert max(serial[True]) <= 30
    assert max(serial[False][3:]) <= 6
    assert warehouse.table.to_arrow().num_rows == 1_200


def test_a_read_of_105_files_is_planned_with_5_and_made_with_12(long_history: Warehouse) -> None:
    fresh = long_history.fresh()
    assert long_history.serial(fresh.explain) <= 5
    fresh = long_history.fresh()
    assert long_history.serial(fresh.to_arrow) <= 12
    assert long_history.serial(fresh.to_arrow) <= 8


def test_105_snapshots_are_shown_with_8(long_history: Warehouse) -> None:
    fresh = long_history.fresh()
    assert long_history.serial(fresh.snapshots) <= 8


@pytest.mark.parametrize(
    ("first", "last", "millis", "most"),
    [
        (1, 105, 105_000, 4),
        (1, 105, 90_000, 6),
        (1, 5_000, 5_000_000, 6),
        (1, 5_000, 4_400_000, 9),
        (950, 1_000, 1_000_000, 4),
        (950, 1_000, 990_000, 5),
        (1, 105, None, 4),  # a compaction, of which there is none
    ],
)
def test_a_time_among_5000_snapshots_is_found_with_9(first: int, last: int, millis: int | None, most: int) -> None:
    table = MemoryTable()
    written = table.commit()
    file_io = memory_store(f"history-{uuid.uuid4()}")
    ref = replace(table.ref, location=f"{file_io.settings.address.root}/t", file_io=file_io)
    for number in range(first, last + 1):
        made = replace(written, id=number, time_millis=1_000 * number)
        file_io.write(ref.layout.snapshot_path(number), encode_snapshot(made))
    file_io.write(ref.layout.earliest_hint_path, encode_hint(first))
    file_io.write(ref.layout.latest_hint_path, encode_hint(last))
    mode = ScanMode.COMPACTED_FULL if millis is None else ScanMode.FROM_TIMESTAMP
    with counted_requests(file_io) as counts:
        point = resolve_read(MetadataStore(ref), ReadOptions(scan_mode=mode, timestamp_millis=millis))
    assert point.snapshot is not None
    assert point.snapshot.id == (last if millis is None else millis // 1_000)
    assert counts.serial <= most


def test_the_snapshots_that_added_105_files_are_found_with_6(long_history: Warehouse) -> None:
    store = MetadataStore(long_history.fresh()._ref)
    snapshot = store.load_latest_snapshot()
    keys = {entry.key for entry in plan_scan(store, long_history.table._ref, snapshot).entries}
    assert long_history.serial(lambda: load_origins(store, snapshot, keys)) <= 6
    assert len(load_origins(store, snapshot, keys)) == 105


def test_a_stream_looks_for_rows_with_1_and_finds_10_snapshots_with_6() -> None:
    warehouse = Warehouse()
    for number in range(3):
        warehouse.table.append(rows(number * 100))
    ref = warehouse.table.with_options({"scan.mode": "latest"})._ref
    seconds = [0.0]
    session = StreamSession(ref, clock=lambda: seconds[0])
    offset = [session.advance({"unresolved": True})]

    def advance() -> None:
        seconds[0] += 60
        offset[0] = session.advance(offset[0])

    advance()
    assert warehouse.serial(advance) <= 1
    for number in range(10):
        warehouse.table.append(rows(number * 100))
    clear_metadata_cache()
    before = offset[0]
    assert warehouse.serial(advance) <= 6
    assert sum(len(task.splits) for task in session.plan(before, offset[0])) > 0
    assert warehouse.serial(advance) <= 1


def test_105_files_are_compacted_with_20_and_100_snapshots_expire_with_40() -> None:
    warehouse = Warehouse()
    table = warehouse.table.with_options({"snapshot.num-retained.max": "1000"})
    for number in range(105):
        table.append(rows(number * 100))
    fresh = warehouse.fresh()
    assert warehouse.serial(fresh.compact) <= 20
    fresh = warehouse.fresh()
    expired = []
    serial = warehouse.serial(lambda: expired.append(fresh.expire_snapshots(retain_max=6, retain_min=1, older_than=0)))
    assert len(expired[0].snapshot_ids) == 100
    assert serial <= 40
    assert sorted(warehouse.fresh().to_arrow()["id"].to_pylist()) == list(range(10_500))
    assert warehouse.fresh().inspect.fsck().findings == ()


def test_orphans_of_105_files_are_found_with_5() -> None:
    warehouse = Warehouse(105)
    table = warehouse.table
    for number in range(3):
        table.append(rows(number * 1000, 1000))
    fresh = warehouse.fresh()
    assert warehouse.serial(fresh.remove_orphan_files) <= 5


def test_a_micro_batch_is_committed_with_8() -> None:
    warehouse = Warehouse()
    query = start(warehouse.table._ref, MemoryCheckpoint())
    for number in range(4):
        with counted_requests(warehouse.file_io) as counts:
            query.load_ref()
            assert query.begin(batch(number)) is not None
            messages = write_arrow(warehouse.table._ref, rows(number * 100))
            query.commit(batch(number), messages)
        assert counts.serial <= (8 if number > 0 else 16)
