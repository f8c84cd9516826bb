"""Rows that were written come back, in every file format, and no value lies outside of its column's statistics."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import fields
from tests.support.strategies_manifest import rows
from tests.unit.datafile.arrays import batch_of, rows_of

from penstock.datafile.formats import FORMATS, WrittenFile
from penstock.datafile.types import to_arrow_schema
from penstock.format.layout import FileFormat
from penstock.format.types.data_types import (
    INT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.io.memory import MemoryFileIO
from penstock.options import FormatOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.format.manifest.stats import ColumnStats

FILE_IO: Final = MemoryFileIO("round-trip")
ONE_MILLI: Final = 10**6
NANOS_END: Final = 2**63


def supported(data_type: DataType, file_format: FileFormat) -> bool:
    parts = parts_of(data_type)
    if isinstance(data_type, AtomicType):
        return is_supported_atom(data_type, file_format)
    if isinstance(data_type, VectorType) and file_format is not FileFormat.PARQUET:
        return False
    if isinstance(data_type, RowType) and not parts:
        return file_format is FileFormat.AVRO and data_type.nullable
    return all(supported(part, file_format) for part in parts)


def parts_of(data_type: DataType) -> list[DataType]:
    match data_type:
        case ArrayType(element=element) | VectorType(element=element) | MultisetType(element=element):
            return [element]
        case MapType(key=key, value=value):
            return [key, value]
        case RowType(fields=inner):
            return [field.type for field in inner]
        case AtomicType():
            return []


def is_supported_atom(data_type: AtomicType, file_format: FileFormat) -> bool:
    if data_type.root is TypeRoot.VARIANT:
        return file_format is FileFormat.PARQUET
    if file_format is not FileFormat.AVRO:
        return True
    finest = {TypeRoot.TIMESTAMP: 6, TypeRoot.TIMESTAMP_LTZ: 6, TypeRoot.TIME: 3}
    return (data_type.precision or 0) <= finest.get(data_type.root, 38)


def normal(value: Any, data_type: DataType, file_format: FileFormat) -> Any:
    """Change a drawn value to one that the format keeps: keys that are there and differ, timestamps in range."""
    if value is None:
        return None
    match data_type:
        case AtomicType():
            return normal_atom(value, data_type, file_format)
        case ArrayType(element=element) | VectorType(element=element):
            return [normal(item, element, file_format) for item in value]
        case MultisetType(element=element):
            return pairs([(normal(item, element, file_format), count) for item, count in value])
        case MapType(key=key, value=inner):
            return pairs([(normal(one, key, file_format), normal(two, inner, file_format)) for one, two in value])
        case RowType(fields=inner_fields):
            return tuple(normal(item, field.type, file_format) for item, field in zip(value, inner_fields, strict=True))


def normal_atom(value: Any, data_type: AtomicType, file_format: FileFormat) -> Any:
    if data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        if (data_type.precision or 0) > 6 and not -NANOS_END <= value < NANOS_END:
            value = value % NANOS_END
        is_early_fraction = file_format is FileFormat.ORC and value < 0
        return value - value % ONE_MILLI if is_early_fraction else value
    if data_type.root is TypeRoot.CHAR and file_format is FileFormat.ORC:
        return value.rstrip(" ")
    return value


def pairs(found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return list({repr(key): (key, value) for key, value in found if key is not None}.values())


def small_vectors(data_type: DataType) -> DataType:
    match data_type:
        case VectorType(element=element, length=length):
            return replace(data_type, element=small_vectors(element), length=length % 3 + 1)
        case ArrayType(element=element) | MultisetType(element=element):
            return replace(data_type, element=small_vectors(element))
        case MapType(key=key, value=value):
            return replace(data_type, key=small_vectors(key), value=small_vectors(value))
        case RowType(fields=inner):
            return replace(data_type, fields=tuple(replace(field, type=small_vectors(field.type)) for field in inner))
        case _:
            return data_type


def avro_named(data_type: DataType) -> DataType:
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element) | VectorType(element=element):
            return replace(data_type, element=avro_named(element))
        case MapType(key=key, value=value):
            return replace(data_type, key=avro_named(key), value=avro_named(value))
        case RowType(fields=inner):
            return replace(
                data_type,
                fields=tuple(
                    replace(field, name=f"n{place}", type=avro_named(field.type)) for place, field in enumerate(inner)
                ),
            )
        case _:
            return data_type


@st.composite
def files(draw: st.DrawFn, file_format: FileFormat) -> tuple[tuple[DataField, ...], list[tuple[Any, ...]]]:
    """Columns that a format can hold, and rows of them."""
    drawn = [replace(field, type=small_vectors(field.type)) for field in draw(fields())]
    if file_format is FileFormat.AVRO:
        drawn = [replace(field, name=f"f{place}", type=avro_named(field.type)) for place, field in enumerate(drawn)]
    kept = [field for field in drawn if supported(field.type, file_format)]
    columns = tuple(kept) or (DataField(id=0, name="c", type=INT),)
    found = draw(st.lists(rows([field.type for field in columns]), min_size=1, max_size=8))
    return columns, [
        tuple(normal(value, field.type, file_format) for value, field in zip(row, columns, strict=True))
        for row in found
    ]


def write(
    file_format: FileFormat, columns: tuple[DataField, ...], batches: list[pa.RecordBatch]
) -> tuple[str, WrittenFile]:
    path = f"memory://round-trip/{uuid.uuid4()}.{file_format}"
    writer = FORMATS[file_format].open_writer(FILE_IO, path, columns, FormatOptions())
    for batch in batches:
        writer.write(batch)
    return path, writer.close()


# A drawn table costs as much as fifty drawn numbers.
@pytest.mark.parametrize("file_format", FileFormat)
@settings(max_examples=max(15, settings().max_examples // 20))
@given(data=st.data())
def test_what_is_written_is_read(file_format: FileFormat, data: st.DataObject) -> None:
    columns, expected = data.draw(files(file_format))
    whole = batch_of(expected, columns)
    cut = data.draw(st.integers(0, len(expected)))
    path, written = write(file_format, columns, [whole.slice(0, cut), whole.slice(cut)])

    batch_rows = data.draw(st.integers(1, 10))
    read = list(FORMATS[file_format].read(FILE_IO, path, columns, batch_rows=batch_rows))

    assert all(0 < batch.num_rows <= batch_rows for batch in read)
    assert all(batch.schema.equals(to_arrow_schema(columns), check_metadata=True) for batch in read)
    for batch in read:
        batch.validate(full=True)
    assert rows_of(read, columns) == expected
    assert written.row_count == len(expected)
    assert written.file_size == len(FILE_IO.read(path))
    for place, stats in enumerate(written.columns):
        check_stats(stats, [row[place] for row in expected])


def check_stats(stats: ColumnStats | None, values: list[Any]) -> None:
    if stats is None:
        return
    some = [value for value in values if value is not None]
    assert stats.null_count == len(values) - len(some)
    if stats.min is not None:
        assert stats.min == min(some)
        assert stats.max == max(some)


@pytest.mark.parametrize("file_format", FileFormat)
@given(data=st.data())
def test_ranges_of_rows_are_those_of_the_whole(file_format: FileFormat, data: st.DataObject) -> None:
    columns = (DataField(id=0, name="n", type=AtomicType(root=TypeRoot.INT)),)
    count = data.draw(st.integers(1, 40))
    path, _ = write(file_format, columns, [batch_of([(number,) for number in range(count)], columns)])
    bounds = sorted(data.draw(st.lists(st.integers(0, 45), max_size=6)))
    ranges = list(zip(bounds[::2], bounds[1::2], strict=False))

    read = FORMATS[file_format].read(FILE_IO, path, columns, batch_rows=7, ranges=ranges)

    expected = [number for low, high in ranges for number in range(low, min(high, count))]
    assert [row[0] for row in rows_of(list(read), columns)] == expected
