"""What deletes: expiration, removal of orphan files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.calls import (
    Become,
    Call,
    Note,
    delete,
    exists,
    list_paths,
    list_statuses,
    put_if_absent,
    read,
    write,
)
from tests.model.guards import Guard
from tests.model.programs.commit import is_announced, is_in_line, load_latest
from tests.model.programs.writers import append
from tests.model.values import (
    CONSUMER,
    DATA,
    EARLIEST,
    EXPIRING,
    METADATA,
    ROLLING_BACK,
    SNAPSHOTS,
    TAGS,
    Failed,
    Snapshot,
    Tagged,
    id_of,
    snapshot_path,
)

if TYPE_CHECKING:
    from tests.model.calls import Program
    from tests.model.guards import Guards


def expire(guards: Guards, retain: int = 1) -> Program:
    """``SnapshotExpirer.run`` that keeps the newest snapshots only."""
    latest = yield Call(load_latest, (guards,))
    if latest is None:
        return
    earliest = yield Call(find_earliest)
    end = yield Call(find_end, (guards, latest, retain))
    if earliest is None or end <= earliest:
        return
    kept = yield read(snapshot_path(end))
    if kept is None and Guard.RETAIN_MIN in guards:
        return
    if Guard.KEPT_IN_LINE in guards and kept is not None and not (yield Call(is_in_line, (kept,))):
        return
    doomed = yield Call(find_doomed, (guards, earliest, end, kept))
    if Guard.EXPIRATION_ANNOUNCED in guards:
        known = yield read(EXPIRING)
        if known is None or known < end:
            yield write(EXPIRING, end)
        # What a second search finds differs from the first only where tags have come meanwhile.
        doomed = yield Call(find_doomed, (guards, earliest, end, kept))
    if Guard.ROLLBACK_MARKED in guards and (yield list_paths(ROLLING_BACK)):
        return
    if Guard.KEPT_AGAIN in guards and (
        not (yield Call(is_announced, (end - 1,))) or (yield read(snapshot_path(end))) != kept
    ):
        return  # a rollback has come and gone
    for path in doomed:
        yield delete(path)
    yield write(EARLIEST, end)


def find_end(guards: Guards, latest: Snapshot, retain: int) -> Program:
    """``plan_expiration``: the id of the first snapshot to keep."""
    end = latest.id - retain + 1 if Guard.RETAIN_MIN in guards else latest.id + 1
    position = (yield read(CONSUMER)) if Guard.CONSUMERS_SPARED in guards else None
    return end if position is None else min(end, position)


def append_and_expire(guards: Guards, row: str) -> Program:
    """One who appends, and then expires."""
    yield Call(append, (guards, (row,)))
    return Become(expire, (guards,))


def find_earliest() -> Program:
    """``SnapshotExpirer._find_earliest``."""
    hint = yield read(EARLIEST)
    if hint is not None and (yield exists(snapshot_path(hint))):
        return hint
    paths = yield list_paths(SNAPSHOTS)
    earliest = min(map(id_of, paths), default=None)
    if earliest is not None:
        yield write(EARLIEST, earliest)
    return earliest


def find_doomed(guards: Guards, first: int, end: int, kept: Snapshot | None) -> Program:
    """``ChunkFinder.find``; paths in the order in which they go."""
    expired = []
    for snapshot_id in range(first, end):
        snapshot = yield read(snapshot_path(snapshot_id))
        if snapshot is not None:
            expired.append(snapshot)
    data: set[str] = set()
    changed = [*expired, kept] if kept else expired
    for snapshot in changed[1:] if Guard.DELETIONS_ONLY in guards else changed[:-1]:
        metadata = yield read(snapshot.metadata)
        if metadata is not None:
            gone = metadata.deleted if Guard.DELETIONS_ONLY in guards else metadata.live
            data.update(entry.path for entry in gone)
    metadata_files = {snapshot.metadata for snapshot in expired}
    for path in (yield list_paths(TAGS)) if Guard.TAGS_SPARED in guards else ():
        tagged = yield read(path)
        if tagged is None:
            continue  # it was deleted
        metadata = yield read(tagged.metadata)
        if metadata is None:
            return ()  # what a tag needs cannot be read
        data.difference_update(entry.path for entry in metadata.live)
        metadata_files.discard(tagged.metadata)
    return (*sorted(data), *sorted(metadata_files), *(snapshot_path(snapshot.id) for snapshot in expired))


def create_tag(guards: Guards, name: str, snapshot_id: int) -> Program:
    """``Table.create_tag`` of one snapshot."""
    snapshot = yield read(snapshot_path(snapshot_id))
    if snapshot is None:
        yield Note(Failed("expired"))
        return
    yield put_if_absent(f"{TAGS}{name}", snapshot)
    if Guard.TAG_CHECKED in guards:
        end = yield read(EXPIRING)
        if (end is not None and snapshot_id < end) or not (yield exists(snapshot_path(snapshot_id))):
            yield delete(f"{TAGS}{name}")
            yield Note(Failed("expiring"))
            return
    yield Note(Tagged(name, snapshot))


def remove_orphans(guards: Guards) -> Program:
    """``remove_orphan_files``."""
    found = (yield list_statuses(METADATA)) + (yield list_statuses(DATA))
    used: set[str] = set()
    seen: set[str] = set()
    while True:
        roots = (yield list_paths(SNAPSHOTS)) + ((yield list_paths(TAGS)) if Guard.ORPHAN_TAGS in guards else ())
        if Guard.ORPHAN_SNAPSHOTS not in guards:
            roots = roots[-1:]
        fresh = [path for path in roots if path not in seen]
        if not fresh:
            break
        seen.update(fresh)
        for path in fresh:
            snapshot = yield read(path)
            metadata = (yield read(snapshot.metadata)) if snapshot else None
            if snapshot is None or (metadata is None and not (yield exists(path))):
                continue  # it has expired
            if metadata is None:
                yield Note(Failed("metadata are missing"))
                return
            used.update((snapshot.metadata, *(entry.path for entry in metadata.live)))
    for path, is_old in found:
        if path not in used and (is_old or Guard.ORPHAN_AGE not in guards):
            yield delete(path)
