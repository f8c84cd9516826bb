"""Rollback of a table to an older snapshot.

Source:
    Paimon ``core:table/RollbackHelper.java``, ``core:utils/SnapshotManager.java``; docs/spec/commit.md section 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_text
from penstock.errors import FormatError, InvalidOptionError, NotFoundError
from penstock.format.snapshot import decode_hint, encode_hint, encode_snapshot
from penstock.printable import Result, open_log
from penstock.table.commit.expiring import forget_expiration
from penstock.table.commit.retry import note_change
from penstock.table.commit.reused_ids import clear_below, lower_latest_hint, put_fence, remove_fences, rolling_back
from penstock.table.read.travel import (
    find_at_or_after,
    newest_before,
    newest_until_time,
    watermark_of,
    watermark_reached,
)
from penstock.table.stream.consumers import move_consumers
from penstock.table.tags import TagReader, tagged_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import CommitServer
    from penstock.table.store import MetadataStore

_LOG: Final = open_log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackPlan(Result):
    """The effect of a rollback.

    Attributes:
        target: the snapshot that becomes the latest.
        is_recreated: whether the target has expired, so that its file is created again from the tag.
        snapshot_ids: snapshots to delete, newest first.
        tags: tags of later snapshots, which are deleted too.
        damaged_schema_ids: schemas after the target's whose files are damaged, which are deleted too.
    """

    target: Snapshot
    is_recreated: bool
    snapshot_ids: tuple[int, ...]
    tags: tuple[str, ...]
    damaged_schema_ids: tuple[int, ...]


def plan_rollback(
    store: MetadataStore,
    *,
    snapshot_id: int | None = None,
    tag: str | None = None,
    timestamp_millis: int | None = None,
    watermark: int | None = None,
) -> RollbackPlan:
    """Find what a rollback to a snapshot, to a tag, or to a point in event time would delete.

    Snapshots after the target may be damaged: they are deleted unread. The target's schema must be readable.

    Args:
        timestamp_millis: ms since 1970-01-01 UTC; the target is the newest snapshot committed then or before.
        watermark: ms of event time; the target is the newest snapshot whose watermark is not later. For a snapshot
            without a watermark, that of the nearest earlier snapshot that has one counts.
    """
    if [snapshot_id, tag, timestamp_millis, watermark].count(None) != 3:
        raise InvalidOptionError(
            f"table {store.name}: a rollback takes either a snapshot id, or a tag, or a timestamp, or a watermark"
        )
    target = _find_target(store, snapshot_id, tag, timestamp_millis, watermark)
    ids = store.list_snapshot_ids()
    if ids and target.id > ids[-1]:
        raise NotFoundError(
            f"table {store.name}: tag '{tag}' names snapshot {target.id}, and the latest snapshot is {ids[-1]}: the "
            "tag was left by a rollback that was stopped, or is damaged; roll back to another one, or read by this tag"
        )
    store.load_schema(target.schema_id)  # without it, the table could not be read afterwards
    return RollbackPlan(
        target=target,
        is_recreated=target.id not in ids,
        snapshot_ids=tuple(sorted((each for each in ids if each > target.id), reverse=True)),
        tags=tuple(name for name in store.list_tags() if store.load_tag(name).snapshot.id > target.id),
        damaged_schema_ids=tuple(each for each in store.list_schema_ids() if _is_damaged(store, each, target)),
    )


def _is_damaged(store: MetadataStore, schema_id: int, latest: Snapshot | None) -> bool:
    """Whether a schema is damaged that no snapshot up to the latest one can need."""
    if latest is None or schema_id <= latest.schema_id:
        return False
    try:
        store.load_schema(schema_id)
    except NotFoundError:
        return False
    except FormatError:
        return True
    return False


def apply_rollback(
    store: MetadataStore, plan: RollbackPlan, *, check: Callable[[Snapshot], None] = lambda _latest: None
) -> Snapshot:
    """Make the target the latest snapshot. Files of the deleted snapshots become orphans; readable schemas are kept.

    Consumers that have read a deleted snapshot continue after the target, since its id is used again.

    Other processes may commit meanwhile. A commit that does not build on the target's content is among the deleted
    snapshots, or is rolled back before it is acknowledged. If a commit builds on the fence before the rollback has
    ended, the fence is kept and the snapshot ids have a gap.

    After an interruption, the table reads as before or as the target; call this again to finish.

    Args:
        check: called with the latest snapshot before each try to replace it; what it raises ends the rollback.

    Returns:
        The latest snapshot, with the target's content.

    Raises:
        CommitConflictError: other writers won every race, and nothing was changed; or another process has rolled the
            table back meanwhile.
        NotFoundError: the target is about to expire.
        StorageError: the storage failed; call this again.
    """
    server = store.file_io.snapshot_commit.server
    try:
        if server is not None:
            return _apply_on_server(store, server, plan)
        with rolling_back(store, plan.target, is_recreated=plan.is_recreated):
            latest = _apply(store, plan, check)
        for schema_id in plan.damaged_schema_ids:
            # A commit may have built on the rollback with this schema, or somebody may have restored the file.
            if _is_damaged(store, schema_id, store.load_latest_snapshot()):
                store.file_io.delete(store.layout.schema_path(schema_id))
        return latest
    finally:
        note_change(store.location)


def _apply_on_server(store: MetadataStore, server: CommitServer, plan: RollbackPlan) -> Snapshot:
    """Have the server of the table's catalog roll back, unless others have committed since the plan was made."""
    latest_id = plan.snapshot_ids[0] if plan.snapshot_ids else plan.target.id
    server.rollback(plan.target.id, latest_id)
    _set_consumers_back(store, plan.target, latest_id)
    return store.load_latest_snapshot() or plan.target


def _apply(store: MetadataStore, plan: RollbackPlan, check: Callable[[Snapshot], None]) -> Snapshot:
    file_io, layout, target = store.file_io, store.layout, plan.target
    latest, tags = target, set(plan.tags)
    if plan.is_recreated:
        # The target is created first: if the other snapshots were deleted before, readers and writers would find an
        # empty table.
        path = layout.snapshot_path(target.id)
        is_put = file_io.put_if_absent(path, encode_snapshot(target))
        # Whoever deletes a tag does that first, and deletes its files unless the snapshot is there.
        if is_put and all(each.id != target.id for each in tagged_snapshots(store)):
            file_io.delete(path)
            raise NotFoundError(
                f"table {store.name}: the tag of snapshot {target.id}, which has expired, was deleted meanwhile, and "
                "its files with it; nothing was changed: roll back to another one"
            )
        forget_expiration(store)
    if plan.snapshot_ids:
        fence = put_fence(store, target, check)
        first = clear_below(store, fence, target)
        # Who makes a tag looks afterwards whether the snapshot is there.
        made = TagReader(file_io, store.location).load().items()
        tags |= {name for name, tag in made if target.id < tag.snapshot.id < fence.id}
        # Before others can commit: a consumer that has read their snapshots must not be set back.
        _set_consumers_back(store, target, fence.id - 1)
        latest = remove_fences(store, (fence,) if first is fence else (fence, first), target)
        if latest.id > target.id:
            # No snapshot up to the fence has rows, and some ids have none: a reader could not continue there.
            move_consumers(store, range(target.id + 1, latest.id + 1), to=latest.id + 1)
    else:
        lower_latest_hint(store)  # an earlier attempt was stopped between its last deletion and its last hint
    _lower_earliest_hint(store, target)
    for name in sorted(tags):
        file_io.delete(layout.tag_path(name))
        file_io.delete(layout.tag_success_path(name))
    return latest


def _set_consumers_back(store: MetadataStore, target: Snapshot, last_id: int) -> None:
    """Set consumers that have read one of the snapshots from the target to ``last_id`` to the one after the target."""
    following = target.id + 1
    moved = move_consumers(store, range(following + 1, last_id + 2), to=following)
    if moved:
        _LOG.info("table %s: set back to snapshot %d: consumers %s", store.name, following, ", ".join(moved))


def _find_target(
    store: MetadataStore, snapshot_id: int | None, tag: str | None, timestamp_millis: int | None, watermark: int | None
) -> Snapshot:
    if snapshot_id is not None:
        return store.load_snapshot(snapshot_id)
    if tag is not None:
        return store.load_tag(tag).snapshot
    latest, first_id = store.load_newest_readable_snapshot(), store.earliest_snapshot_id()
    if latest is None or first_id is None:
        raise NotFoundError(f"table {store.name}: nothing was committed yet, so there is nothing to go back to")
    if watermark is not None:
        return _newest_until(store, latest, first_id, watermark)
    return newest_until_time(store, latest, timestamp_millis or 0)


def _newest_until(store: MetadataStore, latest: Snapshot, first_id: int, watermark: int) -> Snapshot:
    """Return the newest snapshot whose watermark is not later than the given one; raise if all are later.

    In that case the reference returns the earliest snapshot, so a mistyped time would delete nearly all rows.
    """

    def is_before(snapshot: Snapshot) -> bool:
        reached = watermark_reached(store, snapshot)
        return reached is None or reached <= watermark

    found = newest_before(store, latest, is_before)
    if found is None or watermark_reached(store, found) is None:
        beyond = find_at_or_after(store, first_id if found is None else found.id + 1) or latest
        least = watermark_of(beyond)
        raise NotFoundError(
            f"table {store.name}: no snapshot has a watermark of {utc_text(watermark)} ({watermark}) or earlier; "
            + ("none of them has one" if least is None else f"the least is {utc_text(least)} ({least})")
        )
    return found


def _lower_earliest_hint(store: MetadataStore, target: Snapshot) -> None:
    """Correct the hint of the earliest snapshot if it is above the target, which this or an earlier attempt created."""
    path = store.layout.earliest_hint_path
    try:
        hint = decode_hint(store.file_io.read(path))
    except NotFoundError:
        return  # without a hint, readers list the directory
    if hint is None or hint > target.id:
        store.file_io.write(path, encode_hint(min(store.list_snapshot_ids())))
