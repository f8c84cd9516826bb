"""Which table a location holds: one that is dropped and made anew in its place is another."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.spec.layout import schema_path

if TYPE_CHECKING:
    from penstock.table.store import HasLocation

_DIGEST_BYTES: Final = 16


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
