"""Convert the rows of ``VALUES`` to Arrow columns."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import types as arrow

from penstock.errors import SchemaMismatchError
from penstock.predicate.tree import TimestampLiteral

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.datafile.types import ArrowAny

_UNIT_NANOS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def literal_column(values: Sequence[object], field: ArrowAny, kind: str, table: str) -> ArrowAny:
    """Return literals as a column of a table.

    Args:
        field: an Arrow field.
        kind: the type of the column, as DDL writes it.

    Raises:
        SchemaMismatchError: the column does not accept a value.
    """
    try:
        return pa.array([_fitted(value, field.type) for value in values], field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise SchemaMismatchError(
            f"table {table}: column '{field.name}' of type {kind} does not take one of these values: {error}"
        ) from error


def _fitted(value: object, data_type: ArrowAny) -> object:
    if value is None:
        return None
    if isinstance(value, TimestampLiteral):
        return _instant(value, data_type)
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if is_number and arrow.is_floating(data_type):
        number = float(str(value))
        if math.isinf(number):
            raise ValueError(f"{value}, which is larger than any number of the type")
        return number
    if is_number and arrow.is_decimal(data_type):
        return _decimal(Decimal(str(value)), data_type)
    if isinstance(value, Decimal):
        # Arrow would drop the digits after the decimal point.
        raise ValueError(f"{value}, which is not an integer")  # noqa: TRY004 - the column's type is not the caller's
    if isinstance(value, bool) is not arrow.is_boolean(data_type):
        raise ValueError(f"{value!r}")
    if isinstance(value, str) is not (arrow.is_string(data_type) or arrow.is_large_string(data_type)):
        is_time = isinstance(value, str) and arrow.is_temporal(data_type)
        hint = "; a date is DATE '2026-01-31', a time TIMESTAMP '2026-01-31 10:00:00'" if is_time else ""
        raise ValueError(f"{value!r}{hint}")
    return value


def _decimal(value: Decimal, data_type: ArrowAny) -> Decimal:
    _, digits, exponent = value.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    places = int(exponent) + len(digits) - len(significant)
    whole = data_type.precision - data_type.scale
    if significant and places < -data_type.scale:
        raise ValueError(f"{value}, which has more than {data_type.scale} digits after the point")
    if significant and len(significant) + places > whole:
        raise ValueError(f"{value}, which has more than {whole} digits before the point")
    return value


def _instant(value: TimestampLiteral, data_type: ArrowAny) -> int:
    if not arrow.is_timestamp(data_type):
        raise ValueError("a TIMESTAMP")
    if value.has_zone and data_type.tz is None:
        raise ValueError("a TIMESTAMP with a zone")
    if not value.has_zone and data_type.tz is not None:
        raise ValueError("a TIMESTAMP without a zone; write TIMESTAMP '2026-01-31 10:00:00Z'")
    step = _UNIT_NANOS[data_type.unit]
    if value.nanos % step:
        raise ValueError("a TIMESTAMP with more digits than the column has")
    return value.nanos // step
