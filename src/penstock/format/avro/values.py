"""Encode and decode the kinds of Avro values that manifests contain, within limits.

A nullable value is a union whose branch 0 is null, so null is the byte 0 and everything else starts with the byte 2.
The limits keep a small damaged or hostile file from filling the memory.

Source:
    Avro 1.11 specification, "Binary Encoding" and "Primitive Types"; docs/spec/format.md section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is a class
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
    """(data, position) to (value, position after it); an IndexError if the data end too early."""

NULL: Final = b"\0"
PRESENT: Final = b"\2"
_END: Final = b"\0"

# Numbers are encoded by table, 14 bits at a time: several times faster than a loop over bytes; most values are numbers.
_PAIR: Final = 1 << 14
_BYTES: Final = tuple(bytes((n,)) for n in range(256))
_LAST: Final = (*_BYTES[:0x80], *(low + high for high in _BYTES[1:0x80] for low in _BYTES[0x80:]))
_MORE: Final = tuple(low + high for high in _BYTES[0x80:] for low in _BYTES[0x80:])


def encode_long(number: int) -> bytes:
    """Encode an int or a long: zigzag, then 7 bits per byte, lowest first.

    Raises:
        FormatError: the number has more than 64 bits, as a sum of damaged numbers may have.
    """
    rest = number << 1 ^ number >> 63
    if rest < _PAIR:
        return _LAST[rest]
    if rest >> 64:
        raise FormatError(
            f"{number} has more than 64 bits and cannot be stored: the value that it was added to is damaged"
        )
    parts = []
    while rest >= _PAIR:
        parts.append(_MORE[rest & _PAIR - 1])
        rest >>= 14
    parts.append(_LAST[rest])
    return b"".join(parts)


def encode_bytes(data: bytes) -> bytes:
    """Encode bytes."""
    return encode_long(len(data)) + data


def encode_text(text: str) -> bytes:
    """Encode a string."""
    return encode_bytes(text.encode())


def encode_texts(texts: Sequence[str]) -> bytes:
    """Encode an array of strings."""
    if not texts:
        return _END
    return b"".join((encode_long(len(texts)), *map(encode_text, texts), _END))


def encode_nullable_longs(numbers: Sequence[int | None]) -> bytes:
    """Encode an array of nullable longs."""
    if not numbers:
        return _END
    return b"".join((encode_long(len(numbers)), *map(encode_nullable_long, numbers), _END))


def encode_nullable_long(number: int | None) -> bytes:
    """Encode an int, a long or a timestamp that may be null."""
    return NULL if number is None else PRESENT + encode_long(number)


def encode_nullable_bytes(data: bytes | None) -> bytes:
    """Encode bytes that may be null."""
    return NULL if data is None else PRESENT + encode_bytes(data)


def encode_nullable_text(text: str | None) -> bytes:
    """Encode a string that may be null."""
    return NULL if text is None else PRESENT + encode_text(text)


def encode_nullable_texts(texts: Sequence[str] | None) -> bytes:
    """Encode a nullable array of strings."""
    return NULL if texts is None else PRESENT + encode_texts(texts)


# 64 bits take 10 bytes at most; without this limit a number could be as long as the file, and take hours to decode.
_SHIFTS: Final = range(7, 70, 7)
_LONG_BITS: Final = 64
_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_MOST_TEXT_BYTES: Final = 1 << 20


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Read a long: zigzag, 7 bits per byte, lowest first."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position
    number = byte & 0x7F
    for shift in _SHIFTS:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> _LONG_BITS:
                break
            return number >> 1 ^ -(number & 1), position
    raise ValueError("a number has more than 64 bits")


def read_int(data: bytes, position: int) -> tuple[int, int]:
    """Read an int, which is encoded like a long."""
    byte = data[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    number, position = read_long(data, position)
    if not _INT_MIN <= number <= _INT_MAX:
        raise ValueError("a number has more than 32 bits where an int belongs")
    return number, position


def read_item_count(data: bytes, position: int) -> tuple[int, int]:
    """Read the head of a block of an array or a map; a block of 0 items ends the array.

    Returns:
        The number of items in the block, and the position of the first one. A negative number on disk is followed by
        the block's size in bytes, for readers that skip the block.
    """
    count, position = read_long(data, position)
    if count < 0:
        size, position = read_long(data, position)
        if size < 0:
            raise ValueError("the size of a block of items is negative")
    return abs(count), position


def takes_bytes(read: Read) -> bool:
    """Whether values take at least one byte: only null, and types that consist of nulls only, take none."""
    try:
        return read(b"", 0)[1] != 0
    except (IndexError, StructError):
        return True


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    """Read bytes; a truncated slice is detected when the next value is read, or at the end of the block."""
    size, position = read_long(data, position)
    if size < 0:
        raise ValueError("a length is negative")
    end = position + size
    return data[position:end], end


def read_text(data: bytes, position: int) -> tuple[str, int]:
    """Read a string."""
    text, position = read_bytes(data, position)
    if len(text) > _MOST_TEXT_BYTES:
        raise ValueError(f"a text has {len(text)} bytes")
    return text.decode(), position


def _struct(layout: str) -> Read:
    struct = Struct(layout)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return struct.unpack_from(data, position)[0], position + struct.size

    return read


PRIMITIVES: Final[dict[str, Read]] = {
    "null": lambda _data, position: (None, position),
    "boolean": lambda data, position: (data[position] == 1, position + 1),
    "int": read_int,
    "long": read_long,
    "float": _struct("<f"),
    "double": _struct("<d"),
    "bytes": read_bytes,
    "string": read_text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroLimits:
    """Limits of one manifest, manifest list or index manifest.

    Attributes:
        block_bytes: of one block, uncompressed; writers end a block at 64 KB.
        file_bytes: of all blocks together, uncompressed.
        records: of all blocks together. Arrays in them may have ``ITEMS_PER_RECORD`` times as many items together.
    """

    block_bytes: int = 256 << 20
    file_bytes: int = 256 << 20
    records: int = 1_000_000


DEFAULT_LIMITS: Final = AvroLimits()
BLOCK_KEY: Final = "penstock.metadata.max-block-size"
FILE_KEY: Final = "penstock.metadata.max-file-size"
RECORDS_KEY: Final = "penstock.metadata.max-records"
ITEMS_PER_RECORD: Final = 8
MOST_EMPTY_ITEMS: Final = 65_536
"""Maximum number of nulls and other zero-byte items in the arrays of one file; no Paimon file has any."""
