"""Which snapshots an expiration is deleting files of: a tag comes too late for those.

The file ``.penstock/expiring`` of a table names the first snapshot that the furthest expiration so far keeps. It is
written before tags are read for the last time and files are deleted, and a tag is put before it is read: so either the
expiration sees the tag, or whoever makes the tag sees that it comes too late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import NotFoundError, StorageError
from penstock.format.hint import decode_hint, encode_hint
from penstock.format.layout import earliest_hint_path, expiring_path, latest_hint_path
from penstock.io.failures import is_full

if TYPE_CHECKING:
    from penstock.table.store import MetadataStore


def announce_expiration(store: MetadataStore, end: int) -> None:
    """Say that files of snapshots below an id are about to be deleted; one read, and mostly a write.

    On a full disk the hints make place for it: else the one thing that frees space would need some.

    Raises:
        StorageError: the storage failed; nothing may be deleted then.
    """
    if expiring_end(store) >= end:
        return
    path, data = expiring_path(store.location), encode_hint(end)
    try:
        store.file_io.write(path, data)
    except StorageError as error:
        if not is_full(error):
            raise
        # They may be missing: readers list the directory until the next commit writes them.
        for hint in (earliest_hint_path(store.location), latest_hint_path(store.location)):
            store.file_io.delete(hint)
        store.file_io.write(path, data)


def is_announced(store: MetadataStore, snapshot_id: int) -> bool:
    """Whether an expiration has said that it deletes a snapshot: if it is gone, no rollback took it away.

    Raises:
        StorageError: the storage failed.
    """
    return snapshot_id < expiring_end(store)


def is_expiring(store: MetadataStore, snapshot_id: int) -> bool:
    """Whether files of a snapshot may be gone already. Raises ``StorageError``."""
    return snapshot_id < expiring_end(store) or not store.has_snapshot(snapshot_id)


def forget_expiration(store: MetadataStore) -> None:
    """Let snapshots be tagged again whose ids have come back, as by a rollback to the tag of one that had expired."""
    store.file_io.delete(expiring_path(store.location))


def lower_announcement(store: MetadataStore, snapshot_id: int) -> None:
    """Take back what an expiration has announced from a snapshot on, and has not begun. Raises ``StorageError``."""
    if is_announced(store, snapshot_id):
        store.file_io.write(expiring_path(store.location), encode_hint(snapshot_id))


def expiring_end(store: MetadataStore) -> int:
    """Return the id below which files of snapshots may be gone; 0 where none are. Raises ``StorageError``."""
    try:
        return decode_hint(store.file_io.read(expiring_path(store.location))) or 0
    except NotFoundError:
        return 0
