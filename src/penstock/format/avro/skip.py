"""Skip Avro values that are not needed, which is faster than decoding them.

The number of items in arrays and maps is limited.

Source:
    Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.format.avro.values import MOST_EMPTY_ITEMS, RECORDS_KEY, read_item_count, read_long, takes_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.avro.schemas import AvroType
    from penstock.format.avro.values import Read

    Skip: TypeAlias = Callable[[bytes, int], int]
    """(data, position) to the position after a value; an IndexError at the latest when the next one is read."""
    Reader: TypeAlias = Callable[[AvroType], Read]


class ItemLimits:
    """Limits on the items of the arrays of one file.

    Args:
        most_kept: maximum number of items that all arrays hold in memory together.
    """

    def __init__(self, most_kept: int) -> None:
        self._most_kept = most_kept
        self.start_file()

    def start_file(self) -> None:
        """Count from zero again."""
        self._kept_left = self._most_kept
        self._empty_left = MOST_EMPTY_ITEMS

    def check(self, count: int, bytes_left: int, *, takes_bytes: bool, is_kept: bool) -> None:
        """Count the items that a block states.

        Args:
            bytes_left: of the file's block.
            takes_bytes: whether an item takes at least one byte, so that those bytes limit the number of items.
            is_kept: whether they are kept in memory; else they are skipped.
        """
        if not takes_bytes:
            self._empty_left -= count
            if self._empty_left < 0:
                raise ValueError(f"it has more than {MOST_EMPTY_ITEMS} items that take no bytes")
        elif count > bytes_left:
            raise ValueError(f"a block claims to have {count} items, with {bytes_left} bytes left")
        if is_kept:
            self._kept_left -= count
            if self._kept_left < 0:
                raise ValueError(
                    f"its arrays have more than {self._most_kept} items (if the file is good, read it with a larger "
                    f"'{RECORDS_KEY}', given as an option of this use)"
                )


_PRESENT: Final = 2  # branch 1 of a union
# Longer arrays are not kept to be compared with the next one.
_MOST_KEPT_BYTES: Final = 4096


def read_past(skips: list[Skip]) -> Read:
    """Return a function that skips several values at once."""
    # Values without bytes need no skipping, and a schema may have many of them.
    skips = [skip for skip in skips if _takes_bytes(skip)]

    def read(data: bytes, position: int) -> tuple[None, int]:
        for skip in skips:
            position = skip(data, position)
        return None, position

    return read


def skipper(avro_type: AvroType, reader: Reader, items: ItemLimits) -> Skip:
    """Return a function that skips a value: it returns the end position.

    The function remembers the last array that it skipped: do not share it between threads.

    Args:
        reader: creates decoding functions, which are used for rare types.
        items: limits of the file.
    """
    match avro_type:
        case str() if avro_type in _SKIPS:
            return _SKIPS[avro_type]
        case ["null", branch]:
            return _skip_nullable(skipper(branch, reader, items))
        case {"type": "record", "fields": [*fields]}:
            past = read_past([skipper(field["type"], reader, items) for field in fields if isinstance(field, dict)])
            return lambda data, position: past(data, position)[1]
        case {"type": "array", "items": item}:
            return _skip_array(skipper(item, reader, items), items)
        case {"type": str(primitive)} if primitive in _SKIPS:
            return _SKIPS[primitive]
    read = reader(avro_type)
    return lambda data, position: read(data, position)[1]


def _skip_nullable(skip: Skip) -> Skip:
    def skip_nullable(data: bytes, position: int) -> int:
        branch = data[position]
        if branch == _PRESENT:
            return skip(data, position + 1)
        if branch:
            raise ValueError("a value is neither null nor present")
        return position + 1

    return skip_nullable


def _skip_array(skip: Skip, items: ItemLimits) -> Skip:
    has_bytes = _takes_bytes(skip)

    raw = b""

    def skip_array(data: bytes, position: int) -> int:
        nonlocal raw
        if data[position] == 0:
            return position + 1
        # Records often have equal arrays, such as counts of nulls. No Avro encoding is a prefix of another.
        if raw and data.startswith(raw, position):
            return position + len(raw)
        start = position
        count, position = read_item_count(data, position)
        while count:
            items.check(count, len(data) - position, takes_bytes=has_bytes, is_kept=False)
            for _ in range(count if has_bytes else 0):
                position = skip(data, position)
            count, position = read_item_count(data, position)
        raw = data[start:position] if position - start <= _MOST_KEPT_BYTES else b""
        return position

    return skip_array


def _takes_bytes(skip: Skip) -> bool:
    return takes_bytes(lambda data, position: (None, skip(data, position)))


def _skip_long(data: bytes, position: int) -> int:
    # Ten bytes at most, as in ``read_long``.
    for end in range(position, position + 10):
        if data[end] < 0x80:
            return end + 1
    raise ValueError("a number has more than 64 bits")


def _skip_bytes(data: bytes, position: int) -> int:
    size, position = read_long(data, position)
    if size < 0:
        raise ValueError("a length is negative")
    return position + size


_SKIPS: Final[dict[str, Skip]] = {"int": _skip_long, "long": _skip_long, "bytes": _skip_bytes, "string": _skip_bytes}
