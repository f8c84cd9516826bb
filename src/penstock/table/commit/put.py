"""The put of a snapshot: by a file that only one writer can create, or by the server of the table's catalog.

The schema files of a table are put in the same way.

``put_if_absent`` also succeeds if a snapshot with that id existed before: another writer committed on the same base,
and an expiration or a rollback has deleted its snapshot since. Such a put is late: readers of the latest snapshot never
see it. See design/0020-late-puts.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import NotFoundError, StorageError
from penstock.format.layout import TableLayout
from penstock.format.manifest.entry import FileKind
from penstock.format.schema_json import encode_schema
from penstock.format.snapshot_json import decode_snapshot
from penstock.table.commit.announced import is_announced
from penstock.table.commit.freed_ids import is_built_on_previous
from penstock.table.commit.observe import note_change
from penstock.table.locate import FileLocator
from penstock.table.read.scan import live_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


def put_schema(file_io: FileIO, location: str, schema: TableSchema) -> bool:
    """Write a schema file unless that id exists; of concurrent writers exactly one gets True.

    Raises:
        StorageError: the storage failed; the message says so if the file exists nevertheless.
    """
    storage, data = file_io.confined(location), encode_schema(schema)
    path = TableLayout(location).schema_path(schema.id)
    try:
        is_new = storage.put_if_absent(path, data)
    except StorageError as error:
        if not _holds(storage, path, data):
            raise
        try:
            storage.flush([path], root=location)
        except StorageError:
            raise StorageError(
                f"{path} was written and counts, so do not repeat the change; but the storage did not flush it to disk "
                f"({error}), and a power cut may undo it: look at the storage",
            ) from error
        is_new = True
    if is_new:
        note_change(location)
    return is_new


def _holds(storage: FileIO, path: str, data: bytes) -> bool:
    try:
        return storage.read(path) == data
    except (NotFoundError, StorageError):
        return False


def put_snapshot(
    ref: TableRef, base: Snapshot | None, snapshot: Snapshot, delta: Iterable[ManifestEntry], data: bytes
) -> bool:
    """Create a snapshot unless there is one with its id; of concurrent callers at most one gets True.

    False may also mean that an earlier call of ours created it and its answer was lost.

    Args:
        base: the snapshot that it was built on; None for the first one.
        delta: its own changes.
        data: its encoding.

    Raises:
        StorageError: the storage, or the server, failed.
    """
    file_io, server = ref.file_io, ref.file_io.commit_server
    if server is not None:
        return server.commit(data, None if base is None else base.uuid, _statistics(ref, delta))
    return file_io.put_if_absent(ref.layout.snapshot_path(snapshot.id), data)


def is_put(ref: TableRef, snapshot: Snapshot) -> bool:
    """Whether the existing snapshot with that id is this one, after ``put_snapshot`` has returned False.

    Raises:
        NotFoundError: that snapshot no longer exists, so the answer is unknown; not for a table of a REST catalog,
            whose server also refuses a snapshot because its base has changed.
        FormatError: it is damaged.
    """
    path = ref.layout.snapshot_path(snapshot.id)
    try:
        found = decode_snapshot(ref.file_io.read(path), path)
    except NotFoundError:
        if ref.file_io.commit_server is not None:
            return False
        raise
    # A server writes the snapshot itself, and older servers drop its uuid. The name of the list is equally unique.
    return found.delta_manifest_list == snapshot.delta_manifest_list and found.uuid in {snapshot.uuid, None}


def _statistics(ref: TableRef, delta: Iterable[ManifestEntry]) -> list[dict[str, Any]]:
    """Return the statistics that a commit adds to each partition; negative if it removes files.

    Source:
        Paimon ``core:manifest/PartitionEntry.java``; ``PartitionStatistics`` in ``rest-catalog-open-api.yaml``.
    """
    locator = FileLocator.of(ref)
    found: dict[bytes, dict[str, Any]] = {}
    for entry in delta:
        numbers = found.get(entry.partition)
        if numbers is None:
            numbers = found[entry.partition] = {
                "spec": locator.partition_values(entry.partition),
                "recordCount": 0,
                "fileSizeInBytes": 0,
                "fileCount": 0,
                "lastFileCreationTime": 0,
                "totalBuckets": entry.total_buckets,
            }
        sign = 1 - 2 * entry.kind
        numbers["recordCount"] += sign * entry.file.row_count
        numbers["fileSizeInBytes"] += sign * entry.file.file_size
        numbers["fileCount"] += sign
        numbers["lastFileCreationTime"] = max(numbers["lastFileCreationTime"], entry.file.creation_millis or 0)
    return list(found.values())


def is_there(store: MetadataStore, snapshot: Snapshot) -> bool:
    """Whether a snapshot still exists with the same content: after a rollback, another snapshot may have its id."""
    found = store.find_snapshot(snapshot.id)
    return found is not None and (found.base_manifest_list, found.delta_manifest_list, found.uuid) == (
        snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.uuid,
    )


def is_in_time(store: MetadataStore, base: Snapshot | None, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> bool:
    """Whether a snapshot whose put has succeeded belongs to the table's history; if not, it is deleted again.

    Snapshots expire in the order of their ids, and the latest one never expires. A rollback replaces or deletes the
    base before it deletes the snapshot after the base. So if the base is unchanged, the id after it was never used
    before; this check costs one read. Otherwise a listing and the next snapshot decide.

    Args:
        base: the snapshot that ``snapshot`` was built on; None for the first snapshot of a table.
        delta: the snapshot's own changes.

    Raises:
        StorageError: the storage failed, or it cannot be decided any more.
        TableStoreError: metadata is missing or damaged.
    """
    if base is not None and _is_next_id_unused(store, base):
        return True
    ids = store.list_snapshot_ids()
    following = store.find_snapshot(snapshot.id + 1) if ids and snapshot.id < ids[-1] else None
    if following is not None and _is_built_on(store, following, snapshot, delta):
        return True
    # If ours is the only snapshot, the base has expired: after a rollback, an older snapshot would exist.
    if ids == (snapshot.id,) and store.list_schema_ids():
        return True  # without a schema, the table was dropped meanwhile
    if (
        base is not None
        and ids[-1:] == (snapshot.id,)
        and is_announced(store, base.id)
        # The expiration may have left the base to a rollback.
        and is_built_on_previous(store, snapshot, store.list_schema_files().freed_ids)
    ):
        # Lower ids in the listing are late puts of other writers, on ids of snapshots that expired with the base; their
        # writers are about to delete them. Other processes may already read ours as the latest snapshot.
        return True
    if following is None and store.file_io.delete_batch_size > 1 and is_announced(store, snapshot.id + 1):
        # The next snapshot may have expired before ours, so nobody knows whether it was built on ours.
        store.file_io.delete(store.layout.snapshot_path(snapshot.id))
        raise StorageError(f"snapshot {snapshot.id} expired, or came late, before its writer looked at it again")
    is_deleted = store.file_io.delete(store.layout.snapshot_path(snapshot.id))
    if not is_deleted or (following is None and store.has_snapshot(snapshot.id + 1)):
        # Other processes may have used our snapshot: it expired meanwhile, or a writer built on it as the latest one.
        raise StorageError(
            f"snapshot {snapshot.id} was created late, after another one with its id, and other snapshots may build "
            "on it"
        )
    return False


def _is_next_id_unused(store: MetadataStore, base: Snapshot) -> bool:
    """Whether a base is unchanged, so that the id after it was never used.

    Where many files are deleted with one request, their order is not known, so an expiration that has announced itself
    may have deleted the snapshot after the base before the base.
    """
    if not store.file_io.delete_batch_size > 1:
        return is_there(store, base)
    with store.file_io.prefetch() as ahead:
        ahead.request_read(store.layout.expiring_path)
        ahead.request_read(store.layout.snapshot_path(base.id))
        reading = store.reading(ahead)
        return is_there(reading, base) and not is_announced(reading, base.id)


def _is_built_on(store: MetadataStore, following: Snapshot, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> bool:
    """Whether the next snapshot contains the changes of a snapshot."""
    own = {meta.file_name for meta in store.load_delta_manifests(snapshot)}
    metas = store.load_base_manifests(following)
    if own & {meta.file_name for meta in metas}:
        return True
    # The next commit may have merged the manifests, which drops entries that cancel each other.
    entries = [entry for meta in metas for entry in store.load_manifest(meta.file_name, meta.file_size)]
    added = {entry.identity for entry in delta if entry.kind is FileKind.ADD}
    if added:
        return any(entry.identity in added for entry in entries)
    deleted = {entry.identity for entry in delta}
    return all(entry.identity not in deleted for entry in live_entries(entries))
