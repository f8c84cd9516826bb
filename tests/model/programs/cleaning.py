"""What deletes: expiration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.model.calls import (
    Call,
    delete,
    exists,
    list_paths,
    read,
    write,
)
from tests.model.guards import Guard
from tests.model.programs.commit import load_latest
from tests.model.values import (
    EARLIEST,
    SNAPSHOTS,
    Snapshot,
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
    end = latest.id - retain + 1 if Guard.RETAIN_MIN in guards else latest.id + 1
    if earliest is None or end <= earliest:
        return
    kept = yield read(snapshot_path(end))
    if kept is None and Guard.RETAIN_MIN in guards:
        return
    doomed: tuple[Any, ...] = yield Call(find_doomed, (guards, earliest, end, kept))
    for path in doomed:
        yield delete(path)
    yield write(EARLIEST, end)


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
    data: list[str] = []
    changed = [*expired, kept] if kept else expired
    for snapshot in changed[1:] if Guard.DELETIONS_ONLY in guards else changed[:-1]:
        metadata = yield read(snapshot.metadata)
        if metadata is not None:
            data += [entry.path for entry in (metadata.deleted if Guard.DELETIONS_ONLY in guards else metadata.live)]
    return (
        *sorted(set(data)),
        *(snapshot.metadata for snapshot in expired),
        *(snapshot_path(snapshot.id) for snapshot in expired),
    )
