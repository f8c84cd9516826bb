"""ORC files: their schema, timestamps at the edges, and what is refused."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc
from tests.unit.datafile.arrays import batch_of, column, columns, rows_of

from penstock.datafile.formats import FORMATS
from penstock.datafile.orc.reader import WideTimestamps, is_beyond_nanoseconds
from penstock.datafile.orc.rle import decode_unsigned
from penstock.datafile.orc.tail import read_tail
from penstock.datafile.types import to_arrow_schema
from penstock.errors import FormatError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.layout import FileFormat
from penstock.format.manifest.stats import ColumnStats
from penstock.format.schema import decode_schema
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    decimal_type,
    time_type,
    timestamp_type,
)
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "data" / "warehouse"
IO: Final = MemoryFileIO("orc-tests")
PATH: Final = "memory://orc-tests/f.orc"
SECOND: Final = 10**9
FIRST: Final = -(2**63) // 10**6 * 10**6 + 10**6  # the first whole millisecond of int64 nanoseconds
YEAR_1: Final = -62_135_596_800 * SECOND
YEAR_9999: Final = 253_402_300_799 * SECOND


def write(fields: tuple[DataField, ...], *batches: pa.RecordBatch, **options: str) -> Any:
    IO.delete(PATH)
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    writer = FORMATS[FileFormat.ORC].open_writer(IO, PATH, fields, FormatOptions.parse(keys))
    for batch in batches:
        writer.write(batch)
    return writer.close()


def read(fields: tuple[DataField, ...], **how: Any) -> list[Any]:
    return rows_of(list(FORMATS[FileFormat.ORC].read(IO, PATH, fields, **{"batch_rows": 1000, **how})), fields)


def written_file() -> Any:
    return orc.ORCFile(io.BytesIO(IO.read(PATH)))


def test_every_level_has_its_field_id() -> None:
    fields = (
        column("n", INT, 3),
        column("a", ArrayType(element=INT), 24),
        column("m", MapType(key=STRING, value=RowType(fields=(column("x", INT, 26),))), 25),
    )

    write(fields, batch_of([(1, [2], [("k", (3,))])], fields))

    schema = written_file().schema
    key = b"paimon.id"
    assert schema.field("n").metadata[key] == b"3"
    assert schema.field("a").type.value_field.metadata[key] == b"536895488"
    assert schema.field("m").type.key_field.metadata[key] == b"536845310"
    assert schema.field("m").type.item_field.metadata[key] == b"536896512"
    assert schema.field("m").type.item_field.type.field("x").metadata[key] == b"26"


def test_time_is_an_int_of_milliseconds_at_any_depth() -> None:
    fields = columns(time_type(3), ArrayType(element=time_type(0)), MultisetType(element=STRING))
    rows = [(5, [1, None], [("a", 2)]), (None, None, []), (86_399_999, [], None)]

    write(fields, batch_of(rows, fields))

    schema = written_file().schema
    assert schema.field("f0").type == pa.int32()
    assert schema.field("f1").type.value_type == pa.int32()
    assert read(fields) == rows


@pytest.mark.parametrize(
    "values",
    [
        [YEAR_1, YEAR_9999 + 999_999_000, None],
        [YEAR_9999, None, 0, 1_000],
        [FIRST, 2**63 - 1],
        [-1_000_000, -5_500_000_000, -86_400 * SECOND * 36_500],
        [None, None],
    ],
)
def test_timestamps_of_all_years_come_back(values: list[int | None]) -> None:
    precision = 9 if FIRST in values else 6
    times = timestamp_type(precision)
    row = RowType(fields=(column("t", times, 4), column("n", INT, 5)))
    fields = (
        column("n", INT, 0),
        column("t", times, 1),
        column("a", ArrayType(element=times), 2),
        column("r", row, 3),
        column("m", MapType(key=INT, value=timestamp_type(precision, local_zone=True)), 6),
    )
    rows = [
        (place, value, None if value is None else [value, None], None if value is None else (value, 1), [(1, value)])
        for place, value in enumerate(values)
    ]

    write(fields, batch_of(rows, fields))

    assert read(fields) == rows
    assert read(fields[1:2]) == [(value,) for value in values]


def test_stripes_of_far_timestamps_are_read_one_by_one() -> None:
    fields = columns(timestamp_type(3), BIGINT)
    rng = np.random.default_rng(5)
    whole = np.concatenate([rng.integers(YEAR_1 // 10**6, YEAR_9999 // 10**6, 30_000), np.full(20_000, 7)])
    arrays = [pa.array(whole).view(pa.timestamp("ms")), pa.array(np.arange(len(whole)))]
    batch = pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields))

    write(fields, *(batch.slice(start, 5_000) for start in range(0, len(whole), 5_000)), file__block_size="100 kb")

    assert written_file().nstripes > 1
    tail = read_tail(pa.BufferReader(IO.read(PATH)))
    assert is_beyond_nanoseconds(tail, ["f0"])
    assert not is_beyond_nanoseconds(tail, ["f1"])
    assert [row[0] // 10**6 for row in read(fields)] == whole.tolist()


@pytest.mark.parametrize("precision", [6, 9])
def test_digits_below_the_millisecond_before_1970_are_refused(precision: int) -> None:
    fields = columns(INT, ArrayType(element=timestamp_type(precision)))

    with pytest.raises(UnsupportedFeatureError, match=r"f1.*before 1970.*parquet"):
        write(fields, batch_of([(1, [-1_000])], fields))


def test_java_timestamps_before_1582_keep_their_date() -> None:
    table = GOLDEN / "java142.db" / "types_orc"
    fields = decode_schema((table / "schema" / "schema-0").read_bytes(), "schema-0").fields
    wanted = tuple(field for field in fields if field.name in ("c_ts0", "c_ts3", "c_ltz6", "c_date"))
    first = {"c_ts0": YEAR_1, "c_ts3": YEAR_1 + 10**6, "c_ltz6": YEAR_1 + 1000, "c_date": -719_162}
    found = set()
    for path in table.glob("bucket-0/*.orc"):
        IO.write(PATH, path.read_bytes())
        found |= set(read(wanted))

    assert tuple(first[field.name] for field in wanted) in found


def test_what_a_c_writer_wrote_before_1582_is_not_moved() -> None:
    fields = columns(timestamp_type(3))
    values = [YEAR_1, -12_219_292_800 * SECOND - SECOND, YEAR_9999]

    write(fields, batch_of([(value,) for value in values], fields))

    assert not read_tail(pa.BufferReader(IO.read(PATH))).is_julian
    assert [row[0] for row in read(fields)] == values


def test_char_loses_the_blanks_at_its_end_at_any_depth() -> None:
    char = AtomicType(root=TypeRoot.CHAR, length=5)
    fields = columns(char, ArrayType(element=char), STRING)

    write(fields, batch_of([("ab   ", ["c ", None], "d ")], fields))

    assert read(fields) == [("ab", ["c", None], "d ")]


@pytest.mark.parametrize("kind", [RowType, ArrayType, MapType])
def test_values_below_a_null_row_are_not_those_of_the_next(kind: Any) -> None:
    """Arrow has any value there: pyarrow itself makes zeros."""
    inner = RowType(fields=(column("x", INT), column("y", ArrayType(element=STRING), 1)))
    row = RowType(fields=(column("r", inner), column("n", INT, 1)))
    rows = [
        {"r": None, "n": 1},
        {"r": {"x": 7, "y": ["a"]}, "n": None},
        {"r": None, "n": 3},
        {"r": {"x": 8, "y": None}, "n": 4},
    ]
    data_type, given = {
        RowType: (row, rows),
        ArrayType: (ArrayType(element=row), [rows[:2], rows[2:]]),
        MapType: (MapType(key=STRING, value=row), [[("a", rows[0]), ("b", rows[1])], [("a", rows[2]), ("b", rows[3])]]),
    }[kind]
    fields = columns(data_type)
    write(fields, pa.RecordBatch.from_pylist([{"f0": value} for value in given], schema=to_arrow_schema(fields)))
    (found,) = FORMATS[FileFormat.ORC].read(IO, PATH, fields, batch_rows=1000)
    assert found.column(0).to_pylist() == given


def test_slices_with_null_rows_keep_their_nulls() -> None:
    fields = columns(RowType(fields=(column("x", INT, 1),)))
    rows = [((1,),), (None,), ((3,),), (None,), ((5,),)]
    batch = batch_of(rows, fields)

    write(fields, batch.slice(0, 2), batch.slice(2))

    assert read(fields) == rows


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        (INT, [3, None, -1], ColumnStats(min=-1, max=3, null_count=1)),
        (DOUBLE, [1.5, float("nan")], ColumnStats(null_count=0)),
        (DOUBLE, [0.0, 2.5], ColumnStats(min=-0.0, max=2.5, null_count=0)),
        (STRING, ["b", "a"], ColumnStats(min="a", max="b", null_count=0)),
        (BYTES, [b"a", None], ColumnStats(null_count=1)),
        (DATE, [-1, 5], ColumnStats(min=-1, max=5, null_count=0)),
        (time_type(3), [7, 5], ColumnStats(min=5, max=7, null_count=0)),
        (timestamp_type(9), [5, 1], ColumnStats(min=1, max=5, null_count=0)),
        (timestamp_type(3), [5_000_000, None], ColumnStats(min=5_000_000, max=5_000_000, null_count=1)),
        (decimal_type(5, 2), [Decimal("1.25")], ColumnStats(min=Decimal("1.25"), max=Decimal("1.25"), null_count=0)),
        (ArrayType(element=INT), [[1], None], ColumnStats(null_count=1)),
    ],
)
def test_statistics_are_gathered_over_batches(data_type: Any, values: list[Any], expected: ColumnStats) -> None:
    fields = columns(data_type)

    written = write(fields, *(batch_of([(value,)], fields) for value in values))

    assert written.columns == (expected,)
    assert repr(written.columns[0].min) == repr(expected.min)


@pytest.mark.parametrize("data_type", [VectorType(element=INT, length=2), AtomicType(root=TypeRoot.VARIANT)])
def test_types_that_orc_lacks_are_refused_with_their_path(data_type: Any) -> None:
    fields = (column("r", RowType(fields=(column("x", ArrayType(element=data_type), 1),))),)

    with pytest.raises(UnsupportedFeatureError, match=r"'r\.x'.*parquet"):
        FORMATS[FileFormat.ORC].open_writer(IO, PATH, fields, FormatOptions())


@pytest.mark.parametrize(
    ("option", "codec"), [("none", "UNCOMPRESSED"), ("snappy", "SNAPPY"), ("lz4", "LZ4"), ("zlib", "ZLIB")]
)
def test_file_compression_sets_the_codec(option: str, codec: str) -> None:
    fields = columns(timestamp_type(6), STRING)
    rows = [(YEAR_9999 + 1_000 * (place % 7), "x" * 100) for place in range(1000)]

    write(fields, batch_of(rows, fields), file__compression=option)

    assert written_file().compression == codec
    assert read(fields) == rows


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"file\.compression.*brotli"):
        write(columns(INT), file__compression="brotli")


def test_a_file_without_rows_is_a_file() -> None:
    assert write(columns(INT, STRING)).row_count == 0
    assert read(columns(INT, STRING)) == []


def test_columns_that_are_not_there_are_null_and_rows_are_counted_without_any() -> None:
    fields = columns(INT)
    write(fields, batch_of([(1,), (2,)], fields))

    assert read((column("new", STRING), *fields)) == [(None, 1), (None, 2)]
    assert [batch.num_rows for batch in FORMATS[FileFormat.ORC].read(IO, PATH, (), batch_rows=10)] == [2]


def test_abort_deletes_the_file() -> None:
    fields = columns(INT)
    writer = FORMATS[FileFormat.ORC].open_writer(IO, PATH, fields, FormatOptions())
    writer.write(batch_of([(1,)], fields))

    writer.abort()
    writer.abort()

    assert not IO.exists(PATH)


@pytest.mark.parametrize("keep", [0, 3, 60, -5])
def test_a_damaged_file_is_named_as_such(keep: int) -> None:
    fields = columns(timestamp_type(3))
    write(fields, batch_of([(YEAR_9999,)], fields))
    IO.write(PATH, IO.read(PATH)[:keep])

    with pytest.raises(FormatError, match=r"f\.orc"):
        read(fields)


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # the examples of the ORC specification
        ("0a2710", [10_000] * 5),
        ("5e035ca1ab1edeadbeef", [23_713, 43_806, 57_005, 48_879]),
        ("c609020222424246", [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
        (
            "8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8",
            [2030, 2000, 2020, 1000000, *range(2040, 2200, 10)],
        ),
    ],
)
def test_run_length_encoding_is_that_of_the_specification(data: str, expected: list[int]) -> None:
    assert decode_unsigned(bytes.fromhex(data)).tolist() == expected


def test_a_run_that_is_cut_short_is_no_run() -> None:
    with pytest.raises(FormatError, match="cut short"):
        decode_unsigned(bytes.fromhex("5e035ca1ab"))


def test_run_length_encoding_of_lengths_is_what_the_library_wrote() -> None:
    rng = np.random.default_rng(11)
    shapes: list[list[int]] = [
        rng.integers(0, 1000, 2000).tolist(),
        rng.choice([1, 2, 3, 900_000_000], 2000).tolist(),
        list(range(0, 900_000, 300)),
        [999_999_999] * 700,
        (rng.integers(0, 1 << 29, 3000) >> rng.integers(0, 29, 3000)).tolist(),
    ]
    fields = columns(timestamp_type(9))
    for nanos in shapes:
        batch = batch_of([(value,) for value in nanos], fields)
        write(fields, batch, file__compression="none")
        assert read_wide() == nanos


def read_wide() -> list[int]:
    """Read the first column as far timestamps are read, whatever the values."""
    source = pa.BufferReader(IO.read(PATH))
    wide = WideTimestamps.open(source, read_tail(source))
    return [
        value
        for stripe in range(wide.file.nstripes)
        for value in wide.read_stripe(stripe, ["f0"]).column(0).view(pa.int64()).to_pylist()
    ]
