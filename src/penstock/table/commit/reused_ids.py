"""Snapshot ids that are used twice, because a rollback deletes snapshots: and what keeps other writers safe from that.

Paimon's rollback deletes the snapshots after its target, and the next commit gets the id after the target. So that no
reader ever sees a history that never was, these rules hold, which tests/model checks:

* **Fence.** A rollback first puts a *fence*, by ``put_if_absent`` like any commit: a snapshot after all rolled-back
  ones with the content of the target. A concurrent commit comes either before it, and is rolled back, or builds on it.
  Then the snapshots below are deleted in the order of their ids, the first of them replaced by a second fence, and at
  the end the fences that nobody has built on. A writer waits up to 5 s while it sees a fence.
* **Mark.** While a file ``.penstock/rolling-back-...`` exists, no snapshot expires. A rollback creates it and then
  reads the announcements of expirations (``expiring``); an expiration announces itself and then lists such files. So
  either the expiration deletes nothing, or the rollback sees that its target is about to expire.
* **Late puts.** ``put_if_absent`` also succeeds where a snapshot of that id existed before and is deleted by now. So a
  writer that was paused since before a rollback or an expiration can put a snapshot on a base that is gone. Each writer
  looks again after its put, mostly with one read of its base, and deletes a snapshot that came late (``is_in_time``).
* **Freed ids.** Until then the late snapshot may be the latest one, and contains what was rolled back. So a rollback
  records the ids that it frees, as names of files in the schema directory, which every commit lists anyway; whoever is
  about to build on a snapshot with such an id, or to expire those below it, compares what it was built on with the
  snapshot before it (``is_built_on_previous``).

See design/0020-late-puts.md and design/0027-leases-and-rollbacks-in-the-model.md.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import (
    CommitConflictError,
    DataLossError,
    FormatError,
    NotFoundError,
    StorageError,
    TableStoreError,
)
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import (
    RESTORES,
    ROLLED_BACK_TO,
    VECTORS_OF,
    CommitKind,
    decode_hint,
    encode_hint,
    encode_snapshot,
    find_lost_ids,
    snapshots_text,
)
from penstock.options import ManifestOptions
from penstock.table.assumptions import WRITER_VERSION
from penstock.table.commit.expiring import is_announced, lower_announcement
from penstock.table.commit.manifests import ManifestWriter
from penstock.table.commit.vectors import VectorFrames
from penstock.table.read.scan import live_entries, load_vector_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.format.manifest.entry import FileIdentity, ManifestEntry, ManifestFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore, SchemaFiles


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


def load_lost_ids(store: MetadataStore, snapshots: Iterable[Snapshot]) -> list[range]:
    """Return the ids of snapshots whose files were lost: see ``find_lost_ids``.

    Args:
        snapshots: those of the table that can be read, loaded before.
    """
    held = tuple(snapshots)
    # Nothing is listed if the snapshots themselves have no gap.
    if not find_lost_ids(sorted(snapshot.id for snapshot in held), held):
        return []
    ids = store.list_snapshot_ids()
    if not find_lost_ids(ids, held):
        return []
    # A listing may show the second of two snapshots that are put while it runs, and not the first.
    again = store.list_snapshot_ids()
    # Where many files are deleted with one request, an expiration may leave gaps.
    end = max(min(again, default=0), store.load_expiring_end())
    return [gap for gap in find_lost_ids(sorted({*ids, *again}), held) if gap.stop > end]


def find_lost_latest(store: MetadataStore, newest_id: int, hint: int | None) -> int | None:
    """Return the id in the hint of the latest snapshot if that snapshot and later ones were lost; None if not.

    A hint is written after its snapshot, the latest snapshot never expires, and a rollback corrects the hint.

    Args:
        newest_id: of the snapshots, as listed before; 0 if there are none.
        hint: as read before.
    """
    if hint is None or hint <= newest_id or is_rolling_back(store):
        return None
    # A snapshot was put since the listing, or a rollback has ended in between.
    hint = store.load_latest_hint()
    return None if hint is None or hint <= max(store.list_snapshot_ids(), default=0) else hint


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
    if _base_index_manifest(snapshot) not in {previous.index_manifest, _UNKNOWN}:
        return False
    held, base = store.load_manifests(previous), store.load_base_manifests(snapshot)
    if {meta.file_name for meta in held} == {meta.file_name for meta in base}:
        return True
    # Commits merge manifests, so equal content may be in other manifests.
    return _live_files(store, held) == _live_files(store, base)


_UNKNOWN: Final = "?"


def _base_index_manifest(snapshot: Snapshot) -> str | None:
    """Return the index manifest of the snapshot that a snapshot was built on, which may be unknown if others made it.

    Where a commit changes deletion vectors alone, manifests do not show what it was built on.
    """
    base = dict(snapshot.properties).get(VECTORS_OF)
    if base is not None and not is_fence(snapshot):
        return base or None
    return snapshot.index_manifest if snapshot.writer_version == WRITER_VERSION else _UNKNOWN


def _live_files(store: MetadataStore, metas: Sequence[ManifestFileMeta]) -> set[FileIdentity]:
    entries = [entry for part in store.iter_manifests(metas) for entry in part]
    return {entry.identity for entry in live_entries(entries)}


def is_there(store: MetadataStore, snapshot: Snapshot) -> bool:
    """Whether a snapshot still exists with the same content: after a rollback, another snapshot may have its id."""
    found = store.find_snapshot(snapshot.id)
    return found is not None and (found.base_manifest_list, found.delta_manifest_list, found.uuid) == (
        snapshot.base_manifest_list,
        snapshot.delta_manifest_list,
        snapshot.uuid,
    )


def is_in_time(
    ref: TableRef, store: MetadataStore, base: Snapshot | None, snapshot: Snapshot, delta: Sequence[ManifestEntry]
) -> bool:
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
    if following is not None and _is_built_on(ref, store, following, snapshot, delta):
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


def _is_built_on(
    ref: TableRef, store: MetadataStore, following: Snapshot, snapshot: Snapshot, delta: Sequence[ManifestEntry]
) -> bool:
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
    if any(entry.identity in deleted for entry in live_entries(entries)):
        return False
    return VECTORS_OF not in dict(snapshot.properties) or _has_vectors_of(ref, store, following, snapshot)


def _has_vectors_of(ref: TableRef, store: MetadataStore, following: Snapshot, snapshot: Snapshot) -> bool:
    """Whether the next snapshot contains the deletion vectors of a snapshot that changes these.

    What another engine's snapshot was built on is not known, and it may have changed any vector itself. So it contains
    ours if it deletes the same rows, and maybe more.

    Raises:
        StorageError: another engine made the next snapshot, and that does not delete the same rows.
    """
    base = _base_index_manifest(following)
    if base != _UNKNOWN:
        return base == snapshot.index_manifest
    ours, theirs = (load_vector_places(store, each) for each in (snapshot, following))
    if ours == theirs:
        return True
    entries = [entry for part in store.iter_manifests(store.load_manifests(following)) for entry in part]
    live, frames = {entry.key for entry in live_entries(entries)}, VectorFrames(ref)
    # A snapshot that restores an older one may take vectors away, which more deleted rows would hide.
    if RESTORES not in dict(snapshot.properties) and all(
        key not in live or frames.contains(theirs.get(key), place) for key, place in ours.items()
    ):
        return True
    raise StorageError(
        f"snapshot {following.id} of another engine does not delete all rows that snapshot {snapshot.id} deletes, so "
        "it is not known whether it was built on that"
    )


# Older marks are ignored: their rollbacks were killed. A rollback that is paused for longer than this, while an
# expiration runs, can harm the table.
_MAX_MARK_AGE_MS: Final = 86_400_000


@contextmanager
def rolling_back(store: MetadataStore, target: Snapshot, *, is_recreated: bool) -> Iterator[None]:
    """Keep snapshots from expiring while the block runs a rollback.

    Args:
        is_recreated: whether the target has expired and a tag has kept its files.

    Raises:
        NotFoundError: the target is about to expire; nothing was changed.
        StorageError: the storage failed.
    """
    path = store.layout.rolling_back_path(uuid.uuid4().hex)
    store.file_io.write(path, encode_hint(target.id))
    try:
        if not is_recreated:
            _check_stays(store, target)
        yield
        # An expiration that has announced a higher id has seen the mark and deletes nothing.
        lower_announcement(store, target.id)
    except BaseException:
        with suppress(StorageError):
            store.file_io.delete(path)
        raise
    store.file_io.delete(path)  # an error must reach the caller: if the mark remains, nothing expires for a day


def _check_stays(store: MetadataStore, target: Snapshot) -> None:
    if is_announced(store, target.id):
        raise NotFoundError(
            f"table {store.name}: snapshot {target.id} is about to expire, its files are being deleted; nothing was "
            "changed: roll back to a later one; or to a tag, when the expiration is over"
        )


def is_rolling_back(store: MetadataStore) -> bool:
    """Whether a rollback runs. Raises ``StorageError``."""
    prefix = store.layout.rolling_back_path("")
    limit = utc_millis() - _MAX_MARK_AGE_MS
    return any(
        status.path.startswith(prefix) and not 0 < status.modified_millis < limit
        for status in store.file_io.list(store.layout.own_directory)
    )


_TRIES: Final = 100
_DELETE_TRIES: Final = 2
# How long a writer waits for a rollback, which deletes one file per snapshot. If the rollback takes longer or was
# killed, the writer builds on the fence, and the ids have a gap.
_MAX_CHECKS: Final = 50
_CHECK_INTERVAL_SECONDS: Final = 0.1


def is_fence(snapshot: Snapshot | None) -> bool:
    """Whether a rollback made the snapshot."""
    return snapshot is not None and ROLLED_BACK_TO in dict(snapshot.properties)


def load_base(store: MetadataStore, sleep: Callable[[float], None]) -> tuple[Snapshot | None, SchemaFiles]:
    """Load the latest snapshot to build on it, with a listing of the schemas; wait while a rollback is running.

    After 5 s, the snapshot may be a fence, which can be built on too.

    Raises:
        CommitConflictError: the latest snapshot does not follow the one before it, also after 5 s.
        DataLossError: the files of the newest snapshots were lost.
        NotFoundError: there is no table any more.
    """
    latest = store.load_latest_snapshot()
    for checks_left in range(_MAX_CHECKS, -1, -1):
        if not is_fence(latest) or not checks_left:
            schemas = store.list_schema_files()
            if latest is None or is_built_on_previous(store, latest, schemas.freed_ids):
                _check_latest_not_lost(store, latest)
                return latest, schemas
        if checks_left:
            sleep(_CHECK_INTERVAL_SECONDS)
            latest = store.load_latest_snapshot()
    raise CommitConflictError(
        f"table {store.name}: snapshot {latest.id if latest else 0} holds what was rolled back, because its writer was "
        "paused while the table was rolled back; that writer has not deleted it for 5 s, and nothing was committed: "
        "try again, or roll back once more if the writer has died"
    )


def _check_latest_not_lost(store: MetadataStore, latest: Snapshot | None) -> None:
    """Refuse a base that has lost the snapshots after it: with their ids used again, nothing would show the loss.

    Costs requests only if no snapshot has the id in the hint. A writer of another engine that was paused since before a
    rollback can have written such a hint too.
    """
    newest_id = latest.id if latest else 0
    hint = find_lost_latest(store, newest_id, store.dangling_hint)
    # A writer that is late can write its hint again after a rollback.
    if hint is None or last_kept_id(hint, store.list_schema_files().freed_ids) != hint:
        return
    lost = snapshots_text([range(newest_id + 1, hint + 1)])
    cure = (
        f"accept the loss with 'penstock rollback {store.name} --snapshot-id {newest_id}'"
        if newest_id
        else f"accept the loss by deleting {store.layout.latest_hint_path}"
    )
    raise DataLossError(
        f"table {store.name}: the files of {lost} are missing in {store.layout.snapshot_directory}: the hint LATEST "
        f"there says {hint}, and the rows that were committed since snapshot {newest_id} are not in the table; nothing "
        f"was committed: restore the file from a copy, or {cure}"
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


def lower_latest_hint(store: MetadataStore) -> None:
    """Correct the hint of the latest snapshot if a rollback that was stopped has left it above the latest one."""
    latest_id = max(store.list_snapshot_ids(), default=0)
    hint = store.load_latest_hint()
    if hint is not None and hint > latest_id:
        _write_hint(store, latest_id)


def _write_hint(store: MetadataStore, snapshot_id: int) -> None:
    store.file_io.write(store.layout.latest_hint_path, encode_hint(snapshot_id))


def _delete_lists(store: MetadataStore, fence: Snapshot) -> None:
    for name in (fence.base_manifest_list, fence.delta_manifest_list):
        for _ in range(_DELETE_TRIES):
            with suppress(StorageError):  # a list that cannot be deleted remains as an orphan
                store.file_io.delete(store.layout.manifest_path(name))
                break
