"""Finding what one has committed already."""

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
    """What a search among the newest snapshots found.

    Attributes:
        last: the newest one of one's own; None when there is none.
        is_complete: whether a newer one than ``last`` surely does not exist; False where snapshots have expired that
            might have been one's own.
    """

    last: Snapshot | None
    is_complete: bool


def search_commits(
    store: MetadataStore, is_own: Callable[[Snapshot], bool], *, latest_id: int, after_id: int = 0
) -> OwnCommits:
    """Look for the newest snapshot of one's own among ids ``after_id`` < id <= ``latest_id``, from the top down.

    Reads one file for each snapshot that others made since, so give ``after_id`` where it is known.
    """
    for snapshot_id in range(latest_id, after_id, -1):
        try:
            snapshot = store.load_snapshot(snapshot_id)
        except NotFoundError:
            return OwnCommits(last=None, is_complete=False)
        if is_own(snapshot):
            return OwnCommits(last=snapshot, is_complete=True)
    return OwnCommits(last=None, is_complete=True)
