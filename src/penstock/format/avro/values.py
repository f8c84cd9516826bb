"""Encode the kinds of Avro values that manifests contain.

A nullable value is a union whose branch 0 is null, so null is the byte 0 and everything else starts with the byte 2.

Source:
    Avro 1.11 specification, "Binary Encoding"; docs/spec/format.md section 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
