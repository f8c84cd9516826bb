"""Leases of queries, and a batch whose driver holds one.

Time is not modelled: whoever asks for a lease takes the holder's for over, since a holder may be paused for as long as
one likes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model.calls import Become, Call, Note, delete, list_paths, put_if_absent, read, write
from tests.model.guards import Guard
from tests.model.programs.commit import CUT_SHORT, Conflict, Landed, Request, Trust, commit, load_latest, search_commits
from tests.model.values import (
    CHECKPOINT,
    DATA,
    LEASE,
    QUERY,
    Acknowledged,
    Entry,
    Failed,
    File,
    Holding,
    Leased,
    LeaseFile,
)

if TYPE_CHECKING:
    from tests.model.calls import Program
    from tests.model.guards import Guards


def load_newest() -> Program:
    """``LeaseFiles.load_newest``."""
    paths = yield list_paths(LEASE)
    if not paths:
        return None
    found = yield read(max(paths, key=_epoch_of))
    return Become(load_newest) if found is None else found


def acquire(guards: Guards, token: str) -> Program:
    """``acquire``, after the holder's time; returns the lease, or None where somebody else was faster."""
    seen = yield Call(load_newest)
    has_epochs = Guard.LEASE_EPOCHS in guards
    mine = LeaseFile(seen.epoch + 1 if seen and has_epochs else 1, token)
    path = f"{LEASE}{mine.epoch}"
    if Guard.LEASE_PUT_IF_ABSENT not in guards or not has_epochs:
        yield write(path, mine)
    elif not (yield put_if_absent(path, mine)):
        return None
    if Guard.LATE_EPOCH_GIVEN_BACK in guards and max(map(_epoch_of, (yield list_paths(LEASE))), default=0) > mine.epoch:
        yield delete(path)
        return None
    for other in (yield list_paths(LEASE)):
        if _epoch_of(other) < mine.epoch:
            yield delete(other)
    return mine


def is_held(mine: LeaseFile) -> Program:
    """``Lease.check``."""
    newest = yield Call(load_newest)
    return newest == mine


def renew(mine: LeaseFile) -> Program:
    """``Lease.renew``, ``Lease.release``: the file is written again."""
    held = yield Call(is_held, (mine,))
    if held:
        yield write(f"{LEASE}{mine.epoch}", mine)
    return held


def hold_lease(guards: Guards, token: str) -> Program:
    """Take the lease and give it back."""
    mine = yield Call(acquire, (guards, token))
    if mine is None:
        yield Note(Failed("held by another"))
        return
    yield Note(Leased(mine.epoch))
    yield Call(renew, (mine,))


def leased_stream(guards: Guards, rows: tuple[str, ...], job: str) -> Program:
    """``MicroBatches``: takes the lease over from a driver that may be alive, then runs batches one after the other.

    As ``StreamCommitter.begin``, the first batch is looked for among the snapshots since the checkpoint's note.
    """
    mine = yield Call(acquire, (guards, job))
    if mine is None:
        yield Note(Failed("held by another"))
        return
    latest = yield Call(load_latest, (guards,))
    latest_id = latest.id if latest else 0
    noted = yield read(f"{CHECKPOINT}{rows[0]}")
    found = yield Call(search_commits, (batch_user(rows[0]), latest_id, noted))
    if found is CUT_SHORT:
        yield Note(Failed("nobody can tell whether it has landed"))
        return
    if found is not None:
        yield Note(Acknowledged(rows[0], found))
        return
    yield write(f"{CHECKPOINT}{rows[0]}", latest_id)
    return Become(leased_batches, (guards, rows, job, latest_id, Holding(mine, is_trusted=False, is_watched=True)))


def leased_batches(guards: Guards, rows: tuple[str, ...], job: str, after_id: int, held: Holding) -> Program:
    """Write and commit batches; the first one was not found among the snapshots up to ``after_id``."""
    row, following = rows[0], rows[1:]
    path = f"{DATA}{row}-{job}"
    yield write(path, File())
    if held.is_watched and not (yield Call(renew, (held.lease,))):
        yield delete(path)
        yield Note(Failed("the lease is lost"))
        return
    is_trusted = held.is_trusted or Guard.TAKEN_LEASE_UNTRUSTED not in guards
    trust = Trust(held.lease, is_held) if is_trusted else None
    request = Request(
        f"{job}{row}.1",
        (Entry(path, (row,), 0),),
        user=batch_user(row),
        is_checked=True,
        after_id=after_id,
        trust=trust,
    )
    done = yield Call(commit, (guards, request))
    if not isinstance(done, Landed):
        if isinstance(done, Conflict):
            yield delete(path)
        yield Note(Failed("not committed"))
        return
    is_own = done.snapshot.uid.startswith(f"{job}{row}.")
    if not is_own:
        yield delete(path)
    yield Note(Acknowledged(row, done.snapshot))
    if following:
        return Become(
            go_on,
            (
                guards,
                following,
                job,
                done.snapshot.id,
                replace(held, is_trusted=held.is_trusted or is_own, is_watched=is_own),
            ),
        )


def go_on(guards: Guards, rows: tuple[str, ...], job: str, after_id: int, held: Holding) -> Program:
    """Go on with the next batch; ``held.is_watched``: the one before was committed by this driver, not found there."""
    if not held.is_watched and Guard.LEASE_LOOKED_AT in guards and not (yield Call(is_held, (held.lease,))):
        yield Note(Failed("the lease is lost"))
        return
    return Become(leased_batches, (guards, rows, job, after_id, replace(held, is_watched=False)))


def batch_user(row: str) -> str:
    """What a batch is known by on storage, which is the query and its number."""
    return f"{QUERY}-{row}"


def _epoch_of(path: str) -> int:
    return int(path.removeprefix(LEASE))
