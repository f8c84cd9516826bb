from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.adopted_files import append_as
from tests.deletion_vectors import delete_by_vectors
from tests.unit.table.metadata_tables import FIELDS, MemoryTable

import penstock
from penstock.datafile.formats import FORMATS
from penstock.datafile.types import to_arrow_schema
from penstock.errors import FormatError, InvalidSchemaError, NotFoundError, UnsupportedFeatureError
from penstock.format.layout import FileFormat, TableLayout, partition_dir
from penstock.format.types.data_types import BIGINT, DOUBLE, INT, STRING, DataField
from penstock.options import FormatOptions
from penstock.predicate.parse import parse_filter
from penstock.table.read.batches import TableReader, open_batches, read_ahead, read_arrow, read_split
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import plan_splits
from penstock.table.store import MetadataStore
from penstock.testing.file_io import RecordingFileIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.manifest.entry import ManifestEntry


def write(
    table: MemoryTable, name: str, rows: list[dict[str, Any]], partition: tuple[object, ...] = (), **values: object
) -> ManifestEntry:
    """Write a real Parquet file of the table's schema, and return its entry."""
    directory = partition_dir(table.schema.partition_fields, partition)
    path = f"{TableLayout(table.location).bucket_directory(directory, 0)}/{name}.parquet"
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(table.schema.fields))
    writer = FORMATS[FileFormat.PARQUET].open_writer(table.file_io, path, table.schema.fields, FormatOptions())
    writer.write(batch)
    written = writer.close()
    file = table.file(name, row_count=written.row_count, file_size=written.file_size, **values)
    return table.entry(file, partition)


def read(table: MemoryTable, where: str | None = None, **options: Any) -> list[dict[str, Any]]:
    predicate = None if where is None else parse_filter(where)
    plan = plan_scan(table.store, table.ref, table.snapshots[-1], predicate)
    return read_arrow(table.ref, table.store, plan, **options).to_pylist()


@pytest.fixture
def orders() -> MemoryTable:
    """Two files: ids 0 to 4 of day x, 5 to 9 of day y; even ids have a name."""
    table = MemoryTable(partition_keys=("dt",))
    for number, day in enumerate("xy"):
        rows = [{"id": i, "name": None if i % 2 else f"n{i}", "dt": day} for i in range(5 * number, 5 * number + 5)]
        table.commit(write(table, day, rows, (day,), creation_millis=number))
    return table


def test_all_rows_come_in_order_with_the_tables_schema(orders: MemoryTable) -> None:
    plan = plan_scan(orders.store, orders.ref, orders.snapshots[-1])
    found = read_arrow(orders.ref, orders.store, plan)
    assert found.schema == to_arrow_schema(FIELDS)
    assert found.column("id").to_pylist() == list(range(10))
    assert found.column("dt").to_pylist() == ["x"] * 5 + ["y"] * 5


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id >= 3 AND id < 7", [3, 4, 5, 6]),
        ("dt = 'y'", [5, 6, 7, 8, 9]),
        ("dt = 'x' OR id = 9", [0, 1, 2, 3, 4, 9]),
        ("name IS NULL AND dt = 'x'", [1, 3]),
        ("name <> 'n2'", [0, 4, 6, 8]),
        ("id = 100", []),
        ("dt = 'z'", []),
    ],
)
def test_a_filter_is_exact(orders: MemoryTable, where: str, expected: list[int]) -> None:
    assert [row["id"] for row in read(orders, where)] == expected


def test_columns_come_in_the_order_asked_for_the_filters_own_are_left_out(orders: MemoryTable) -> None:
    assert read(orders, "id = 8", columns=["dt", "name"]) == [{"dt": "y", "name": "n8"}]
    assert read(orders, "name = 'n8'", columns=["id"]) == [{"id": 8}]
    assert read(orders, "id = 8", columns=["dt"]) == [{"dt": "y"}]


def test_partition_values_come_from_the_manifest_not_from_the_file() -> None:
    table = MemoryTable(partition_keys=("dt",))
    entry = write(table, "a", [{"id": 1, "name": "n", "dt": "in the file"}], ("day",))
    table.commit(entry)
    assert read(table) == [{"id": 1, "name": "n", "dt": "day"}]
    assert read(table, "dt = 'day'", columns=["dt", "id"]) == [{"dt": "day", "id": 1}]


def test_a_null_partition_is_null() -> None:
    table = MemoryTable(partition_keys=("dt",))
    table.commit(write(table, "a", [{"id": 1, "name": "n", "dt": None}], (None,)))
    assert read(table) == [{"id": 1, "name": "n", "dt": None}]


def test_what_the_manifest_knows_needs_no_data_file(orders: MemoryTable) -> None:
    recording = RecordingFileIO(orders.file_io)
    ref = replace(orders.ref, file_io=recording)
    plan = plan_scan(orders.store, ref, orders.snapshots[-1])
    days = read_arrow(ref, MetadataStore(ref), plan, ["dt"])
    assert days.column("dt").to_pylist() == ["x"] * 5 + ["y"] * 5
    batches = TableReader(ref, MetadataStore(ref), []).read_split(plan_splits(ref, plan)[0])
    assert sum(batch.num_rows for batch in batches) == 5
    assert not recording.calls


@pytest.mark.parametrize("limit", [0, 1, 5, 7, 10, 99])
def test_a_limit_takes_the_first_rows(orders: MemoryTable, limit: int) -> None:
    assert [row["id"] for row in read(orders, limit=limit)] == list(range(min(limit, 10)))


@pytest.mark.parametrize(("limit", "files"), [(0, 0), (5, 1), (6, 2)])
def test_a_limit_opens_no_file_that_it_does_not_need(
    orders: MemoryTable, monkeypatch: pytest.MonkeyPatch, limit: int, files: int
) -> None:
    monkeypatch.setattr(RecordingFileIO, "parallel_files", lambda *_: 1)
    recording = RecordingFileIO(orders.file_io)
    ref = replace(orders.ref, file_io=recording)
    plan = plan_scan(orders.store, ref, orders.snapshots[-1])
    assert read_arrow(ref, MetadataStore(ref), plan, limit=limit).num_rows == limit
    assert len({call.path for call in recording.calls}) == files


def test_batches_are_read_while_they_are_consumed(orders: MemoryTable) -> None:
    plan = plan_scan(orders.store, orders.ref, orders.snapshots[-1])
    reader = open_batches(orders.ref, orders.store, plan, ["id"])
    assert reader.schema == to_arrow_schema(FIELDS[:1])
    assert reader.read_all().column("id").to_pylist() == list(range(10))
    abandoned = open_batches(orders.ref, orders.store, plan, ["id"])
    assert abandoned.read_next_batch().num_rows == 5
    del abandoned
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("penstock-read")]


def test_one_split_reads_its_own_files(orders: MemoryTable) -> None:
    plan = plan_scan(orders.store, orders.ref, orders.snapshots[-1])
    splits = plan_splits(orders.ref, plan)
    found = [
        [row["id"] for batch in read_split(orders.ref, orders.store, s, ["id"]) for row in batch.to_pylist()]
        for s in splits
    ]
    assert found == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_an_empty_result_still_has_its_schema(orders: MemoryTable) -> None:
    found = read_arrow(orders.ref, orders.store, plan_scan(orders.store, orders.ref, None), ["name"])
    assert found.num_rows == 0
    assert found.schema == to_arrow_schema(FIELDS[1:2])


def test_files_of_older_schemas_are_brought_to_the_read_schema() -> None:
    fields = (DataField(id=0, name="a", type=INT), DataField(id=1, name="b", type=STRING))
    table = MemoryTable(fields=fields)
    table.commit(write(table, "old", [{"a": 1, "b": "x"}]))
    evolved = (
        DataField(id=2, name="b", type=DOUBLE),
        DataField(id=0, name="A", type=BIGINT),
        DataField(id=3, name="a", type=STRING),
    )
    table.put_schema(replace(table.schema, id=1, fields=evolved))
    table.commit(write(table, "new", [{"b": 0.5, "A": 2**40, "a": "y"}], min_sequence_number=1))
    assert read(table) == [{"b": None, "A": 1, "a": None}, {"b": 0.5, "A": 2**40, "a": "y"}]
    assert read(table, "A >= 1 AND b IS NULL", columns=["a", "A"]) == [{"a": None, "A": 1}]
    assert read(table, "a = 'y'", columns=["A"]) == [{"A": 2**40}]


def test_unknown_and_repeated_columns_are_refused(orders: MemoryTable) -> None:
    with pytest.raises(NotFoundError, match=r"shop.orders: no column 'nam'; did you mean 'name'\?"):
        read(orders, columns=["nam"])
    with pytest.raises(InvalidSchemaError, match="twice"):
        read(orders, columns=["id", "id"])


def test_a_missing_data_file_names_table_snapshot_file_and_cure(orders: MemoryTable) -> None:
    path = f"{orders.location}/dt=y/bucket-0/y.parquet"
    orders.file_io.delete(path)
    with pytest.raises(NotFoundError) as raised:
        read(orders)
    for word in ("shop.orders", "snapshot 2", path, "fsck", "roll back"):
        assert word in str(raised.value)


def counting(start: int, stop: int, fail_at: int | None = None) -> Iterator[int]:
    for number in range(start, stop):
        if number == fail_at:
            raise ValueError(number)
        yield number


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("items_ahead", [0, 1])
def test_reading_ahead_keeps_the_order(threads: int, items_ahead: int) -> None:
    sources = [partial(counting, 10 * n, 10 * n + n) for n in range(10)]
    found = list(read_ahead(sources, threads=threads, items_ahead=items_ahead))
    assert found == [number for n in range(10) for number in range(10 * n, 10 * n + n)]


def test_a_failure_comes_when_its_turn_has_come() -> None:
    sources = [partial(counting, 0, 5), partial(counting, 5, 10, 7), partial(counting, 10, 15)]
    stream = read_ahead(sources, threads=2, items_ahead=1)
    assert [next(stream) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="7"):
        next(stream)


def test_threads_end_when_there_is_no_listener_any_more() -> None:
    endless = [partial(counting, 0, 10**9) for _ in range(4)]
    stream = read_ahead(endless, threads=3, items_ahead=2)
    assert next(iter(stream)) == 0
    stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("penstock-read")]


NUMBERS = itertools.count()


@pytest.fixture
def table() -> penstock.Table:
    catalog = penstock.Catalog(f"memory://deleted-rows-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"])
    for first in (0, 10):
        table.append([{"k": k, "p": "ab"[k % 2]} for k in range(first, first + 10)])
    names = [row["file_path"].rpartition("/")[2] for row in table.files().to_pylist()]
    delete_by_vectors(table, {names[0]: [0, 3], names[2]: [4]})
    return penstock.Table.at(table.location)


def test_deleted_rows_are_left_out(table: penstock.Table) -> None:
    keys = sorted(table.to_arrow().column("k").to_pylist())
    assert len(keys) == 17
    gone = sorted(set(range(20)) - set(keys))
    assert sorted(row["k"] for row in table.to_batches().read_all().to_pylist()) == keys
    assert table.to_arrow(filter=f"k = {gone[0]}").num_rows == 0
    assert table.to_arrow(filter="k >= 0").num_rows == 17
    assert table.to_arrow(["p"]).num_rows == 17
    assert table.to_arrow([]).num_rows == 17
    assert table.to_arrow(limit=16).num_rows == 16
    assert (
        penstock.sql(None, penstock.Catalog(table.location.rpartition("/db.db")[0]), "SELECT k FROM db.t").num_rows
        == 17
    )


def test_what_reads_metadata_alone_does_not_need_vectors(table: penstock.Table) -> None:
    assert sum(table.files()["record_count"].to_pylist()) == 20
    assert "files with deleted rows: 2" in table.explain()
    assert table.explain_values("p = 'a'")["files_with_deleted_rows"] == len(table.files()) // 4


def test_a_read_of_a_difference_does_not_apply_vectors(table: penstock.Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="deletion vectors"):
        table.to_arrow(options={"incremental-between": "1,2", "incremental-between-scan-mode": "diff"})
    # That of changes returns what was appended.
    assert table.to_arrow(options={"incremental-between": "1,2"}).num_rows == 10


def test_a_damaged_vector_is_reported(table: penstock.Table) -> None:
    file_io = table._ref.file_io
    for status in file_io.list(f"{table.location}/index"):
        data = file_io.read(status.path)
        file_io.write(status.path, data[:-1] + bytes([data[-1] ^ 255]))
    with pytest.raises(FormatError, match="checksum"):
        table.to_arrow()


def test_files_of_equal_names_have_their_own_vectors() -> None:
    """Java deletes rows by vectors in adopted directories, too, whose files keep their names."""
    catalog = penstock.Catalog(f"memory://deleted-rows-{next(NUMBERS)}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT, p STRING", partition_by=["p"])
    append_as(table, "000000_0.parquet", [{"k": k, "p": "ab"[k % 2]} for k in range(10)])
    delete_by_vectors(table, {"p=a/bucket-0/000000_0.parquet": [0, 3]})
    assert sorted(table.to_arrow()["k"].to_pylist()) == [1, 2, 3, 4, 5, 7, 8, 9]
