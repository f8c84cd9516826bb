"""Search and edit trees of column types."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidSchemaError, NotFoundError
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
    from collections.abc import Callable, Iterator

ELEMENT: Final = "element"
VALUE: Final = "value"


def edit_type(
    fields: tuple[DataField, ...], path: tuple[str, ...], edit: Callable[[DataType], DataType], table: str
) -> tuple[DataField, ...]:
    """Replace the type at ``path`` by the result of ``edit``.

    Raises:
        NotFoundError: there is no column at the path.
        InvalidSchemaError: the path is empty.
    """
    if not path:
        raise InvalidSchemaError(f"table {table}: an empty column path names no column")
    return _edit_fields(fields, path, 0, edit, table)


def edit_siblings(
    fields: tuple[DataField, ...],
    path: tuple[str, ...],
    edit: Callable[[tuple[DataField, ...]], tuple[DataField, ...]],
    table: str,
) -> tuple[DataField, ...]:
    """Replace the list of fields that contains, or will contain, the last name of ``path``.

    Raises:
        NotFoundError: there is no column at the path without its last name.
        InvalidSchemaError: the column at that path is not a ROW.
    """
    if len(path) == 1:
        return edit(fields)

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise InvalidSchemaError(
                f"table {table}: '{_dotted(path[:-1])}' is not a ROW, so it has no field '{path[-1]}'"
                f" (inside an ARRAY say '{ELEMENT}', inside a MAP '{VALUE}')"
            )
        return replace(data_type, fields=edit(data_type.fields))

    return edit_type(fields, path[:-1], edit_row, table)


def index_of(fields: tuple[DataField, ...], path: tuple[str, ...], table: str) -> int:
    """Return the index of the field with the last name in ``path``. Raises ``NotFoundError``."""
    for index, field in enumerate(fields):
        if field.name == path[-1]:
            return index
    raise _missing(path, fields, table)


def rows_within(data_type: DataType) -> Iterator[RowType]:
    """Yield the outermost ROWs of a type."""
    match data_type:
        case RowType():
            yield data_type
        case ArrayType() | VectorType() | MultisetType():
            yield from rows_within(data_type.element)
        case MapType():
            yield from rows_within(data_type.key)
            yield from rows_within(data_type.value)
        case AtomicType():
            pass


def types_within(data_type: DataType) -> Iterator[DataType]:
    """Yield a type and every type inside it, from the outside in."""
    yield data_type
    match data_type:
        case RowType():
            for field in data_type.fields:
                yield from types_within(field.type)
        case ArrayType() | VectorType() | MultisetType():
            yield from types_within(data_type.element)
        case MapType():
            yield from types_within(data_type.key)
            yield from types_within(data_type.value)
        case AtomicType():
            pass


def _edit_fields(
    fields: tuple[DataField, ...], path: tuple[str, ...], depth: int, edit: Callable[[DataType], DataType], table: str
) -> tuple[DataField, ...]:
    index = index_of(fields, path[: depth + 1], table)
    changed = replace(fields[index], type=_edit_inner(fields[index].type, path, depth + 1, edit, table))
    return (*fields[:index], changed, *fields[index + 1 :])


def _edit_inner(
    data_type: DataType, path: tuple[str, ...], depth: int, edit: Callable[[DataType], DataType], table: str
) -> DataType:
    if depth == len(path):
        return edit(data_type)
    match data_type:
        case RowType():
            return replace(data_type, fields=_edit_fields(data_type.fields, path, depth, edit, table))
        case ArrayType() | VectorType() | MultisetType() if path[depth] == ELEMENT:
            return replace(data_type, element=_edit_inner(data_type.element, path, depth + 1, edit, table))
        case MapType() if path[depth] == VALUE:
            return replace(data_type, value=_edit_inner(data_type.value, path, depth + 1, edit, table))
        case _:
            raise _missing(path[: depth + 1], (), table)


def _missing(path: tuple[str, ...], siblings: tuple[DataField, ...], table: str) -> NotFoundError:
    names = ", ".join(field.name for field in siblings)
    hint = f"; there are: {names}" if names else ""
    return NotFoundError(f"table {table}: there is no column '{_dotted(path)}'{hint}")


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)
