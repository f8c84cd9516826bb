"""Finds the partitions that have received no rows for a while.

A merged file has the creation time of its oldest input, so a merge does not make a partition appear newer. Rows that
were both written and merged within the idle time are found in the snapshots that wrote them, unless those have expired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clocks import local_wall_millis, to_wall_clock
from penstock.errors import NotFoundError
from penstock.format.manifest.entry import FileKind, FileSource
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


class IdleTest:
    """Tests partitions of one snapshot for being idle.

    Args:
        snapshot: the snapshot whose partitions are tested.
        idle_ms: a partition is idle when it got no rows for this long.
    """

    def __init__(self, store: MetadataStore, snapshot: Snapshot, idle_ms: int) -> None:
        self._store = store
        self._snapshot = snapshot
        self._newest_allowed = local_wall_millis() - idle_ms
        self._merged_since: frozenset[bytes] | None = None

    def is_idle(self, data: bytes, entries: Sequence[ManifestEntry]) -> bool:
        """Whether a partition got no rows within the idle time.

        Args:
            data: the partition's values as a serialized BinaryRow.
            entries: the partition's live files.
        """
        if _last_written(entries) > self._newest_allowed:
            return False
        if self._merged_since is None:
            self._merged_since = frozenset(entry.partition for entry in self._rewritten() if self._is_new(entry))
        return data not in self._merged_since

    def _is_new(self, entry: ManifestEntry) -> bool:
        return entry.kind is FileKind.ADD and (entry.file.creation_millis or 0) > self._newest_allowed

    def _rewritten(self) -> Iterator[ManifestEntry]:
        """Yield the entries of snapshots within the idle time that a later snapshot may have rewritten.

        Entries that no later snapshot rewrote are among the live files.
        """
        snapshot, is_rewritten = self._snapshot, False
        while to_wall_clock(snapshot.time_millis) > self._newest_allowed:
            try:
                if is_rewritten and snapshot.commit_kind is not CommitKind.COMPACT:
                    yield from self._store.load_delta(snapshot)
                is_rewritten = is_rewritten or snapshot.commit_kind is not CommitKind.APPEND
                snapshot = self._store.load_snapshot(snapshot.id - 1)
            except NotFoundError:
                return  # there is no earlier snapshot, or all earlier ones have expired


def _last_written(entries: Sequence[ManifestEntry]) -> int:
    """Return when the newest of the live files was written, by the writers' wall clock in ms.

    Appended files count; merged files only where there are no others.
    """
    appended = [
        entry.file.creation_millis or 0 for entry in entries if entry.file.file_source is not FileSource.COMPACT
    ]
    return max(appended or [entry.file.creation_millis or 0 for entry in entries])
