"""The commit, call by call.

Where the code reads a file that never changes and that it has read or written before, it has it in memory; so has the
model. Metadata files of a snapshot are one file here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.model.calls import (
    LOST,
    Become,
    Call,
    Op,
    Verb,
    delete,
    exists,
    list_paths,
    put_if_absent,
    read,
    write,
)
from tests.model.guards import Guard
from tests.model.values import (
    EARLIEST,
    LATEST,
    LOST_RACES,
    SNAPSHOTS,
    Entry,
    File,
    Snapshot,
    id_of,
    snapshot_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tests.model.calls import Program
    from tests.model.guards import Guards


PUT_TRIES = 2
"""Puts of one snapshot before its outcome is unknown."""

CUT_SHORT = "cut short"

RACES = 4
"""Attempts before a commit is given up; no scenario has so many commits that others make."""


@dataclass(frozen=True, slots=True)
class Trust:
    """A lease that shows, while it is held, that nobody else has committed.

    Attributes:
        is_held: program that looks, given the lease.
    """

    lease: Hashable
    is_held: Callable[..., Program]


@dataclass(frozen=True, slots=True)
class Request:
    """A commit.

    Attributes:
        uid: of the attempt that comes next; each has its own.
        added: numbered anew in each attempt, unless ``deleted`` says whose place they take.
        is_checked: a replay is looked for, among snapshots after ``after_id``.
        number: sequence number that the writer drew by itself; None where the commit gives it.
        trust: asked where nobody can tell whether it is a replay; without, it is refused then.
    """

    uid: str
    added: tuple[Entry, ...]
    deleted: tuple[Entry, ...] = ()
    user: str = ""
    number: int | None = None
    is_checked: bool = False
    after_id: int = 0
    trust: Trust | None = None


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit made this snapshot."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file to replace is gone, or the base; nothing is visible."""

    why: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The storage did not say what became of it."""


def load_latest(guards: Guards) -> Program:
    """``MetadataStore.load_latest_snapshot``."""
    hint = yield read(LATEST)
    if hint is not None:
        has_next = (yield exists(snapshot_path(hint + 1))) if Guard.HINT_CHECKED in guards else False
        if not has_next:
            snapshot = yield read(snapshot_path(hint))
            if snapshot is not None:
                return snapshot
    paths = yield list_paths(SNAPSHOTS)
    for path in sorted(paths, key=id_of, reverse=True):
        snapshot = yield read(path)
        if snapshot is not None:
            return snapshot
    return Become(load_latest, (guards,)) if paths and Guard.LISTED_AGAIN in guards else None


def commit(guards: Guards, request: Request) -> Program:
    """``TableCommitter.commit``; returns ``Landed``, ``Conflict`` or ``Unknown``."""
    base = yield Call(load_latest, (guards,))
    return Become(look_and_attempt, (guards, request, base, request.after_id))


def look_and_attempt(guards: Guards, request: Request, base: Snapshot | None, after_id: int) -> Program:
    """``TableCommitter._find_landed``, then an attempt."""
    is_first = request.uid.endswith(".1")
    guard = Guard.REPLAY_FOUND if is_first else Guard.REPLAY_FOUND_AGAIN
    if request.is_checked and base is not None and guard in guards:
        found = yield Call(search_commits, (request.user, base.id, after_id))
        if isinstance(found, Snapshot):
            return Landed(found)
        if found is CUT_SHORT and request.trust is not None:
            if Guard.LEASE_CHECKED in guards and not (yield Call(request.trust.is_held, (request.trust.lease,))):
                return Conflict("the lease is lost")
        elif found is CUT_SHORT and Guard.CUT_SEARCH_REFUSED in guards:
            return Conflict("nobody can tell whether it has landed")
    return Become(attempt, (guards, request, base))


def search_commits(user: str, latest_id: int, after_id: int) -> Program:
    """``search_commits``: a snapshot of the user, None, or ``CUT_SHORT`` when some have expired."""
    for snapshot_id in range(latest_id, after_id, -1):
        snapshot = yield read(snapshot_path(snapshot_id))
        if snapshot is None:
            return CUT_SHORT
        if snapshot.user == user:
            return snapshot
    return None


def attempt(guards: Guards, request: Request, base: Snapshot | None) -> Program:
    """One round of ``TableCommitter._race``."""
    live: tuple[Entry, ...] = ()
    if base is not None:
        metadata = yield read(base.metadata)
        if metadata is None:
            return Conflict("the base has expired")
        live = metadata.live
    if Guard.INPUTS_LIVE in guards and any(entry not in live for entry in request.deleted):
        return Conflict("a file to replace is gone")
    snapshot = Snapshot(base.id + 1 if base else 1, request.uid, base.uid if base else None, request.user)
    kept = tuple(each for each in live if each not in request.deleted)
    yield write(snapshot.metadata, File(live=(*kept, *_numbered(request, live)), deleted=request.deleted))
    put = yield Call(put_snapshot, (guards, snapshot))
    if put and Guard.LATE_PUT_FOUND in guards:
        put = yield Call(is_in_time, (guards, snapshot, base, request))
    if put is None:
        return Unknown()
    if not put:
        yield delete(snapshot.metadata)
        if request.uid.endswith(f".{RACES}"):
            return Conflict(LOST_RACES)
        newer = yield Call(load_latest, (guards,))
        after_id = max(base.id if base else 0, request.after_id)
        return Become(look_and_attempt, (guards, next_attempt(request), newer, after_id))
    yield write(LATEST, snapshot.id)
    if snapshot.id == 1:
        yield write(EARLIEST, 1)
    return Landed(snapshot)


def put_snapshot(guards: Guards, snapshot: Snapshot) -> Program:
    """``TableCommitter._put``: True when ours is there, False when another has its id, None when nobody knows."""
    path = snapshot_path(snapshot.id)
    for _ in range(PUT_TRIES):
        if Guard.PUT_IF_ABSENT not in guards:
            yield Op(Verb.REPLACE, path, snapshot)
            return True
        created = yield put_if_absent(path, snapshot)
        if created == LOST:
            if Guard.OWN_PUT_RECOGNIZED not in guards:
                return False
            continue
        if created or Guard.OWN_PUT_RECOGNIZED not in guards:
            return created
        there = yield read(path)
        if there is not None:
            return there.uid == snapshot.uid
    return None


def is_in_time(guards: Guards, snapshot: Snapshot, base: Snapshot | None, request: Request) -> Program:
    """``late_put.is_in_time``: whether a snapshot that was put is in the table's history; else it is taken back.

    Snapshots expire from the oldest on, so while the base is there ours cannot have come late. None when nobody knows.
    """
    there = (yield read(snapshot_path(base.id))) if base else None
    if there is not None and (there == base or Guard.BASE_COMPARED not in guards):
        return True
    paths = yield list_paths(SNAPSHOTS)
    ids = sorted(map(id_of, paths))
    if max(ids, default=0) <= snapshot.id and (Guard.LATEST_KEPT in guards or ids == [snapshot.id]):
        return True  # the latest one never expires
    following = yield read(snapshot_path(snapshot.id + 1))
    if following is not None:
        metadata = yield read(following.metadata)
        if metadata is None:
            return None
        known = {entry.path for entry in (*metadata.live, *metadata.deleted)}
        if any(entry.path in known for entry in request.added):
            return True
    was_there = yield delete(snapshot_path(snapshot.id))
    if not was_there or (yield exists(snapshot_path(snapshot.id + 1))):
        return None  # it may have been seen
    return False


def next_attempt(request: Request) -> Request:
    """Return the same request under another uid."""
    name, _, number = request.uid.rpartition(".")
    return replace(request, uid=f"{name}.{int(number) + 1}")


def _numbered(request: Request, live: tuple[Entry, ...]) -> tuple[Entry, ...]:
    if request.deleted:
        return request.added
    first = (
        max((each.number + len(each.rows) for each in live), default=0) if request.number is None else request.number
    )
    return tuple(Entry(each.path, each.rows, first) for each in request.added)
