"""Search for nulls in ARRAY, MAP and ROW values whose type is NOT NULL; Arrow itself does not check this."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc
from pyarrow import types as arrow

from penstock.table.write.coercion import as_lists, inner_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny


class NestedNull(NamedTuple):
    """Position of a null: the path of field names, and the row of the batch."""

    path: str
    row: int


def has_nested_not_null(data_type: ArrowAny) -> bool:
    """Whether a nested value of the type must not be null."""
    fields = inner_fields(data_type)
    if arrow.is_map(data_type):
        # Arrow itself checks that keys are not null.
        fields = fields[1:]
    return any(not field.nullable or has_nested_not_null(field.type) for field in fields)


def find_nested_null(array: ArrowAny, path: str) -> NestedNull | None:
    """Return the first null found below ``array`` that its type forbids; None when there is none."""
    for field, values, parents in _inner_values(array):
        inner_path = f"{path}.{field.name}"
        if not field.nullable:
            forbidden = values.is_null() if parents is not None else pc.and_(values.is_null(), array.is_valid())
            place = forbidden.index(True).as_py()
            if place >= 0:
                return NestedNull(inner_path, _parent_row(parents, place))
        if has_nested_not_null(field.type):
            found = find_nested_null(values, inner_path)
            if found is not None:
                return NestedNull(found.path, _parent_row(parents, found.row))
    return None


def _parent_row(parents: ArrowAny | None, place: int) -> int:
    return place if parents is None else int(parents[place].as_py())


def _inner_values(array: ArrowAny) -> Iterator[tuple[ArrowAny, ArrowAny, ArrowAny | None]]:
    """Yield the nested arrays with, for each of their values, the index of the outer one (None: the same index)."""
    data_type = array.type
    if arrow.is_struct(data_type):
        # flatten() marks the children of a null struct as null, too; the caller must not count these.
        for field, values in zip(data_type, array.flatten(), strict=True):
            yield field, values, None
    elif arrow.is_map(data_type):
        lists = as_lists(array)
        entries: ArrowAny = pc.list_flatten(lists)
        yield data_type.item_field, entries.field(1), pc.list_parent_indices(lists)
    elif arrow.is_list(data_type) or arrow.is_fixed_size_list(data_type):
        yield data_type.value_field, pc.list_flatten(array), pc.list_parent_indices(array)
