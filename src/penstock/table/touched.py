"""Which partitions got rows by a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spec.manifest import FileKind
from penstock.spec.snapshot import CommitKind

if TYPE_CHECKING:
    from penstock.spec.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def load_touched_partitions(store: MetadataStore, snapshot: Snapshot) -> frozenset[bytes]:
    """Return the serialized partitions to which a snapshot added rows; a compaction adds none.

    Reads two small files or more, unless the store has cached them, as that of a committer has for its own snapshots.
    """
    if snapshot.commit_kind is CommitKind.COMPACT:
        return frozenset()
    return frozenset(entry.partition for entry in store.load_delta(snapshot) if entry.kind is FileKind.ADD)
