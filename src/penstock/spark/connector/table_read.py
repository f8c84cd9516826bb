"""One read of a table: its fixed state, and the plan of its files."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.predicate.tree import Predicate
    from penstock.table.read.query import PinnedRead
    from penstock.table.read.scan import ScanPlan
    from penstock.table.ref import TableRef


class TableRead:
    """The state that a batch read is fixed to, loaded at its first use: a stream has the table and its options only.

    Attributes:
        ref: the table with the options of the read.
        identity: identity of the table.
        store: of the table; stores of one identity share what they have decoded.
    """

    def __init__(self, ref: TableRef, identity: str, load: Callable[[], PinnedRead]) -> None:
        self.ref = ref
        self.identity = identity
        self._load = load
        self.store = MetadataStore(ref, identity=identity)
        self._last: tuple[Predicate | None, ScanPlan] | None = None

    @cached_property
    def pinned(self) -> PinnedRead:
        """The fixed state."""
        return self._load()

    def start_from(self, plan: ScanPlan) -> None:
        """Reuse an existing plan of the read without the filters of the query."""
        self._last = None, plan

    def plan(self, predicate: Predicate | None) -> ScanPlan:
        """Plan the read; Spark asks for its size and then for its files, so the last plan is cached."""
        if self._last is None or self._last[0] != predicate:
            self._last = predicate, self.pinned.plan(self.store, predicate, with_vectors=True)
        return self._last[1]

    def without_fallback(self) -> TableRead:
        """Return the read without the rows of a fallback branch."""
        return TableRead(self.ref, self.identity, lambda: replace(self.pinned, fallback=None))
