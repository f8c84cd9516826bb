"""Encode values in the slots of a BinaryRow or BinaryArray: every type without element types.

A slot has 8 bytes in a row, and the value's natural width in an array. Longer values are in the variable part of the
section, and the slot holds their offset.

Source:
    Paimon ``common:data/AbstractBinaryWriter.java``, ``common:data/BinaryArray.java``; docs/spec/format.md section 6.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from struct import Struct
from typing import Any, Final, TypeAlias

from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import AtomicType, TypeRoot

Pack: TypeAlias = Callable[[Any, int], tuple[bytes, bytes]]
"""(value, offset of the next free byte of the variable part) to (slot, padded variable part)."""

Unpack: TypeAlias = Callable[[bytes, int, int], Any]
"""(data, start of the section, start of the slot) to the value."""

WORD: Final = Struct("<q")
SIZE_AND_OFFSET: Final = Struct("<II")

_MAX_COMPACT_DECIMAL: Final = 18
_MAX_COMPACT_TIMESTAMP: Final = 3
_MAX_INLINE: Final = 7
_NANOS_PER_MILLI: Final = 1_000_000

# Exact or an error: enough for 38 digits and any scale of a literal.
_DECIMAL: Final = Context(prec=120, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotCodec:
    """Encoding of one type's values in a slot.

    Attributes:
        width: bytes of the slot in an array; in a row it always has 8.
        null_tail: bytes that a null occupies in the variable part of a row.
    """

    pack: Pack
    unpack: Unpack
    width: int = 8
    null_tail: int = 0


def pad_to_word(data: bytes) -> bytes:
    """Pad with zeros to a multiple of 8 bytes."""
    return data + bytes(-len(data) % 8)


def tail_codec(encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> SlotCodec:
    """Return a codec for values that are always in the variable part, whatever their length."""

    def pack(value: object, offset: int) -> tuple[bytes, bytes]:
        data = encode(value)
        return SIZE_AND_OFFSET.pack(len(data), offset), pad_to_word(data)

    def unpack(data: bytes, start: int, slot: int) -> object:
        size, offset = SIZE_AND_OFFSET.unpack_from(data, slot)
        return decode(take(data, start + offset, size))

    return SlotCodec(pack=pack, unpack=unpack)


def take(data: bytes, start: int, size: int) -> bytes:
    """Return a slice of exactly ``size`` bytes.

    Raises:
        ValueError: the data end too early.
    """
    if start + size > len(data):
        raise ValueError(f"{size} bytes from byte {start} are outside of {len(data)} bytes")
    return data[start : start + size]


def atomic_codec(data_type: AtomicType) -> SlotCodec:
    """Return the slot codec of a type without element types.

    Raises:
        UnsupportedFeatureError: BLOB, GEOMETRY and GEOGRAPHY, which keys and statistics do not support.
    """
    match data_type.root:
        case TypeRoot.DECIMAL:
            return _decimal_codec(data_type.precision or 10, data_type.scale or 0)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            return _timestamp_codec(6 if data_type.precision is None else data_type.precision)
        case root if root in _CODECS:
            return _CODECS[root]
        case root:
            raise UnsupportedFeatureError(
                f"columns of type {root} cannot be used in keys, partitions or statistics: use another column there"
            )


def _fixed(layout: str) -> SlotCodec:
    struct = Struct(f"<{layout}")

    def pack(value: object, _offset: int) -> tuple[bytes, bytes]:
        return struct.pack(value), b""

    def unpack(data: bytes, _start: int, slot: int) -> object:
        return struct.unpack_from(data, slot)[0]

    return SlotCodec(pack=pack, unpack=unpack, width=struct.size)


def _short_or_tail(encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> SlotCodec:
    """Return a codec that puts up to 7 bytes in the slot itself; the top bit of its last byte marks this."""

    def pack(value: object, offset: int) -> tuple[bytes, bytes]:
        data = encode(value)
        size = len(data)
        if size <= _MAX_INLINE:
            return data + bytes(_MAX_INLINE - size) + bytes((0x80 | size,)), b""
        return SIZE_AND_OFFSET.pack(size, offset), pad_to_word(data)

    def unpack(data: bytes, start: int, slot: int) -> object:
        mark = data[slot + _MAX_INLINE]
        if mark & 0x80:
            return decode(take(data, slot, mark & 0x7F))
        size, offset = SIZE_AND_OFFSET.unpack_from(data, slot)
        return decode(take(data, start + offset, size))

    return SlotCodec(pack=pack, unpack=unpack)


def _decimal_codec(precision: int, scale: int) -> SlotCodec:
    limit = 10**precision

    def unscaled(value: Decimal) -> int:
        number = int(_DECIMAL.quantize(value, Decimal(1).scaleb(-scale)).scaleb(scale, _DECIMAL))
        if not -limit < number < limit:
            raise OverflowError(f"more than {precision} digits")
        return number

    def scaled(number: int) -> Decimal:
        return Decimal(number).scaleb(-scale, _DECIMAL)

    def pack(value: Decimal, offset: int) -> tuple[bytes, bytes]:
        number = unscaled(value)
        if precision <= _MAX_COMPACT_DECIMAL:
            return WORD.pack(number), b""
        magnitude = number if number >= 0 else ~number
        data = number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
        return SIZE_AND_OFFSET.pack(len(data), offset), data.ljust(16, b"\0")

    def unpack(data: bytes, start: int, slot: int) -> Decimal:
        if precision <= _MAX_COMPACT_DECIMAL:
            return scaled(WORD.unpack_from(data, slot)[0])
        size, offset = SIZE_AND_OFFSET.unpack_from(data, slot)
        return scaled(int.from_bytes(take(data, start + offset, size), "big", signed=True))

    return SlotCodec(pack=pack, unpack=unpack, null_tail=16 if precision > _MAX_COMPACT_DECIMAL else 0)


def _timestamp_codec(precision: int) -> SlotCodec:
    def pack(nanos: int, offset: int) -> tuple[bytes, bytes]:
        millis, rest = divmod(nanos, _NANOS_PER_MILLI)
        if precision <= _MAX_COMPACT_TIMESTAMP:
            return WORD.pack(millis), b""
        return SIZE_AND_OFFSET.pack(rest, offset), WORD.pack(millis)

    def unpack(data: bytes, start: int, slot: int) -> int:
        if precision <= _MAX_COMPACT_TIMESTAMP:
            return int(WORD.unpack_from(data, slot)[0]) * _NANOS_PER_MILLI
        rest, offset = SIZE_AND_OFFSET.unpack_from(data, slot)
        return int(WORD.unpack_from(data, start + offset)[0]) * _NANOS_PER_MILLI + int(rest)

    return SlotCodec(pack=pack, unpack=unpack, null_tail=8 if precision > _MAX_COMPACT_TIMESTAMP else 0)


def _encode_variant(variant: tuple[bytes, bytes]) -> bytes:
    value, metadata = variant
    return len(value).to_bytes(4, "little") + value + metadata


def _decode_variant(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(take(data, 0, 4), "little")
    return take(data, 4, size), data[4 + size :]


def _as_bytes(value: bytes) -> bytes:
    # Not bytes(value): bytes(5) would be five zeros instead of an error.
    return b"".join((value,))


_TEXT: Final = _short_or_tail(str.encode, bytes.decode)
_BINARY: Final = _short_or_tail(_as_bytes, bytes)
_INT: Final = _fixed("i")

_CODECS: Final = {
    TypeRoot.CHAR: _TEXT,
    TypeRoot.VARCHAR: _TEXT,
    TypeRoot.BOOLEAN: _fixed("?"),
    TypeRoot.BINARY: _BINARY,
    TypeRoot.VARBINARY: _BINARY,
    TypeRoot.TINYINT: _fixed("b"),
    TypeRoot.SMALLINT: _fixed("h"),
    TypeRoot.INT: _INT,
    TypeRoot.BIGINT: _fixed("q"),
    TypeRoot.FLOAT: _fixed("f"),
    TypeRoot.DOUBLE: _fixed("d"),
    TypeRoot.DATE: _INT,
    TypeRoot.TIME: _INT,
    TypeRoot.VARIANT: tail_codec(_encode_variant, _decode_variant),
}
