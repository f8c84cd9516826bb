"""Ids of columns and ROW fields, and reserved column names.

Source:
    Paimon ``api:types/ReassignFieldId.java``, ``api:table/SpecialFields.java``; docs/spec/format.md section 2.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SYSTEM_FIELD_ID_START: Final = 1_073_741_823
"""First id that is reserved by the format; such ids do not count for ``highest_field_id``."""

SYSTEM_FIELD_IDS: Final = {
    "_SEQUENCE_NUMBER": 2_147_483_646,
    "_VALUE_KIND": 2_147_483_645,
    "_LEVEL": 2_147_483_644,
    "rowkind": 2_147_483_643,
    "_ROW_ID": 2_147_483_642,
}
KEY_FIELD_PREFIX: Final = "_KEY_"


class Column(Protocol):
    """A column without an id; ``ddl.ColumnSpec`` and ``DataField`` implement it."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def type(self) -> DataType:
        """The column's type; the ids of ROW fields in it are ignored."""

    @property
    def description(self) -> str | None:
        """The column's comment."""

    @property
    def default_value(self) -> str | None:
        """The text of the default value's literal."""


def is_system_name(name: str) -> bool:
    """Whether a column name is reserved, so that users may not use it."""
    return name in SYSTEM_FIELD_IDS or name.startswith(KEY_FIELD_PREFIX)


def assign_field_ids(columns: Iterable[Column]) -> tuple[tuple[DataField, ...], int]:
    """Assign ids to the columns of a new table, from 0 in order, each column before the ROW fields in its type.

    Returns:
        The fields, and the highest assigned id (-1 without columns).
    """
    fields: list[DataField] = []
    highest = -1
    for column in columns:
        field, highest = next_field(
            column.name,
            column.type,
            highest,
            description=column.description,
            default_value=column.default_value,
        )
        fields.append(field)
    return tuple(fields), highest


def next_field(
    name: str,
    data_type: DataType,
    highest_field_id: int,
    *,
    description: str | None = None,
    default_value: str | None = None,
) -> tuple[DataField, int]:
    """Assign ids to a column that is added to a table, and to the ROW fields in its type.

    Args:
        data_type: the ids of ROW fields in it are ignored.
        highest_field_id: of the table's latest schema; ids of dropped columns are never reused.

    Returns:
        The field, and the new highest id.
    """
    field_id = highest_field_id + 1
    numbered, highest = _renumber(data_type, field_id)
    field = DataField(id=field_id, name=name, type=numbered, description=description, default_value=default_value)
    return field, highest


def _renumber(data_type: DataType, highest: int) -> tuple[DataType, int]:
    """Return the type with its ROW fields numbered from ``highest + 1``, and the highest assigned id."""
    match data_type:
        case AtomicType():
            return data_type, highest
        case ArrayType() | VectorType() | MultisetType():
            element, highest = _renumber(data_type.element, highest)
            return replace(data_type, element=element), highest
        case MapType():
            key, highest = _renumber(data_type.key, highest)
            value, highest = _renumber(data_type.value, highest)
            return replace(data_type, key=key, value=value), highest
        case RowType():
            return _renumber_row(data_type, highest)


def _renumber_row(row: RowType, highest: int) -> tuple[RowType, int]:
    fields: list[DataField] = []
    for field in row.fields:
        # Inside a ROW, nested fields get their ids before the field itself, unlike at the top level.
        data_type, highest = _renumber(field.type, highest)
        highest += 1
        fields.append(replace(field, id=highest, type=data_type))
    return replace(row, fields=tuple(fields)), highest


def iter_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Yield the fields and every ROW field in their types, each before those in its type."""
    for field in fields:
        yield field
        yield from _iter_nested(field.type)


def _iter_nested(data_type: DataType) -> Iterator[DataField]:
    match data_type:
        case AtomicType():
            return
        case ArrayType() | VectorType() | MultisetType():
            yield from _iter_nested(data_type.element)
        case MapType():
            yield from _iter_nested(data_type.key)
            yield from _iter_nested(data_type.value)
        case RowType():
            yield from iter_fields(data_type.fields)


def highest_field_id(fields: Iterable[DataField]) -> int:
    """Return the highest id in use, with nested ids and without reserved ones; -1 if there is none."""
    return max((field.id for field in iter_fields(fields) if field.id < SYSTEM_FIELD_ID_START), default=-1)
