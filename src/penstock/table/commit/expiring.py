"""Announcements of expirations: the snapshots whose files an expiration is deleting, so that they cannot be tagged.

The file ``.penstock/expiring`` of a table holds a snapshot id: expirations may have deleted files of the snapshots
below it. An expiration writes this file, then reads the tags and branches for the last time, then deletes files. A
process that creates a tag or a branch writes it first and then reads this file. So either the expiration sees it, or
its creator sees that it is too late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.format.snapshot import encode_hint
from penstock.io.failures import is_full

if TYPE_CHECKING:
    from penstock.table.store import MetadataStore


def announce_expiration(store: MetadataStore, end: int) -> None:
    """Announce that files of snapshots below an id are about to be deleted; costs one read and mostly one write.

    If the disk is full, the hint files are deleted to make space for the announcement. Otherwise an expiration, which
    frees space, could not start.

    Raises:
        StorageError: the storage failed; then nothing may be deleted.
    """
    if store.load_expiring_end() >= end:
        return
    path, data = store.layout.expiring_path, encode_hint(end)
    try:
        store.file_io.write(path, data)
    except StorageError as error:
        if not is_full(error):
            raise
        # Without hints, readers list the directory until the next commit writes the hints again.
        for hint in (store.layout.earliest_hint_path, store.layout.latest_hint_path):
            store.file_io.delete(hint)
        store.file_io.write(path, data)


def is_announced(store: MetadataStore, snapshot_id: int) -> bool:
    """Whether an expiration has announced that it deletes a snapshot. Then a missing snapshot was not rolled back.

    Raises:
        StorageError: the storage failed.
    """
    return snapshot_id < store.load_expiring_end()


def is_expiring(store: MetadataStore, snapshot_id: int) -> bool:
    """Whether files of a snapshot may be deleted already. Raises ``StorageError``."""
    return snapshot_id < store.load_expiring_end() or not store.has_snapshot(snapshot_id)


def forget_expiration(store: MetadataStore) -> None:
    """Delete the announcement, so that snapshots whose ids are used again can be tagged.

    Ids are used again after a rollback to the tag of an expired snapshot.
    """
    store.file_io.delete(store.layout.expiring_path)


def lower_announcement(store: MetadataStore, snapshot_id: int) -> None:
    """Lower the announcement to a snapshot's id, if it is higher. Raises ``StorageError``.

    The caller must make sure that no expiration has begun to delete files of that snapshot or a later one.
    """
    if is_announced(store, snapshot_id):
        store.file_io.write(store.layout.expiring_path, encode_hint(snapshot_id))
