"""Convert column types to and from Arrow: the canonical Arrow schema of a table's rows.

Every record batch between the packages has exactly the schema of ``to_arrow_schema``, nullability included.

A file's schema has a field id at every level.

Source:
    docs/spec/format.md section 2.2 for the types; the Arrow types are Penstock's choice; Paimon
    ``api:table/SpecialFields.java``, ``format:parquet/ParquetSchemaConverter.java``,
    ``format:orc/OrcTypeUtil.java``; docs/spec/format.md sections 8.1 and 8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from penstock.errors import InvalidSchemaError, UnsupportedFeatureError
from penstock.format.schema import types_within
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
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
from penstock.format.types.ddl import ColumnSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


ArrowAny: TypeAlias = Any
"""A pyarrow object of a kind that the caller knows: pyarrow's stubs do not distinguish kinds of types and arrays."""

MAX_DECIMAL_PRECISION: Final = 38
_MULTISET_COUNT: Final = AtomicType(root=TypeRoot.INT, nullable=False)

_PLAIN_ARROW: Final[dict[TypeRoot, pa.DataType]] = {
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INT: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.DATE: pa.date32(),
    # For any precision: the format stores whole milliseconds of the day.
    TypeRoot.TIME: pa.time32("ms"),
    TypeRoot.VARIANT: pa.struct(
        [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
    ),
}


def timestamp_unit(precision: int) -> Literal["ms", "us", "ns"]:
    """Return the Arrow unit of a TIMESTAMP with that many digits: ``ms``, ``us`` or ``ns``."""
    if precision <= 3:
        return "ms"
    return "us" if precision <= 6 else "ns"


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the canonical Arrow type of a column type."""
    match data_type:
        case AtomicType():
            return _atomic_to_arrow(data_type)
        case ArrayType():
            return pa.list_(_child("element", data_type.element))
        case VectorType():
            return pa.list_(_child("element", data_type.element), data_type.length)
        case MapType():
            return _map_to_arrow(data_type.key, data_type.value)
        case MultisetType():
            return _map_to_arrow(data_type.element, _MULTISET_COUNT)
        case RowType():
            return pa.struct([to_arrow_field(field) for field in data_type.fields])


def to_arrow_field(field: DataField) -> pa.Field[Any]:
    """Return the Arrow field of a column or of a field of a ROW."""
    return pa.field(field.name, to_arrow_type(field.type), nullable=field.type.nullable)


def to_arrow_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the Arrow schema of columns, in their order."""
    return pa.schema([to_arrow_field(field) for field in fields])


def map_parts(data_type: MapType | MultisetType) -> tuple[DataType, DataType]:
    """Return key and value type; the value of a MULTISET is the number of occurrences of the element."""
    if isinstance(data_type, MultisetType):
        return data_type.element, _MULTISET_COUNT
    return data_type.key, data_type.value


def has_leaf(data_type: DataType, applies: Callable[[AtomicType], bool]) -> bool:
    """Whether the type is, or contains at any depth, an atomic type for which ``applies`` is true."""
    return any(isinstance(inner, AtomicType) and applies(inner) for inner in types_within(data_type))


def is_variant(data_type: DataType) -> bool:
    """Whether the type is VARIANT."""
    return isinstance(data_type, AtomicType) and data_type.root is TypeRoot.VARIANT


def is_char(data_type: DataType) -> bool:
    """Whether the type is a CHAR(n), whose values are equal if they differ only in blanks at the end."""
    return isinstance(data_type, AtomicType) and data_type.root is TypeRoot.CHAR


def _child(name: str, data_type: DataType) -> pa.Field[Any]:
    return pa.field(name, to_arrow_type(data_type), nullable=data_type.nullable)


def _map_to_arrow(key: DataType, value: DataType) -> pa.DataType:
    key_field: ArrowAny = _child("key", with_nullability(key, nullable=False))
    value_field: ArrowAny = _child("value", value)
    arrow_type: pa.DataType = pa.map_(key_field, value_field)
    return arrow_type


def _atomic_to_arrow(data_type: AtomicType) -> pa.DataType:
    match data_type.root:
        case TypeRoot.DECIMAL:
            return pa.decimal128(data_type.precision or 10, data_type.scale or 0)
        case TypeRoot.TIMESTAMP:
            return pa.timestamp(timestamp_unit(timestamp_precision(data_type)))
        case TypeRoot.TIMESTAMP_LTZ:
            return pa.timestamp(timestamp_unit(timestamp_precision(data_type)), tz="UTC")
        case TypeRoot.BLOB | TypeRoot.GEOMETRY | TypeRoot.GEOGRAPHY:
            raise UnsupportedFeatureError(
                f"columns of type {data_type.root} cannot be read or written: use BYTES, or leave the column out"
            )
        case root:
            return _PLAIN_ARROW[root]


def timestamp_precision(data_type: AtomicType) -> int:
    """Return the number of digits of the fraction of a second; 6 if the type has none."""
    return 6 if data_type.precision is None else data_type.precision


_ARROW_PLAIN: Final[dict[pa.DataType, AtomicType]] = {
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INT,
    pa.int64(): BIGINT,
    # Unsigned types are mapped to the smallest type that holds all their values.
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    pa.uint64(): decimal_type(20, 0),
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.time32("s"): time_type(0),
    pa.time32("ms"): time_type(3),
}

_UNIT_PRECISION: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def from_arrow_schema(schema: pa.Schema) -> tuple[ColumnSpec, ...]:
    """Return columns that can hold every value of an Arrow schema.

    Descriptions are read from the metadata key ``comment`` of a field, where Spark stores them. Ids inside ROW types
    are positions, to be replaced when the table assigns its field ids.
    """
    return tuple(_from_arrow_column(field) for field in schema)


def _from_arrow_column(field: ArrowAny) -> ColumnSpec:
    comment = (field.metadata or {}).get(b"comment")
    return ColumnSpec(
        name=field.name,
        type=_from_arrow_field(field, field.name),
        description=None if comment is None else comment.decode(),
    )


def _from_arrow_field(field: ArrowAny, path: str) -> DataType:
    return with_nullability(from_arrow_type(field.type, path), nullable=field.nullable)


_NO_TYPE: Final = (
    (pa.types.is_time64, "; cast it to time32('ms'), or create the table with a column of TIME(3), and append"),
    (pa.types.is_duration, "; cast it to int64, a number of its unit"),
    (pa.types.is_null, "; it has no values, from which a type would follow: give the columns as text"),
)


def from_arrow_type(arrow_type: ArrowAny, path: str) -> DataType:
    """Return the nullable column type that holds every value of an Arrow type.

    Args:
        path: name of the column, for messages.
    """
    plain = _ARROW_PLAIN.get(arrow_type)
    if plain is not None:
        return plain
    for applies, convert in _ARROW_COMPOSED:
        if applies(arrow_type):
            return convert(arrow_type, path)
    hint = next((hint for applies, hint in _NO_TYPE if applies(arrow_type)), "; cast it, such as to a string")
    raise InvalidSchemaError(f"column '{path}': Arrow type {arrow_type} has no column type{hint}")


def _from_decimal(arrow_type: ArrowAny, path: str) -> DataType:
    precision, scale = arrow_type.precision, arrow_type.scale
    if precision > MAX_DECIMAL_PRECISION or scale < 0 or scale > precision:
        raise InvalidSchemaError(
            f"column '{path}': {arrow_type} does not fit DECIMAL(p, s) with p up to 38 and s between 0 and p"
        )
    return decimal_type(precision, scale)


def widen_decimals(arrow_type: ArrowAny) -> ArrowAny:
    """Return a type that pyarrow derived from Python values, with the precision 38 for its decimals.

    pyarrow derives the least precision of the values at hand, which later ones of the same column would not fit. Polars
    and DuckDB derive 38, too.
    """
    if pa.types.is_decimal(arrow_type) and arrow_type.precision <= MAX_DECIMAL_PRECISION:
        return pa.decimal128(MAX_DECIMAL_PRECISION, arrow_type.scale)
    if pa.types.is_list(arrow_type):
        return pa.list_(widen_decimals(arrow_type.value_type))
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(widen_decimals(field.type)) for field in arrow_type])
    return arrow_type


def _from_timestamp(arrow_type: ArrowAny, _path: str) -> DataType:
    return timestamp_type(_UNIT_PRECISION[arrow_type.unit], local_zone=arrow_type.tz is not None)


def _from_map(arrow_type: ArrowAny, path: str) -> DataType:
    key = _from_arrow_field(arrow_type.key_field, f"{path}.key")
    return MapType(key=key, value=_from_arrow_field(arrow_type.item_field, f"{path}.value"))


def _from_struct(arrow_type: ArrowAny, path: str) -> DataType:
    return RowType(
        fields=tuple(
            DataField(id=place, name=field.name, type=_from_arrow_field(field, f"{path}.{field.name}"))
            for place, field in enumerate(arrow_type)
        )
    )


def _from_list(arrow_type: ArrowAny, path: str) -> DataType:
    return ArrayType(element=_from_arrow_field(arrow_type.value_field, f"{path}.element"))


def _from_fixed_size_list(arrow_type: ArrowAny, path: str) -> DataType:
    element = _from_arrow_field(arrow_type.value_field, f"{path}.element")
    return VectorType(element=element, length=arrow_type.list_size)


def _is_variable_list(arrow_type: ArrowAny) -> bool:
    return pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)


_ARROW_COMPOSED: Final[tuple[tuple[Callable[[ArrowAny], bool], Callable[[ArrowAny, str], DataType]], ...]] = (
    (pa.types.is_timestamp, _from_timestamp),
    (pa.types.is_decimal, _from_decimal),
    (
        pa.types.is_fixed_size_binary,
        lambda arrow_type, _: AtomicType(root=TypeRoot.BINARY, length=arrow_type.byte_width),
    ),
    (pa.types.is_dictionary, lambda arrow_type, path: from_arrow_type(arrow_type.value_type, path)),
    (pa.types.is_map, _from_map),
    (pa.types.is_struct, _from_struct),
    (_is_variable_list, _from_list),
    (pa.types.is_fixed_size_list, _from_fixed_size_list),
)


VARIANT_PARTS: Final = tuple(pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata"))
"""The fields of a VARIANT, in file order; their ids are their positions."""

_STRUCTURED_ID_BASE: Final = 536_870_911
_ID_STRIDE: Final = 1024


def to_numbered_schema(
    fields: Sequence[DataField], *, key: str, to_arrow: Callable[[AtomicType], pa.DataType]
) -> pa.Schema:
    """Return an Arrow schema whose fields have their ids under the metadata key ``key``.

    Args:
        to_arrow: returns the Arrow type in the file for an atomic type; not called for VARIANT.
    """
    return _Numbering(key, to_arrow).schema(fields)


@dataclass(frozen=True, slots=True)
class _Numbering:
    key: str
    to_arrow: Callable[[AtomicType], pa.DataType]

    def schema(self, fields: Sequence[DataField]) -> pa.Schema:
        return pa.schema([self._column(field) for field in fields])

    def _column(self, field: DataField) -> pa.Field[Any]:
        return self._field(field.name, field.type, field.id, self._type(field.type, field.id, 1))

    def _field(self, name: str, data_type: DataType, number: int, arrow_type: ArrowAny) -> pa.Field[Any]:
        return pa.field(name, arrow_type, nullable=data_type.nullable, metadata=self._metadata(number))

    def _metadata(self, number: int) -> dict[bytes | str, bytes | str]:
        return {self.key: str(number)}

    def _type(self, data_type: DataType, field_id: int, depth: int) -> ArrowAny:
        """Return the type of a field or of a level below it; ``depth`` is that of the next level, for its id."""
        # Elements and values are numbered upwards from the base, keys downwards.
        upper = _STRUCTURED_ID_BASE + _ID_STRIDE * field_id + depth
        lower = _STRUCTURED_ID_BASE - _ID_STRIDE * field_id - depth
        match data_type:
            case AtomicType(root=TypeRoot.VARIANT):
                return pa.struct([part.with_metadata(self._metadata(at)) for at, part in enumerate(VARIANT_PARTS)])
            case AtomicType():
                return self.to_arrow(data_type)
            case ArrayType():
                return pa.list_(self._below("element", data_type.element, upper, field_id, depth))
            case VectorType():
                element = self._below("element", data_type.element, upper, field_id, depth)
                return pa.list_(element, data_type.length)
            case MapType() | MultisetType():
                key_type, value_type = map_parts(data_type)
                key: ArrowAny = self._below("key", with_nullability(key_type, nullable=False), lower, field_id, depth)
                value: ArrowAny = self._below("value", value_type, upper, field_id, depth)
                return pa.map_(key, value)
            case RowType():
                if not data_type.fields:
                    raise UnsupportedFeatureError("a ROW without fields has no place in a Parquet or ORC file: drop it")
                return pa.struct([self._column(field) for field in data_type.fields])

    def _below(self, name: str, data_type: DataType, number: int, field_id: int, depth: int) -> pa.Field[Any]:
        return self._field(name, data_type, number, self._type(data_type, field_id, depth + 1))
