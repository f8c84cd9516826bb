"""Who may run a query: one process at a time, as its table's storage says."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import LeaseHeldError, StorageError
from penstock.table.lease.holder import LeaseKeeper, acquire

if TYPE_CHECKING:
    from penstock.table.lease.holder import Lease
    from penstock.table.ref import TableRef


class QueryLease:
    """Says who may run a query, on the storage of its table; threads may share it."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._lease: Lease | None = None
        self._keeper: LeaseKeeper | None = None
        self._is_over = False
        self._lock = threading.Lock()

    def take(self, query_id: str) -> None:
        """Take it, or make sure that nobody else has taken it since. Raises ``LeaseHeldError``."""
        with self._lock:
            if self._keeper is None and not self._is_over:
                self._lease = acquire(self._ref.file_io, self._ref.location, f"query-{query_id}")
                self._keeper = LeaseKeeper(self._lease)
        self.check()

    @property
    def is_held(self) -> bool:
        """Whether it was taken, and not given back."""
        return self._keeper is not None and not self._is_over

    def may_have_rival(self) -> bool:
        """Whether the process that ran the query before may be alive, and about to commit."""
        return self._lease is not None and self._lease.may_have_rival

    def check(self) -> None:
        """Raise ``LeaseHeldError`` where somebody else was seen to have taken it."""
        if self._keeper is not None:
            self._keeper.check()

    def look(self) -> None:
        """Raise ``LeaseHeldError`` where storage says that somebody else has taken it, or that nobody took it here."""
        self.check()
        if self._lease is None:
            raise LeaseHeldError(f"table {self._ref.name}: the query is not run by this process")
        self._lease.check()

    def give_back(self) -> None:
        """Let the next one have it."""
        with self._lock:
            self._is_over = True
            if self._keeper is not None:
                with suppress(StorageError):  # it ends by itself
                    self._keeper.close()
