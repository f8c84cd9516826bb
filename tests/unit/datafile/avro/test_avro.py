"""Avro files: schemas as Java writes them, and what is refused."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import fastavro
import pytest
from tests.unit.datafile.arrays import batch_of, column, columns, rows_of

from penstock.datafile.avro import columns as columns_module
from penstock.datafile.avro.schema import to_avro_schema, without_logical_types
from penstock.datafile.formats import FORMATS
from penstock.errors import FormatError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.avro.container import decode_container
from penstock.format.layout import FileFormat
from penstock.format.manifest.stats import ColumnStats
from penstock.format.schema import decode_schema
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
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
    with_nullability,
)
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "data" / "warehouse"
IO: Final = MemoryFileIO("avro-tests")
PATH: Final = "memory://avro-tests/f.avro"


def write(fields: tuple[DataField, ...], *batches: Any, **options: str) -> Any:
    IO.delete(PATH)
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    writer = FORMATS[FileFormat.AVRO].open_writer(IO, PATH, fields, FormatOptions.parse(keys))
    for batch in batches:
        writer.write(batch)
    return writer.close()


def read(fields: tuple[DataField, ...], **how: Any) -> list[Any]:
    return rows_of(list(FORMATS[FileFormat.AVRO].read(IO, PATH, fields, **{"batch_rows": 1000, **how})), fields)


@pytest.mark.parametrize("table", ["java142.db/types_avro", "flink131.db/f_types_avro"])
def test_the_schema_is_that_of_java(table: str) -> None:
    fields = decode_schema((GOLDEN / table / "schema" / "schema-0").read_bytes(), "schema-0").fields
    with next((GOLDEN / table).glob("bucket-0/*.avro")).open("rb") as file:
        theirs = json.loads(fastavro.reader(file).metadata["avro.schema"])
    theirs["name"] = f"{theirs.pop('namespace')}.{theirs['name']}"

    assert without_namespace(to_avro_schema(fields)) == without_namespace(theirs)


def without_namespace(schema: Any) -> Any:
    """Names in full or short: the same to a reader."""
    if isinstance(schema, dict):
        found = {key: without_namespace(value) for key, value in schema.items()}
        return {**found, "name": found["name"].rpartition(".")[2]} if "name" in found else found
    return [without_namespace(part) for part in schema] if isinstance(schema, list) else schema


def test_maps_with_other_keys_than_text_are_arrays_of_records() -> None:
    fields = (
        column("m", MapType(key=with_nullability(INT, nullable=False), value=STRING)),
        column("s", MultisetType(element=STRING), 1),
        column("n", MultisetType(element=with_nullability(BIGINT, nullable=False)), 2),
    )

    m, s, n = (field["type"][1] for field in to_avro_schema(fields)["fields"])

    assert m["logicalType"] == "map"
    assert m["items"]["name"].endswith("record_m")
    assert [field["name"] for field in m["items"]["fields"]] == ["key", "value"]
    assert s == {"type": "map", "values": ["null", "int"]}
    assert n["items"]["fields"][0] == {"name": "key", "type": "long"}
    rows = [([(1, "a"), (2, None)], [("x", 3)], [(7, 1)]), (None, [], None)]
    write(fields, batch_of(rows, fields))
    assert read(fields) == rows


def test_local_timestamps_are_named_the_other_way_round() -> None:
    fields = columns(timestamp_type(3), timestamp_type(6, local_zone=True))

    types = [field["type"][1]["logicalType"] for field in to_avro_schema(fields)["fields"]]

    assert types == ["timestamp-millis", "local-timestamp-micros"]


def test_values_of_all_years_and_sizes_come_back() -> None:
    fields = columns(timestamp_type(3), timestamp_type(6, local_zone=True), decimal_type(38, 10), decimal_type(5, 2))
    rows = [
        (-62_135_596_800 * 10**9, 253_402_300_799_999_999_000, Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.01")),
        (-1_000_000, -1_000, Decimal(-128), Decimal("1.28")),
        (None, None, None, None),
    ]

    write(fields, batch_of(rows, fields))

    assert read(fields) == rows


def test_decimals_are_the_fewest_bytes_that_hold_them() -> None:
    fields = columns(decimal_type(10, 2))

    write(fields, batch_of([(Decimal(number) / 100,) for number in (0, 127, 128, -128, -129)], fields))

    raw = without_logical_types(to_avro_schema(fields))
    body = io.BytesIO(next(iter(decode_container(IO.read(PATH), PATH).blocks)).payload)
    stored = [fastavro.schemaless_reader(body, raw, None)["f0"].hex() for _ in range(5)]
    assert stored == ["00", "7f", "0080", "80", "ff7f"]


@pytest.mark.parametrize(
    ("option", "codec"), [("zstd", "zstandard"), ("none", "null"), ("snappy", "snappy"), ("deflate", "deflate")]
)
def test_file_compression_sets_the_codec(option: str, codec: str) -> None:
    fields = columns(INT, STRING)
    rows = [(number, "text") for number in range(20_000)]

    write(fields, batch_of(rows, fields), file__compression=option)

    assert fastavro.reader(io.BytesIO(IO.read(PATH))).metadata["avro.codec"] == codec
    assert read(fields) == rows


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="lz4"):
        write(columns(INT), file__compression="lz4")


@pytest.mark.parametrize(
    ("data_type", "what"),
    [
        (timestamp_type(7), r"TIMESTAMP\(7\)"),
        (timestamp_type(9, local_zone=True), r"TIMESTAMP_LTZ\(9\)"),
        (time_type(6), r"TIME\(6\)"),
        (VectorType(element=INT, length=2), "VECTOR"),
        (AtomicType(root=TypeRoot.VARIANT), "VARIANT"),
    ],
)
def test_types_that_avro_lacks_are_refused_with_their_column(data_type: Any, what: str) -> None:
    fields = (column("r", RowType(fields=(column("x", ArrayType(element=data_type), 1),))),)

    with pytest.raises(UnsupportedFeatureError, match=f"'r_x'.*{what}"):
        FORMATS[FileFormat.AVRO].open_writer(IO, PATH, fields, FormatOptions())


def test_rows_and_items_that_take_no_bytes_are_refused_as_readers_refuse_them() -> None:
    nothing = with_nullability(RowType(fields=()), nullable=False)
    nested = with_nullability(RowType(fields=(column("x", nothing),)), nullable=False)

    for fields in (columns(nothing), columns(nested), columns(INT, ArrayType(element=nested))):
        with pytest.raises(UnsupportedFeatureError, match=r"without fields.*parquet"):
            FORMATS[FileFormat.AVRO].open_writer(IO, PATH, fields, FormatOptions())

    kept = columns(nothing, ArrayType(element=RowType(fields=())))
    rows = [((), [(), None]), ((), None)]
    write(kept, batch_of(rows, kept))
    assert read(kept) == rows


@pytest.mark.parametrize("inner", [ArrayType(element=INT), MapType(key=INT, value=INT)])
def test_nested_rows_of_the_same_name_are_refused(inner: Any) -> None:
    row = RowType(fields=(column("x", INT),))
    nested = RowType(fields=(column("b", ArrayType(element=row)), column("c", inner)))
    with pytest.raises(UnsupportedFeatureError, match=r"'a_b'.*rename one"):
        FORMATS[FileFormat.AVRO].open_writer(IO, PATH, (column("a", nested), column("a_b", row)), FormatOptions())
    kept = (column("a", nested), column("a_d", row))
    rows = [(([(1,), None], None), (2,))]
    write(kept, batch_of(rows, kept))
    assert read(kept) == rows


@pytest.mark.parametrize("name", ["a b", "é", "1a", "a.b", "a-b"])
def test_names_that_avro_lacks_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="rename"):
        FORMATS[FileFormat.AVRO].open_writer(IO, PATH, (column(name, INT),), FormatOptions())


def test_only_wanted_columns_are_read_and_missing_ones_are_null() -> None:
    fields = columns(INT, STRING, RowType(fields=(column("x", INT),)))
    write(fields, batch_of([(1, "a", (2,)), (3, "b", None)], fields))

    row = column("f2", RowType(fields=(column("x", INT), column("later", STRING))))
    assert read((fields[1],)) == [("a",), ("b",)]
    assert read((row, column("new", INT), fields[0])) == [((2, None), None, 1), (None, None, 3)]
    assert [batch.num_rows for batch in FORMATS[FileFormat.AVRO].read(IO, PATH, (), batch_rows=10)] == [2]


def test_statistics_leave_out_nested_and_binary_columns() -> None:
    fields = columns(INT, BYTES, ArrayType(element=INT))

    written = write(fields, batch_of([(1, b"x", [1])], fields), batch_of([(None, None, None)], fields))

    assert written.columns == (
        ColumnStats(min=1, max=1, null_count=1),
        ColumnStats(null_count=1),
        ColumnStats(null_count=1),
    )


def test_blocks_are_cut_so_that_the_size_can_be_seen_while_writing() -> None:
    fields = columns(STRING)
    writer = FORMATS[FileFormat.AVRO].open_writer(IO, PATH, fields, FormatOptions.parse({"file.compression": "none"}))

    writer.write(batch_of([("x" * 1000,)] * 500, fields))

    assert writer.bytes_written > 400_000
    assert writer.buffered_bytes < 100_000
    writer.abort()
    writer.abort()
    assert not IO.exists(PATH)


def test_the_children_of_a_long_array_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = columns(INT, ArrayType(element=ArrayType(element=INT)), MapType(key=STRING, value=INT))
    rows = [(i, None if i % 3 == 0 else [[i], None, []], [("a", i), ("b", None)]) for i in range(20_000)]
    converted = 0
    atoms = columns_module._atoms

    def count(array: Any, data_type: AtomicType) -> list[Any]:
        nonlocal converted
        converted += len(array)
        return atoms(array, data_type)

    monkeypatch.setattr(columns_module, "_atoms", count)
    write(fields, batch_of(rows, fields).slice(1, 19_998), batch_of(rows, fields).slice(5, 0))
    assert converted <= 6 * 20_000
    assert read(fields) == rows[1:-1]


def test_a_file_without_rows_is_a_file() -> None:
    assert write(columns(INT)).row_count == 0
    assert read(columns(INT)) == []


def test_a_header_longer_than_the_first_read_is_read() -> None:
    fields = tuple(column(f"{'long_name_' * 20}{place}", INT, place) for place in range(500))

    write(fields, batch_of([tuple(range(500))], fields))

    assert read(fields) == [tuple(range(500))]


@pytest.mark.parametrize("keep", [0, 3, 60, -5, -30])
def test_a_damaged_file_is_named_as_such(keep: int) -> None:
    fields = columns(STRING)
    write(fields, batch_of([("x" * 100,)] * 100, fields), file__compression="none")
    IO.write(PATH, IO.read(PATH)[:keep])

    with pytest.raises(FormatError, match=r"f\.avro"):
        read(fields)
