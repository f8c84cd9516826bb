"""Merges that copy row groups undecoded: when they do, and that nothing but the files changes."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.s3_server import counted
from tests.unit.table.compact.test_compact import compact, live, ref_of, tasks_of

from penstock.api.catalog import Catalog
from penstock.catalog.changes import AddColumn, SetOption
from penstock.datafile.parquet.concatenate import concatenate, load_footer
from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.manifest.entry import EMPTY_STATS
from penstock.format.manifest.stats import decode_stats
from penstock.io.memory import MemoryFileIO
from penstock.table.compact import copy, rewrite
from penstock.table.compact.task import CompactTask
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.s3_server import S3Bucket

    from penstock.api.table import Table
    from penstock.format.manifest.entry import ManifestEntry

_NUMBERS = itertools.count()
COLUMNS = (
    "id BIGINT, p STRING, f DOUBLE, d DECIMAL(20, 2), s STRING, b BYTES, day DATE, at TIMESTAMP(6), old TIMESTAMP(9), "
    "none INT, yes BOOLEAN, tags ARRAY<STRING>, place ROW<x DOUBLE, name STRING>"
)
ROW_BYTES = 3_000


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few kilobytes count as large."""
    monkeypatch.setattr(copy, "_MIN_FILE_BYTES", ROW_BYTES)
    monkeypatch.setattr(copy, "_MIN_GROUP_ROWS", 100)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files of each merge that decodes."""
    merges: list[int] = []
    write_rows = rewrite._write_rows

    def count(task: Any, *arguments: Any) -> Any:
        merges.append(len(task.files))
        return write_rows(task, *arguments)

    monkeypatch.setattr(rewrite, "_write_rows", count)
    return merges


def create(catalog: Catalog | None = None, **options: str) -> Table:
    catalog = catalog or Catalog(f"memory://copies-{next(_NUMBERS)}")
    catalog.create_database("db")
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true", **options}
    return catalog.create_table("db.t", COLUMNS, partition_by=["p"], options=options)


def catalog_of(table: Table) -> Catalog:
    return Catalog(ref_of(table).location.removesuffix("/db.db/t"))


def rows(first: int, count: int = 200, **columns: Any) -> pa.Table:
    numbers = range(first, first + count)
    table = {
        "id": pa.array(numbers, pa.int64()),
        "p": pa.array(["a"] * count),
        "f": pa.array([-0.0 if n % 2 else n / 3 for n in numbers]),
        "d": pa.array([Decimal(n * 7 % 91) - 50 for n in numbers], pa.decimal128(20, 2)),
        "s": pa.array([None if n % 5 == 0 else f"{n % 11} ÄÖ a text of more than sixteen characters" for n in numbers]),
        "b": pa.array([bytes([n % 256]) * 9 for n in numbers]),
        "day": pa.array([dt.date(1900 + n % 200, 1, 1) for n in numbers]),
        "at": pa.array([n * 1_000_003 for n in numbers], pa.timestamp("us")),
        "old": pa.array([n * 1_000_000_007 for n in numbers], pa.int64()).cast(pa.timestamp("ns")),
        "none": pa.array([None] * count, pa.int32()),
        "yes": pa.array([n % 3 == 0 for n in numbers]),
        "tags": pa.array([["x"] * (n % 3) for n in numbers]),
        "place": pa.array([None if n % 4 == 0 else {"x": float(n), "name": str(n)} for n in numbers]),
    }
    return pa.table({**table, **columns})


def append_all(table: Table, *batches: pa.Table) -> pa.Table:
    for batch in batches:
        table.append(batch)
    return table.to_arrow()


def path_of(table: Table, entry: ManifestEntry) -> str:
    return FileLocator.of(ref_of(table)).path(entry.partition, entry.bucket, entry.file)


def stats_of(table: Table, entry: ManifestEntry) -> dict[str, Any]:
    file = entry.file
    return dict(decode_stats(file.value_stats, file.value_stats_cols, ref_of(table).schema.fields))


def decode_all(table: Table, monkeypatch: pytest.MonkeyPatch) -> list[ManifestEntry]:
    """The live files after a merge that decodes."""
    with monkeypatch.context() as patch:
        patch.setattr(copy, "_MIN_FILE_BYTES", 1 << 30)
        compact(table, tasks_of(table))
    entries: list[ManifestEntry] = live(table)
    return entries


def test_copied_files_have_the_rows_the_numbers_and_the_statistics_of_decoded_ones(
    decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, twin = create(), create()
    batches = [rows(n * 200) for n in range(5)]
    before = append_all(table, *batches)
    append_all(twin, *batches)
    groups = len(live(table))

    result = compact(table, tasks_of(table))

    assert decoded == []
    assert result.snapshot is not None
    assert result.snapshot.delta_record_count == 0
    assert table.to_arrow().equals(before)
    (entry,) = live(table)
    (other,) = decode_all(twin, monkeypatch)
    assert decoded == [5]
    names = ("row_count", "min_sequence_number", "max_sequence_number", "schema_id", "file_source", "value_stats_cols")
    for name in names:
        assert getattr(entry.file, name) == getattr(other.file, name), name
    assert stats_of(table, entry) == stats_of(twin, other)
    data = ref_of(table).file_io.read(path_of(table, entry))
    assert len(data) == entry.file.file_size
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert (metadata.num_rows, metadata.num_row_groups) == (1000, groups)
    assert table.to_arrow(filter="id >= 430 AND id < 470")["id"].to_pylist() == list(range(430, 470))
    # What was copied can be copied again.
    append_all(table, *(rows(n * 200) for n in range(5, 10)))
    before = table.to_arrow()
    compact(table, tasks_of(table))
    assert table.to_arrow().equals(before)
    assert decoded == [5]


def test_nan_and_columns_that_have_no_range_get_none(decoded: list[int]) -> None:
    table = create(**{"fields.s.stats-mode": "none"})
    append_all(table, rows(0, f=pa.array([math.nan] + [1.0] * 199)), *(rows(n * 200) for n in range(1, 5)))

    compact(table, tasks_of(table))

    (entry,) = live(table)
    stats = stats_of(table, entry)
    assert (stats["f"].min, stats["f"].max, stats["f"].null_count) == (None, None, 0)
    assert (stats["none"].min, stats["none"].max, stats["none"].null_count) == (None, None, 1000)
    assert "s" not in stats
    assert (stats["id"].min, stats["id"].max) == (0, 999)
    values: list[Any] = table.to_arrow()["f"].to_pylist()
    assert table.to_arrow(filter="f > 5").num_rows == sum(value > 5 or math.isnan(value) for value in values)
    assert decoded == []


def test_outputs_close_at_the_target_size(decoded: list[int]) -> None:
    table = create()
    before = append_all(table, *(rows(n * 200) for n in range(6)))
    sizes = [entry.file.file_size for entry in live(table)]
    (task,) = tasks_of(table)
    smaller = table.with_options({"target-file-size": f"{max(sizes) * 3 // 2} b"})

    message = rewrite.rewrite(task, ref_of(smaller))

    assert [file.row_count for file in message.compact_after] == [400, 400, 400]
    assert [(file.min_sequence_number, file.max_sequence_number) for file in message.compact_after] == [
        (0, 399),
        (400, 799),
        (800, 1199),
    ]
    assert table.to_arrow().equals(before)
    assert decoded == []


def test_files_on_an_object_store_are_copied_in_few_requests(decoded: list[int], s3_bucket: S3Bucket) -> None:
    table = create(Catalog(f"{s3_bucket.root}/copies", s3_bucket.options))
    before = append_all(table, *(rows(n * 200) for n in range(5)))
    (task,) = tasks_of(table)
    with counted(s3_bucket) as requests:
        rewrite.rewrite(task, ref_of(table))
    # The end of each file, and then the whole file, which is small; the new file is small, too.
    assert Counter(requests) <= Counter(get=10, put=1)
    compact(table, [task])
    assert table.to_arrow().equals(before)
    assert len(live(table)) == 1
    assert decoded == []


def other_columns(catalog: Catalog) -> None:
    catalog.alter_table("db.t", AddColumn(column=("more",), type="INT"))


def other_option(catalog: Catalog) -> None:
    catalog.alter_table("db.t", SetOption(key="snapshot.num-retained.max", value="77"))


def with_metadata(catalog: Catalog) -> None:
    """Give one file a key-value pair that the others lack, as another writer may."""
    table = catalog.load_table("db.t")
    entry = live(table)[0]
    path, file_io = path_of(table, entry), ref_of(table).file_io
    written = pq.read_table(pa.BufferReader(file_io.read(path)))
    out = pa.BufferOutputStream()
    pq.write_table(written.replace_schema_metadata({"zone": "UTC"}), out, compression="zstd")
    file_io.write(path, out.getvalue().to_pybytes())


def nothing(_catalog: Catalog) -> None:
    pass


@pytest.mark.parametrize(
    ("options", "change", "merges"),
    [
        ({}, other_option, []),
        ({}, other_columns, [5]),
        ({"file.compression": "snappy"}, nothing, [5]),
        ({"file.compression.zstd-level": "9"}, nothing, [5]),
        ({"file.block-size": "1 mb"}, nothing, [5]),
        ({"parquet.page.size": "1 mb"}, nothing, [5]),
        ({"target-file-row-num": "1000000"}, nothing, [5]),
        ({"file.format": "orc"}, nothing, [5]),
        ({"compaction.force-rewrite-all-files": "true"}, nothing, [5]),
        ({"file-index.bloom-filter.columns": "id"}, nothing, [5]),
        ({}, with_metadata, [5]),
    ],
)
def test_files_are_copied_only_if_nothing_changes(
    options: dict[str, str], change: Callable[[Catalog], None], merges: list[int], decoded: list[int]
) -> None:
    table = create()
    append_all(table, *(rows(n * 200) for n in range(5)))
    catalog = catalog_of(table)
    change(catalog)
    table = catalog.load_table("db.t").with_options(options)
    before = table.to_arrow()

    compact(table, tasks_of(table))

    assert table.to_arrow().equals(before)
    assert decoded == merges


def test_small_files_and_small_row_groups_are_decoded(decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    table = create()
    before = append_all(table, *(rows(n * 200) for n in range(5)))
    monkeypatch.setattr(copy, "_MIN_GROUP_ROWS", 201)
    compact(table, tasks_of(table))
    assert decoded == [5]
    assert table.to_arrow().equals(before)
    append_all(table, *(rows(n, count=1) for n in range(5)))
    monkeypatch.setattr(copy, "_MIN_GROUP_ROWS", 1)
    monkeypatch.setattr(copy, "_MIN_FILE_BYTES", 1 << 20)
    compact(table, tasks_of(table))
    assert decoded == [5, 5]


@pytest.mark.parametrize(
    "damage", [b"", b"PAR1", b"\0" * 400 + b"\x90\x01\0\0PAR1", b"\xff" * 500 + b"\xf0\x01\0\0PAR1"]
)
def test_damaged_footers_fail_as_when_decoded_and_leave_no_file(damage: bytes) -> None:
    table = create()
    append_all(table, *(rows(n * 200) for n in range(5)))
    ref = ref_of(table)
    path = path_of(table, live(table)[2])
    ref.file_io.write(path, damage)
    names = {status.name for status in ref.file_io.list(path.rpartition("/")[0])}

    with pytest.raises(FormatError):
        compact(table, tasks_of(table))

    assert {status.name for status in ref.file_io.list(path.rpartition("/")[0])} == names


def test_a_missing_file_is_reported_as_when_decoded() -> None:
    table = create()
    append_all(table, *(rows(n * 200) for n in range(5)))
    ref_of(table).file_io.delete(path_of(table, live(table)[2]))
    with pytest.raises(NotFoundError, match="is missing"):
        compact(table, tasks_of(table))


def test_files_whose_entries_lack_statistics_are_decoded(decoded: list[int]) -> None:
    table = create()
    append_all(table, *(rows(n * 200) for n in range(5)))
    (task,) = tasks_of(table)
    bare = replace(task.files[1], value_stats=EMPTY_STATS, value_stats_cols=())

    message = rewrite.rewrite(replace(task, files=(task.files[0], bare, *task.files[2:])), ref_of(table))

    assert decoded == [5]
    (file,) = message.compact_after
    found = decode_stats(file.value_stats, file.value_stats_cols, ref_of(table).schema.fields)
    assert (found["id"].min, found["id"].max) == (0, 999)
    without = table.with_options({"metadata.stats-mode": "none"})
    rewrite.rewrite(replace(task, files=(task.files[0], bare)), ref_of(without))
    assert decoded == [5]


def test_one_small_file_and_long_footers_prevent_a_copy(decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    table = create()
    append_all(table, *(rows(n * 200) for n in range(4)), rows(800, count=1))
    files = sorted((entry.file for entry in live(table)), key=lambda file: file.min_sequence_number)
    task = CompactTask(partition=live(table)[0].partition, bucket=0, total_buckets=1, files=tuple(files))
    rewrite.rewrite(task, ref_of(table))
    assert decoded == [5]
    monkeypatch.setattr(copy, "_MAX_FOOTER_BYTES", 3_000)
    rewrite.rewrite(replace(task, files=task.files[:4]), ref_of(table))
    assert decoded == [5, 4]


def test_files_with_page_indexes_are_read_equal_by_pyarrow() -> None:
    file_io = MemoryFileIO(name="page-indexes")
    parts = [pa.table({"n": range(start, start + 5_000), "s": ["x" * (start % 7)] * 5_000}) for start in (0, 5_000)]
    paths = [f"memory://page-indexes/{place}" for place in range(2)]
    for path, part in zip(paths, parts, strict=True):
        out = pa.BufferOutputStream()
        pq.write_table(part, out, write_page_index=True, row_group_size=2_000, data_page_size=1_000)
        file_io.write(path, out.getvalue().to_pybytes())
    target = io.BytesIO()

    size = concatenate(file_io, [load_footer(file_io, path, max_bytes=1 << 20) for path in paths], target)

    data = target.getvalue()
    assert size == len(data)
    metadata = pq.read_metadata(pa.BufferReader(data))
    chunks = [metadata.row_group(place).column(0) for place in range(metadata.num_row_groups)]
    assert len(chunks) == 6
    assert not any(chunk.has_offset_index or chunk.has_column_index for chunk in chunks)
    assert pq.read_table(pa.BufferReader(data)).equals(pa.concat_tables(parts).combine_chunks())


def test_an_error_of_the_new_file_is_not_one_of_an_input() -> None:
    table = create()
    append_all(table, rows(0))
    footer = load_footer(ref_of(table).file_io, path_of(table, live(table)[0]), max_bytes=1 << 20)

    class Full(io.BytesIO):
        def write(self, _data: Any) -> int:
            raise ValueError("full")

    with pytest.raises(ValueError, match=r"^full$"):
        concatenate(ref_of(table).file_io, [footer], Full())


def test_a_failed_copy_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create()
    append_all(table, *(rows(n * 200) for n in range(5)))
    ref = ref_of(table)
    directory = path_of(table, live(table)[0]).rpartition("/")[0]
    names = {status.name for status in ref.file_io.list(directory)}

    def fail(_file_io: Any, _footers: Any, target: Any) -> int:
        target.write(b"PAR1")
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(copy, "concatenate", fail)
    with pytest.raises(StorageError):
        compact(table, tasks_of(table))

    assert {status.name for status in ref.file_io.list(directory)} == names
