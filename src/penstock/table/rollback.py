"""Going back to an older snapshot.

Source:
    Paimon ``core:table/RollbackHelper.java``; spec/commit.md section 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, NotFoundError
from penstock.spec.hint import decode_hint, encode_hint
from penstock.spec.layout import earliest_hint_path, latest_hint_path, snapshot_path, tag_path
from penstock.spec.snapshot_json import encode_snapshot

if TYPE_CHECKING:
    from penstock.spec.snapshot import Snapshot
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """What a rollback does.

    Attributes:
        target: the snapshot that becomes the latest.
        is_recreated: its file had expired and comes back from the tag.
        snapshot_ids: snapshots that go, newest first.
        tags: tags of later snapshots, which go too.
    """

    target: Snapshot
    is_recreated: bool
    snapshot_ids: tuple[int, ...]
    tags: tuple[str, ...]


def plan_rollback(store: MetadataStore, *, snapshot_id: int | None = None, tag: str | None = None) -> RollbackPlan:
    """Find what a rollback to a snapshot or to a tag would delete.

    Raises:
        InvalidOptionError: not exactly one target.
        NotFoundError: there is no such snapshot or tag.
    """
    if (snapshot_id is None) == (tag is None):
        raise InvalidOptionError(f"table {store.name}: a rollback takes either a snapshot id or a tag")
    target = store.load_tag(tag).snapshot if tag is not None else store.load_snapshot(snapshot_id or 0)
    ids = store.list_snapshot_ids()
    return RollbackPlan(
        target=target,
        is_recreated=target.id not in ids,
        snapshot_ids=tuple(sorted((each for each in ids if each > target.id), reverse=True)),
        tags=tuple(name for name in store.list_tags() if store.load_tag(name).snapshot.id > target.id),
    )


def apply_rollback(store: MetadataStore, plan: RollbackPlan) -> Snapshot:
    """Make the target the latest snapshot. Files of what goes become orphans; schemas stay.

    Stopped half-way it leaves a table that reads as the target or as a snapshot after it; then do it again.

    No writer may commit meanwhile: nothing protects the two from each other.
    """
    file_io, location, target = store.file_io, store.location, plan.target
    if plan.is_recreated:
        # First: were the others gone before it is there, the table would be empty to whoever reads, or commits.
        file_io.put_if_absent(snapshot_path(location, target.id), encode_snapshot(target))
    if plan.snapshot_ids:
        # A hint counts while no snapshot follows it, so this one counts at the end only: until then the listing
        # decides, which finds the newest that is left. Across the gap above a recreated target it would count at once.
        oldest = plan.snapshot_ids[-1]
        file_io.write(latest_hint_path(location), encode_hint(target.id if oldest == target.id + 1 else oldest))
    for snapshot_id in plan.snapshot_ids:
        file_io.delete(snapshot_path(location, snapshot_id))
    file_io.write(latest_hint_path(location), encode_hint(target.id))
    _lower_earliest_hint(store, target)
    for name in plan.tags:
        file_io.delete(tag_path(location, name))
    return target


def _lower_earliest_hint(store: MetadataStore, target: Snapshot) -> None:
    """Where the earliest snapshot lay behind a target that came back, in this attempt or in one before, say the new."""
    path = earliest_hint_path(store.location)
    try:
        hint = decode_hint(store.file_io.read(path))
    except NotFoundError:
        return  # readers list
    if hint is None or hint > target.id:
        store.file_io.write(path, encode_hint(min(store.list_snapshot_ids())))
