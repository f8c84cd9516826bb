"""The golden tables' expected rows as Spark shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.golden.test_read_tables import LOCATIONS, STATES, as_written, lines
from tests.interop.canonical import sort_rows

from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from penstock.format.types.data_types import DataField

__all__ = ["LOCATIONS", "STATES", "expected_in_spark", "states_of"]

MICROSECOND_DIGITS = len("2026-01-01T00:00:00.000000")


def states_of(path: Path) -> list[dict[str, Any]]:
    """Return the snapshots and tags of a table with the rows that its writer put there."""
    return [{**state, "rows": [as_written(path.stem, row) for row in state["rows"]]} for state in lines(path)]


def padded(rows: Iterable[dict[str, Any]], fields: Iterable[DataField]) -> list[dict[str, Any]]:
    """Return the rows with the blanks that Spark adds to columns of CHAR in a catalog."""
    chars = {
        field.name: field.type.length or 1
        for field in fields
        if isinstance(field.type, AtomicType) and field.type.root is TypeRoot.CHAR
    }
    return [
        {
            name: value.ljust(chars[name]) if name in chars and value is not None else value
            for name, value in row.items()
        }
        for row in rows
    ]


def expected_in_spark(rows: Iterable[dict[str, Any]], fields: Iterable[DataField]) -> list[dict[str, Any]]:
    """Return the rows, sorted, with what Spark has no place for taken away: nanoseconds, and a type for TIME."""
    types = {field.name: field.type for field in fields}
    return sort_rows({name: in_spark(value, types[name]) for name, value in row.items()} for row in rows)


def in_spark(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    match data_type:
        case AtomicType():
            return atomic_in_spark(value, data_type.root)
        case ArrayType(element=element) | VectorType(element=element):
            return [in_spark(each, element) for each in value]
        case MapType(key=key, value=item):
            return [[in_spark(left, key), in_spark(right, item)] for left, right in value]
        case MultisetType(element=element):
            return [[in_spark(each, element), count] for each, count in value]
        case RowType(fields=fields):
            return {field.name: in_spark(value[field.name], field.type) for field in fields}


def atomic_in_spark(value: Any, root: TypeRoot) -> Any:
    if root is TypeRoot.TIME:
        hours, minutes, seconds = value.split(":")
        return (int(hours) * 60 + int(minutes)) * 60_000 + round(float(seconds) * 1000)
    if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        return value[:MICROSECOND_DIGITS] + "000" + ("Z" if value.endswith("Z") else "")
    return value
