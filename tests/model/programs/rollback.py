"""Rollback with its fence, call by call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model.calls import Become, Call, Note, delete, exists, list_paths, put_if_absent, read, write
from tests.model.guards import Guard
from tests.model.programs.commit import is_announced, load_latest
from tests.model.values import (
    EARLIEST,
    EXPIRING,
    LATEST,
    ROLLED_BACK,
    ROLLING_BACK,
    SNAPSHOTS,
    TAGS,
    Failed,
    File,
    RolledBack,
    RollingBack,
    Snapshot,
    id_of,
    snapshot_path,
)

if TYPE_CHECKING:
    from tests.model.calls import Program
    from tests.model.guards import Guards

FENCE_TRIES = 4


def roll_back(guards: Guards, target_id: int, name: str = "fence") -> Program:
    """``plan_rollback``, ``apply_rollback`` to a snapshot that is there."""
    target = yield read(snapshot_path(target_id))
    if target is None:
        yield Note(Failed("there is no such snapshot"))
        return
    return Become(apply_rollback, (guards, target, name))


def roll_back_as_planned(guards: Guards, target_id: int, earlier_id: int) -> Program:
    """Plan a rollback, then make another one, then go on: as one who was asked for a confirmation meanwhile."""
    target = yield read(snapshot_path(target_id))
    if target is None:
        return
    yield Call(roll_back, (guards, earlier_id))
    return Become(apply_rollback, (guards, target, "planned"))


def apply_rollback(guards: Guards, target: Snapshot, name: str) -> Program:
    """``apply_rollback`` of a plan, which may be old."""
    ids = [id_of(path) for path in (yield list_paths(SNAPSHOTS))]
    if max(ids, default=0) <= target.id:
        return
    if Guard.FENCE_PUT not in guards:
        return Become(roll_back_without_fence, (tuple(ids), target))
    mark = f"{ROLLING_BACK}{name}"
    if Guard.ROLLBACK_MARKED in guards:
        yield write(mark, target.id)
        if (yield Call(is_announced, (target.id,))):
            yield delete(mark)
            yield Note(Failed("the target expires"))
            return
    metadata = yield read(target.metadata)
    if metadata is None:
        yield Note(Failed("the target expires"))
        return
    empty = Snapshot(0, name, None, "rollback", rolled_back_to=target.id)
    yield write(empty.metadata, File(live=metadata.live, base=metadata.live))
    fence = yield Call(put_fence, (guards, target, empty))
    if fence is None:
        yield delete(empty.metadata)
        yield delete(mark)
        yield Note(Failed("others won every race, or the target is gone"))
        return
    # Not before: whoever comes now comes after the rollback.
    yield Note(RollingBack(fence.abandoned, target.line, fence.uid, fence.parent or ""))
    is_done = yield Call(clear, (guards, target, fence))
    if Guard.ROLLBACK_MARKED in guards:
        if (yield Call(is_announced, (target.id,))):
            yield write(EXPIRING, target.id)  # by an expiration that has seen the mark, and deletes nothing
        yield delete(mark)
    yield Note(RolledBack(fence.abandoned) if is_done else Failed("another rollback has come"))


def put_fence(guards: Guards, target: Snapshot, empty: Snapshot) -> Program:
    """``put_fence``."""
    for _ in range(FENCE_TRIES):
        latest = (yield Call(load_latest, (guards,))) or target
        if Guard.TARGET_STANDS in guards and (yield read(snapshot_path(target.id))) != target:
            return None
        if Guard.BASE_IN_LINE in guards:
            yield write(f"{ROLLED_BACK}{target.id + 2}-{latest.id + 2}", 1)
        fence = replace(
            empty,
            id=latest.id + 1,
            parent=latest.uid,
            line=(*target.line, empty.uid),
            abandoned=latest.abandoned | (set(latest.line) - set(target.line)),
        )
        if not (yield put_if_absent(snapshot_path(fence.id), fence)):
            continue
        if (yield read(snapshot_path(latest.id))) != latest:
            yield delete(snapshot_path(fence.id))
            continue
        yield write(LATEST, fence.id)
        return fence
    return None


def clear(guards: Guards, target: Snapshot, fence: Snapshot) -> Program:
    """``clear_below``, ``remove_fences``; False where another rollback has come."""
    fences = [fence]
    if fence.id > target.id + 1:
        first = replace(fence, id=target.id + 1)
        first = replace(first, uid=f"{fence.uid}.first", line=(*target.line, f"{fence.uid}.first"))
        held = yield read(target.metadata)
        yield write(first.metadata, File(live=held.live, base=held.live) if held else File())
        if Guard.FENCE_FIRST in guards:
            fences.append(first)
        if not (yield Call(clear_below, (guards, fence, first))):
            return False
    tags = yield Call(find_tags, (target, fence))
    for each in fences:
        if not (yield Call(remove_fence, (each, target))):
            break
    else:
        for each in fences:
            yield delete(each.metadata)
    hint = yield read(EARLIEST)
    if hint is None or hint > target.id:
        yield write(EARLIEST, target.id)
    for path in tags:
        yield delete(path)
    return True


def find_tags(target: Snapshot, fence: Snapshot) -> Program:
    """Return the tags of snapshots that are rolled back, also of those made meanwhile."""
    found = []
    for path in (yield list_paths(TAGS)):
        tagged = yield read(path)
        if tagged is not None and target.id < tagged.id < fence.id:
            found.append(path)
    return tuple(found)


def clear_below(guards: Guards, fence: Snapshot, first: Snapshot) -> Program:
    """``clear_below``; False where another rollback has come."""
    if not (yield Call(is_standing, (fence,))):
        return False
    between = range(first.id + 1, fence.id)
    if Guard.FENCE_FIRST in guards:
        yield write(snapshot_path(first.id), first)
    for snapshot_id in between if Guard.FENCE_FIRST in guards else reversed((first.id, *between)):
        if not (yield Call(is_standing, (fence,))):
            return False
        yield delete(snapshot_path(snapshot_id))
    return True


def is_standing(fence: Snapshot) -> Program:
    """``check_fence``."""
    return (yield read(snapshot_path(fence.id))) == fence


def remove_fence(fence: Snapshot, target: Snapshot) -> Program:
    """``remove_fences``, for one: whether it is gone, and nobody has built on it."""
    path = snapshot_path(fence.id)
    if (yield exists(snapshot_path(fence.id + 1))):
        return False
    if (yield read(snapshot_path(target.id))) != target or (yield read(path)) != fence:
        return False
    yield write(LATEST, fence.id)
    yield delete(path)
    latest_id = max((id_of(each) for each in (yield list_paths(SNAPSHOTS))), default=target.id)
    yield write(LATEST, latest_id)
    return latest_id <= fence.id


def roll_back_without_fence(ids: tuple[int, ...], target: Snapshot) -> Program:
    """As the reference does: the hint, then the newest snapshot first."""
    yield write(LATEST, target.id)
    for snapshot_id in sorted(ids, reverse=True):
        if snapshot_id > target.id:
            gone = yield read(snapshot_path(snapshot_id))
            if gone is not None:
                yield Note(RollingBack(frozenset({gone.uid})))
            yield delete(snapshot_path(snapshot_id))
