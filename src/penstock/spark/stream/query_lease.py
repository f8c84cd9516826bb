"""Lease of a query, on the storage of its table: one process at a time may run the query."""

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
    """The lease that allows this process to run a query. Thread-safe."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._lease: Lease | None = None
        self._keeper: LeaseKeeper | None = None
        self._is_over = False
        self._lock = threading.Lock()

    def take(self, query_id: str) -> None:
        """Take the lease; if this process took it already, check that it still holds it. Raises ``LeaseHeldError``."""
        with self._lock:
            if self._keeper is None and not self._is_over:
                self._lease = acquire(self._ref.file_io, self._ref.location, f"query-{query_id}")
                self._keeper = LeaseKeeper(self._lease)
        self.check()

    @property
    def is_held(self) -> bool:
        """Whether this process took the lease and has not released it."""
        return self._keeper is not None and not self._is_over

    def may_have_rival(self) -> bool:
        """Whether the process that ran the query before may still be alive, and may still commit."""
        return self._lease is not None and self._lease.may_have_rival

    def check(self) -> None:
        """Raise ``LeaseHeldError`` if a renewal found that another process has the lease. No call to the storage."""
        if self._keeper is not None:
            self._keeper.check()

    def look(self) -> None:
        """Read the storage; raise ``LeaseHeldError`` if another process has the lease or this one never took it."""
        self.check()
        if self._lease is None:
            raise LeaseHeldError(f"table {self._ref.name}: the query is not run by this process")
        self._lease.check()

    def give_back(self) -> None:
        """Release the lease."""
        with self._lock:
            self._is_over = True
            if self._keeper is not None:
                with suppress(StorageError):  # the lease expires by itself
                    self._keeper.close()
