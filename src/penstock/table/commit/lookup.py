"""Search for a commit user's own earlier commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.table.commit.announced import is_announced
from penstock.table.commit.put import is_there
from penstock.table.commit.rolling_back import is_rolling_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommits:
    """Result of a search for own commits among the newest snapshots.

    Attributes:
        last: the newest own snapshot; None when none was found.
        is_complete: whether there is certainly no newer own snapshot than ``last``; False if snapshots have expired
            that may have been own ones.
    """

    last: Snapshot | None
    is_complete: bool


def search_commits(
    store: MetadataStore, is_own: Callable[[Snapshot], bool], *, latest_id: int, after_id: int = 0
) -> OwnCommits:
    """Find the newest own snapshot with ``after_id`` < id <= ``latest_id``, from the newest down.

    This reads one file for each snapshot that other users made since, so pass ``after_id`` if it is known. Ids that a
    rollback during a commit has left without a snapshot are passed over.
    """
    newest: Snapshot | None = None
    has_gap = False
    snapshot_id = latest_id
    while snapshot_id > after_id:
        snapshot = store.find_snapshot(snapshot_id)
        if snapshot is None:
            below = _id_below_gap(store, snapshot_id)
            if below is None:
                return OwnCommits(last=None, is_complete=False)
            has_gap = True
            snapshot_id = below
            continue
        if is_own(snapshot):
            return OwnCommits(last=snapshot, is_complete=True)
        newest = newest or snapshot
        snapshot_id -= 1
    # A rollback that has come and gone may have removed own snapshots, and with them the latest one.
    is_sure = not has_gap or (newest is not None and newest.id == latest_id and is_there(store, newest))
    return OwnCommits(last=None, is_complete=is_sure)


def _id_below_gap(store: MetadataStore, snapshot_id: int) -> int | None:
    """Return the highest snapshot id below a missing one; None if that has expired or is being rolled back.

    Snapshots expire from the oldest on, so a lower one shows that this one did not, unless the storage deletes many
    files at once, in an open order; then the expiration was announced before.
    """
    below = max((each for each in store.list_snapshot_ids() if each < snapshot_id), default=None)
    if below is None or is_announced(store, snapshot_id) or is_rolling_back(store):
        return None
    return below
