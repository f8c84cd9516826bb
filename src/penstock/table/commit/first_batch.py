"""When the first batch of a query was first seen, for a query whose checkpoint nobody can ask.

A replay of it would else be a new query's first batch wherever its snapshot has expired. The file
``.penstock/queries/<query>`` of a table holds the id of the latest snapshot of that time; later ones may be the
query's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import NotFoundError
from penstock.format.hint import decode_hint, encode_hint
from penstock.format.layout import query_directory

if TYPE_CHECKING:
    from penstock.table.store import MetadataStore


def note_first_batch(store: MetadataStore, query_id: str, latest_id: int) -> int | None:
    """Note that a query is about to commit its first batch.

    Returns:
        None where it does so for the first time; else the id of the latest snapshot when it did.

    Raises:
        StorageError: the storage failed.
    """
    path = f"{query_directory(store.location)}/{query_id}"
    if store.file_io.put_if_absent(path, encode_hint(latest_id)):
        return None
    try:
        return decode_hint(store.file_io.read(path)) or 0
    except NotFoundError:
        return None
