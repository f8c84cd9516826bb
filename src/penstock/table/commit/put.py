"""The put of a snapshot or schema: by a file that only one writer can create, or by the server of the table's catalog.

Before it, new files are flushed to disk: after a power cut, every snapshot must be readable. Whether a put came late is
decided in ``reused_ids``; whether an earlier commit of a user has succeeded, by a search among the newest snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import NotFoundError, StorageError
from penstock.format.layout import TableLayout, all_file_paths
from penstock.format.schema import encode_schema
from penstock.format.snapshot import decode_snapshot
from penstock.table.commit.expiring import is_announced
from penstock.table.commit.retry import note_change
from penstock.table.commit.reused_ids import is_rolling_back, is_there
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.message import CommitMessage
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
    return ref.file_io.snapshot_commit.create(
        ref.file_io,
        ref.layout.snapshot_path(snapshot.id),
        data,
        base_uuid=None if base is None else base.uuid,
        statistics=lambda: _statistics(ref, delta),
    )


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
        if ref.file_io.snapshot_commit.may_refuse_free_id:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommits:
    """Result of a search for own commits among the newest snapshots.

    Attributes:
        last: the newest own snapshot; None when none was found.
        is_complete: whether there is certainly no newer own snapshot than ``last``; False if snapshots have expired
            that may have been own ones.
    """

    last: Snapshot | None
    is_complete: bool


def search_commits(
    store: MetadataStore, is_own: Callable[[Snapshot], bool], *, latest_id: int, after_id: int = 0
) -> OwnCommits:
    """Find the newest own snapshot with ``after_id`` < id <= ``latest_id``, from the newest down.

    This reads one file for each snapshot that other users made since, so pass ``after_id`` if it is known. Ids that a
    rollback during a commit has left without a snapshot are passed over.
    """
    newest: Snapshot | None = None
    has_gap = False
    snapshot_id = latest_id
    while snapshot_id > after_id:
        snapshot = store.find_snapshot(snapshot_id)
        if snapshot is None:
            below = _id_below_gap(store, snapshot_id)
            if below is None:
                return OwnCommits(last=None, is_complete=False)
            has_gap = True
            snapshot_id = below
            continue
        if is_own(snapshot):
            return OwnCommits(last=snapshot, is_complete=True)
        newest = newest or snapshot
        snapshot_id -= 1
    # A rollback that has come and gone may have removed own snapshots, and with them the latest one.
    is_sure = not has_gap or (newest is not None and newest.id == latest_id and is_there(store, newest))
    return OwnCommits(last=None, is_complete=is_sure)


def _id_below_gap(store: MetadataStore, snapshot_id: int) -> int | None:
    """Return the highest snapshot id below a missing one; None if that has expired or is being rolled back.

    Snapshots expire from the oldest on, so a lower one shows that this one did not, unless the storage deletes many
    files at once, in an open order; then the expiration was announced before.
    """
    below = max((each for each in store.list_snapshot_ids() if each < snapshot_id), default=None)
    if below is None or is_announced(store, snapshot_id) or is_rolling_back(store):
        return None
    return below


def flush_new_files(ref: TableRef, messages: Iterable[CommitMessage], manifests: Sequence[str] = ()) -> None:
    """Flush the new data files of messages, from all writers, with manifests and all their directories, to disk.

    If the table's storage is not durable, this does nothing.

    Args:
        manifests: paths of manifests and lists.

    Raises:
        StorageError: the flush failed; no snapshot names the files yet.
    """
    if not ref.file_io.is_durable:
        return
    locator = FileLocator.of(ref)
    data = []
    for message in messages:
        old = {name for file in message.compact_before for name in (file.file_name, *file.extra_files)}
        for file in (*message.new_files, *message.compact_after):
            path = locator.path(message.partition, message.bucket, file)
            files = zip((file.file_name, *file.extra_files), all_file_paths(path, file), strict=True)
            data += [each for name, each in files if name not in old]
    ref.file_io.flush([*data, *manifests], root=ref.location)
