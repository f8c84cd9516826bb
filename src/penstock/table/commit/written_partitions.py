"""The partitions to which a commit added rows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def load_written_partitions(store: MetadataStore, snapshot: Snapshot) -> frozenset[bytes]:
    """Return the serialized partitions to which a snapshot added rows; compaction and sorting add none.

    This reads at least two small files, unless the store has cached them, as a committer's store has for its own
    snapshots.
    """
    if snapshot.commit_kind is CommitKind.COMPACT:
        return frozenset()
    added: defaultdict[bytes, list[DataFileMeta]] = defaultdict(list)
    removed: defaultdict[bytes, list[DataFileMeta]] = defaultdict(list)
    for entry in store.load_delta(snapshot):
        (added if entry.kind is FileKind.ADD else removed)[entry.partition].append(entry.file)
    return frozenset(
        partition for partition, files in added.items() if not _is_sorted_anew(files, removed.get(partition, ()))
    )


def _is_sorted_anew(files: Sequence[DataFileMeta], replaced: Sequence[DataFileMeta]) -> bool:
    """Whether files hold the rows of the files that they replace: same row count, creation time of the oldest."""
    if sum(file.row_count for file in files) != sum(file.row_count for file in replaced):
        return False
    ages = {file.creation_millis for file in files}
    return None not in ages and ages == {min((file.creation_millis or 0 for file in replaced), default=None)}
