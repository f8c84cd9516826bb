"""How many items the arrays and maps of an Avro file may have."""

from __future__ import annotations

from penstock.format.avro.limits import MOST_EMPTY_ITEMS, RECORDS_KEY


class ItemBudget:
    """Counts the items that a file's arrays hold in memory, all arrays together.

    Args:
        most: items.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def take(self, count: int) -> None:
        """Count items. Raises ``ValueError`` where there are more than the most."""
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"its arrays have more than {self._most} items (if the file is good, read it with a larger "
                f"'{RECORDS_KEY}', given as an option of this use)"
            )


class ItemLimit:
    """How many items a block of one kind of array may have. One for a file, since it counts.

    Args:
        takes_bytes: whether an item takes at least one byte, so that what is left of the file limits their number.
        budget: of the items that are held; None where they are read past.
    """

    def __init__(self, *, takes_bytes: bool, budget: ItemBudget | None = None) -> None:
        self._takes_bytes = takes_bytes
        self._budget = budget
        self._empty_items_left = MOST_EMPTY_ITEMS

    def check(self, count: int, bytes_left: int) -> None:
        """Judge the number of items that a block says.

        Raises:
            ValueError: there cannot be so many, or there are more than may be.
        """
        if not self._takes_bytes:
            self._empty_items_left -= count
            if self._empty_items_left < 0:
                raise ValueError(f"it has more than {MOST_EMPTY_ITEMS} items that take no bytes")
        elif count > bytes_left:
            raise ValueError(f"a block says that it has {count} items, with {bytes_left} bytes left")
        if self._budget:
            self._budget.take(count)
