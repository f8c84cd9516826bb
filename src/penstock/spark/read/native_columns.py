"""Decide which columns Spark's own Parquet and ORC readers read correctly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.format.file_format import FileFormat
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
    with_nullability,
)
from penstock.spark.types import SPARK_PRECISION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.stats import ColumnStats

_PLAIN: Final = frozenset(
    {
        TypeRoot.VARCHAR,
        TypeRoot.BOOLEAN,
        TypeRoot.BINARY,
        TypeRoot.VARBINARY,
        TypeRoot.DECIMAL,
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DATE,
    }
)
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# Excluded: TIME, which Spark reads in microseconds only, and VARIANT. ORC stores CHAR padded with blanks, and
# timestamps in the writer's zone.
_NATIVE: Final = {
    FileFormat.PARQUET: _PLAIN | _TIMESTAMPS | {TypeRoot.CHAR},
    FileFormat.ORC: _PLAIN,
    FileFormat.AVRO: frozenset[TypeRoot](),
}
FIRST_GREGORIAN_DAY: Final = -141_427
"""Epoch day of 1582-10-15, the first day of the Gregorian calendar in Java's older classes."""

_WIDTHS: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeColumn:
    """How Spark reads a column from a file.

    Attributes:
        field: field to return.
        file_field: field in the file; None if the file does not have it, then all values are null.
        is_cast: whether Spark must widen the type.
    """

    field: DataField
    file_field: DataField | None
    is_cast: bool = False

    @property
    def is_date(self) -> bool:
        """Whether the file holds dates in this column."""
        stored = self.file_field
        return stored is not None and isinstance(stored.type, AtomicType) and stored.type.root is TypeRoot.DATE


def are_gregorian(stats: ColumnStats | None, row_count: int) -> bool:
    """Whether statistics show that Spark reads the dates of an ORC file correctly.

    Spark takes days before 1582-10-15 as Julian dates, but the files of tables have Gregorian dates.
    """
    if stats is None:
        return False
    is_null = stats.null_count == row_count
    return is_null or (isinstance(stats.min, int) and stats.min >= FIRST_GREGORIAN_DAY)


def plan_native_columns(
    file_format: FileFormat, file_fields: Iterable[DataField], fields: tuple[DataField, ...]
) -> tuple[NativeColumn, ...] | None:
    """Return how Spark reads the columns from files of a schema; None if it cannot read one of them correctly.

    Args:
        file_fields: columns of the schema that the files were written with.
        fields: columns to read, at least one.
    """
    by_id = {field.id: field for field in file_fields}
    if not fields or has_names_alike(by_id.values()) or has_names_alike(fields):
        return None  # Spark matches names without regard to case, and a scan needs a column
    if file_format is FileFormat.ORC and any("`" in field.name for field in by_id.values()):
        return None  # to Spark such a name ends at the backquote, and may be that of another column
    columns = []
    for field in fields:
        column = _native_column(file_format, by_id.get(field.id), field)
        if column is None:
            return None
        columns.append(column)
    if all(column.file_field is None for column in columns):
        return None
    return tuple(columns)


def has_names_alike(fields: Iterable[DataField]) -> bool:
    """Whether two names are equal or differ in case only."""
    names = [field.name.lower() for field in fields]
    return len(set(names)) < len(names)


def _native_column(file_format: FileFormat, stored: DataField | None, field: DataField) -> NativeColumn | None:
    if stored is None:
        return NativeColumn(field=field, file_field=None)
    if not _is_native(file_format, stored.type):
        return None
    if file_format is FileFormat.ORC and not _is_safe_in_orc(stored.name, stored.type):
        return None
    if with_nullability(stored.type, nullable=True) == with_nullability(field.type, nullable=True):
        return NativeColumn(field=field, file_field=stored)
    if _is_widening(stored.type, field.type):
        return NativeColumn(field=field, file_field=stored, is_cast=True)
    return None


def _is_native(file_format: FileFormat, data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _is_native(file_format, element)
        case MapType(key=key, value=value):
            return _is_native(file_format, key) and _is_native(file_format, value)
        case MultisetType(element=element):
            return _is_native(file_format, element)
        case RowType(fields=fields):
            return not has_names_alike(fields) and all(_is_native(file_format, field.type) for field in fields)
        case VectorType():
            return False
        case AtomicType(root=root):
            # With more than microseconds, Parquet files have INT96, which Spark reads as TIMESTAMP only.
            is_fine = root in _TIMESTAMPS and (data_type.precision or 0) > SPARK_PRECISION
            return root in _NATIVE[file_format] and not is_fine


def _is_safe_in_orc(name: str, data_type: DataType, *, is_nested: bool = False) -> bool:
    """Whether Spark finds a column in ORC files by its name, and statistics can show that its dates are safe."""
    if "`" in name:
        return False  # Spark does not escape backquotes in names for the ORC library, and reads nulls
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element):
            return _is_safe_in_orc("", element, is_nested=True)
        case MapType(key=key, value=value):
            return all(_is_safe_in_orc("", part, is_nested=True) for part in (key, value))
        case RowType(fields=fields):
            return all(_is_safe_in_orc(field.name, field.type, is_nested=True) for field in fields)
        case AtomicType(root=root):
            return root is not TypeRoot.DATE or not is_nested
        case _:
            return True


def _is_widening(stored: DataType, wanted: DataType) -> bool:
    if not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return False
    if stored.root in _WIDTHS and wanted.root in _WIDTHS:
        return _WIDTHS.index(stored.root) < _WIDTHS.index(wanted.root)
    if stored.root is TypeRoot.VARCHAR and wanted.root is TypeRoot.VARCHAR:
        return (stored.length or 0) <= (wanted.length or 0)
    return stored.root is TypeRoot.FLOAT and wanted.root is TypeRoot.DOUBLE
