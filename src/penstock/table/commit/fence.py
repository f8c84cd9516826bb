"""The fence of a rollback: a snapshot after all rolled-back snapshots that has the content of the rollback's target.

The fence is created by ``put_if_absent`` like any commit. So a concurrent commit comes either before the fence, and is
rolled back, or builds on the fence. The fence is deleted after the rolled-back snapshots. See design/0020-late-puts.md.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import CommitConflictError, FormatError, StorageError, TableStoreError
from penstock.format.hint import encode_hint
from penstock.format.snapshot import CommitKind
from penstock.format.snapshot_json import encode_snapshot
from penstock.options import ManifestOptions
from penstock.table.commit.freed_ids import ROLLED_BACK_TO, is_built_on_previous, record_freed_ids
from penstock.table.commit.manifest_write import ManifestWriter
from penstock.table.commit.put import is_there

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore, SchemaFiles

_TRIES: Final = 100
_DELETE_TRIES: Final = 2
# How long a writer waits for a rollback, which deletes one file per snapshot. If the rollback takes longer or was
# killed, the writer builds on the fence, and the ids have a gap.
_LOOKS: Final = 50
_LOOK_SECONDS: Final = 0.1


def is_fence(snapshot: Snapshot | None) -> bool:
    """Whether a rollback made the snapshot."""
    return snapshot is not None and ROLLED_BACK_TO in dict(snapshot.properties)


def load_base(store: MetadataStore, sleep: Callable[[float], None]) -> tuple[Snapshot | None, SchemaFiles]:
    """Load the latest snapshot to build on it, with a listing of the schemas; wait while a rollback is running.

    After 5 s, the snapshot may be a fence, which can be built on too.

    Raises:
        CommitConflictError: the latest snapshot does not follow the one before it, also after 5 s.
        NotFoundError: there is no table any more.
    """
    latest = store.load_latest_snapshot()
    for looks_left in range(_LOOKS, -1, -1):
        if not is_fence(latest) or not looks_left:
            schemas = store.list_schema_files()
            if latest is None or is_built_on_previous(store, latest, schemas.freed_ids):
                return latest, schemas
        if looks_left:
            sleep(_LOOK_SECONDS)
            latest = store.load_latest_snapshot()
    raise CommitConflictError(
        f"table {store.name}: snapshot {latest.id if latest else 0} holds what was rolled back, because its writer was "
        "paused while the table was rolled back; that writer has not deleted it for 5 s, and nothing was committed: "
        "try again, or roll back once more if the writer has died"
    )


def put_fence(store: MetadataStore, target: Snapshot, check: Callable[[Snapshot], None]) -> Snapshot:
    """Create a fence with the content of a snapshot as the latest snapshot.

    Args:
        check: called with the latest snapshot before each try; what it raises ends the rollback.

    Raises:
        CommitConflictError: other writers won every race, or another rollback has taken the target back.
        StorageError: the storage failed; if the fence was created nevertheless, it does no harm.
    """
    writer = _new_writer(store)
    fence = replace(
        _with_own_lists(store, writer, target),
        commit_kind=CommitKind.OVERWRITE,
        time_millis=utc_millis(),
        delta_record_count=0,
        properties=(*target.properties, (ROLLED_BACK_TO, str(target.id))),
        uuid=str(uuid.uuid4()),
    )
    for _ in range(_TRIES):
        with writer.deleted_on_error():
            latest, is_damaged = _load_latest(store, target)
            check(latest)
            if not is_there(store, target):
                raise CommitConflictError(
                    f"table {store.name}: snapshot {target.id} was rolled back or has expired since this rollback to "
                    "it was planned; nothing was changed: look at the snapshots, and roll back again"
                )
            record_freed_ids(store, target.id, latest.id)
        fence = replace(fence, id=latest.id + 1)
        path = store.layout.snapshot_path(fence.id)
        try:
            is_put = store.file_io.put_if_absent(path, encode_snapshot(fence))
        except StorageError:
            with suppress(TableStoreError):
                if not is_there(store, fence):
                    _delete_lists(store, fence)
            raise
        if is_put:
            stays = store.has_snapshot(latest.id) if is_damaged else is_there(store, latest)
            if not stays:  # it expired or was rolled back, perhaps before the put
                store.file_io.delete(path)
                continue
            _write_hint(store, fence.id)
            return fence
    _delete_lists(store, fence)
    raise CommitConflictError(
        f"table {store.name}: others committed {_TRIES} times during the rollback; nothing was changed: "
        "stop them, or try again"
    )


def _load_latest(store: MetadataStore, target: Snapshot) -> tuple[Snapshot, bool]:
    """Return the latest snapshot, and whether it is damaged: then it is the target under the latest id."""
    try:
        return store.load_latest_snapshot() or target, False
    except FormatError:
        return replace(target, id=max(store.list_snapshot_ids())), True


def clear_below(store: MetadataStore, fence: Snapshot, target: Snapshot) -> Snapshot:
    """Delete the snapshots between a fence and its target; replace the first of them by a second fence.

    A writer that is paused before its put detects the rollback by its base, so a base must be gone before the next id
    is free. Therefore the first snapshot is replaced and not deleted, and the others are deleted in the order of their
    ids. The second fence also keeps its id from writers that build on the target.

    Returns:
        The fence right after the target; ``fence`` itself if there are no snapshots between.

    Raises:
        CommitConflictError: another rollback has replaced this one.
    """
    if target.id + 1 == fence.id:
        return fence
    # It has its own manifest lists: if both fences shared lists, the expiration of one would delete those of the other.
    first = replace(_with_own_lists(store, _new_writer(store), fence), id=target.id + 1)
    check_fence(store, fence)
    store.file_io.write(store.layout.snapshot_path(first.id), encode_snapshot(first))
    for snapshot_id in range(first.id + 1, fence.id):
        check_fence(store, fence)
        store.file_io.delete(store.layout.snapshot_path(snapshot_id))
    return first


def check_fence(store: MetadataStore, fence: Snapshot) -> None:
    """Raise if a fence is gone: then its rollback must not delete the snapshots below it any more.

    Raises:
        CommitConflictError: another rollback has replaced this one.
    """
    if not is_there(store, fence):
        raise CommitConflictError(
            f"table {store.name}: another rollback ran at the same time, and has replaced it; check the "
            "latest snapshot, and roll back again if it is not the intended one"
        )


def remove_fences(store: MetadataStore, fences: tuple[Snapshot, ...], target: Snapshot) -> Snapshot:
    """Delete the fences that no commit has built on, so that the next snapshot id follows the target's.

    Args:
        fences: in descending order of their ids.

    Returns:
        The target; or the fence that must be kept.
    """
    for fence in fences:
        # A target that is gone was rolled back by another rollback.
        has_to_stay = store.has_snapshot(fence.id + 1) or not is_there(store, target)
        if has_to_stay or not is_there(store, fence):
            return fence
        # The hint names the fence until the listing shows whether another writer has built on it just before. Readers
        # ignore a hint whose snapshot is missing and list the directory.
        _write_hint(store, fence.id)
        store.file_io.delete(store.layout.snapshot_path(fence.id))
        latest_id = max(store.list_snapshot_ids(), default=target.id)
        _write_hint(store, latest_id)
        if latest_id > fence.id:
            return fence
    for fence in fences:
        _delete_lists(store, fence)
    return target


def _new_writer(store: MetadataStore) -> ManifestWriter:
    return ManifestWriter(file_io=store.file_io, location=store.location, options=ManifestOptions(), partition_types=())


def _with_own_lists(store: MetadataStore, writer: ManifestWriter, snapshot: Snapshot) -> Snapshot:
    """Write new manifest lists with a snapshot's content and no changes; return the snapshot with these lists."""
    with writer.deleted_on_error():
        base_list, delta_list = writer.write_list(store.load_manifests(snapshot)), writer.write_list(())
    return replace(
        snapshot,
        base_manifest_list=base_list.name,
        base_manifest_list_size=base_list.size,
        delta_manifest_list=delta_list.name,
        delta_manifest_list_size=delta_list.size,
    )


def _write_hint(store: MetadataStore, snapshot_id: int) -> None:
    store.file_io.write(store.layout.latest_hint_path, encode_hint(snapshot_id))


def _delete_lists(store: MetadataStore, fence: Snapshot) -> None:
    for name in (fence.base_manifest_list, fence.delta_manifest_list):
        for _ in range(_DELETE_TRIES):
            with suppress(StorageError):  # a list that cannot be deleted remains as an orphan
                store.file_io.delete(store.layout.manifest_path(name))
                break
