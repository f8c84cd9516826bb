"""The changes committed since a snapshot that was read before.

State that a process updates from snapshot to snapshot (file lists, sequence numbers, partitions) needs only the deltas
in between. It must be rebuilt after a rollback, when the same ids may have other content, and if snapshots in between
have expired.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import NotFoundError
from penstock.format.manifest.entry import FileKind
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


MAX_STEPS: Final = 256
"""Above this many snapshots, a scan of the table costs less than reading the deltas."""


class DeltaSource(Protocol):
    """The two reads of a ``MetadataStore`` that are needed."""

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Load one snapshot; None if it does not exist."""
        ...

    def load_delta(self, snapshot: Snapshot) -> Sequence[ManifestEntry]:
        """Load the entries of a snapshot's changes."""
        ...


def is_in_history(source: DeltaSource, seen: Snapshot) -> bool:
    """Whether a snapshot that was read before still exists: it has not expired, and was not rolled back."""
    return source.find_snapshot(seen.id) == seen


def snapshots_since(
    source: DeltaSource, seen: Snapshot, latest: Snapshot, *, most: int | None = None
) -> tuple[Snapshot, ...] | None:
    """Load the snapshots after ``seen`` up to ``latest``, ascending.

    Args:
        most: maximum number of snapshots to load.

    Returns:
        None where ``seen`` is not in the history of ``latest``, a snapshot in between has expired, or there are more
        than ``most``.
    """
    steps = latest.id - seen.id
    if steps < 0 or (most is not None and steps > most):
        return None
    if steps == 0:
        return () if seen == latest else None
    if not is_in_history(source, seen):
        return None
    found = []
    for snapshot_id in range(seen.id + 1, latest.id):
        snapshot = source.find_snapshot(snapshot_id)
        if snapshot is None:
            return None
        found.append(snapshot)
    return (*found, latest)


def load_deltas(
    source: DeltaSource, snapshots: Iterable[Snapshot]
) -> tuple[tuple[Snapshot, Sequence[ManifestEntry]], ...] | None:
    """Load the changes of each snapshot; None where one has expired meanwhile."""
    try:
        return tuple((snapshot, source.load_delta(snapshot)) for snapshot in snapshots)
    except NotFoundError:
        return None


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
