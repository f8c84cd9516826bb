"""Casts between numbers, decimals and booleans.

Source:
    Paimon ``common:casting/Numeric*CastRule.java``, ``Decimal*CastRule.java``, ``Boolean*CastRule.java``.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.datafile.types import ArrowAny, to_arrow_type
from penstock.format.types.data_types import AtomicType, TypeRoot

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.datafile.conform import Array

_EXACT: Final = Context(prec=100)
# Largest precision of compact decimals, which Java divides by a power of ten; up to 10**18 these are exact as doubles.
_COMPACT_PRECISION: Final = 18


def by_value(array: Array, convert: Callable[[Any], object], arrow_type: ArrowAny) -> Array:
    """Convert each distinct value once, in Python."""
    encoded = array.dictionary_encode()
    converted = [convert(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(converted, type=arrow_type).take(encoded.indices)


def numbers_of(array: Array) -> Any:  # noqa: ANN401 - a numpy array
    """Return the numbers of fixed-width values as a numpy array, 0 for null."""
    return np.asarray(array.fill_null(0))


def like(array: Array, numbers: Any, arrow_type: ArrowAny) -> Array:  # noqa: ANN401 - a numpy array
    """Return numbers as an array with the same nulls as ``array``."""
    mask = np.asarray(array.is_null()) if array.null_count else None
    return pa.array(numbers, type=arrow_type, mask=mask)


def to_arrow_number(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Cast with wrap-around or rounding, like C and Java."""
    return array.cast(to_arrow_type(target), safe=False)


def float_to_integer(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Cast with saturation; NaN becomes 0."""
    # Java casts to INT or BIGINT with saturation and NaN as 0, and from there to smaller types by dropping bits.
    bits = 64 if target.root is TypeRoot.BIGINT else 32
    limit = 2.0 ** (bits - 1)
    whole = np.trunc(np.nan_to_num(numbers_of(array).astype(np.float64), nan=0.0, posinf=limit, neginf=-limit))
    inside = np.clip(whole, -limit, np.nextafter(limit, 0)).astype(np.int64)
    saturated = np.where(whole >= limit, np.int64(2 ** (bits - 1) - 1), inside)
    return like(array, saturated, pa.int64()).cast(to_arrow_type(target), safe=False)


def integer_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Cast; null if the value has too many digits."""
    return fit_decimal(array.cast(pa.int64()).cast(pa.decimal128(19, 0)), target)


def decimal_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Round half away from zero; null if the value has too many digits."""
    return fit_decimal(array, target)


def fit_decimal(array: Array, target: AtomicType) -> Array:
    """Round half away from zero; null if the value has too many digits."""
    precision, scale = target.precision or 10, target.scale or 0
    wide = array.cast(pa.decimal256(76, max(array.type.scale, scale)))
    rounded = pc.round(wide, ndigits=scale, round_mode="half_towards_infinity")
    largest = pa.scalar(Decimal(f"{10**precision - 1}E-{scale}")).cast(wide.type)
    kept = pc.if_else(pc.less_equal(pc.abs(rounded), largest), rounded, pa.scalar(None, wide.type))
    return kept.cast(pa.decimal128(precision, scale))


def to_decimal(value: Decimal, target: AtomicType) -> Decimal | None:
    """Round half away from zero; None if the value has too many digits."""
    precision, scale = target.precision or 10, target.scale or 0
    if value.is_finite() and value and value.adjusted() >= precision - scale:
        return None  # before it is rounded: it may have more digits than any context
    rounded = value.quantize(Decimal(f"1E-{scale}"), rounding=ROUND_HALF_UP, context=_EXACT)
    return rounded if len(rounded.as_tuple().digits) <= precision or not rounded else None


def float_to_decimal(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Cast the shortest text of the number; raises ``ArithmeticError`` for NaN and infinities."""
    widened = array.cast(pa.float64())
    return by_value(widened, lambda value: to_decimal(Decimal(repr(value)), target), to_arrow_type(target))


def decimal_to_integer(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Drop the fraction, then wrap around."""
    numbers = by_value(array, lambda value: (int(value) + 2**63) % 2**64 - 2**63, pa.int64())
    return numbers.cast(to_arrow_type(target), safe=False)


def decimal_to_float(array: Array, source: AtomicType, target: AtomicType) -> Array:
    """Divide the unscaled number by a power of ten, like Java."""
    scale = source.scale or 0

    def compact(value: Decimal) -> float:
        return float(int(value.scaleb(scale, _EXACT))) / 10.0**scale

    convert = compact if (source.precision or 10) <= _COMPACT_PRECISION else float
    return by_value(array, convert, pa.float64()).cast(to_arrow_type(target), safe=False)


def boolean_to_number(array: Array, _source: AtomicType, target: AtomicType) -> Array:
    """Cast true to 1 and false to 0."""
    numbers = array.cast(pa.int32())
    if target.root is TypeRoot.DECIMAL:
        return fit_decimal(numbers.cast(pa.decimal128(10, 0)), target)
    return numbers.cast(to_arrow_type(target))


def integer_to_boolean(array: Array, _source: AtomicType, _target: AtomicType) -> Array:
    """Cast 0 to false, other numbers to true."""
    return pc.not_equal(array, pa.scalar(0, array.type))
