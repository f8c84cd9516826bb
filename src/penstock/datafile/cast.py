"""Values of a column whose type has changed since they were written, by Java Paimon's rules.

Whole numbers wrap around, floating-point numbers saturate, decimals that are too large become null, text that is no
value of the new type is an error. TIMESTAMP WITH LOCAL TIME ZONE is shown in UTC, as the reference does on a machine
that runs in UTC.

Source:
    Paimon ``common:casting/*CastRule.java``; tests/golden/data: table ``evolve_types``.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.cast_text import (
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_float,
    parse_integer,
    parse_time,
    parse_timestamp,
)
from penstock.datafile.conform import Array, conform_timestamp
from penstock.datafile.types import ArrowAny, timestamp_precision, timestamp_unit, to_arrow_type
from penstock.errors import SchemaMismatchError, UnsupportedFeatureError
from penstock.spec.java_floats import format_double, format_float
from penstock.spec.java_text import format_date, format_time, format_timestamp
from penstock.spec.type_text import format_sql_type
from penstock.spec.types import MAX_LENGTH, AtomicType, DataType, TypeRoot, with_nullability

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Cast: TypeAlias = "Callable[[Array, AtomicType, AtomicType], Array]"


class Kind(Enum):
    """Types that are cast alike."""

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
_BITS: Final = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INT: 32, TypeRoot.BIGINT: 64}
_EXACT: Final = Context(prec=100)
_DAY_MILLIS: Final = 86_400_000
_UNIT_NANOS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}
# Doubles hold powers of ten up to this one exactly, and Java divides compact decimals by them.
_COMPACT_PRECISION: Final = 18


def can_cast(source: DataType, target: DataType) -> bool:
    """Tell whether a column of one type may become a column of the other, so that Java reads it too.

    Nullability does not count. Nested types change field by field, and not as a whole.
    """
    if with_nullability(source, nullable=True) == with_nullability(target, nullable=True):
        return True
    return isinstance(source, AtomicType) and isinstance(target, AtomicType) and _find_cast(source, target) is not None


def cast_array(array: Array, source: AtomicType, target: AtomicType) -> Array:
    """Cast canonical values of one type to canonical values of another.

    Raises:
        UnsupportedFeatureError: there is no such cast.
        SchemaMismatchError: a value that the new type cannot express and that is no matter of rounding.
    """
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


def _by_value(array: Array, convert: Callable[[Any], object], arrow_type: ArrowAny) -> Array:
    """Convert each distinct value once, in Python."""
    encoded = array.dictionary_encode()
    converted = [convert(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(converted, type=arrow_type).take(encoded.indices)


def _numbers(array: Array) -> Any:  # noqa: ANN401 - a numpy array
    """Numbers behind fixed-width values, 0 for null."""
    return np.asarray(array.fill_null(0))


def _like(array: Array, numbers: Any, arrow_type: ArrowAny) -> Array:  # noqa: ANN401 - a numpy array
    """Numbers as an array that is null where another is."""
    mask = np.asarray(array.is_null()) if array.null_count else None
    return pa.array(numbers, type=arrow_type, mask=mask)


def _to_arrow_number(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return array.cast(to_arrow_type(target), safe=False)


def _float_to_integer(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    # Java: to INT or BIGINT with saturation and NaN as 0, from there to smaller types by dropping bits.
    bits = 64 if target.root is TypeRoot.BIGINT else 32
    limit = 2.0 ** (bits - 1)
    whole = np.trunc(np.nan_to_num(_numbers(array).astype(np.float64), nan=0.0, posinf=limit, neginf=-limit))
    inside = np.clip(whole, -limit, np.nextafter(limit, 0)).astype(np.int64)
    saturated = np.where(whole >= limit, np.int64(2 ** (bits - 1) - 1), inside)
    return _like(array, saturated, pa.int64()).cast(to_arrow_type(target), safe=False)


def _integer_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_decimal(array.cast(pa.int64()).cast(pa.decimal128(19, 0)), target)


def _decimal_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_decimal(array, target)


def _fit_decimal(array: Array, target: AtomicType) -> Array:
    """Round half away from zero; null where the digits don't suffice."""
    precision, scale = target.precision or 10, target.scale or 0
    wide = array.cast(pa.decimal256(76, max(array.type.scale, scale)))
    rounded = pc.round(wide, ndigits=scale, round_mode="half_towards_infinity")
    largest = pa.scalar(Decimal(f"{10**precision - 1}E-{scale}")).cast(wide.type)
    kept = pc.if_else(pc.less_equal(pc.abs(rounded), largest), rounded, pa.scalar(None, wide.type))
    return kept.cast(pa.decimal128(precision, scale))


def _to_decimal(value: Decimal, target: AtomicType) -> Decimal | None:
    rounded = value.quantize(Decimal(f"1E-{target.scale or 0}"), rounding=ROUND_HALF_UP, context=_EXACT)
    return rounded if len(rounded.as_tuple().digits) <= (target.precision or 10) or not rounded else None


def _float_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    widened = array.cast(pa.float64())
    return _by_value(widened, lambda value: _to_decimal(Decimal(repr(value)), target), to_arrow_type(target))


def _decimal_to_integer(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    numbers = _by_value(array, lambda value: (int(value) + 2**63) % 2**64 - 2**63, pa.int64())
    return numbers.cast(to_arrow_type(target), safe=False)


def _decimal_to_float(array: Array, source: AtomicType, target: AtomicType) -> Array:
    scale = source.scale or 0

    def compact(value: Decimal) -> float:
        return float(int(value.scaleb(scale, _EXACT))) / 10.0**scale

    convert = compact if (source.precision or 10) <= _COMPACT_PRECISION else float
    return _by_value(array, convert, pa.float64()).cast(to_arrow_type(target), safe=False)


def _boolean_to_number(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    numbers = array.cast(pa.int32())
    if target.root is TypeRoot.DECIMAL:
        return _fit_decimal(numbers.cast(pa.decimal128(10, 0)), target)
    return numbers.cast(to_arrow_type(target))


def _integer_to_boolean(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return pc.not_equal(array, pa.scalar(0, array.type))


def _plain_to_text(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_text(array.cast(pa.string()), target)


def _float_to_text(array: Array, source: AtomicType, target: AtomicType) -> Array:
    convert = format_float if source.root is TypeRoot.FLOAT else format_double
    return _fit_text(_by_value(array, convert, pa.string()), target)


def _decimal_to_text(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_text(_by_value(array, lambda value: f"{value:f}", pa.string()), target)


def _text_to_text(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_text(array, target)


def _fit_text(array: Array, target: AtomicType) -> Array:
    length = target.length or 1
    if length == MAX_LENGTH:
        return array
    cut = pc.utf8_slice_codeunits(array, 0, length)
    return pc.utf8_rpad(cut, length) if target.root is TypeRoot.CHAR else cut


def _date_to_text(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _by_value(array.view(pa.int32()), format_date, pa.string())


def _time_to_text(array: Array, source: AtomicType, _target: AtomicType) -> Array:
    precision = source.precision or 0
    return _by_value(array.view(pa.int32()), lambda millis: format_time(millis, precision), pa.string())


def _timestamp_to_text(array: Array, source: AtomicType, _target: AtomicType) -> Array:
    precision, nanos = timestamp_precision(source), _UNIT_NANOS[array.type.unit]
    counts = array.view(pa.int64())
    return _by_value(counts, lambda count: format_timestamp(count * nanos, precision), pa.string())


def _text_to_boolean(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _by_value(array, parse_boolean, pa.bool_())


def _text_to_integer(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    bits = _BITS[target.root]
    return _by_value(array, lambda text: parse_integer(text, bits), to_arrow_type(target))


def _text_to_float(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _by_value(array, parse_float, pa.float64()).cast(to_arrow_type(target), safe=False)


def _text_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _by_value(array, lambda text: _to_decimal(parse_decimal(text), target), to_arrow_type(target))


def _text_to_date(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _by_value(array, parse_date, pa.int32()).view(pa.date32())


def _text_to_time(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _by_value(array, parse_time, pa.int32()).view(pa.time32("ms"))


def _text_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    precision, arrow_type = timestamp_precision(target), to_arrow_type(target)
    nanos = _UNIT_NANOS[timestamp_unit(precision)]
    return _by_value(array, lambda text: parse_timestamp(text, precision) // nanos, pa.int64()).view(arrow_type)


def _text_to_bytes(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_bytes(array.cast(pa.binary()), target)


def _bytes_to_bytes(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return _fit_bytes(array, target)


def _fit_bytes(array: Array, target: AtomicType) -> Array:
    length = target.length or 1
    if length == MAX_LENGTH:
        return array
    if target.root is TypeRoot.BINARY:
        return _by_value(array, lambda value: value[:length].ljust(length, b"\0"), pa.binary())
    return pc.binary_slice(array, 0, length)


def _bytes_to_text(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _by_value(array, lambda value: value.decode(errors="replace"), pa.string())


def _date_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return conform_timestamp(array.cast(pa.timestamp("ms")), to_arrow_type(target))


def _time_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    return conform_timestamp(array.view(pa.int32()).cast(pa.int64()).view(pa.timestamp("ms")), to_arrow_type(target))


def _millis(array: Array) -> Array:
    return conform_timestamp(array, pa.timestamp("ms")).view(pa.int64())


def _timestamp_to_date(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _like(array, _numbers(_millis(array)) // _DAY_MILLIS, pa.int64()).cast(pa.int32()).view(pa.date32())


def _timestamp_to_time(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    return _like(array, _numbers(_millis(array)) % _DAY_MILLIS, pa.int64()).cast(pa.int32()).view(pa.time32("ms"))


def _timestamp_to_seconds(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    # Arrow divides as Java does: towards zero.
    return pc.divide(_millis(array), 1000).cast(to_arrow_type(target), safe=False)


def _seconds_to_timestamp(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    millis = pc.multiply_checked(array.cast(pa.int64()), 1000)
    return conform_timestamp(millis.view(pa.timestamp("ms")), to_arrow_type(target))


def _timestamp_to_timestamp(array: Array, source: AtomicType, target: AtomicType) -> Array:
    arrow_type, precision = to_arrow_type(target), timestamp_precision(target)
    converted = conform_timestamp(array, arrow_type)
    if precision >= timestamp_precision(source) or precision in (3, 6, 9):
        return converted
    numbers = _numbers(converted.view(pa.int64()))
    digit = 10 ** ({"ms": 3, "us": 6, "ns": 9}[timestamp_unit(precision)] - precision)
    # Java cuts digits of the millisecond towards 1970, finer ones towards the past.
    rest = np.fmod(numbers, digit) if precision < 3 else numbers % digit
    return _like(converted, numbers - rest, pa.int64()).view(arrow_type)


# Only STRING takes dates and times: a shorter VARCHAR could cut them.
_SPOKEN_IN_FULL: Final = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
_SECONDS_CASTS: Final = frozenset({(Kind.INTEGER, Kind.TIMESTAMP), (Kind.TIMESTAMP, Kind.INTEGER)})

_CASTS: Final[Mapping[tuple[Kind, Kind], Cast]] = {
    (Kind.INTEGER, Kind.INTEGER): _to_arrow_number,
    (Kind.INTEGER, Kind.FLOAT): _to_arrow_number,
    (Kind.INTEGER, Kind.DECIMAL): _integer_to_decimal,
    (Kind.INTEGER, Kind.BOOLEAN): _integer_to_boolean,
    (Kind.INTEGER, Kind.TEXT): _plain_to_text,
    (Kind.INTEGER, Kind.TIMESTAMP): _seconds_to_timestamp,
    (Kind.FLOAT, Kind.INTEGER): _float_to_integer,
    (Kind.FLOAT, Kind.FLOAT): _to_arrow_number,
    (Kind.FLOAT, Kind.DECIMAL): _float_to_decimal,
    (Kind.FLOAT, Kind.TEXT): _float_to_text,
    (Kind.DECIMAL, Kind.INTEGER): _decimal_to_integer,
    (Kind.DECIMAL, Kind.FLOAT): _decimal_to_float,
    (Kind.DECIMAL, Kind.DECIMAL): _decimal_to_decimal,
    (Kind.DECIMAL, Kind.TEXT): _decimal_to_text,
    (Kind.BOOLEAN, Kind.INTEGER): _boolean_to_number,
    (Kind.BOOLEAN, Kind.FLOAT): _boolean_to_number,
    (Kind.BOOLEAN, Kind.DECIMAL): _boolean_to_number,
    (Kind.BOOLEAN, Kind.TEXT): _plain_to_text,
    (Kind.TEXT, Kind.BOOLEAN): _text_to_boolean,
    (Kind.TEXT, Kind.INTEGER): _text_to_integer,
    (Kind.TEXT, Kind.FLOAT): _text_to_float,
    (Kind.TEXT, Kind.DECIMAL): _text_to_decimal,
    (Kind.TEXT, Kind.TEXT): _text_to_text,
    (Kind.TEXT, Kind.BYTES): _text_to_bytes,
    (Kind.TEXT, Kind.DATE): _text_to_date,
    (Kind.TEXT, Kind.TIME): _text_to_time,
    (Kind.TEXT, Kind.TIMESTAMP): _text_to_timestamp,
    (Kind.BYTES, Kind.BYTES): _bytes_to_bytes,
    (Kind.BYTES, Kind.TEXT): _bytes_to_text,
    (Kind.DATE, Kind.TEXT): _date_to_text,
    (Kind.DATE, Kind.TIMESTAMP): _date_to_timestamp,
    (Kind.TIME, Kind.TEXT): _time_to_text,
    (Kind.TIME, Kind.TIMESTAMP): _time_to_timestamp,
    (Kind.TIMESTAMP, Kind.TEXT): _timestamp_to_text,
    (Kind.TIMESTAMP, Kind.DATE): _timestamp_to_date,
    (Kind.TIMESTAMP, Kind.TIME): _timestamp_to_time,
    (Kind.TIMESTAMP, Kind.INTEGER): _timestamp_to_seconds,
    (Kind.TIMESTAMP, Kind.TIMESTAMP): _timestamp_to_timestamp,
}
