"""Parquet files: what is in their footers, and reading what others wrote."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.datafile.arrays import batch_of, column, columns, rows_of

from penstock.datafile.formats import FORMATS
from penstock.datafile.parquet.writer import ROW_GROUP_ROWS
from penstock.datafile.types import to_arrow_schema
from penstock.errors import (
    FormatError,
    InvalidOptionError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from penstock.format.layout import FileFormat
from penstock.format.manifest.stats import ColumnStats
from penstock.format.schema import decode_schema
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TINYINT,
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    RowType,
    TypeRoot,
    decimal_type,
    time_type,
    timestamp_type,
    with_nullability,
)
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "data" / "warehouse"
IO: Final = MemoryFileIO("parquet-tests")
NAN: Final = math.nan
SMALL: Final = Decimal("-1.25")
LARGE: Final = Decimal(10**37)


def write(
    fields: tuple[DataField, ...], *batches: pa.RecordBatch, name: str = "f.parquet", **options: str
) -> tuple[str, Any]:
    path = f"memory://parquet-tests/{name}"
    IO.delete(path)
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    writer = FORMATS[FileFormat.PARQUET].open_writer(IO, path, fields, FormatOptions.parse(keys))
    for batch in batches:
        writer.write(batch)
    return path, writer.close()


def footer(path: str) -> Any:
    return pq.ParquetFile(io.BytesIO(IO.read(path)))


def read(path: str, fields: tuple[DataField, ...], **how: Any) -> list[pa.RecordBatch]:
    return list(FORMATS[FileFormat.PARQUET].read(IO, path, fields, **{"batch_rows": 1000, **how}))


def put(table: pa.Table, **settings: Any) -> str:
    path, target = "memory://parquet-tests/foreign.parquet", io.BytesIO()
    pq.write_table(table, target, **settings)
    IO.write(path, target.getvalue())
    return path


def test_physical_and_logical_types_and_field_ids_are_those_of_java() -> None:
    table = GOLDEN / "java142.db" / "types_parquet"
    fields = decode_schema((table / "schema" / "schema-0").read_bytes(), "schema-0").fields
    theirs = pq.ParquetFile(next(table.glob("bucket-0/*.parquet")))

    path, _ = write(fields)
    ours = footer(path)

    assert len(ours.schema) == len(theirs.schema)
    for place in range(len(theirs.schema)):
        one, other = ours.schema.column(place), theirs.schema.column(place)
        for what in ("path", "physical_type", "length", "max_definition_level", "max_repetition_level"):
            assert getattr(one, what) == getattr(other, what), one.path
        assert str(one.logical_type) == str(other.logical_type), one.path
    assert ids_of(ours.schema_arrow) == ids_of(theirs.schema_arrow)
    assert b"ARROW:schema" not in (ours.metadata.metadata or {})


def ids_of(schema: Any) -> list[tuple[str, bytes | None]]:
    found = []
    for field in schema:
        found.append((field.name, (field.metadata or {}).get(b"PARQUET:field_id")))
        kind = field.type
        if pa.types.is_map(kind):
            found += ids_of([kind.key_field, kind.item_field])
        elif pa.types.is_list(kind) or pa.types.is_struct(kind):
            found += ids_of([kind.field(place) for place in range(kind.num_fields)])
    return found


def test_levels_below_a_level_count_their_depth_in_their_ids() -> None:
    deep = ArrayType(element=ArrayType(element=MapType(key=INT, value=INT)))

    path, _ = write((column("a", deep, 24),))

    element, inner, key, value = (int(number or 0) for _, number in ids_of(footer(path).schema_arrow)[1:])
    base = 536_870_911
    assert (element, inner) == (base + 1024 * 24 + 1, base + 1024 * 24 + 2)
    assert (key, value) == (base - 1024 * 24 - 3, base + 1024 * 24 + 3)


def test_only_timestamps_beyond_microseconds_become_int96() -> None:
    fields = columns(
        timestamp_type(3), timestamp_type(9), decimal_type(28, 2), timestamp_type(7, local_zone=True), timestamp_type(6)
    )
    values = [(-1_000_000, -1, Decimal("1.25"), 5, -1_000), (0, 0, None, None, 0), (None,) * 5]

    path, written = write(fields, batch_of(values, fields))

    physical = [footer(path).schema.column(place).physical_type for place in range(5)]
    assert physical == ["INT64", "INT96", "FIXED_LEN_BYTE_ARRAY", "INT96", "INT64"]
    assert rows_of(read(path, fields), fields) == values
    # What pyarrow makes of it by itself, where the range allows it.
    assert footer(path).read()["f1"].cast(pa.int64()).to_pylist() == [-1, 0, None]
    assert written.columns[1] == ColumnStats(null_count=1)
    assert written.columns[4] == ColumnStats(min=-1_000, max=0, null_count=1)


def test_int96_below_lists_maps_and_rows_comes_back_from_slices_too() -> None:
    nanos = timestamp_type(9)
    row = RowType(fields=(column("t", nanos, 1), column("n", INT, 2)))
    fields = columns(ArrayType(element=nanos), MapType(key=STRING, value=nanos), row)
    values = [([1, None], [("a", -5)], (7, 8)), (None, None, None), ([], [], (None, 1)), ([-1], [("b", None)], (3, 4))]
    batch = batch_of(values, fields)

    path, _ = write(fields, batch.slice(0, 1), batch.slice(1, 2), batch.slice(3))

    assert rows_of(read(path, fields), fields) == values


def test_java_counts_nanoseconds_of_days_before_1970_backwards() -> None:
    table = GOLDEN / "java142.db" / "types_parquet"
    fields = decode_schema((table / "schema" / "schema-0").read_bytes(), "schema-0").fields
    wanted = tuple(field for field in fields if field.name in ("id", "c_ts9", "c_ltz9"))
    found = set()
    for path in table.glob("bucket-0/*.parquet"):
        IO.write("memory://parquet-tests/java.parquet", path.read_bytes())
        found |= {row[1] for row in rows_of(read("memory://parquet-tests/java.parquet", wanted), wanted)}

    assert {-1, 0, 2**63 - 1, -9_223_286_400_000_000_000 + 1} <= found


def test_timestamps_that_nanoseconds_cannot_hold_are_refused_and_not_wrapped() -> None:
    far = pa.table({"t": pa.array([253_402_300_799_999], pa.timestamp("ms"))})
    path = put(far, use_deprecated_int96_timestamps=True)

    with pytest.raises(FormatError, match=r"1678 to 2261.*TIMESTAMP\(6\)"):
        read(path, (column("t", timestamp_type(9)),))
    assert rows_of(read(path, (column("t", timestamp_type(3)),)), columns(timestamp_type(3))) == [
        (253_402_300_799_999_000_000,)
    ]


def test_int64_nanoseconds_of_other_writers_are_read_in_the_unit_of_the_type() -> None:
    path = put(pa.table({"t": pa.array([-1, 1_999_999, None], pa.timestamp("ns"))}))

    for precision, expected in (
        (9, [-1, 1_999_999, None]),
        (6, [-1_000, 1_999_000, None]),
        (3, [-(10**6), 10**6, None]),
    ):
        fields = (column("t", timestamp_type(precision)),)
        assert [row[0] for row in rows_of(read(path, fields), fields)] == expected


def test_foreign_arrow_types_become_canonical() -> None:
    table = pa.table(
        {
            "s": pa.array(["a", None], pa.large_string()),
            "d": pa.array(["x", "x"]).dictionary_encode(),
            "dec": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "tiny": pa.array([1, None], pa.int32()),
            "list": pa.array([[1], None], pa.large_list(pa.int32())),
            "day": pa.array([19_000, None], pa.int32()),
        }
    )
    path = put(table)
    fields = (
        column("s", STRING),
        column("d", STRING),
        column("dec", decimal_type(5, 2)),
        column("tiny", TINYINT),
        column("list", ArrayType(element=BIGINT)),
        column("day", DATE),
        column("later", RowType(fields=(column("x", INT),))),
    )

    (batch,) = read(path, fields)

    assert batch.schema.equals(to_arrow_schema(fields), check_metadata=True)
    assert rows_of([batch], fields) == [
        ("a", "x", Decimal("1.50"), 1, [1], 19_000, None),
        (None, "x", None, None, None, None, None),
    ]


def test_columns_are_found_by_their_whole_name_dots_included() -> None:
    fields = (column("a", INT, 0), column("a.b", INT, 1), column("b", RowType(fields=(column("a", INT, 3),)), 2))
    path, _ = write(fields, batch_of([(1, 2, (3,))], fields))

    for wanted in (fields[:1], fields[1:2], fields[2:], (fields[2], fields[0])):
        (batch,) = read(path, wanted)
        assert batch.schema.names == [field.name for field in wanted]
        assert rows_of([batch], wanted) == [tuple({"a": 1, "a.b": 2, "b": (3,)}[field.name] for field in wanted)]


def test_rows_are_counted_where_no_column_is_read() -> None:
    fields = columns(INT)
    path, _ = write(fields, batch_of([(1,), (2,), (3,)], fields))

    assert [batch.num_rows for batch in read(path, (), batch_rows=2)] == [2, 1]
    assert rows_of(read(path, (column("new", STRING),)), columns(STRING)) == [(None,)] * 3


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        (INT, [3, None, -1], ColumnStats(min=-1, max=3, null_count=1)),
        (BOOLEAN, [True, False], ColumnStats(min=False, max=True, null_count=0)),
        (DOUBLE, [1.5, -2.5, None], ColumnStats(min=-2.5, max=1.5, null_count=1)),
        (DOUBLE, [1.5, NAN], ColumnStats(null_count=0)),
        (FLOAT, [NAN], ColumnStats(null_count=0)),
        (STRING, ["b", "a", None], ColumnStats(min="a", max="b", null_count=1)),
        (STRING, ["é", "z"], ColumnStats(min="z", max="é", null_count=0)),
        (STRING, ["a", "x" * 5000], ColumnStats(null_count=0)),
        (BYTES, [b"a", None], ColumnStats(null_count=1)),
        (DATE, [-1, 19_000], ColumnStats(min=-1, max=19_000, null_count=0)),
        (time_type(3), [5, 86_399_999], ColumnStats(min=5, max=86_399_999, null_count=0)),
        (timestamp_type(3), [-1_000_000, 0], ColumnStats(min=-1_000_000, max=0, null_count=0)),
        (timestamp_type(6, local_zone=True), [1_000, 2_000], ColumnStats(min=1_000, max=2_000, null_count=0)),
        (timestamp_type(9), [1, None], ColumnStats(null_count=1)),
        (decimal_type(5, 2), [SMALL, SMALL + 1], ColumnStats(min=SMALL, max=SMALL + 1, null_count=0)),
        (decimal_type(38, 0), [LARGE, -LARGE], ColumnStats(min=-LARGE, max=LARGE, null_count=0)),
        (INT, [None, None], ColumnStats(null_count=2)),
        (ArrayType(element=INT), [[1], None], None),
        (RowType(fields=(column("x", INT),)), [(1,)], None),
    ],
)  # fmt: skip
def test_statistics_come_from_the_footer_in_internal_values(
    data_type: Any, values: list[Any], expected: ColumnStats | None
) -> None:
    fields = columns(data_type)

    _, written = write(fields, batch_of([(value,) for value in values], fields))

    assert written.columns == (expected,)


def test_zeros_of_both_signs_lie_between_minimum_and_maximum() -> None:
    fields = columns(DOUBLE)

    _, written = write(fields, batch_of([(0.0,), (-0.0,)], fields))

    assert math.copysign(1, written.columns[0].min) == -1
    assert math.copysign(1, written.columns[0].max) == 1


def test_statistics_cover_all_row_groups() -> None:
    fields = columns(INT, STRING, DOUBLE)
    rows = [(place, str(place), float(place)) for place in range(300)]
    batches = [batch_of(rows[start : start + 100], fields) for start in (100, 0, 200)]
    odd = batch_of([(None, None, NAN)], fields)

    path, written = write(fields, *batches, odd, file__block_size="1")

    assert footer(path).metadata.num_row_groups > 3
    assert written.columns[0] == ColumnStats(min=0, max=299, null_count=1)
    assert written.columns[1] == ColumnStats(min="0", max="99", null_count=1)
    assert written.columns[2] == ColumnStats(null_count=0)


def test_footer_has_no_range_that_leaves_out_nan() -> None:
    # Readers that rank NaN above all numbers would skip a row group of 1.0 and NaN where `f > 5` is wanted.
    fields = columns(INT, DOUBLE, FLOAT, RowType(fields=(DataField(id=9, name="x", type=FLOAT),)), timestamp_type(9))
    rows = [(1, 1.0, 2.0, (NAN,), 0), (2, NAN, 3.0, (1.0,), 0), (3, None, 4.0, (2.0,), 0)]

    path, _ = write(fields, batch_of(rows, fields))

    group = footer(path).metadata.row_group(0)
    stats: list[Any] = [group.column(place).statistics for place in range(5)]
    assert (stats[0].min, stats[0].max, stats[2].min, stats[2].max) == (1, 3, 2.0, 4.0)
    assert (stats[1].has_min_max, stats[1].null_count, stats[3], stats[4]) == (False, 1, None, None)
    assert [row[2] for row in rows_of(read(path, fields), fields)] == [2.0, 3.0, 4.0]


def test_nan_of_a_later_row_group_removes_the_ranges_of_all() -> None:
    fields = columns(DOUBLE)
    numbers = np.arange(ROW_GROUP_ROWS, dtype=np.float64)
    schema = to_arrow_schema(fields)
    batches = [pa.RecordBatch.from_arrays([pa.array(each)], schema=schema) for each in (numbers, np.array([NAN, 1.0]))]

    path, written = write(fields, *batches)

    metadata = footer(path).metadata
    assert [metadata.row_group(place).column(0).statistics.has_min_max for place in range(2)] == [False, False]  # type: ignore[union-attr]
    assert written.columns == (ColumnStats(null_count=0),)


def test_small_batches_are_gathered_to_row_groups() -> None:
    fields = columns(BIGINT)
    batches = [
        pa.RecordBatch.from_arrays([pa.array(np.arange(start, start + 1000))], schema=to_arrow_schema(fields))
        for start in range(0, 300_000, 1000)
    ]

    path, written = write(fields, *batches)

    metadata = footer(path).metadata
    sizes = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    assert sizes == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 300_000 - 2 * ROW_GROUP_ROWS]
    assert written.row_count == 300_000
    assert [row[0] for row in rows_of(read(path, fields, batch_rows=70_000), fields)] == list(range(300_000))


def test_a_large_batch_is_cut_into_row_groups() -> None:
    fields = columns(BIGINT)
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(400_000))], schema=to_arrow_schema(fields))

    path, _ = write(fields, batch)

    metadata = footer(path).metadata
    assert [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)] == [
        *[ROW_GROUP_ROWS] * 3,
        400_000 - 3 * ROW_GROUP_ROWS,
    ]


def test_file_block_size_sets_the_size_of_row_groups() -> None:
    fields = columns(BIGINT)
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(40_000))], schema=to_arrow_schema(fields))

    path, _ = write(fields, batch, file__block_size="80 kb")

    assert footer(path).metadata.row_group(0).num_rows == 80 * 1024 // 8


def test_columns_of_few_values_get_a_dictionary_and_others_do_not() -> None:
    rng = np.random.default_rng(7)
    rows = 140_000
    table = {
        "few": pa.array(rng.integers(0, 1000, rows)),
        "many": pa.array(rng.integers(0, 2**60, rows)),
        "sorted": pa.array(np.repeat(np.arange(rows // 2), 2)),
        "word": pa.array(np.array(["north", "south"])[rng.integers(0, 2, rows)]),
        "noise": pa.array(rng.random(rows)),
        "flag": pa.array(rng.integers(0, 2, rows) == 0),
        "tags": pa.array([["a", "b"]] * rows, pa.list_(pa.field("element", pa.string()))),
    }
    types = (BIGINT, BIGINT, BIGINT, STRING, DOUBLE, BOOLEAN, ArrayType(element=STRING))
    fields = tuple(column(name, kind, place) for place, (name, kind) in enumerate(zip(table, types, strict=True)))

    path, _ = write(fields, pa.RecordBatch.from_arrays(list(table.values()), schema=to_arrow_schema(fields)))

    group = footer(path).metadata.row_group(0)
    encoded = {
        group.column(place).path_in_schema
        for place in range(group.num_columns)
        if group.column(place).has_dictionary_page
    }
    assert encoded == {"few", "word", "tags.list.element"}


def test_options_decide_on_dictionaries_over_the_values() -> None:
    fields = columns(INT, INT)
    batch = batch_of([(1, 1)] * 100, fields)

    off, _ = write(fields, batch, **{"parquet.enable.dictionary": "false", "parquet.enable.dictionary#f1": "true"})

    group = footer(off).metadata.row_group(0)
    assert [group.column(place).has_dictionary_page for place in (0, 1)] == [False, True]


@pytest.mark.parametrize(
    ("option", "codec"),
    [
        ("none", "UNCOMPRESSED"),
        ("snappy", "SNAPPY"),
        ("gzip", "GZIP"),
        ("zstd", "ZSTD"),
        ("lz4_raw", "LZ4"),
        ("lz4", "LZ4"),
        ("brotli", "BROTLI"),
    ],
)
def test_file_compression_sets_the_codec(option: str, codec: str) -> None:
    fields = columns(INT)

    path, _ = write(fields, batch_of([(1,)], fields), file__compression=option)

    assert footer(path).metadata.row_group(0).column(0).compression == codec
    assert rows_of(read(path, fields), fields) == [(1,)]


def test_zstd_level_changes_the_size() -> None:
    fields = columns(STRING)
    rng = np.random.default_rng(3)
    rows = [(" ".join(map(str, rng.integers(0, 50, 20))),) for _ in range(3000)]

    sizes = [
        write(fields, batch_of(rows, fields), **{"file.compression.zstd-level": level})[1].file_size
        for level in ("1", "19")
    ]

    assert sizes[1] < sizes[0] * 0.95


def test_an_unknown_codec_is_refused_with_those_that_work() -> None:
    with pytest.raises(InvalidOptionError, match=r"file\.compression.*lzo.*zstd"):
        write(columns(INT), file__compression="lzo")


def test_a_row_without_fields_is_refused_before_a_byte_is_written() -> None:
    with pytest.raises(UnsupportedFeatureError, match="without fields"):
        FORMATS[FileFormat.PARQUET].open_writer(IO, "memory://parquet-tests/none", columns(RowType()), FormatOptions())


def test_a_null_in_a_not_null_column_is_refused() -> None:
    fields = columns(with_nullability(INT, nullable=False))
    batch = pa.RecordBatch.from_arrays([pa.array([None], pa.int32())], schema=to_arrow_schema(fields))

    with pytest.raises(SchemaMismatchError, match="null"):
        write(fields, batch)


def test_a_null_in_a_not_null_field_is_refused_unless_its_row_is_null() -> None:
    number, text = with_nullability(INT, nullable=False), with_nullability(STRING, nullable=False)
    inner = with_nullability(RowType(fields=(column("z", text),)), nullable=False)
    fields = columns(RowType(fields=(column("x", number), column("y", inner, 1))))
    data_type: Any = to_arrow_schema(fields).field(0).type

    def batch(numbers: list[Any], texts: list[Any]) -> pa.RecordBatch:
        row = pa.StructArray.from_arrays([pa.array(texts, pa.string())], fields=list(data_type.field(1).type))
        children = [pa.array(numbers, pa.int32()), row]
        mask = pa.array([False, True, False])
        array = pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)
        return pa.RecordBatch.from_arrays([array], schema=to_arrow_schema(fields))

    path, _ = write(fields, batch([1, None, 3], ["a", None, "c"]), batch([1, None, 3], ["a", None, "c"]).slice(1))
    rows = [((1, ("a",)),), (None,), ((3, ("c",)),)]
    assert rows_of(read(path, fields), fields) == [*rows, *rows[1:]]
    for numbers, texts in (([1, None, None], ["a", None, "c"]), ([1, 2, 3], ["a", "b", None])):
        writer = FORMATS[FileFormat.PARQUET].open_writer(IO, "memory://parquet-tests/none", fields, FormatOptions())
        writer.write(batch(numbers, texts))
        with pytest.raises(SchemaMismatchError, match="null"):
            writer.close()
        writer.abort()


def test_a_file_without_rows_is_a_file() -> None:
    fields = columns(INT, timestamp_type(9))

    path, written = write(fields)

    assert (written.row_count, written.file_size) == (0, len(IO.read(path)))
    assert read(path, fields) == []


def test_nothing_is_on_storage_before_the_first_row_group_is_full() -> None:
    fields = columns(INT)
    writer = FORMATS[FileFormat.PARQUET].open_writer(IO, "memory://parquet-tests/late.parquet", fields, FormatOptions())

    writer.write(batch_of([(1,)], fields))

    assert not IO.exists("memory://parquet-tests/late.parquet")
    assert writer.buffered_bytes > 0
    writer.abort()
    assert writer.buffered_bytes == 0


def test_abort_deletes_what_was_flushed_and_may_come_twice() -> None:
    fields = columns(BIGINT, timestamp_type(9))
    path = "memory://parquet-tests/aborted.parquet"
    writer = FORMATS[FileFormat.PARQUET].open_writer(IO, path, fields, FormatOptions())
    rows = ROW_GROUP_ROWS
    arrays = [pa.array(np.arange(rows)), pa.array(np.arange(rows)).view(pa.timestamp("ns"))]
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields)))
    assert writer.bytes_written > 0

    writer.abort()
    writer.abort()

    assert not IO.exists(path)


def test_bytes_written_come_near_the_size_of_the_file() -> None:
    fields = columns(BIGINT, STRING)
    rng = np.random.default_rng(1)
    rows = 200_000
    arrays = [pa.array(rng.integers(0, 2**62, rows)), pa.array(rng.integers(0, 9999, rows).astype(str))]
    batch = pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields))
    writer = FORMATS[FileFormat.PARQUET].open_writer(IO, "memory://parquet-tests/size.parquet", fields, FormatOptions())

    for start in range(0, rows, 10_000):
        writer.write(batch.slice(start, 10_000))
    estimate = writer.bytes_written

    assert estimate == pytest.approx(writer.close().file_size, rel=0.1)


@pytest.mark.parametrize("keep", [0, 3, 100, -5])
def test_a_damaged_file_is_named_as_such(keep: int) -> None:
    fields = columns(INT, timestamp_type(9))
    path, _ = write(fields, batch_of([(1, 2)], fields))
    IO.write(path, IO.read(path)[:keep])

    with pytest.raises(FormatError, match=r"f\.parquet"):
        read(path, fields)


def test_damaged_pages_are_named_as_such() -> None:
    fields = columns(STRING)
    path, _ = write(fields, batch_of([(str(place) * 20,) for place in range(1000)], fields))
    data = bytearray(IO.read(path))
    data[40:400] = bytes(360)
    IO.write(path, bytes(data))

    with pytest.raises(FormatError, match=r"f\.parquet"):
        read(path, fields)


def test_a_missing_file_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        read("memory://parquet-tests/nowhere.parquet", columns(INT))


def test_types_that_are_not_those_of_the_column_are_refused() -> None:
    path = put(pa.table({"n": ["text"]}))

    with pytest.raises(FormatError, match="string where int32"):
        read(path, (column("n", INT),))


def test_char_and_varchar_are_written_as_they_come() -> None:
    fields = columns(AtomicType(root=TypeRoot.CHAR, length=5), AtomicType(root=TypeRoot.VARCHAR, length=5))

    path, _ = write(fields, batch_of([("ab", "cd  ")], fields))

    assert rows_of(read(path, fields), fields) == [("ab", "cd  ")]
