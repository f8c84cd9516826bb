"""Search for snapshots that may have made deleted files live again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.format.snapshot import CommitKind
from penstock.table.bulk_files import map_parallel
from penstock.table.other_engines import WRITER_VERSION
from penstock.table.read.deltas import is_in_history

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


class ReaddedFiles:
    """Finds the snapshots whose deltas may add files that an older delta deleted.

    Newer versions of Paimon roll back by a new snapshot that adds the old files again; Penstock never does. Each
    snapshot is read only once, however often ``find`` is called.

    Source:
        docs/spec/commit.md section 7.2, "rollback as latest".
    """

    def __init__(self) -> None:
        self._suspects: dict[int, Snapshot] = {}
        self._from = 0
        self._until: Snapshot | None = None

    def find(self, store: MetadataStore, *, after_id: int, latest_id: int, threads: int) -> list[Snapshot]:
        """Return such snapshots with ``after_id`` < id <= ``latest_id``, ascending."""
        seen = self._until
        # After a rollback, the same ids may have other content.
        if seen is None or self._from > after_id or not is_in_history(store, seen):
            self._suspects.clear()
            self._from, seen = after_id, None
        first = after_id + 1 if seen is None else seen.id + 1
        ids = range(first, latest_id + 1)
        for snapshot in map_parallel(store.find_snapshot, ids, threads=threads):
            if snapshot is not None:
                seen = snapshot
                if snapshot.commit_kind is CommitKind.OVERWRITE and snapshot.writer_version != WRITER_VERSION:
                    self._suspects[snapshot.id] = snapshot
        self._until = seen
        self._suspects = {each: snapshot for each, snapshot in self._suspects.items() if each > after_id}
        return [self._suspects[each] for each in sorted(self._suspects) if each <= latest_id]
