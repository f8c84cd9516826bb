"""Tracks the creation times of a table's partitions from snapshot to snapshot.

A partition's creation time is the minimum creation time of its live files, so every process computes the same. A
compaction that keeps the creation times of its inputs does not change it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.format.manifest.entry import FileKind
from penstock.table.read.deltas import MAX_STEPS, load_deltas, snapshots_since
from penstock.table.read.live import load_live_entries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


class CreationTracker:
    """Holds the creation time of every partition as of one snapshot; advancing to a later one reads only the deltas.

    Keeps one number for each live file in memory. Not for several threads.
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._at: Snapshot | None = None
        self._times: dict[bytes, Counter[int]] = {}
        self._least: dict[bytes, int] = {}

    def advance(self, snapshot: Snapshot) -> None:
        """Advance the tracker to a snapshot. Raises as ``MetadataStore.load_manifest``."""
        if self._at == snapshot:
            return
        at, self._at = self._at, None  # cleared first: if a load fails, the next call must not use half of the deltas
        if at is None or not self._follow(at, snapshot):
            self._times.clear()
            self._least.clear()
            self._note(load_live_entries(self._store, snapshot, lambda _: True).values())
        self._at = snapshot

    def created_millis(self, partition: bytes) -> int:
        """Return the least creation time of the partition's live files, a wall clock in ms; 0 if it has no files."""
        least = self._least.get(partition)
        if least is None:
            least = self._least[partition] = min(self._times.get(partition, ()), default=0)
        return least

    def _follow(self, at: Snapshot, snapshot: Snapshot) -> bool:
        """Apply the deltas between two snapshots; False, with no change, if some are missing or there are too many."""
        snapshots = snapshots_since(self._store, at, snapshot, most=MAX_STEPS)
        deltas = None if snapshots is None else load_deltas(self._store, snapshots)
        if deltas is None:
            return False
        for _, entries in deltas:
            self._note(entries)
        return True

    def _note(self, entries: Iterable[ManifestEntry]) -> None:
        for entry in entries:
            times = self._times.setdefault(entry.partition, Counter())
            created = entry.file.creation_millis or 0
            self._least.pop(entry.partition, None)
            if entry.kind is FileKind.ADD:
                times[created] += 1
            elif times[created] > 1:
                times[created] -= 1
            else:
                del times[created]
