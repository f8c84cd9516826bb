"""Rows of internal values as canonical Arrow and back, apart from the code under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.datafile.types import map_parts, to_arrow_field, to_arrow_schema, to_arrow_type
from penstock.format.types.data_types import (
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

if TYPE_CHECKING:
    from collections.abc import Sequence

UNIT_NANOS: Final = {"ms": 10**6, "us": 10**3, "ns": 1}


def column(name: str, data_type: DataType, number: int = 0) -> DataField:
    """Return a field."""
    return DataField(id=number, name=name, type=data_type)


def columns(*types: DataType) -> tuple[DataField, ...]:
    """Return fields f0, f1, ... of these types."""
    return tuple(column(f"f{number}", data_type, number) for number, data_type in enumerate(types))


def batch_of(rows: Sequence[Sequence[Any]], fields: Sequence[DataField]) -> pa.RecordBatch:
    """Return rows of internal values as a batch of the canonical schema."""
    arrays = [array_of([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
    return pa.RecordBatch.from_arrays(arrays, schema=to_arrow_schema(fields))


def array_of(values: Sequence[Any], data_type: DataType) -> Any:  # noqa: PLR0911 - one per kind of type
    """Return internal values as an array of the canonical type."""
    arrow_type: Any = to_arrow_type(data_type)
    mask = pa.array([value is None for value in values], pa.bool_())
    some = [value for value in values if value is not None]
    match data_type:
        case AtomicType(root=TypeRoot.DATE | TypeRoot.TIME):
            return pa.array(values, pa.int32()).view(arrow_type)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            nanos = UNIT_NANOS[arrow_type.unit]
            return pa.array([None if v is None else v // nanos for v in values], pa.int64()).view(arrow_type)
        case AtomicType(root=TypeRoot.VARIANT):
            parts = [pa.array([b"" if v is None else v[place] for v in values], pa.binary()) for place in (0, 1)]
            return pa.StructArray.from_arrays(parts, fields=list(arrow_type), mask=mask)
        case AtomicType():
            return pa.array(values, arrow_type)
        case VectorType(element=element, length=length):
            flat = [item for v in values for item in (v if v is not None else [filler(element)] * length)]
            return pa.FixedSizeListArray.from_arrays(array_of(flat, element), type=arrow_type, mask=mask)
        case ArrayType(element=element):
            offsets = offsets_of(values)
            flat = [item for value in some for item in value]
            return pa.ListArray.from_arrays(offsets, array_of(flat, element), type=arrow_type, mask=mask)
        case MapType() | MultisetType():
            key, value_type = map_parts(data_type)
            keys = array_of([pair[0] for value in some for pair in value], key)
            items = array_of([pair[1] for value in some for pair in value], value_type)
            return pa.MapArray.from_arrays(offsets_of(values), keys, items, type=arrow_type, mask=mask)
        case RowType(fields=fields):
            children = [
                array_of([filler(field.type) if v is None else v[place] for v in values], field.type)
                for place, field in enumerate(fields)
            ]
            return pa.StructArray.from_arrays(children, fields=[to_arrow_field(field) for field in fields], mask=mask)


def filler(data_type: DataType) -> Any:  # noqa: PLR0911 - one per kind of type
    """Return a value that may stand below a null: not a null itself, so that a reader that shows it is noticed."""
    match data_type:
        case AtomicType(root=TypeRoot.CHAR | TypeRoot.VARCHAR):
            return "?"
        case AtomicType(root=TypeRoot.BINARY | TypeRoot.VARBINARY):
            return b"?"
        case AtomicType(root=TypeRoot.BOOLEAN):
            return True
        case AtomicType(root=TypeRoot.VARIANT):
            return (b"", b"")
        case AtomicType(root=TypeRoot.DECIMAL):
            return 0  # 1 does not fit into DECIMAL(1, 1)
        case AtomicType():
            return 1
        case RowType(fields=fields):
            return tuple(filler(field.type) for field in fields)
        case VectorType(element=element, length=length):
            return [filler(element)] * length
        case _:
            return []


def offsets_of(values: Sequence[Any]) -> pa.Array[Any]:
    """Return the offsets of lists laid end to end."""
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value or ()))
    return pa.array(offsets, pa.int32())


def rows_of(batches: Sequence[pa.RecordBatch], fields: Sequence[DataField]) -> list[tuple[Any, ...]]:
    """Return the rows of batches as internal values."""
    return [
        row
        for batch in batches
        for row in zip(*(values_of(col, f.type) for col, f in zip(batch.columns, fields, strict=True)), strict=True)
    ]


def values_of(array: Any, data_type: DataType) -> list[Any]:
    """Return an array's values as internal values."""
    return [internal(scalar, data_type) for scalar in array]


def internal(scalar: Any, data_type: DataType) -> Any:  # noqa: PLR0911 - one per kind of type
    """Return one scalar as an internal value."""
    if not scalar.is_valid:
        return None
    match data_type:
        case AtomicType(root=TypeRoot.DATE | TypeRoot.TIME):
            return scalar.value
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ):
            return scalar.value * UNIT_NANOS[scalar.type.unit]
        case AtomicType(root=TypeRoot.VARIANT):
            return (scalar["value"].as_py(), scalar["metadata"].as_py())
        case AtomicType():
            return scalar.as_py()
        case ArrayType(element=element) | VectorType(element=element):
            return [internal(item, element) for item in scalar.values]
        case MapType() | MultisetType():
            key, value = map_parts(data_type)
            return [(internal(entry[0], key), internal(entry[1], value)) for entry in scalar.values]
        case RowType(fields=fields):
            return tuple(internal(scalar[place], field.type) for place, field in enumerate(fields))
