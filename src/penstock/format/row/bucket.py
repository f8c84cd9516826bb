"""Compute the bucket of a row.

Source:
    Paimon ``core:bucket/DefaultBucketFunction.java``, ``ModBucketFunction.java``, ``HiveBucketFunction.java``,
    ``HiveHasher.java``; docs/spec/commit.md section 2.1.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.row.murmur import hash_bytes
from penstock.format.row.row import ARITY_BYTES, encode_row
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal


_MASK: Final = 0xFFFFFFFF


class BucketFunction(StrEnum):
    """Function from bucket keys to buckets; the value is that of ``bucket-function.type``."""

    DEFAULT = "default"
    MOD = "mod"
    HIVE = "hive"


def bucket_of(
    values: Sequence[object],
    types: Sequence[DataType],
    num_buckets: int,
    function: BucketFunction = BucketFunction.DEFAULT,
) -> int:
    """Return the bucket of a row.

    Args:
        values: internal values of the bucket key, in the order of the option.
        types: types of these columns.
        num_buckets: of the table, at least 1.
        function: of the table.
    """
    match function:
        case BucketFunction.DEFAULT:
            return abs(hash_bytes(encode_row(values, types)[ARITY_BYTES:])) % num_buckets
        case BucketFunction.MOD:
            return _mod_bucket(values, types, num_buckets)
        case BucketFunction.HIVE:
            return _hive_bucket(values, types, num_buckets)


def check_mod_key(types: Sequence[DataType]) -> None:
    """Check that ``mod`` supports a key of these types."""
    if len(types) == 1 and isinstance(types[0], AtomicType) and types[0].root in (TypeRoot.INT, TypeRoot.BIGINT):
        return
    raise InvalidOptionError(
        "option 'bucket-function.type' = 'mod': expected a bucket key of one INT or BIGINT column, but it has "
        f"({', '.join(map(format_sql_type, types))}); use 'default'"
    )


def _mod_bucket(values: Sequence[object], types: Sequence[DataType], num_buckets: int) -> int:
    check_mod_key(types)
    (value,) = values
    # The slot of a null holds zeros, and the function does not check for null.
    return value % num_buckets if isinstance(value, int) else 0


def _hive_bucket(values: Sequence[object], types: Sequence[DataType], num_buckets: int) -> int:
    state = 0
    for value, data_type in zip(values, types, strict=True):
        state = 31 * state + (0 if value is None else _hive_hash(value, data_type))
    return (state & 0x7FFFFFFF) % num_buckets


def _hive_hash(value: object, data_type: DataType) -> int:
    """Return Hive's hash of a value; only the lowest 32 bits are valid."""
    hash_value = _HIVE_HASHES.get(data_type.root) if isinstance(data_type, AtomicType) else None
    if hash_value is None:
        raise UnsupportedFeatureError(
            f"option 'bucket-function.type' = 'hive' has no hash for type {format_sql_type(data_type)}: leave the "
            "column out of 'bucket-key', or use 'default'"
        )
    return hash_value(value)


def _float_hash(value: float) -> int:
    return int.from_bytes(struct.pack("<f", _plain_zero_and_nan(value)), "little")


def _double_hash(value: float) -> int:
    return _fold(int.from_bytes(struct.pack("<d", _plain_zero_and_nan(value)), "little"))


def _text_hash(value: str) -> int:
    return _polynomial(value.encode())


def _plain_zero_and_nan(value: float) -> float:
    # Java hashes -0.0 like 0.0, and all NaN values alike.
    return float("nan") if value != value else value + 0.0  # noqa: PLR0124 - the one test for NaN without an import


def _fold(number: int) -> int:
    bits = number & 0xFFFFFFFFFFFFFFFF
    return bits ^ bits >> 32


def _polynomial(data: bytes) -> int:
    state = 0
    for byte in data:
        state = (31 * state + (byte - 256 if byte > 127 else byte)) & _MASK
    return state


def _decimal_hash(value: Decimal) -> int:
    """Return Java's ``BigDecimal.hashCode`` of the value without trailing zeros."""
    if not value:
        return 0
    sign, digits, exponent = value.as_tuple()
    unscaled, scale = int("".join(map(str, digits))), -int(exponent)
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    if scale < 0:
        unscaled, scale = unscaled * 10**-scale, 0
    state = 0
    size = (unscaled.bit_length() + 31) // 32
    for place in reversed(range(size)):
        state = 31 * state + (unscaled >> 32 * place & _MASK)
    return 31 * (-state if sign else state) + scale


_HIVE_HASHES: Final[dict[TypeRoot, Callable[[Any], int]]] = {
    TypeRoot.BOOLEAN: int,
    TypeRoot.TINYINT: int,
    TypeRoot.SMALLINT: int,
    TypeRoot.INT: int,
    TypeRoot.DATE: int,
    TypeRoot.TIME: int,
    TypeRoot.BIGINT: _fold,
    TypeRoot.FLOAT: _float_hash,
    TypeRoot.DOUBLE: _double_hash,
    TypeRoot.CHAR: _text_hash,
    TypeRoot.VARCHAR: _text_hash,
    TypeRoot.BINARY: _polynomial,
    TypeRoot.VARBINARY: _polynomial,
    TypeRoot.DECIMAL: _decimal_hash,
}
