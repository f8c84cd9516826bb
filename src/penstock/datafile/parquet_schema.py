"""The Parquet schema of a data file, as an Arrow schema that makes pyarrow write it.

Source:
    Paimon ``format:parquet/ParquetSchemaConverter.java``, ``api:table/SpecialFields.java``; spec/format.md section 8.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.datafile.int96 import INT96_CARRIER
from penstock.datafile.types import ArrowAny, map_parts, timestamp_precision, to_arrow_type
from penstock.spec.types import (
    BYTES,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    with_nullability,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STRUCTURED_ID_BASE: Final = 536_870_911
_ID_STRIDE: Final = 1024
_VARIANT_PARTS: Final = tuple(pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One physical column of a file.

    Attributes:
        path: as Parquet spells it, levels joined with dots.
        place: the table's column that it belongs to.
        data_type: of the values.
        is_nested: below an ARRAY, MAP or ROW.
    """

    path: str
    place: int
    data_type: AtomicType
    is_nested: bool

    @property
    def is_int96(self) -> bool:
        """Whether the values are timestamps of the old 12-byte kind."""
        return is_int96_type(self.data_type)


def is_int96_type(data_type: DataType) -> bool:
    """Timestamps of more than six digits, for which no reader before Paimon 2.0 knows another physical type."""
    return (
        isinstance(data_type, AtomicType)
        and data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
        and timestamp_precision(data_type) > 6
    )


def has_int96(data_type: DataType) -> bool:
    """Whether the type is, or holds at any depth, a timestamp that is written as INT96."""
    match data_type:
        case AtomicType():
            return is_int96_type(data_type)
        case ArrayType() | VectorType():
            return has_int96(data_type.element)
        case MapType() | MultisetType():
            return any(has_int96(part) for part in map_parts(data_type))
        case RowType():
            return any(has_int96(field.type) for field in data_type.fields)


def to_parquet_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Arrow schema with the field ids of every level."""
    return pa.schema([_field(field.name, field.type, field.id, field.id, 0) for field in fields])


def leaves_of(fields: Sequence[DataField]) -> tuple[Leaf, ...]:
    """Physical columns in file order."""
    return tuple(
        replace(leaf, place=place)
        for place, field in enumerate(fields)
        for leaf in _leaves(field.name, field.type, is_nested=False)
    )


def _field(name: str, data_type: DataType, parquet_id: int, field_id: int, depth: int) -> pa.Field[Any]:
    """Arrow field that carries ``parquet_id``; ``field_id`` and ``depth`` number the levels below it."""
    arrow_type = _type(data_type, field_id, depth)
    return pa.field(name, arrow_type, nullable=data_type.nullable, metadata=_id_metadata(parquet_id))


def _id_metadata(parquet_id: int) -> dict[bytes | str, bytes | str]:
    return {"PARQUET:field_id": str(parquet_id)}


def _type(data_type: DataType, field_id: int, depth: int) -> ArrowAny:
    below = depth + 1
    # Elements and values are numbered upwards from the base, keys downwards.
    upper = _STRUCTURED_ID_BASE + _ID_STRIDE * field_id + below
    lower = _STRUCTURED_ID_BASE - _ID_STRIDE * field_id - below
    match data_type:
        case AtomicType(root=TypeRoot.VARIANT):
            return pa.struct([part.with_metadata(_id_metadata(place)) for place, part in enumerate(_VARIANT_PARTS)])
        case AtomicType():
            return INT96_CARRIER if is_int96_type(data_type) else to_arrow_type(data_type)
        case ArrayType():
            return pa.list_(_field("element", data_type.element, upper, field_id, below))
        case VectorType():
            return pa.list_(_field("element", data_type.element, upper, field_id, below), data_type.length)
        case MapType() | MultisetType():
            key_type, value_type = map_parts(data_type)
            key: ArrowAny = _field("key", with_nullability(key_type, nullable=False), lower, field_id, below)
            value: ArrowAny = _field("value", value_type, upper, field_id, below)
            return pa.map_(key, value)
        case RowType():
            return pa.struct([_field(field.name, field.type, field.id, field.id, 0) for field in data_type.fields])


def _leaves(path: str, data_type: DataType, *, is_nested: bool) -> Iterator[Leaf]:
    match data_type:
        case AtomicType(root=TypeRoot.VARIANT):
            for child in _VARIANT_PARTS:
                yield Leaf(path=f"{path}.{child.name}", place=0, data_type=BYTES, is_nested=True)
        case AtomicType():
            yield Leaf(path=path, place=0, data_type=data_type, is_nested=is_nested)
        case ArrayType() | VectorType():
            yield from _leaves(f"{path}.list.element", data_type.element, is_nested=True)
        case MapType() | MultisetType():
            for name, part in zip(("key", "value"), map_parts(data_type), strict=True):
                yield from _leaves(f"{path}.key_value.{name}", part, is_nested=True)
        case RowType():
            for field in data_type.fields:
                yield from _leaves(f"{path}.{field.name}", field.type, is_nested=True)
