"""Checks that Spark, which sorts the rows, returns every value unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
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
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from penstock.table.ref import TableRef

# Spark's timestamps count microseconds.
_PRECISION: Final = 6


def check_types(ref: TableRef) -> None:
    """Check that Spark can hold every value of every column. Raises ``UnsupportedFeatureError``."""
    for each in ref.schema.fields:
        if not _holds(each.type):
            raise UnsupportedFeatureError(
                f"table {ref.name}: column '{each.name}' is {format_sql_type(each.type)}, which Spark cannot "
                "represent exactly, so rows cannot be sorted there: compact without an order strategy"
            )


def _holds(data_type: DataType) -> bool:
    """Whether Spark returns every value of this type unchanged."""
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element) | VectorType(element=element):
            return _holds(element)
        case MapType(key=key, value=value):
            return _holds(key) and _holds(value)
        case RowType(fields=fields):
            return all(_holds(each.type) for each in fields)
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ, precision=precision):
            return (precision or 0) <= _PRECISION
        case _:
            return True
