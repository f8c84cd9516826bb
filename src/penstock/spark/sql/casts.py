"""Implicit casts of ``INSERT``, which never change a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as spark_types

if TYPE_CHECKING:
    from pyspark.sql import Column

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_FRACTIONAL: Final = ("float", "double")
_TIMES: Final = ("timestamp", "timestamp_ntz")
# Up to these, the type holds every integer exactly, by the bits of its mantissa.
_EXACT_UP_TO: Final = {"float": 2**24, "double": 2**53}
_ALWAYS_EXACT: Final = frozenset(
    {("tinyint", "float"), ("smallint", "float"), ("tinyint", "double"), ("smallint", "double"), ("int", "double")}
)


def cast_exactly(value: Column, found: spark_types.DataType, wanted: spark_types.DataType, *, where: str) -> Column:
    """Apply an implicit cast; return the value unchanged if there is none for these types: then the table refuses it.

    If only some values of a type can be cast exactly, the others fail the query, and the error shows the explicit cast.

    Args:
        where: table and column, for the message.
    """
    if not _is_implicit(found, wanted):
        return value
    cast = value.cast(wanted)
    keeps = _keeps_value(value, found, wanted)
    if keeps is None:
        return cast
    source, target = _name(found).upper(), _name(wanted).upper()
    reason = f" is of type {source}, and {target} does not hold it exactly"
    cure = f"; write CAST(... AS {target}) if that does not matter"
    message = F.concat(F.lit(f"{where}: "), value.cast("string"), F.lit(reason + cure))
    return F.when(value.isNull() | keeps, cast).otherwise(F.raise_error(message).cast(wanted))


def _is_implicit(found: spark_types.DataType, wanted: spark_types.DataType) -> bool:
    if isinstance(found, spark_types.NullType):
        return True
    if isinstance(found, spark_types.DecimalType) and isinstance(wanted, spark_types.DecimalType):
        # A value with too many digits before the point fails the query; the digits after the point must fit.
        return wanted.scale >= found.scale
    source, target = _name(found), _name(wanted)
    if source in _WHOLE and target in _WHOLE:
        return _WHOLE.index(source) <= _WHOLE.index(target)
    if source in _WHOLE or isinstance(found, spark_types.DecimalType):
        return target in _FRACTIONAL or (source in _WHOLE and isinstance(wanted, spark_types.DecimalType))
    if source == "float":
        return target == "double"
    return (source == "date" or source in _TIMES) and target in _TIMES


def _keeps_value(value: Column, found: spark_types.DataType, wanted: spark_types.DataType) -> Column | None:
    """Return whether an implicit cast keeps a value; None if it keeps all values."""
    source, target = _name(found), _name(wanted)
    if target in _FRACTIONAL and (source, target) not in _ALWAYS_EXACT:
        if source in _WHOLE:
            return value.between(-_EXACT_UP_TO[target], _EXACT_UP_TO[target])
        if isinstance(found, spark_types.DecimalType):
            return value.cast(wanted).cast(found) == value
    if source in _TIMES and target in _TIMES and source != target:
        # In the zone of the session, some hours occur twice and others never.
        return value.cast(wanted).cast(found) == value
    return None


def _name(data_type: spark_types.DataType) -> str:
    return data_type.simpleString() if isinstance(data_type, spark_types.IntegralType) else data_type.typeName()
