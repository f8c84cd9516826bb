"""Measures the pending work of compaction: the small files of each partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, NotFoundError, warn_damaged
from penstock.format.snapshot import CommitKind
from penstock.options import ClusteringOptions
from penstock.table.compact.cluster import plan_levels
from penstock.table.compact.plan import CompactStrategy, buckets_of, check_rewritable, picker, plan_merges
from penstock.table.compact.task import CompactSizes
from penstock.table.read.live import load_live_entries
from penstock.table.read.scan import load_vector_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.compact.task import CompactTask
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

# The search for the last compaction goes back this far; an older one counts as none.
_SNAPSHOTS_BACK: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDebt:
    """Small files of one partition.

    Attributes:
        data: the partition's values as a serialized BinaryRow.
        files: number of live files.
        small_files: files that are candidates for a merge, with ``small_bytes``.
        waiting_files: files that a full compaction, or with ``clustering.incremental`` one of the strategy ``minor``,
            would merge now, with ``waiting_bytes``.
        buckets: number of buckets with a live file.
        most_files: live files of the bucket that has the most.
        last_compaction: id of the newest unexpired COMPACT snapshot that merged files of the partition; None if none
            of the newest 1,000 snapshots did, or if a damaged one is newer.
    """

    data: bytes
    files: int
    small_files: int
    small_bytes: int
    waiting_files: int
    waiting_bytes: int
    buckets: int
    most_files: int
    last_compaction: int | None


def measure_debt(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot | None, *, with_history: bool = True
) -> tuple[PartitionDebt, ...]:
    """Measure the pending work of compaction; reads metadata only.

    Args:
        snapshot: the snapshot to measure; None for a table without one.
        with_history: also find the last compaction of each partition.
    """
    check_rewritable(ref)
    if snapshot is None:
        return ()
    if ref.parsed(ClusteringOptions).is_incremental:
        plan_tasks = plan_levels(ref, store, lambda _: False)
    else:
        plan_tasks = partial(plan_merges, ref, picker(ref, CompactStrategy.FULL), None)
    partitions: dict[bytes, list[ManifestEntry]] = {}
    for entry in load_live_entries(store, snapshot).values():
        partitions.setdefault(entry.partition, []).append(entry)
    vectors = load_vector_places(store, snapshot)
    compacted = _last_compactions(store, snapshot, frozenset(partitions)) if with_history else {}
    return tuple(
        _measure(ref, entries, plan_tasks(data, entries, vectors), compacted.get(data))
        for data, entries in partitions.items()
    )


def _measure(
    ref: TableRef,
    entries: Sequence[ManifestEntry],
    tasks: Sequence[CompactTask],
    last_compaction: int | None,
) -> PartitionDebt:
    sizes = CompactSizes.of(ref)
    buckets = [files for _, files in buckets_of(entries)]
    small = [file.file_size for files in buckets for file in files if sizes.is_small(file)]
    waiting = [file.file_size for task in tasks for file in task.files]
    return PartitionDebt(
        data=entries[0].partition,
        files=len(entries),
        small_files=len(small),
        small_bytes=sum(small),
        waiting_files=len(waiting),
        waiting_bytes=sum(waiting),
        buckets=len(buckets),
        most_files=max(map(len, buckets)),
        last_compaction=last_compaction,
    )


def _last_compactions(store: MetadataStore, snapshot: Snapshot, partitions: frozenset[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for snapshot_id in range(snapshot.id, max(0, snapshot.id - _SNAPSHOTS_BACK), -1):
        if len(found) == len(partitions):
            break
        try:
            each = store.load_snapshot(snapshot_id)
            entries = store.load_delta(each) if each.commit_kind is CommitKind.COMPACT else ()
            touched = {entry.partition for entry in entries}
        except NotFoundError:
            break  # this snapshot has expired, and so have all earlier ones
        except FormatError:
            if snapshot_id == snapshot.id:
                raise
            warn_damaged(store.name, [snapshot_id])
            break  # it may be the one
        for partition in touched & partitions:
            found.setdefault(partition, snapshot_id)
    return found
