"""Protocol Buffers messages as plain values: enough to read an ORC file's tail, change it, and write it.

Source:
    The Protocol Buffers encoding specification.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

from penstock.errors import FormatError

Message: TypeAlias = dict[int, list[int | bytes]]
"""Values by field number, in order; numbers are unsigned, as encoded."""


class Wire(IntEnum):
    """Wire types."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


_FIXED_BYTES: Final = {Wire.FIXED64: 8, Wire.FIXED32: 4}


def decode_message(data: bytes) -> Message:
    """Decode one message; fixed-width values are returned as bytes."""
    message: Message = {}
    at = 0
    try:
        while at < len(data):
            key, at = read_varint(data, at)
            wire = Wire(key & 7)
            value: int | bytes
            if wire is Wire.VARINT:
                value, at = read_varint(data, at)
            else:
                size, at = read_varint(data, at) if wire is Wire.BYTES else (_FIXED_BYTES[wire], at)
                value, at = data[at : at + size], at + size
            message.setdefault(key >> 3, []).append(value)
    except (IndexError, ValueError) as error:
        raise FormatError(f"a message of {len(data)} bytes cannot be decoded: {error}") from error
    if at > len(data):
        raise FormatError(f"a message of {len(data)} bytes is cut short")
    return message


def encode_message(message: Message) -> bytes:
    """Encode numbers and byte strings; fixed-width fields are not supported and would become byte strings."""
    out = bytearray()
    for number, values in message.items():
        for value in values:
            if isinstance(value, int):
                out += encode_varint(number << 3 | Wire.VARINT) + encode_varint(value)
            else:
                out += encode_varint(number << 3 | Wire.BYTES) + encode_varint(len(value)) + value
    return bytes(out)


def number_of(message: Message, field: int, default: int = 0) -> int:
    """Return the number in a non-repeated field."""
    value = message.get(field, [default])[-1]
    if isinstance(value, bytes):
        raise FormatError(f"field {field} holds bytes where a number was expected")
    return value


def numbers_of(message: Message, field: int) -> list[int]:
    """Return the numbers in a repeated field, packed or not."""
    numbers: list[int] = []
    for value in message.get(field, []):
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = read_varint(value, at)
            numbers.append(number)
    return numbers


def messages_of(message: Message, field: int) -> list[Message]:
    """Return the messages in a repeated field."""
    return [decode_message(value) for value in message.get(field, []) if isinstance(value, bytes)]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number and the position after it."""
    result = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
    raise ValueError("a number has more than 64 bits")


def encode_varint(number: int) -> bytes:
    """Encode an unsigned number."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
