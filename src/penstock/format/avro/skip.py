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


class ItemBudget:
    """A limit on the items that all arrays of a file hold in memory together.

    Args:
        most: maximum number of items.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def take(self, count: int) -> None:
        """Count items. Raises ``ValueError`` if the maximum is exceeded."""
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"its arrays have more than {self._most} items (if the file is good, read it with a larger "
                f"'{RECORDS_KEY}', given as an option of this use)"
            )


class ItemLimit:
    """A limit on the items in the blocks of one kind of array. It counts, so each file needs its own instance.

    Args:
        takes_bytes: whether an item takes at least one byte, so that the rest of the file limits the number of items.
        budget: for items that are kept in memory; None if they are skipped.
    """

    def __init__(self, *, takes_bytes: bool, budget: ItemBudget | None = None) -> None:
        self._takes_bytes = takes_bytes
        self._budget = budget
        self._empty_items_left = MOST_EMPTY_ITEMS

    def check(self, count: int, bytes_left: int) -> None:
        """Check the number of items that a block states.

        Raises:
            ValueError: the file is too short for so many, or a limit is exceeded.
        """
        if not self._takes_bytes:
            self._empty_items_left -= count
            if self._empty_items_left < 0:
                raise ValueError(f"it has more than {MOST_EMPTY_ITEMS} items that take no bytes")
        elif count > bytes_left:
            raise ValueError(f"a block claims to have {count} items, with {bytes_left} bytes left")
        if self._budget:
            self._budget.take(count)


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


def skipper(avro_type: AvroType, reader: Reader) -> Skip:
    """Return a function that skips a value: it returns the end position.

    The function remembers the last array that it skipped: make one per file, and do not share it between threads.

    Args:
        reader: creates decoding functions, which are used for rare types.
    """
    match avro_type:
        case str() if avro_type in _SKIPS:
            return _SKIPS[avro_type]
        case ["null", branch]:
            return _skip_nullable(skipper(branch, reader))
        case {"type": "record", "fields": [*fields]}:
            past = read_past([skipper(field["type"], reader) for field in fields if isinstance(field, dict)])
            return lambda data, position: past(data, position)[1]
        case {"type": "array", "items": items}:
            return _skip_array(skipper(items, reader))
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


def _skip_array(skip: Skip) -> Skip:
    has_bytes = _takes_bytes(skip)
    limit = ItemLimit(takes_bytes=has_bytes)

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
            limit.check(count, len(data) - position)
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
