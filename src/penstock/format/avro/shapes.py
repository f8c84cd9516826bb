"""Records of one shape: lengths, branches, and the numbers of bytes of numbers are equal in them.

All their fields are at the same places. They are found by one comparison of some of their bytes; a cursor of
``columns`` takes several steps for each field instead.

Source:
    Avro 1.11 specification, "Binary Encoding"; design/0093.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.avro.columns import Array, Records
    from penstock.format.avro.schemas import AvroType

    Mark: TypeAlias = Callable[[bytes, int, bytearray], int]
    """(data, position, mask) to the position after a value; sets those bits of the mask that decide where its parts
    are, and raises ValueError or IndexError if there is no sound value."""

_WORD_BYTES: Final = 8
_MAX_LONG_BYTES: Final = 8
_MAX_ITEMS: Final = 2048
_GOES_ON: Final = 0x80
_ALL: Final = 0xFF
# What is compared at once stays in the processor's cache, and in memory that is used again.
_SLICE_BYTES: Final = 96 << 10


class Shape:
    """The bits that records of one shape have in common.

    Args:
        record: a record of this shape.
        mask: the bits, as many bytes as the record has.

    Attributes:
        width: bytes of a record.
    """

    __slots__ = ("_mask", "_parts", "_wanted", "width")

    def __init__(self, record: bytes, mask: bytes) -> None:
        self.width = len(record)
        padding = bytes(-len(record) % _WORD_BYTES)
        self._mask: Array = np.frombuffer(mask + padding, "<u8")
        self._wanted: Array = np.frombuffer(record + padding, "<u8") & self._mask
        self._parts = tuple(words.view(np.uint8)[: self.width] for words in (self._mask, self._wanted))

    def matching(self, records: Records, starts: Array) -> Array:
        """Return whether a record of this shape is at each start."""
        matches = np.ones(len(starts), bool)
        step = max(_SLICE_BYTES // self.width, 1)
        for first in range(0, len(starts), step):
            words = records.rows(starts[first : first + step], _WORD_BYTES * len(self._mask)).view("<u8")
            words &= self._mask
            differs = words != self._wanted
            if differs.any():
                matches[first : first + step] = ~differs.any(axis=1)
        return matches

    def are_all(self, records: Records) -> bool:
        """Whether the bytes are records of this shape, from the start to the end."""
        if not records.size or records.size % self.width:
            return False
        mask, wanted = self._parts
        # Equal to the wanted bits are those in all records, and those in any.
        return all(((bits & mask) == wanted).all() for bits in records.common_bits(self.width))


def mark_of(avro_type: AvroType) -> Mark | None:
    """Return a function that marks a value of a type; None if the type is not supported."""
    mark: Mark | None = None
    match avro_type:
        case "int" | "long":
            mark = _mark_long
        case "bytes" | "string":
            mark = _mark_span
        case ["null", branch]:
            mark = _mark_by(_mark_nullable, mark_of(branch))
        case {"type": "array", "items": items}:
            mark = _mark_by(_mark_items, mark_of(items))
        case {"type": "record", "fields": [*fields]}:
            marks = [mark_of(field.get("type")) if isinstance(field, dict) else None for field in fields]
            known = [each for each in marks if each]
            if known and len(known) == len(marks):
                mark = partial(_mark_all, known)
        case {"type": str() | list() as inner} if inner not in ("array", "record"):
            mark = mark_of(inner)
        case _:
            pass
    return mark


def _mark_by(mark: Callable[..., int], inner: Mark | None) -> Mark | None:
    return None if inner is None else partial(mark, inner)


def _mark_long(data: bytes, position: int, mask: bytearray) -> int:
    for place in range(position, position + _MAX_LONG_BYTES):
        mask[place] = _GOES_ON
        if data[place] < _GOES_ON:
            return place + 1
    raise ValueError("a number has too many bytes")


def _mark_number(data: bytes, position: int, mask: bytearray, most: int) -> tuple[int, int]:
    """Mark a number with all its bits; return it, and the position after it."""
    end = _mark_long(data, position, mask)
    number = 0
    for place in range(position, end):
        mask[place] = _ALL
        number |= (data[place] & 0x7F) << 7 * (place - position)
    number = number >> 1 ^ -(number & 1)
    if not 0 <= number <= most:
        raise ValueError("a size is not sound")
    return number, end


def _mark_span(data: bytes, position: int, mask: bytearray) -> int:
    size, position = _mark_number(data, position, mask, len(data))
    if position + size > len(data):
        raise ValueError("a text ends too late")
    return position + size


def _mark_nullable(mark: Mark, data: bytes, position: int, mask: bytearray) -> int:
    mask[position] = _ALL
    if data[position] not in (0, 2):
        raise ValueError("a branch is not known")
    return mark(data, position + 1, mask) if data[position] else position + 1


def _mark_items(mark: Mark, data: bytes, position: int, mask: bytearray) -> int:
    count, position = _mark_number(data, position, mask, _MAX_ITEMS)
    for _ in range(count):
        position = mark(data, position, mask)
    if count:
        mask[position] = _ALL
        if data[position]:
            raise ValueError("an array has several blocks")
        position += 1
    return position


def _mark_all(marks: Sequence[Mark], data: bytes, position: int, mask: bytearray) -> int:
    for mark in marks:
        position = mark(data, position, mask)
    return position
