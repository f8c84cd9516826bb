"""Casts of dates, times and timestamps.

TIMESTAMP WITH LOCAL TIME ZONE is formatted in UTC, like the reference on a machine that runs in UTC.

Source:
    Paimon ``common:casting/Timestamp*CastRule.java``, ``Date*CastRule.java``, ``Time*CastRule.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.cast.numbers import by_value, like, numbers_of
from penstock.datafile.cast.text import parse_date, parse_time, parse_timestamp
from penstock.datafile.conform import Array, conform_timestamp
from penstock.datafile.types import timestamp_precision, timestamp_unit, to_arrow_type
from penstock.format.text.java_times import format_date, format_time, format_timestamp

if TYPE_CHECKING:
    from penstock.format.types.data_types import AtomicType

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
