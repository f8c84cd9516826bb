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
    EXPIRING,
    LATEST,
    LOST_RACES,
    ROLLED_BACK,
    ROLLING_BACK,
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

NOT_TAKEN_BACK = "the latest snapshot came late, and is not taken back"

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
    if not paths:
        return None
    for path in sorted(paths, key=id_of, reverse=True):
        snapshot = yield read(path)
        if snapshot is not None:
            return snapshot
        if Guard.LISTED_AGAIN in guards:
            return Become(load_latest, (guards,))  # it was rolled back, or has expired, and there may be a later one
    return None


def commit(guards: Guards, request: Request) -> Program:
    """``TableCommitter.commit``; returns ``Landed``, ``Conflict`` or ``Unknown``."""
    base = yield Call(load_base, (guards,))
    if base is NOT_TAKEN_BACK:
        return Conflict(NOT_TAKEN_BACK)
    return Become(look_and_attempt, (guards, request, base, request.after_id))


def load_base(guards: Guards) -> Program:
    """``TableCommitter._load_base``: waits for the end of a rollback, and until a late put is taken back.

    The code waits for 5 s and builds on the fence then, for rollbacks that were killed. Here none takes so long.
    Whether a late put is taken back within that time is open: here the second look decides.
    """
    latest = yield Call(load_latest, (guards,))
    if latest is not None and latest.rolled_back_to is not None:
        return Become(load_base, (guards,))
    if Guard.BASE_IN_LINE not in guards or latest is None or (yield Call(is_in_line, (latest,))):
        return latest
    again = yield Call(load_latest, (guards,))
    return NOT_TAKEN_BACK if again == latest else Become(load_base, (guards,))


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
    newest, has_gap, snapshot_id = None, False, latest_id
    while snapshot_id > after_id:
        snapshot = yield read(snapshot_path(snapshot_id))
        if snapshot is None:
            snapshot_id = yield Call(id_below_gap, (snapshot_id,))
            if not snapshot_id:
                return CUT_SHORT
            has_gap = True
            continue
        if snapshot.user == user:
            return snapshot
        newest = newest or snapshot
        snapshot_id -= 1
    if has_gap and (newest is None or newest.id != latest_id or (yield read(snapshot_path(latest_id))) != newest):
        return CUT_SHORT
    return None


def id_below_gap(snapshot_id: int) -> Program:
    """``_id_below_gap``: the id below a missing one that no expiration and no rollback removes; else 0."""
    below = max((each for each in map(id_of, (yield list_paths(SNAPSHOTS))) if each < snapshot_id), default=0)
    if not below or (yield Call(is_announced, (snapshot_id,))) or (yield list_paths(ROLLING_BACK)):
        return 0
    return below


def attempt(guards: Guards, request: Request, base: Snapshot | None) -> Program:
    """One round of ``TableCommitter._race``."""
    live: tuple[Entry, ...] = ()
    if base is not None:
        metadata = yield read(base.metadata)
        if metadata is None:
            return Become(go_on_without, (guards, request, base))
        live = metadata.live
    if Guard.INPUTS_LIVE in guards and any(entry not in live for entry in request.deleted):
        return Conflict("a file to replace is gone")
    snapshot = build_snapshot(request, base)
    kept = tuple(each for each in live if each not in request.deleted)
    content = File(live=(*kept, *_numbered(request, live)), deleted=request.deleted, base=live)
    yield write(snapshot.metadata, content)
    put = yield Call(put_snapshot, (guards, snapshot))
    if put and Guard.LATE_PUT_FOUND in guards:
        put = yield Call(is_in_time, (guards, snapshot, base, request))
    if not put:
        return Become(give_way, (guards, request, base, snapshot, put is None))
    yield write(LATEST, snapshot.id)
    if snapshot.id == 1:
        yield write(EARLIEST, 1)
    return Landed(snapshot)


def go_on_without(guards: Guards, request: Request, base: Snapshot) -> Program:
    """``TableCommitter._check_expired``: try again where the base has expired."""
    # Its own file goes last: until then only the announcement says that the expiration is at it.
    if (yield exists(snapshot_path(base.id))) and not (yield Call(is_announced, (base.id,))):
        return Conflict("metadata are missing")
    return Become(go_on, (guards, request, base))


def give_way(
    guards: Guards, request: Request, base: Snapshot | None, snapshot: Snapshot, is_unknown: object
) -> Program:
    """End where nobody knows what became of the put; else try again."""
    if is_unknown:
        return Unknown()
    yield delete(snapshot.metadata)
    return Become(go_on, (guards, request, base))


def go_on(guards: Guards, request: Request, base: Snapshot | None) -> Program:
    """Try again on the latest snapshot."""
    if request.uid.endswith(f".{RACES}"):
        return Conflict(LOST_RACES)
    newer = yield Call(load_base, (guards,))
    if newer is NOT_TAKEN_BACK:
        return Conflict(NOT_TAKEN_BACK)
    after_id = max(base.id if base else 0, request.after_id)
    return Become(look_and_attempt, (guards, next_attempt(request), newer, after_id))


def build_snapshot(request: Request, base: Snapshot | None) -> Snapshot:
    """Return the snapshot of an attempt."""
    if base is None:
        return Snapshot(1, request.uid, None, request.user, line=(request.uid,))
    line = (*base.line, request.uid)
    return Snapshot(base.id + 1, request.uid, base.uid, request.user, line=line, abandoned=base.abandoned)


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
    """``put.is_in_time``: whether a snapshot that was put is in the table's history; else it is taken back.

    Snapshots expire from the oldest on, so while the base is there ours cannot have come late. None when nobody knows.
    """
    there = (yield read(snapshot_path(base.id))) if base else None
    if there is not None and (there == base or Guard.BASE_COMPARED not in guards):
        return True
    paths = yield list_paths(SNAPSHOTS)
    ids = sorted(map(id_of, paths))
    following = None
    if ids and ids[-1] > snapshot.id:
        following = yield read(snapshot_path(snapshot.id + 1))
    if following is not None:
        metadata = yield read(following.metadata)
        if metadata is None:
            return None
        known = {entry.path for entry in (*metadata.live, *metadata.deleted)}
        if any(entry.path in known for entry in request.added):
            return True
    if (yield Call(is_alone_in_time, (guards, snapshot, base, tuple(ids)))):
        return True
    was_there = yield delete(snapshot_path(snapshot.id))
    if not was_there or (following is None and (yield exists(snapshot_path(snapshot.id + 1)))):
        return None  # it may have been seen
    return False


def is_alone_in_time(guards: Guards, snapshot: Snapshot, base: Snapshot | None, ids: tuple[int, ...]) -> Program:
    """Whether a snapshot on which nobody has built is in time."""
    if ids == (snapshot.id,):
        return True  # the latest one never expires
    if base is None or ids[-1:] != (snapshot.id,) or Guard.LATEST_KEPT not in guards:
        return False
    if Guard.ANNOUNCED_ONLY not in guards:
        return True
    if not (yield Call(is_announced, (base.id,))):
        return False
    # An expiration may have announced it, and left it to a rollback.
    return Guard.BASE_IN_LINE not in guards or (yield Call(is_in_line, (snapshot,)))


def is_announced(snapshot_id: int) -> Program:
    """``is_announced``: whether an expiration has said that it deletes a snapshot."""
    end = yield read(EXPIRING)
    return end is not None and snapshot_id < end


def is_in_line(base: Snapshot) -> Program:
    """``is_built_on_previous``: whether a snapshot follows the one before it, where a rollback made its id free."""
    ranges = yield list_paths(ROLLED_BACK)
    if not any(first <= base.id <= last for first, last in map(_range_of, ranges)):
        return True
    lower = [id_of(path) for path in (yield list_paths(SNAPSHOTS)) if id_of(path) < base.id]
    before_id = max(lower, default=0) if base.rolled_back_to is None else base.rolled_back_to
    before = yield read(snapshot_path(before_id))
    if before is None:
        return all(each >= before_id for each in lower)  # snapshots expire in the order of their ids
    held, metadata = (yield read(before.metadata)), (yield read(base.metadata))
    if held is None or metadata is None:
        return Become(is_announced, (before_id,))
    return set(held.live) == set(metadata.base)


def _range_of(path: str) -> tuple[int, int]:
    first, _, last = path.removeprefix(ROLLED_BACK).partition("-")
    return int(first), int(last)


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
