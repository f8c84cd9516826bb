"""Identity of the table at a location: a table that was dropped and created again there is a different table.

A branch has an identity too: it differs from its table, and from a branch that had its name before.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import NotFoundError
from penstock.format.layout import TableLayout, schema_id_of
from penstock.format.schema import decode_schema

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
    """Load a digest of what ``read_identity`` returns.

    Raises:
        NotFoundError: there is no table at the location.
    """
    try:
        data = read_identity(table)
    except NotFoundError as error:
        raise NotFoundError(f"table {table.name}: {table.location} holds no table") from error
    return digest_of(data)


def read_identity(table: HasLocation) -> bytes:
    """Read what identifies a table: its first schema file, which never changes and holds the table's creation time.

    The first schema of a branch is a copy of its table's. So for a branch, the random identity that its creation has
    stored is added; for a branch of another engine its name, and the time at which its first schema file was made.

    Raises:
        NotFoundError: there is no table, or no branch.
    """
    file_io, path = table.file_io, table.layout.schema_path(0)
    data = file_io.read(path)
    if file_io.branch_name is None:
        return data
    try:
        return data + file_io.read(_branch_identity_path(table))
    except NotFoundError:
        statuses = file_io.list(table.layout.schema_directory)
        millis = next((each.modified_millis for each in statuses if schema_id_of(each.name) == 0), 0)
        return data + f"{file_io.branch_name} {millis}".encode()


def check_same_table(ref: TableRef) -> None:
    """Raise unless the loaded table is still at its location; costs one read of storage, of a branch three.

    A schema file never changes and holds its creation time. So the file with the handle's schema id differs if another
    table was created in the same place, even one with the same columns. The schema files of branches can be equal.

    Raises:
        NotFoundError: the table was dropped, renamed, or dropped and created again.
        FormatError: the schema file is damaged.
    """
    file_io = ref.file_io
    if file_io.branch_name is None:
        _check_schema(ref)
        return
    with file_io.prefetch() as ahead:
        reading = replace(ref, file_io=ahead)
        request_identity(reading)
        _check_schema(reading)
        if load_identity(reading) != file_io.branch_identity:
            raise _made_anew(ref)


def request_identity(ref: TableRef) -> None:
    """Request what ``check_same_table`` reads."""
    file_io = ref.file_io
    path, first = ref.layout.schema_path(ref.schema.id), ref.layout.schema_path(0)
    if file_io.branch_name is not None:
        file_io.request_read(first, uses=2 if path == first else 1)
        file_io.request_read(_branch_identity_path(ref))
    file_io.request_read(path)


def _branch_identity_path(table: HasLocation) -> str:
    return TableLayout(table.file_io.metadata_root(table.location)).branch_identity_path


def _check_schema(ref: TableRef) -> None:
    path = ref.layout.schema_path(ref.schema.id)
    try:
        found = decode_schema(ref.file_io.read(path), path)
    except NotFoundError as error:
        if ref.file_io.list(ref.layout.schema_directory):
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
