"""Search for a commit user's own earlier commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import NotFoundError

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

    This reads one file for each snapshot that other users made since, so pass ``after_id`` if it is known.
    """
    for snapshot_id in range(latest_id, after_id, -1):
        try:
            snapshot = store.load_snapshot(snapshot_id)
        except NotFoundError:
            return OwnCommits(last=None, is_complete=False)
        if is_own(snapshot):
            return OwnCommits(last=snapshot, is_complete=True)
    return OwnCommits(last=None, is_complete=True)
