"""The fence of a rollback: a snapshot with the content of its target that follows all that is rolled back.

It is made by ``put_if_absent`` like any commit, so each commit beside a rollback lands either before it, and is rolled
back, or on it. It goes again when all that was rolled back is gone. See design/0020-late-puts.md.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.errors import CommitConflictError, StorageError, TableStoreError
from penstock.format.hint import encode_hint
from penstock.format.layout import latest_hint_path, manifest_path, snapshot_path
from penstock.format.snapshot import CommitKind
from penstock.format.snapshot_json import encode_snapshot
from penstock.options import ManifestOptions
from penstock.table.commit.late_put import is_there
from penstock.table.commit.manifest_write import ManifestWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore

ROLLED_BACK_TO: Final = "penstock.rolled-back-to"
"""Property of a fence: the id of the rollback's target."""

_TRIES: Final = 100
_DELETE_TRIES: Final = 2
# A rollback deletes a file for each snapshot; one that takes longer, or was killed, leaves a gap in the ids instead.
_LOOKS: Final = 50
_LOOK_SECONDS: Final = 0.1


def is_fence(snapshot: Snapshot | None) -> bool:
    """Whether a rollback made the snapshot."""
    return snapshot is not None and ROLLED_BACK_TO in dict(snapshot.properties)


def wait_for_rollback(store: MetadataStore, latest: Snapshot | None, sleep: Callable[[float], None]) -> Snapshot | None:
    """Return the latest snapshot when no rollback is under way any more; after 5 s the fence, to build on it.

    Args:
        latest: as it was loaded.
    """
    for _ in range(_LOOKS):
        if not is_fence(latest):
            return latest
        sleep(_LOOK_SECONDS)
        latest = store.load_latest_snapshot()
    return latest


def put_fence(store: MetadataStore, target: Snapshot) -> Snapshot:
    """Make the content of a snapshot the latest one.

    Raises:
        CommitConflictError: other writers won every race.
        StorageError: the storage failed; a fence that is there all the same does no harm.
    """
    writer = _new_writer(store)
    fence = replace(
        _with_own_lists(store, writer, target),
        commit_kind=CommitKind.OVERWRITE,
        time_millis=time.time_ns() // 1_000_000,
        delta_record_count=0,
        properties=(*target.properties, (ROLLED_BACK_TO, str(target.id))),
        uuid=str(uuid.uuid4()),
    )
    for _ in range(_TRIES):
        with writer.deleted_on_error():
            latest = store.load_latest_snapshot() or target
        fence = replace(fence, id=latest.id + 1)
        path = snapshot_path(store.location, fence.id)
        try:
            is_put = store.file_io.put_if_absent(path, encode_snapshot(fence))
        except StorageError:
            with suppress(TableStoreError):
                if not is_there(store, fence):
                    _delete_lists(store, fence)
            raise
        if is_put:
            if not is_there(store, latest):  # it expired or was rolled back, perhaps before the put
                store.file_io.delete(path)
                continue
            _write_hint(store, fence.id)
            return fence
    _delete_lists(store, fence)
    raise CommitConflictError(
        f"table {store.name}: others committed {_TRIES} times while it was to be rolled back; nothing was changed: "
        "stop them, or try again"
    )


def clear_below(store: MetadataStore, fence: Snapshot, target: Snapshot) -> Snapshot:
    """Delete what lies between a fence and its target; in the place of the first snapshot another fence stays.

    A writer that is paused before its put finds out by its base, which has to go before the id after it is free: so the
    first one is replaced and not deleted, which also keeps its id from those who build on the target, and the others go
    in the order of their ids.

    Returns:
        The fence right after the target; the same one where nothing lies between.

    Raises:
        CommitConflictError: another rollback has come.
    """
    if target.id + 1 == fence.id:
        return fence
    # With lists of its own: else who lets one of the two expire would take those of the other.
    first = replace(_with_own_lists(store, _new_writer(store), fence), id=target.id + 1)
    check_fence(store, fence)
    store.file_io.write(snapshot_path(store.location, first.id), encode_snapshot(first))
    for snapshot_id in range(first.id + 1, fence.id):
        check_fence(store, fence)
        store.file_io.delete(snapshot_path(store.location, snapshot_id))
    return first


def check_fence(store: MetadataStore, fence: Snapshot) -> None:
    """Raise where a fence is gone: what lies below it is not its rollback's any more.

    Raises:
        CommitConflictError: another rollback has come.
    """
    if not is_there(store, fence):
        raise CommitConflictError(
            f"table {store.name}: another rollback was made while this one ran, and has taken its place; look at the "
            "latest snapshot, and roll back again if it is not the one that is wanted"
        )


def remove_fences(store: MetadataStore, fences: tuple[Snapshot, ...], target: Snapshot) -> Snapshot:
    """Delete fences on which nobody has built, so that ids go on after the target.

    Args:
        fences: the latest snapshot first.

    Returns:
        The target; or the fence that has to stay.
    """
    for fence in fences:
        # A target that is gone was rolled back in its turn.
        has_to_stay = store.has_snapshot(fence.id + 1) or not is_there(store, target)
        if has_to_stay or not is_there(store, fence):
            return fence
        # The hint names the fence until the listing shows whether somebody has built on it in the last moment: it does
        # not count while its snapshot is missing, so everybody lists.
        _write_hint(store, fence.id)
        store.file_io.delete(snapshot_path(store.location, fence.id))
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
    """Write lists of what a snapshot holds, without changes; returns the snapshot with these."""
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
    store.file_io.write(latest_hint_path(store.location), encode_hint(snapshot_id))


def _delete_lists(store: MetadataStore, fence: Snapshot) -> None:
    for name in (fence.base_manifest_list, fence.delta_manifest_list):
        for _ in range(_DELETE_TRIES):
            with suppress(StorageError):  # what stays is an orphan
                store.file_io.delete(manifest_path(store.location, name))
                break
