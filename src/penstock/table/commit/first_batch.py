"""Record of the first batch of a streaming query, for a query whose checkpoint cannot be read.

Without it, a replayed first batch could not be distinguished from a new query's first batch once its snapshot has
expired. The file ``.penstock/queries/<query>`` of a table holds the id of the latest snapshot when the first batch was
about to be committed; only later snapshots can be the query's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import NotFoundError
from penstock.format.hint import decode_hint, encode_hint
from penstock.format.layout import query_directory

if TYPE_CHECKING:
    from penstock.table.store import MetadataStore


def note_first_batch(store: MetadataStore, query_id: str, latest_id: int) -> int | None:
    """Record that a query is about to commit its first batch.

    Returns:
        None if this is the first time; otherwise the id of the latest snapshot at the first time.

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
