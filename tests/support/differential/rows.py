"""Convert rows to texts that are equal exactly if the values are equal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MICROS: Final = {"s": 10**6, "ms": 10**3, "us": 1}
_NEGATIVE_ZERO: Final = re.compile(r"-0\.0(?=[,\])])")


def texts_of_table(table: pa.Table) -> list[str]:
    """Return the rows of a table as texts, sorted."""
    return _texts(map(list, zip(*map(plain_values, table.columns), strict=True)))


def plain_values(column: pa.ChunkedArray[Any]) -> list[Any]:
    """Return values as Python values, dates as days, times as milliseconds, timestamps as microseconds."""
    return [_plain(cell) for chunk in column.chunks for cell in chunk]


def texts_of_rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return rows of Python values as texts, sorted."""
    return _texts(list(row.values()) for row in rows)


def signless(texts: Iterable[str]) -> list[str]:
    """Return texts of rows without the signs of zeros, sorted."""
    return sorted(_NEGATIVE_ZERO.sub("0.0", text) for text in texts)


def _texts(rows: Iterator[list[Any]] | Iterable[list[Any]]) -> list[str]:
    return sorted(repr(_normal(row)) for row in rows)


def _plain(cell: Any) -> Any:
    if not cell.is_valid:
        return None
    kind = cell.type
    if pa.types.is_temporal(kind):
        return cell.value * (_MICROS[kind.unit] if pa.types.is_timestamp(kind) else 1)
    if pa.types.is_struct(kind):
        return {name: _plain(cell[name]) for name in kind.names}
    if pa.types.is_map(kind):
        return [(_plain(each["key"]), _plain(each["value"])) for each in cell.values]
    if pa.types.is_list(kind):
        return [_plain(each) for each in cell.values]
    return cell.as_py()


def _normal(value: Any) -> Any:
    """Normalize decimals, so that equal ones have equal texts; ``repr`` shows NaN and the sign of zero."""
    if isinstance(value, list | tuple):
        return [_normal(each) for each in value]
    if isinstance(value, dict):
        return [_normal(each) for each in value.values()]
    return format(value.normalize(), "f") if hasattr(value, "normalize") else value
