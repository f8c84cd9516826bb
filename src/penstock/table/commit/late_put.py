"""Whether a snapshot that was just created is the successor of its base, or came after others had used its id.

``put_if_absent`` succeeds too where a snapshot of that id existed once: others committed on the same base, and an
expiration or a rollback has deleted their snapshot since. Such a put is late: readers of the latest snapshot never see
it. See design/0020-late-puts.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.format.layout import snapshot_path
from penstock.format.manifest.entry import FileKind
from penstock.table.commit.announced import is_announced
from penstock.table.read.scan import live_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def is_there(store: MetadataStore, snapshot: Snapshot) -> bool:
    """Whether the file of a snapshot is there and is this snapshot's: after a rollback it may be another one's."""
    found = store.find_snapshot(snapshot.id)
    return found is not None and (found.base_manifest_list, found.delta_manifest_list, found.uuid) == (
        snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.uuid,
    )


def is_in_time(store: MetadataStore, base: Snapshot | None, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> bool:
    """Whether a snapshot whose put has succeeded is in the table's history; if not, it is deleted again.

    Snapshots expire in the order of their ids and the latest one never does; a rollback replaces or deletes the base
    before it deletes the snapshot after it. So while the base is what it was, the id after it was never free before:
    one look at storage. Else a listing and the next snapshot say.

    Args:
        base: what the snapshot was built on; None for the first one of a table.
        delta: the snapshot's own changes.

    Raises:
        StorageError: the storage failed, or cannot say any more.
        TableStoreError: metadata is missing or damaged.
    """
    if base is not None and is_there(store, base):
        return True
    ids = store.list_snapshot_ids()
    following = store.find_snapshot(snapshot.id + 1) if ids and snapshot.id < ids[-1] else None
    if following is not None and _is_built_on(store, following, snapshot, delta):
        return True
    # Were there an older one, the base would not have expired but been rolled back.
    if ids == (snapshot.id,) and store.list_schema_ids():
        return True  # else it alone is left of a table that was dropped meanwhile
    if base is not None and ids[-1:] == (snapshot.id,) and is_announced(store, base.id):
        # What a listing shows below came late itself, on the id of a snapshot that has expired with the base, and is
        # about to go. Others may read ours as the latest one already.
        return True
    is_deleted = store.file_io.delete(snapshot_path(store.location, snapshot.id))
    if not is_deleted or (following is None and store.has_snapshot(snapshot.id + 1)):
        # It may have been read: expired in its turn meanwhile, or built on by somebody who took it for the latest.
        raise StorageError(f"snapshot {snapshot.id} came late, after another of its id, and may have been built on")
    return False


def _is_built_on(store: MetadataStore, following: Snapshot, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> bool:
    """Whether the next snapshot holds what a snapshot changed."""
    own = {meta.file_name for meta in store.load_delta_manifests(snapshot)}
    metas = store.load_base_manifests(following)
    if own & {meta.file_name for meta in metas}:
        return True
    # The next commit may have merged the manifests, and with them entries that cancel each other.
    entries = [entry for meta in metas for entry in store.load_manifest(meta.file_name, meta.file_size)]
    added = {entry.identity for entry in delta if entry.kind is FileKind.ADD}
    if added:
        return any(entry.identity in added for entry in entries)
    deleted = {entry.identity for entry in delta}
    return all(entry.identity not in deleted for entry in live_entries(entries))
