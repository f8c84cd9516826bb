"""Decode Avro's primitive types.

Source:
    Avro 1.11 specification, "Primitive Types".
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - it is a class
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
    """(data, position) to (value, position after it); an IndexError if the data end too early."""

# 64 bits take 10 bytes at most; without this limit a number could be as long as the file, and take hours to decode.
_SHIFTS: Final = range(7, 70, 7)
_LONG_BITS: Final = 64
_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_MOST_TEXT_BYTES: Final = 1 << 20


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Read a long: zigzag, 7 bits per byte, lowest first.

    Raises:
        ValueError: the number has more than 64 bits.
    """
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
    """Read an int, which is encoded like a long.

    Raises:
        ValueError: the number has more than 32 bits.
    """
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

    Raises:
        ValueError: a block size is negative.
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
    """Read a string.

    Raises:
        ValueError: not UTF-8, or longer than any name or path.
    """
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
