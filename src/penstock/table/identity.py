"""Identity of the table at a location: a table that was dropped and created again there is a different table."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import NotFoundError
from penstock.format.layout import schema_directory, schema_path
from penstock.format.schema_json import decode_schema

if TYPE_CHECKING:
    from penstock.table.location import HasLocation
    from penstock.table.ref import TableRef

_DIGEST_BYTES: Final = 16


class _Moments:
    """A clock in ms that never returns the same value twice."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next_millis(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, utc_millis())
            return self._last


_CREATIONS: Final = _Moments()


def new_creation_millis() -> int:
    """Return the time at which a table is created, ms since 1970-01-01 UTC.

    Two tables with the same columns differ only in this time, and a process can create several tables in one
    millisecond, so no two calls in a process return the same value.
    """
    return _CREATIONS.next_millis()


def load_identity(table: HasLocation) -> str:
    """Load a digest of the table's first schema file, which never changes and holds the table's creation time.

    Raises:
        NotFoundError: there is no table at the location.
    """
    try:
        data = read_first_schema(table)
    except NotFoundError as error:
        raise NotFoundError(f"table {table.name}: {table.location} holds no table") from error
    return digest_of(data)


def read_first_schema(table: HasLocation) -> bytes:
    """Read the table's first schema file, of which digests are stored. Raises ``NotFoundError`` without a table."""
    return table.file_io.read(schema_path(table.location, 0))


def check_same_table(ref: TableRef) -> None:
    """Raise unless the loaded table is still at its location; costs one read of storage.

    A schema file never changes and holds its creation time. So the file with the handle's schema id differs if another
    table was created in the same place, even one with the same columns.

    Raises:
        NotFoundError: the table was dropped, renamed, or dropped and created again.
        FormatError: the schema file is damaged.
    """
    path = schema_path(ref.location, ref.schema.id)
    try:
        found = decode_schema(ref.file_io.read(path), path)
    except NotFoundError as error:
        if ref.file_io.list(schema_directory(ref.location)):
            raise _made_anew(ref) from error
        raise NotFoundError(
            f"table {ref.name}: {ref.location} holds no table: it was dropped or renamed since it was loaded; "
            "load it by the name that it has now"
        ) from error
    # A read of the past has the columns of its schema and the current options.
    if replace(found, options=ref.schema.options) != ref.schema:
        raise _made_anew(ref)


def _made_anew(ref: TableRef) -> NotFoundError:
    return NotFoundError(
        f"table {ref.name} at {ref.location} is not the one that was loaded: that one was dropped, and another was "
        "created in its place; load the table again"
    )


def digest_of(data: bytes) -> str:
    """Return a short digest, the same in every version of Penstock."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
