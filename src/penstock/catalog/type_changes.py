"""Expresses a new column type as changes of its nested fields, elements and values.

Source:
    Paimon ``flink:FlinkCatalog.java`` (``generateNestedColumnUpdates``): fields of a ROW are matched by name, and the
    order of the remaining fields does not change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    DropColumn,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    after,
)
from penstock.catalog.checks.nested import ELEMENT, VALUE
from penstock.errors import InvalidSchemaError
from penstock.format.types.data_types import ArrayType, MapType, RowType, with_nullability
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.catalog.changes import SchemaChange
    from penstock.format.types.data_types import DataType

_CONTAINERS: Final = (RowType, ArrayType, MapType)


def inner_changes(change: UpdateColumnType, old: DataType, new: DataType, table: str) -> tuple[SchemaChange, ...]:
    """Return the changes that turn one type into another if both are ROW, ARRAY or MAP; else the change itself.

    Args:
        change: of the column, whose settings apply to the nested changes.

    Raises:
        InvalidSchemaError: the order of remaining fields, or the key type of a MAP, would change.
    """
    path = (change.column,) if isinstance(change.column, str) else change.column
    if not isinstance(old, _CONTAINERS) or type(old) is not type(new):
        return (change,)
    found = tuple(_changes(change, path, old, new, table))
    if old.nullable != new.nullable and not change.keep_nullability:
        return (*found, UpdateColumnNullability(column=path, nullable=new.nullable))
    return found


def _changes(
    change: UpdateColumnType, path: tuple[str, ...], old: DataType, new: DataType, table: str
) -> Iterator[SchemaChange]:
    if isinstance(old, RowType) and isinstance(new, RowType):
        yield from _row_changes(change, path, (old, new), table)
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _part(change, (*path, ELEMENT), old.element, new.element, table)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        if with_nullability(old.key, nullable=True) != with_nullability(new.key, nullable=True):
            raise InvalidSchemaError(
                f"table {table}: the keys of '{'.'.join(path)}' are {format_sql_type(old.key)}, and the keys of a MAP "
                "keep their type; add a column"
            )
        yield from _part(change, (*path, VALUE), old.value, new.value, table)


def _row_changes(
    change: UpdateColumnType, path: tuple[str, ...], types: tuple[RowType, RowType], table: str
) -> Iterator[SchemaChange]:
    old, new = ({field.name: field for field in each.fields} for each in types)
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        raise InvalidSchemaError(
            f"table {table}: the fields of '{'.'.join(path)}' that remain must keep their order: {', '.join(kept)}"
        )
    yield from (DropColumn(column=(*path, name)) for name in old if name not in new)
    previous = None
    for name, field in new.items():
        inner = (*path, name)
        if name in old:
            yield from _part(change, inner, old[name].type, field.type, table)
            if field.description is not None and field.description != old[name].description:
                yield UpdateColumnComment(column=inner, comment=field.description)
        else:
            position = FIRST if previous is None else after(previous)
            yield AddColumn(column=inner, type=field.type, description=field.description, position=position)
        previous = name


def _part(
    change: UpdateColumnType, path: tuple[str, ...], old: DataType, new: DataType, table: str
) -> Iterator[SchemaChange]:
    if old != new:
        yield from inner_changes(replace(change, column=path, type=new), old, new, table)
