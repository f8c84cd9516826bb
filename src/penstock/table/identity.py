"""Which table a location holds: one that is dropped and made anew in its place is another."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.spec.layout import schema_path

if TYPE_CHECKING:
    from penstock.table.store import HasLocation

_DIGEST_BYTES: Final = 16


class _Moments:
    """The present, but never the same twice."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next_millis(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000)
            return self._last


_CREATIONS: Final = _Moments()


def new_creation_millis() -> int:
    """Return the time at which a table is created, ms since 1970-01-01 UTC.

    Tables with the same columns differ in it alone, and a process makes several of them in one millisecond.
    """
    return _CREATIONS.next_millis()


def load_identity(table: HasLocation) -> str:
    """Load a digest of the table's first schema file, which never changes and holds the time of its creation.

    Raises:
        NotFoundError: there is no table.
    """
    try:
        data = table.file_io.read(schema_path(table.location, 0))
    except NotFoundError as error:
        raise NotFoundError(f"table {table.name}: {table.location} holds no table (any more)") from error
    return digest_of(data)


def digest_of(data: bytes) -> str:
    """Return a short digest, the same in every version of Penstock."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
