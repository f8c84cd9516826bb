"""Cast the values of a column whose type has changed since they were written, with Java Paimon's rules.

Whole numbers wrap around, floating-point numbers saturate, decimals that are too large become null, invalid text is an
error. TIMESTAMP WITH LOCAL TIME ZONE is formatted in UTC, like the reference on a machine that runs in UTC.

Source:
    Paimon ``common:casting/*CastRule.java``; tests/golden/data: table ``evolve_types``.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.cast.numbers import (
    boolean_to_number,
    by_value,
    decimal_to_decimal,
    decimal_to_float,
    decimal_to_integer,
    float_to_decimal,
    float_to_integer,
    integer_to_boolean,
    integer_to_decimal,
    like,
    numbers_of,
    to_arrow_number,
    to_decimal,
)
from penstock.datafile.cast.text import (
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_float,
    parse_integer,
    parse_time,
    parse_timestamp,
)
from penstock.datafile.conform import Array, conform_timestamp
from penstock.datafile.types import timestamp_precision, timestamp_unit, to_arrow_type
from penstock.errors import SchemaMismatchError, UnsupportedFeatureError
from penstock.format.text.java_floats import format_double, format_float
from penstock.format.text.java_times import format_date, format_time, format_timestamp
from penstock.format.types.data_types import INTEGER_BITS, MAX_LENGTH, AtomicType, DataType, TypeRoot, with_nullability
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.datafile.conform import Array


_DAY_MILLIS: Final = 86_400_000
_UNIT_NANOS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}


def date_to_text(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    """Format as ISO date."""
    return by_value(array.view(pa.int32()), format_date, pa.string())


def time_to_text(array: Array, source: AtomicType, _target: AtomicType) -> Array:
    """Format with at most as many digits as the precision."""
    precision = source.precision or 0
    return by_value(array.view(pa.int32()), lambda millis: format_time(millis, precision), pa.string())


def timestamp_to_text(array: Array, source: AtomicType, _target: AtomicType) -> Array:
    """Format with all digits of the precision."""
    precision, nanos = timestamp_precision(source), _UNIT_NANOS[array.type.unit]
    counts = array.view(pa.int64())
    return by_value(counts, lambda count: format_timestamp(count * nanos, precision), pa.string())


def text_to_date(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    """Parse dates; raises ``ValueError``."""
    return by_value(array, parse_date, pa.int32()).view(pa.date32())


def text_to_time(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    """Parse times; raises ``ValueError``."""
    return by_value(array, parse_time, pa.int32()).view(pa.time32("ms"))


def text_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Parse timestamps; raises ``ValueError``."""
    precision, arrow_type = timestamp_precision(target), to_arrow_type(target)
    nanos = _UNIT_NANOS[timestamp_unit(precision)]
    return by_value(array, lambda text: parse_timestamp(text, precision) // nanos, pa.int64()).view(arrow_type)


def date_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Return midnight of the date."""
    return conform_timestamp(array.cast(pa.timestamp("ms")), to_arrow_type(target))


def time_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Return the time on 1970-01-01."""
    return conform_timestamp(array.view(pa.int32()).cast(pa.int64()).view(pa.timestamp("ms")), to_arrow_type(target))


def _millis(array: Array) -> Array:
    return conform_timestamp(array, pa.timestamp("ms")).view(pa.int64())


def timestamp_to_date(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    """Return the date of the timestamp."""
    return like(array, numbers_of(_millis(array)) // _DAY_MILLIS, pa.int64()).cast(pa.int32()).view(pa.date32())


def timestamp_to_time(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    """Return the milliseconds since midnight."""
    return like(array, numbers_of(_millis(array)) % _DAY_MILLIS, pa.int64()).cast(pa.int32()).view(pa.time32("ms"))


def timestamp_to_seconds(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Return seconds since 1970, rounded towards 1970."""
    # Like Java, Arrow rounds the quotient towards zero.
    return pc.divide(_millis(array), 1000).cast(to_arrow_type(target), safe=False)


def seconds_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Convert seconds since 1970; raises ``ArrowInvalid`` on overflow."""
    millis = pc.multiply_checked(array.cast(pa.int64()), 1000)
    return conform_timestamp(millis.view(pa.timestamp("ms")), to_arrow_type(target))


def timestamp_to_timestamp(array: Array, source: AtomicType, target: AtomicType) -> Array:
    """Truncate digits beyond the precision."""
    arrow_type, precision = to_arrow_type(target), timestamp_precision(target)
    converted = conform_timestamp(array, arrow_type)
    if precision >= timestamp_precision(source) or precision in (3, 6, 9):
        return converted
    numbers = numbers_of(converted.view(pa.int64()))
    digit = 10 ** ({"ms": 3, "us": 6, "ns": 9}[timestamp_unit(precision)] - precision)
    # Java truncates digits of the millisecond towards 1970, finer digits towards the past.
    rest = np.fmod(numbers, digit) if precision < 3 else numbers % digit
    return like(converted, numbers - rest, pa.int64()).view(arrow_type)


Cast: TypeAlias = "Callable[[Array, AtomicType, AtomicType], Array]"


class Kind(Enum):
    """Groups of types with the same cast rules."""

    INTEGER = auto()
    FLOAT = auto()
    DECIMAL = auto()
    BOOLEAN = auto()
    TEXT = auto()
    BYTES = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()


_KINDS: Final = {
    TypeRoot.TINYINT: Kind.INTEGER,
    TypeRoot.SMALLINT: Kind.INTEGER,
    TypeRoot.INT: Kind.INTEGER,
    TypeRoot.BIGINT: Kind.INTEGER,
    TypeRoot.FLOAT: Kind.FLOAT,
    TypeRoot.DOUBLE: Kind.FLOAT,
    TypeRoot.DECIMAL: Kind.DECIMAL,
    TypeRoot.BOOLEAN: Kind.BOOLEAN,
    TypeRoot.CHAR: Kind.TEXT,
    TypeRoot.VARCHAR: Kind.TEXT,
    TypeRoot.BINARY: Kind.BYTES,
    TypeRoot.VARBINARY: Kind.BYTES,
    TypeRoot.DATE: Kind.DATE,
    TypeRoot.TIME: Kind.TIME,
    TypeRoot.TIMESTAMP: Kind.TIMESTAMP,
    TypeRoot.TIMESTAMP_LTZ: Kind.TIMESTAMP,
}


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether the type of a column may be changed from ``source`` to ``target``, so that Java can read it too.

    Nullability is ignored. Nested types change field by field, not as a whole.
    """
    if with_nullability(source, nullable=True) == with_nullability(target, nullable=True):
        return True
    return isinstance(source, AtomicType) and isinstance(target, AtomicType) and _find_cast(source, target) is not None


def cast_array(array: Array, source: AtomicType, target: AtomicType) -> Array:
    """Cast canonical values of one type to canonical values of another."""
    cast = _find_cast(source, target)
    what = f"{format_sql_type(source)} to {format_sql_type(target)}"
    if cast is None:
        raise UnsupportedFeatureError(f"values cannot be cast from {what}: add a column of the new type")
    try:
        return cast(array, source, target)
    except (ValueError, ArithmeticError) as error:
        raise SchemaMismatchError(f"a value written earlier cannot be cast from {what}: {error}") from error


def _find_cast(source: AtomicType, target: AtomicType) -> Cast | None:
    source_kind, target_kind = _KINDS.get(source.root), _KINDS.get(target.root)
    if source_kind is None or target_kind is None:
        return None
    if source_kind in _SPOKEN_IN_FULL and target_kind is Kind.TEXT and target.length != MAX_LENGTH:
        return None
    if (source_kind, target_kind) in _SECONDS_CASTS:
        number = source if source_kind is Kind.INTEGER else target
        if number.root not in (TypeRoot.INT, TypeRoot.BIGINT):
            return None
    return _CASTS.get((source_kind, target_kind))


def _plain_to_text(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_text(array.cast(pa.string()), target)


def _float_to_text(array: Array, source: AtomicType, target: AtomicType) -> Array:
    convert = format_float if source.root is TypeRoot.FLOAT else format_double
    return _fit_text(by_value(array, convert, pa.string()), target)


def _decimal_to_text(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_text(by_value(array, lambda value: f"{value:f}", pa.string()), target)


def _text_to_text(array: Array, source: AtomicType, target: AtomicType) -> Array:
    if not _is_shorter(source, target):
        return _pad_text(array, target)
    return _fit_text(array, target)


def _is_shorter(source: AtomicType, target: AtomicType) -> bool:
    """Whether the cast may truncate values.

    Other writers do not check lengths, so files may hold longer values than their type allows. If the new type is
    longer, such values are kept here; Java truncates them.
    """
    return (target.length or 1) < (source.length or 1)


def _pad_text(array: Array, target: AtomicType) -> Array:
    return pc.utf8_rpad(array, target.length or 1) if target.root is TypeRoot.CHAR else array


def _fit_text(array: Array, target: AtomicType) -> Array:
    length = target.length or 1
    if length == MAX_LENGTH:
        return array
    return _pad_text(pc.utf8_slice_codeunits(array, 0, length), target)


def _text_to_boolean(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return by_value(array, parse_boolean, pa.bool_())


def _text_to_integer(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    bits = INTEGER_BITS[target.root]
    return by_value(array, lambda text: parse_integer(text, bits), to_arrow_type(target))


def _text_to_float(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return by_value(array, parse_float, pa.float64()).cast(to_arrow_type(target), safe=False)


def _text_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return by_value(array, lambda text: to_decimal(parse_decimal(text), target), to_arrow_type(target))


def _text_to_bytes(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_bytes(array.cast(pa.binary()), target)


def _bytes_to_bytes(array: Array, source: AtomicType, target: AtomicType) -> Array:
    if target.root is TypeRoot.VARBINARY and not _is_shorter(source, target):
        return array
    return _fit_bytes(array, target)


def _fit_bytes(array: Array, target: AtomicType) -> Array:
    length = target.length or 1
    if length == MAX_LENGTH:
        return array
    if target.root is TypeRoot.BINARY:
        return by_value(array, lambda value: value[:length].ljust(length, b"\0"), pa.binary())
    return pc.binary_slice(array, 0, length)


def _bytes_to_text(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return by_value(array, lambda value: value.decode(errors="replace"), pa.string())


# Dates and times can be cast to STRING only: a shorter VARCHAR could truncate them.
_SPOKEN_IN_FULL: Final = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
_SECONDS_CASTS: Final = frozenset({(Kind.INTEGER, Kind.TIMESTAMP), (Kind.TIMESTAMP, Kind.INTEGER)})

_CASTS: Final[Mapping[tuple[Kind, Kind], Cast]] = {
    (Kind.INTEGER, Kind.INTEGER): to_arrow_number,
    (Kind.INTEGER, Kind.FLOAT): to_arrow_number,
    (Kind.INTEGER, Kind.DECIMAL): integer_to_decimal,
    (Kind.INTEGER, Kind.BOOLEAN): integer_to_boolean,
    (Kind.INTEGER, Kind.TEXT): _plain_to_text,
    (Kind.INTEGER, Kind.TIMESTAMP): seconds_to_timestamp,
    (Kind.FLOAT, Kind.INTEGER): float_to_integer,
    (Kind.FLOAT, Kind.FLOAT): to_arrow_number,
    (Kind.FLOAT, Kind.DECIMAL): float_to_decimal,
    (Kind.FLOAT, Kind.TEXT): _float_to_text,
    (Kind.DECIMAL, Kind.INTEGER): decimal_to_integer,
    (Kind.DECIMAL, Kind.FLOAT): decimal_to_float,
    (Kind.DECIMAL, Kind.DECIMAL): decimal_to_decimal,
    (Kind.DECIMAL, Kind.TEXT): _decimal_to_text,
    (Kind.BOOLEAN, Kind.INTEGER): boolean_to_number,
    (Kind.BOOLEAN, Kind.FLOAT): boolean_to_number,
    (Kind.BOOLEAN, Kind.DECIMAL): boolean_to_number,
    (Kind.BOOLEAN, Kind.TEXT): _plain_to_text,
    (Kind.TEXT, Kind.BOOLEAN): _text_to_boolean,
    (Kind.TEXT, Kind.INTEGER): _text_to_integer,
    (Kind.TEXT, Kind.FLOAT): _text_to_float,
    (Kind.TEXT, Kind.DECIMAL): _text_to_decimal,
    (Kind.TEXT, Kind.TEXT): _text_to_text,
    (Kind.TEXT, Kind.BYTES): _text_to_bytes,
    (Kind.TEXT, Kind.DATE): text_to_date,
    (Kind.TEXT, Kind.TIME): text_to_time,
    (Kind.TEXT, Kind.TIMESTAMP): text_to_timestamp,
    (Kind.BYTES, Kind.BYTES): _bytes_to_bytes,
    (Kind.BYTES, Kind.TEXT): _bytes_to_text,
    (Kind.DATE, Kind.TEXT): date_to_text,
    (Kind.DATE, Kind.TIMESTAMP): date_to_timestamp,
    (Kind.TIME, Kind.TEXT): time_to_text,
    (Kind.TIME, Kind.TIMESTAMP): time_to_timestamp,
    (Kind.TIMESTAMP, Kind.TEXT): timestamp_to_text,
    (Kind.TIMESTAMP, Kind.DATE): timestamp_to_date,
    (Kind.TIMESTAMP, Kind.TIME): timestamp_to_time,
    (Kind.TIMESTAMP, Kind.INTEGER): timestamp_to_seconds,
    (Kind.TIMESTAMP, Kind.TIMESTAMP): timestamp_to_timestamp,
}
