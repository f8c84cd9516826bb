"""Avro's values that hold no others, from the bytes.

Source:
    Avro 1.11 specification, "Primitive Types".
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
    """(data, position) to (value, position behind it); an IndexError when the data end before."""


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Read an int or a long: zigzag, 7 bits a byte, lowest first."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position
    number = byte & 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), position
        shift += 7


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    """Read bytes; a slice that is cut short is found when the next value is read, or at the end."""
    size, position = read_long(data, position)
    if size < 0:
        raise ValueError("a length is negative")
    end = position + size
    return data[position:end], end


def read_text(data: bytes, position: int) -> tuple[str, int]:
    """Read a string."""
    text, position = read_bytes(data, position)
    return text.decode(), position


def _struct(layout: str) -> Read:
    struct = Struct(layout)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return struct.unpack_from(data, position)[0], position + struct.size

    return read


PRIMITIVES: Final[dict[str, Read]] = {
    "null": lambda _data, position: (None, position),
    "boolean": lambda data, position: (data[position] == 1, position + 1),
    "int": read_long,
    "long": read_long,
    "float": _struct("<f"),
    "double": _struct("<d"),
    "bytes": read_bytes,
    "string": read_text,
}
