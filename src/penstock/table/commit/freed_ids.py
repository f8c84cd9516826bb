"""Snapshot ids that a rollback frees, and the check that a snapshot with such an id belongs to the table's history.

A writer that was paused since before a rollback can put its snapshot on a freed id: its base was rolled back, and it
deletes its snapshot again when it finds that. Until then the snapshot may be the latest one, and contains what was
rolled back. So whoever is about to build on a snapshot with a freed id, or to expire those below it, compares what it
was built on with the snapshot before it. See design/0027-leases-and-rollbacks-in-the-model.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.format.hint import decode_hint, encode_hint
from penstock.table.commit.announced import is_announced
from penstock.table.read.scan import live_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import FileIdentity, ManifestFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore

ROLLED_BACK_TO: Final = "penstock.rolled-back-to"
"""Property of a snapshot that a rollback makes: the id of the rollback's target."""


def record_freed_ids(store: MetadataStore, target_id: int, latest_id: int) -> None:
    """Record, durably, the ids on which snapshots can be put late once a rollback has freed them.

    The record is the name of a file and is never deleted. It must be on storage before the rollback's snapshot is.

    Raises:
        StorageError: the storage failed.
    """
    # The id after the target stays in use as long as the rollback runs. The rollback's snapshot has the id after the
    # latest one; a writer that was paused while it built on a snapshot put since can use the id after that.
    first, last = target_id + 2, latest_id + 2
    if not any(first in ids and last in ids for ids in store.list_schema_files().freed_ids):
        store.file_io.write(store.layout.freed_ids_path(first, last), encode_hint(target_id))


def last_kept_id(snapshot_id: int, freed_ids: Iterable[range]) -> int:
    """Return the id up to which snapshots are still those that were there when ``snapshot_id`` was the latest.

    A rollback frees ids that other snapshots get then, so who looks for what came after a snapshot begins at the
    rollback's target if the snapshot may have been taken back.
    """
    ranges = tuple(freed_ids)
    # A record begins two ids after the target.
    while targets := [ids.start - 2 for ids in ranges if ids.start - 1 <= snapshot_id < ids.stop]:
        snapshot_id = min(targets)
    return snapshot_id


def is_built_on_previous(store: MetadataStore, snapshot: Snapshot, freed_ids: Iterable[range]) -> bool:
    """Whether a snapshot was built on the one before it, if a rollback has freed its id; True for all other ids.

    Args:
        freed_ids: as a listing that was made after the snapshot was read shows them.

    Raises:
        StorageError: the storage failed.
        FormatError: metadata is damaged.
    """
    if not any(snapshot.id in ids for ids in freed_ids):
        return True
    lower = [number for number in store.list_snapshot_ids() if number < snapshot.id]
    target_id = decode_hint(dict(snapshot.properties).get(ROLLED_BACK_TO, "").encode())
    previous_id = max(lower, default=0) if target_id is None else target_id
    previous = store.find_snapshot(previous_id)
    if previous is None:
        return all(number >= previous_id for number in lower)  # snapshots expire in the order of their ids
    try:
        return _is_base_of(store, previous, snapshot)
    except NotFoundError:
        return is_announced(store, previous_id)


def _is_base_of(store: MetadataStore, previous: Snapshot, snapshot: Snapshot) -> bool:
    held, base = store.load_manifests(previous), store.load_base_manifests(snapshot)
    if {meta.file_name for meta in held} == {meta.file_name for meta in base}:
        return True
    # Commits merge manifests, so equal content may be in other manifests.
    return _live_files(store, held) == _live_files(store, base)


def _live_files(store: MetadataStore, metas: Sequence[ManifestFileMeta]) -> set[FileIdentity]:
    entries = [entry for part in store.iter_manifests(metas) for entry in part]
    return {entry.identity for entry in live_entries(entries)}
