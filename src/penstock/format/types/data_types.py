"""Column types of a table, as values; ``text`` has their text form on disk.

Source:
    Paimon ``api:types/*.java``; docs/spec/format.md section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

MAX_LENGTH: Final = 2_147_483_647


class TypeRoot(StrEnum):
    """Kinds of atomic types; the value is the keyword on disk (TIMESTAMP_LTZ is spelled out there)."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    VARIANT = "VARIANT"
    BLOB = "BLOB"
    GEOMETRY = "GEOMETRY"
    GEOGRAPHY = "GEOGRAPHY"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicType:
    """A type without element types.

    Attributes:
        root: the kind.
        length: CHAR, VARCHAR, BINARY, VARBINARY: characters or bytes; ``MAX_LENGTH`` is STRING / BYTES.
        precision: DECIMAL: digits; TIME, TIMESTAMP, TIMESTAMP_LTZ: digits of the fraction of a second.
        scale: DECIMAL only.
        parameters: GEOMETRY, GEOGRAPHY: the text between the parentheses, unchanged.
        nullable: whether null is allowed.
    """

    root: TypeRoot
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    parameters: str | None = None
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    """A list of values of one type."""

    element: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorType:
    """A fixed-length list of values of one type."""

    element: DataType
    length: int
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """A map from keys to values."""

    key: DataType
    value: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MultisetType:
    """A set of elements with counts; stored like MAP<element, INT NOT NULL>."""

    element: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DataField:
    """A column, or a field of a ROW.

    Attributes:
        id: stays with the column through renames; never used again.
        default_value: literal text cast to the type when a row has null here; None when there is none.
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowType:
    """A record of named fields."""

    fields: tuple[DataField, ...] = field(default=())
    nullable: bool = True


DataType: TypeAlias = AtomicType | ArrayType | VectorType | MapType | MultisetType | RowType


def with_nullability(data_type: DataType, *, nullable: bool) -> DataType:
    """Return the type with the given nullability."""
    return replace(data_type, nullable=nullable)


INTEGER_BITS: Final = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}
INTEGERS: Final = tuple(INTEGER_BITS)
"""The integers, from the smallest."""
VECTOR_ELEMENTS: Final = frozenset({TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.FLOAT, TypeRoot.DOUBLE})
STRING: Final = AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH)
BYTES: Final = AtomicType(root=TypeRoot.VARBINARY, length=MAX_LENGTH)
BOOLEAN: Final = AtomicType(root=TypeRoot.BOOLEAN)
TINYINT: Final = AtomicType(root=TypeRoot.TINYINT)
SMALLINT: Final = AtomicType(root=TypeRoot.SMALLINT)
INT: Final = AtomicType(root=TypeRoot.INT)
BIGINT: Final = AtomicType(root=TypeRoot.BIGINT)
FLOAT: Final = AtomicType(root=TypeRoot.FLOAT)
DOUBLE: Final = AtomicType(root=TypeRoot.DOUBLE)
DATE: Final = AtomicType(root=TypeRoot.DATE)


def decimal_type(precision: int, scale: int) -> AtomicType:
    """Return DECIMAL(precision, scale)."""
    return AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale)


def time_type(precision: int) -> AtomicType:
    """Return TIME(precision)."""
    return AtomicType(root=TypeRoot.TIME, precision=precision)


def timestamp_type(precision: int, *, local_zone: bool = False) -> AtomicType:
    """Return TIMESTAMP(precision), or TIMESTAMP(precision) WITH LOCAL TIME ZONE."""
    return AtomicType(root=TypeRoot.TIMESTAMP_LTZ if local_zone else TypeRoot.TIMESTAMP, precision=precision)
