"""Search for values that are longer than the n of their CHAR(n), VARCHAR(n), BINARY(n) or VARBINARY(n).

Java Paimon does not check lengths when it writes; readers may truncate such values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.types import has_leaf, map_parts
from penstock.format.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.format.types.text import format_sql_type
from penstock.table.write.coercion import as_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.datafile.types import ArrowAny

_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BYTES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})


class LongValue(NamedTuple):
    """Position of a value that is too long: path of field names, type as SQL, length, and row of the batch."""

    path: str
    type_text: str
    length: int
    row: int


def has_limit(data_type: DataType) -> bool:
    """Whether the type, or something inside of it, limits the length of values."""
    return has_leaf(data_type, _is_limited)


def find_long_value(array: ArrowAny, data_type: DataType, path: str) -> LongValue | None:
    """Return the first value found that is longer than its type allows; None when there is none.

    Args:
        array: canonical values of the type.
        path: column name, followed by the names of nested fields, separated by dots.
    """
    if not has_limit(data_type):
        return None
    if isinstance(data_type, AtomicType):
        return _find_here(array, data_type, path)
    for name, values, value_type, parents in _inner_values(array, data_type):
        found = find_long_value(values, value_type, f"{path}.{name}")
        if found is not None:
            return found if parents is None else found._replace(row=parents[found.row].as_py())
    return None


def _is_limited(data_type: AtomicType) -> bool:
    return data_type.root in _TEXTS | _BYTES and data_type.length != MAX_LENGTH


def _find_here(array: ArrowAny, data_type: AtomicType, path: str) -> LongValue | None:
    limit = data_type.length or 1
    lengths: ArrowAny = pc.binary_length(array)
    # Most strings are short enough in bytes, so that their characters need not be counted.
    if (pc.max(lengths).as_py() or 0) <= limit:
        return None
    if data_type.root in _TEXTS:
        lengths = pc.utf8_length(array)
    is_longer: ArrowAny = pc.greater(lengths, pa.scalar(limit, pa.int32()))
    row = is_longer.index(True).as_py()
    if row < 0:
        return None
    return LongValue(path, format_sql_type(data_type), lengths[row].as_py(), row)


def _inner_values(array: ArrowAny, data_type: DataType) -> Iterator[tuple[str, ArrowAny, DataType, ArrowAny | None]]:
    """Yield the nested arrays with, for each of their values, the index of the outer one (None: the same index)."""
    match data_type:
        case RowType(fields=fields):
            # flatten() makes the children of null structs null.
            for field, values in zip(fields, array.flatten(), strict=True):
                yield field.name, values, field.type, None
        case MapType() | MultisetType():
            lists = as_lists(array)
            entries: ArrowAny = pc.list_flatten(lists)
            parents = pc.list_parent_indices(lists)
            for place, (name, part) in enumerate(zip(("key", "value"), map_parts(data_type), strict=True)):
                yield name, entries.field(place), part, parents
        case ArrayType(element=element) | VectorType(element=element):
            yield "element", pc.list_flatten(array), element, pc.list_parent_indices(array)
        case _:
            return
