"""Limits on the number of items in arrays and maps of an Avro file."""

from __future__ import annotations

from penstock.format.avro.values import MOST_EMPTY_ITEMS, RECORDS_KEY


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
