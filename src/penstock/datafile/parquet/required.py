"""Nulls in fields of a ROW that are NOT NULL: where the ROW is null, Arrow may have them, and pyarrow refuses them.

Source:
    Apache Arrow ``cpp:parquet/arrow/path_internal.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.conform import map_with_children, with_children

if TYPE_CHECKING:
    from penstock.datafile.conform import Array
    from penstock.datafile.types import ArrowAny


def has_required(arrow_type: ArrowAny) -> bool:
    """Whether a field of a ROW inside of the type must not be null."""
    if pa.types.is_map(arrow_type):
        return has_required(arrow_type.key_type) or has_required(arrow_type.item_type)
    if pa.types.is_list(arrow_type):
        return has_required(arrow_type.value_type)
    if not pa.types.is_struct(arrow_type):
        return False
    return any(not field.nullable or has_required(field.type) for field in arrow_type)


def without_nulls_below_null(array: Array) -> Array:
    """Return the array with any values, instead of nulls, in the NOT NULL fields of rows that are null.

    Other nulls in such fields stay, so that they are refused.
    """
    return _filled(array, None)


def _filled(array: Array, required_where: Array | None) -> Array:
    """Fill an array and what is inside of it.

    Args:
        required_where: where the array must not be null; None where nothing is known of its nulls, which stay then.
    """
    kind = array.type
    is_null = array.is_null()
    drops = required_where is not None and array.null_count and not pc.any(pc.and_(is_null, required_where)).as_py()
    if pa.types.is_struct(kind) and kind.num_fields:
        below = array.is_valid() if required_where is None else pc.and_(array.is_valid(), required_where)
        children = [_filled(array.field(place), None if field.nullable else below) for place, field in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=None if drops else is_null)
    if pa.types.is_map(kind):
        array = map_with_children(array, kind, _filled(array.keys, None), _filled(array.items, None))
    elif pa.types.is_list(kind):
        array = with_children(array, kind, [_filled(array.values, None)])
    return _without_validity(array) if drops else array


def _without_validity(array: Array) -> Array:
    kind = array.type
    children: list[Any] = []
    buffers = array.buffers()[1:]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        children, buffers = [array.values], buffers[:1]
    elif pa.types.is_fixed_size_list(kind):
        children, buffers = [array.values], []
    return pa.Array.from_buffers(kind, len(array), [None, *buffers], 0, array.offset, children)
