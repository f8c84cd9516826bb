"""Default values of columns, parsed from literal text to Arrow scalars."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as arrow

from penstock.datafile.python_values import parse_floats, stored_value
from penstock.errors import InvalidSchemaError
from penstock.format.types.data_types import AtomicType, time_type

if TYPE_CHECKING:
    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField


def decode_default(column: DataField, arrow_type: ArrowAny, table: str) -> ArrowAny:
    """Return the column's default as a value of its canonical Arrow type.

    A TIMESTAMP WITH LOCAL TIME ZONE without an offset in its text is taken as UTC, so that it does not depend on the
    writer's zone (the reference takes the zone of its JVM).

    Raises:
        InvalidSchemaError: the text is not a value of the type, or the type is nested.

    Source:
        Paimon ``common:casting/DefaultValueRow.java``: the text is cast to the column's type.
    """
    text = column.default_value or ""
    try:
        if isinstance(column.type, AtomicType) and arrow.is_floating(arrow_type):
            return parse_floats(pa.array([text]), column.type, column.name)[0]
        return _cast_text(text, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InvalidSchemaError(
            f"table '{table}': default value '{text}' of column '{column.name}' is not a valid {arrow_type}: {error}; "
            "alter the column's default, or write no null into it"
        ) from error


def _cast_text(text: str, arrow_type: ArrowAny) -> ArrowAny:
    if arrow.is_string(arrow_type) or arrow.is_binary(arrow_type):
        return pa.scalar(text).cast(arrow_type)
    text = text.strip()
    if arrow.is_time(arrow_type):
        return pa.scalar(stored_value(dt.time.fromisoformat(text), time_type(3), "value"), arrow_type)
    if arrow.is_timestamp(arrow_type) and arrow_type.tz is not None:
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            text = f"{text}Z"
    return pa.scalar(text).cast(arrow_type)
