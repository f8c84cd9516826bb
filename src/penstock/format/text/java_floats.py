"""Format FLOAT and DOUBLE like the JVMs that Paimon runs on (JDK 8 to 17).

These JVMs print some numbers with a few digits more than needed, mostly whole ones above 2**53 (FLOAT: 2**24); JDK 19
and later print the shortest text. The names of partition directories contain that text, so every digit must match.

Source:
    The behavior of ``Float.toString`` and ``Double.toString``: digits are produced until what is left is below half a
    unit in the last place (Steele and White, "How to print floating-point numbers accurately", 1990).
    Checked against JDK 17 on 1,300,000 numbers, all powers of two and their neighbours among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class _Width:
    """Parameters of FLOAT or DOUBLE.

    Attributes:
        precision: significant bits of a normal number.
        least_exponent: of a normal number; each step below it loses one bit of precision.
    """

    precision: int
    least_exponent: int


_FLOAT: Final = _Width(precision=24, least_exponent=-126)
_DOUBLE: Final = _Width(precision=53, least_exponent=-1022)

_LARGEST_LONG_EXPONENT: Final = 62
_WORD: Final = 64
_POWERS_OF_5_IN_TABLE: Final = 27


class _Digits(NamedTuple):
    """Significant digits without trailing zeros, and the power of ten of the first digit."""

    text: str
    exponent: int


def format_double(value: float) -> str:
    """Format a DOUBLE."""
    return _format(value, _DOUBLE)


def format_float(value: float) -> str:
    """Format a FLOAT, given as the double of the same number."""
    return _format(value, _FLOAT)


def _format(value: float, width: _Width) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _digits(abs(value), width)
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{digits[: exponent + 1].ljust(exponent + 1, '0')}.{digits[exponent + 1 :] or '0'}"


def _digits(value: float, width: _Width) -> _Digits:
    mantissa, above = math.frexp(value)
    exponent = above - 1
    precision = width.precision - max(0, width.least_exponent - exponent)
    if value.is_integer() and exponent <= _LARGEST_LONG_EXPONENT:
        return _whole_digits(int(value), exponent, precision)
    return _fraction_digits(value, mantissa * 2, exponent, precision)


def _whole_digits(value: int, exponent: int, precision: int) -> _Digits:
    """Print a whole number in full, except for trailing digits that the bits beyond the precision cannot determine."""
    beyond = exponent - precision - 1
    dropped = len(str(2**beyond)) - 1 if beyond > 1 else 0
    if dropped:
        value = (value + 10**dropped // 2) // 10**dropped
    text = str(value)
    return _Digits(text.rstrip("0"), len(text) - 1 + dropped)


class _Ratio(NamedTuple):
    """A number as ``numerator / denominator`` in units of a power of ten, and half its last place in the same unit.

    Attributes:
        in_words: whether the JVM uses 64-bit arithmetic. That is slightly too narrow: sums wrap around.
    """

    numerator: int
    denominator: int
    half_place: int
    in_words: bool

    def wrapped(self, number: int) -> int:
        """Return the number as the JVM's arithmetic computes it."""
        if not self.in_words:
            return number
        sign_bit = 1 << (_WORD - 1)
        return (number + sign_bit) % (2 * sign_bit) - sign_bit


def _ratio(value: float, exponent: int, precision: int, ten: int) -> _Ratio:
    """Return ``value / 10**ten`` as a ratio without common powers of two."""
    odd, power_of_2 = value.as_integer_ratio()
    odd >>= (odd & -odd).bit_length() - 1
    bits = odd.bit_length()
    fraction_bits = power_of_2.bit_length() - 1
    numerator_5, denominator_5 = max(0, -ten), max(0, ten)
    numerator_2 = numerator_5 + fraction_bits + exponent
    half_2 = numerator_2 - precision
    numerator_2 -= bits - 1
    denominator_2 = denominator_5 + fraction_bits
    common = min(numerator_2, denominator_2)
    numerator_2, denominator_2, half_2 = numerator_2 - common, denominator_2 - common, half_2 - common
    if bits == 1:
        half_2 -= 1  # the next number below a power of two is half as far away
    shift = max(0, -half_2)
    numerator_2, denominator_2, half_2 = numerator_2 + shift, denominator_2 + shift, half_2 + shift
    numerator_bits = bits + numerator_2 + _bits_of_power_of_5(numerator_5)
    denominator_bits = denominator_2 + 1 + _bits_of_power_of_5(denominator_5 + 1)
    return _Ratio(
        numerator=odd * 5**numerator_5 << numerator_2,
        denominator=5**denominator_5 << denominator_2,
        half_place=5**numerator_5 << half_2,
        in_words=numerator_bits < _WORD and denominator_bits < _WORD,
    )


def _bits_of_power_of_5(power: int) -> int:
    if power == 0:
        return 0
    return (5**power).bit_length() if power < _POWERS_OF_5_IN_TABLE else 3 * power


def _fraction_digits(value: float, significand: float, exponent: int, precision: int) -> _Digits:
    # An estimate of the logarithm (a line, near 1.5): the power of ten, or sometimes the next one.
    ten = math.floor((significand - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)
    ratio = _ratio(value, exponent, precision, ten)
    tens = ratio.denominator * 10
    half = ratio.half_place * 10
    digit, rest = divmod(ratio.numerator, ratio.denominator)
    rest *= 10
    low, high = rest < half, ratio.wrapped(rest + half) > tens
    digits: list[int] = []
    if digit == 0 and not high:
        ten -= 1
    else:
        digits.append(digit)
    if not -3 <= ten < 8:
        low = high = False  # with an exponent at least two digits are printed
    while not (low or high):
        digit, rest = divmod(rest, ratio.denominator)
        rest *= 10
        half *= 10
        has_room = ratio.wrapped(half) > 0
        low = rest < half or not has_room
        high = ratio.wrapped(rest + half) > tens or not has_room
        digits.append(digit)
    if high and (not low or _rounds_up(ratio.wrapped(ratio.wrapped(2 * rest) - tens), digits[-1])):
        return _rounded_up(digits, ten)
    return _Digits("".join(map(str, digits)).rstrip("0"), ten)


def _rounds_up(difference: int, last_digit: int) -> bool:
    return difference > 0 or (difference == 0 and last_digit % 2 == 1)


def _rounded_up(digits: list[int], ten: int) -> _Digits:
    number = str(int("".join(map(str, digits))) + 1)
    return _Digits(number.rstrip("0"), ten + len(number) - len(digits))
