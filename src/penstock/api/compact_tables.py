"""Compact several tables, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.table.compact.job import CompactionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCompaction:
    """The outcome of compacting one of several tables.

    Attributes:
        table: ``database.table``.
        result: None if there is an ``error``.
    """

    table: str
    result: CompactionResult | None
    error: TableStoreError | None


def compact_tables(names: Iterable[str], compact: Callable[[str], CompactionResult]) -> Iterator[TableCompaction]:
    """Compact tables; if one of them fails, continue with the next."""
    for name in names:
        try:
            yield TableCompaction(table=name, result=compact(name), error=None)
        except TableStoreError as error:
            yield TableCompaction(table=name, result=None, error=error)
