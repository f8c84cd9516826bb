"""BinaryRow: the row encoding of partitions, bucket keys and statistics.

Values are Penstock's internal ones: DATE epoch days, TIME ms of day, TIMESTAMP and TIMESTAMP_LTZ ns since
1970-01-01, DECIMAL ``Decimal``, ARRAY and VECTOR a list, MAP and MULTISET (key, value) pairs, ROW a tuple, VARIANT
(value, metadata), null None. The nullability of types is ignored: statistics have nulls in every column.

A slot has 8 bytes in a row, and the value's natural width in an array. Longer values are in the variable part of the
section, and the slot holds their offset.

Source:
    Paimon ``common:data/BinaryRow.java``, ``common:data/BinaryRowWriter.java``, ``common:data/RowHelper.java``,
    ``core:utils/SerializationUtils.java``; docs/spec/format.md sections 6.1 and 6.2;
    ``common:data/AbstractBinaryWriter.java``, ``common:data/BinaryArray.java``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from penstock.errors import FormatError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.types.data_types import (
    INT,
    VECTOR_ELEMENTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    RowDecoder: TypeAlias = Callable[[bytes], tuple[object, ...]]
    Coders: TypeAlias = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]
    Wanted: TypeAlias = "tuple[tuple[int, SlotCodec], ...]"


Pack: TypeAlias = Callable[[Any, int], tuple[bytes, bytes]]
"""(value, offset of the next free byte of the variable part) to (slot, padded variable part)."""

Unpack: TypeAlias = Callable[[bytes, int, int], Any]
"""(data, start of the section, start of the slot) to the value."""

WORD: Final = Struct("<q")
SIZE_AND_OFFSET: Final = Struct("<II")

MAX_COMPACT_DECIMAL: Final = 18
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
    """Return a slice of exactly ``size`` bytes."""
    if start + size > len(data):
        raise ValueError(f"{size} bytes from byte {start} are outside of {len(data)} bytes")
    return data[start : start + size]


def atomic_codec(data_type: AtomicType) -> SlotCodec:
    """Return the slot codec of a type without element types."""
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
        if precision <= MAX_COMPACT_DECIMAL:
            return WORD.pack(number), b""
        magnitude = number if number >= 0 else ~number
        data = number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
        return SIZE_AND_OFFSET.pack(len(data), offset), data.ljust(16, b"\0")

    def unpack(data: bytes, start: int, slot: int) -> Decimal:
        if precision <= MAX_COMPACT_DECIMAL:
            return scaled(WORD.unpack_from(data, slot)[0])
        size, offset = SIZE_AND_OFFSET.unpack_from(data, slot)
        return scaled(int.from_bytes(take(data, start + offset, size), "big", signed=True))

    return SlotCodec(pack=pack, unpack=unpack, null_tail=16 if precision > MAX_COMPACT_DECIMAL else 0)


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


ARITY_BYTES: Final = 4
"""Length of the big-endian field count at the start of a serialized row; offsets and hashes exclude it."""

# Errors of packing a value that does not fit its type, and of unpacking bytes that hold no such value.
_MISFITS: Final = (struct.error, TypeError, ValueError, ArithmeticError, AttributeError, IndexError)


def encode_row(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """Serialize one row, with the 4-byte big-endian arity prefix.

    Args:
        values: internal values, one per type.
        types: the fields' types.
    """
    codecs = _codecs(tuple(types))
    try:
        return len(codecs).to_bytes(ARITY_BYTES, "big") + _pack_row(values, codecs)
    except _MISFITS as error:
        raise SchemaMismatchError(_misfit(values, types, error)) from error


def decode_row(data: bytes, types: Sequence[DataType]) -> tuple[object, ...]:
    """Deserialize one row."""
    return row_decoder(tuple(types))(data)


def row_decoder(types: tuple[DataType, ...], places: Iterable[int] | None = None) -> RowDecoder:
    """Return a function that deserializes rows of these types; for many rows of one kind.

    Args:
        types: of all fields of the row.
        places: indexes of the fields to read, in this order; None reads all.
    """
    codecs = _codecs(types)
    wanted = tuple((place, codecs[place]) for place in (range(len(types)) if places is None else places))

    def decode(data: bytes) -> tuple[object, ...]:
        if arity_of(data) != len(codecs):
            raise FormatError(_damaged(data, len(codecs), f"it claims to have {arity_of(data)} fields"))
        try:
            return _unpack_row(data, ARITY_BYTES, len(codecs), wanted)
        except _MISFITS as error:
            raise FormatError(_damaged(data, len(codecs), str(error))) from error

    return decode


def decode_field(data: bytes, arity: int, place: int, data_type: DataType) -> object:
    """Read one field of a serialized row of ``arity`` fields without decoding the others."""
    if not 0 <= place < arity == arity_of(data):
        raise FormatError(_damaged(data, arity, f"it claims to have {arity_of(data)} fields"))
    try:
        (codec,) = _codecs((data_type,))
        return _unpack_row(data, ARITY_BYTES, arity, ((place, codec),))[0]
    except _MISFITS as error:
        raise FormatError(_damaged(data, arity, str(error))) from error


def arity_of(data: bytes) -> int:
    """Return the number of fields of a serialized row."""
    return int.from_bytes(data[:ARITY_BYTES], "big")


def _damaged(data: bytes, arity: int, reason: str) -> str:
    return (
        f"{len(data)} bytes ({data[:24].hex()}...) are not a BinaryRow of {arity} fields: {reason}; the manifest that "
        "names them is damaged or belongs to another schema, so roll the table back to a snapshot before it"
    )


def _misfit(values: Sequence[object], types: Sequence[DataType], error: Exception) -> str:
    if len(values) != len(types):
        return f"a row of {len(types)} columns cannot be built from {len(values)} values: pass one value per column"
    for value, data_type in zip(values, types, strict=True):
        try:
            _pack_row((value,), _codecs((data_type,)))
        except _MISFITS:
            return f"value {value!r} does not fit type {format_sql_type(data_type)}: {error}; cast it first"
    return str(error)


@lru_cache(maxsize=1024)
def _codecs(types: tuple[DataType, ...]) -> tuple[SlotCodec, ...]:
    return tuple(_codec(data_type) for data_type in types)


def _codec(data_type: DataType) -> SlotCodec:
    match data_type:
        case AtomicType():
            return atomic_codec(data_type)
        case ArrayType(element=element):
            return tail_codec(*_array_coders(_codec(element)))
        case VectorType(element=element, length=length):
            return tail_codec(*_vector_coders(_vector_element_codec(element), length))
        case MapType(key=key, value=value):
            return tail_codec(*_map_coders(_codec(key), _codec(value)))
        case MultisetType(element=element):
            return tail_codec(*_map_coders(_codec(element), _codec(INT)))
        case RowType(fields=fields):
            return tail_codec(*_row_coders(_codecs(tuple(field.type for field in fields))))
        case other:
            assert_never(other)


def null_area_bytes(arity: int) -> int:
    """Return the number of bytes before the first slot of a row, without the arity prefix."""
    # The first byte is the row kind, the null bits follow.
    return (arity + 8 + 63) // 64 * 8


def _pack_row(values: Sequence[object], codecs: tuple[SlotCodec, ...]) -> bytes:
    head = null_area_bytes(len(codecs))
    offset = head + 8 * len(codecs)
    nulls = 0
    slots, tails = [], []
    for place, (value, codec) in enumerate(zip(values, codecs, strict=True)):
        if value is not None:
            slot, tail = codec.pack(value, offset)
            slots.append(slot.ljust(8, b"\0"))
        else:
            nulls |= 1 << place + 8
            # Some types take space in the variable part even when null, which affects hashes and byte equality
            # (RowHelper).
            tail = bytes(codec.null_tail)
            slots.append(SIZE_AND_OFFSET.pack(0, offset if tail else 0))
        tails.append(tail)
        offset += len(tail)
    return b"".join((nulls.to_bytes(head, "little"), *slots, *tails))


def _unpack_row(data: bytes, start: int, arity: int, wanted: Wanted) -> tuple[object, ...]:
    first_slot = start + null_area_bytes(arity)
    take(data, first_slot, 8 * arity)
    nulls = int.from_bytes(data[start:first_slot], "little") >> 8
    return tuple(
        None if nulls >> place & 1 else codec.unpack(data, start, first_slot + 8 * place) for place, codec in wanted
    )


def _row_coders(codecs: tuple[SlotCodec, ...]) -> Coders:
    wanted = tuple(enumerate(codecs))
    return lambda values: _pack_row(values, codecs), lambda data: _unpack_row(data, 0, len(codecs), wanted)


def _array_coders(codec: SlotCodec) -> Coders:
    width = codec.width

    def encode(values: Sequence[object]) -> bytes:
        count = len(values)
        null_bytes = (count + 31) // 32 * 4
        offset = (4 + null_bytes + width * count + 7) // 8 * 8
        nulls = 0
        slots, tails = [], []
        for place, value in enumerate(values):
            if value is None:
                nulls |= 1 << place
                slots.append(bytes(width))
                continue
            slot, tail = codec.pack(value, offset)
            slots.append(slot)
            tails.append(tail)
            offset += len(tail)
        head = count.to_bytes(4, "little") + nulls.to_bytes(null_bytes, "little")
        return pad_to_word(b"".join((head, *slots))) + b"".join(tails)

    def decode(data: bytes) -> list[object]:
        count = int.from_bytes(take(data, 0, 4), "little")
        first_slot = 4 + (count + 31) // 32 * 4
        take(data, first_slot, width * count)
        nulls = int.from_bytes(data[4:first_slot], "little")
        return [
            None if nulls >> place & 1 else codec.unpack(data, 0, first_slot + width * place) for place in range(count)
        ]

    return encode, decode


def _vector_element_codec(element: DataType) -> SlotCodec:
    if isinstance(element, AtomicType) and element.root in VECTOR_ELEMENTS:
        return atomic_codec(element)
    raise UnsupportedFeatureError(
        f"VECTOR<{format_sql_type(element)}> has no binary form: its elements must be BOOLEAN or numbers up to DOUBLE"
    )


def _vector_coders(codec: SlotCodec, length: int) -> Coders:
    width = codec.width

    def encode(values: Sequence[object]) -> bytes:
        if len(values) != length:
            raise ValueError(f"it has {len(values)} elements instead of {length}")
        return len(values).to_bytes(4, "little") + pad_to_word(b"".join(codec.pack(value, 0)[0] for value in values))

    def decode(data: bytes) -> list[object]:
        count = int.from_bytes(take(data, 0, 4), "little")
        take(data, 4, width * count)
        return [codec.unpack(data, 0, 4 + width * place) for place in range(count)]

    return encode, decode


def _map_coders(key: SlotCodec, value: SlotCodec) -> Coders:
    encode_keys, decode_keys = _array_coders(key)
    encode_values, decode_values = _array_coders(value)

    def encode(pairs: Sequence[tuple[object, object]]) -> bytes:
        keys = encode_keys([key for key, _ in pairs])
        return len(keys).to_bytes(4, "little") + keys + encode_values([value for _, value in pairs])

    def decode(data: bytes) -> list[tuple[object, object]]:
        size = int.from_bytes(take(data, 0, 4), "little")
        return list(zip(decode_keys(take(data, 4, size)), decode_values(data[4 + size :]), strict=True))

    return encode, decode
