"""Build the Parquet schema of a data file, as the Arrow schema with which pyarrow writes it.

Source:
    Paimon ``format:parquet/ParquetSchemaConverter.java``, ``api:table/SpecialFields.java``;
    docs/spec/format.md section 8.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.datafile.field_numbers import VARIANT_PARTS, to_numbered_schema
from penstock.datafile.int96 import INT96_CARRIER
from penstock.datafile.types import map_parts, timestamp_precision, to_arrow_type
from penstock.format.types.data_types import (
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
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One physical column of a file.

    Attributes:
        path: Parquet's path, levels joined with dots.
        place: index of the table's column to which it belongs.
        data_type: type of the values.
        is_nested: whether it is below an ARRAY, MAP or ROW.
    """

    path: str
    place: int
    data_type: AtomicType
    is_nested: bool

    @property
    def is_int96(self) -> bool:
        """Whether the values are timestamps of the old 12-byte type."""
        return is_int96_type(self.data_type)


def is_int96_type(data_type: AtomicType) -> bool:
    """Whether the type is a timestamp of more than six digits: readers before Paimon 2.0 support only INT96 for it."""
    is_timestamp = data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
    return is_timestamp and timestamp_precision(data_type) > 6


def to_parquet_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Return the Arrow schema with the field ids of every level."""
    return to_numbered_schema(fields, key="PARQUET:field_id", to_arrow=_atomic_type)


def _atomic_type(data_type: AtomicType) -> pa.DataType:
    return INT96_CARRIER if is_int96_type(data_type) else to_arrow_type(data_type)


def leaves_of(fields: Sequence[DataField]) -> tuple[Leaf, ...]:
    """Return the physical columns in file order."""
    return tuple(
        replace(leaf, place=place)
        for place, field in enumerate(fields)
        for leaf in _leaves(field.name, field.type, is_nested=False)
    )


def _leaves(path: str, data_type: DataType, *, is_nested: bool) -> Iterator[Leaf]:
    match data_type:
        case AtomicType(root=TypeRoot.VARIANT):
            for child in VARIANT_PARTS:
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
