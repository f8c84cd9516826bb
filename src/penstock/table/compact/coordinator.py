"""Plans, in rounds, which small files of a scalable table are merged.

Order does not matter here, so files are packed by size alone. When a partition gets no more small files, its remaining
ones are merged after some rounds even if they are few, and the partition is then evicted from memory.

Source:
    Paimon ``core:append/AppendCompactCoordinator.java``; docs/spec/compaction.md sections 4.1 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.format.manifest.entry import FileKind
from penstock.table.compact.task import CompactTask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta, FileKey, ManifestEntry
    from penstock.table.compact.task import CompactSizes
    from penstock.table.read.files import FileColumns

# Rounds in which a partition had no merge: after the first number its files are merged even if they are few, after the
# second the partition is evicted.
_MERGE_AGE: Final = 5
_FORGET_AGE: Final = 10
# A table without buckets has total_buckets -1; all its files are in bucket 0.
_UNAWARE: Final = -1


@dataclass(slots=True)
class _Candidates:
    files: dict[str, DataFileMeta] = field(default_factory=dict)
    age: int = 0


@dataclass(slots=True)
class SmallFiles:
    """Tracks the small files of every partition from scan to merge, for as long as a stream runs.

    Attributes:
        sizes: may be replaced between rounds.
    """

    sizes: CompactSizes
    _partitions: dict[bytes, _Candidates] = field(default_factory=dict)
    _busy: set[FileKey] = field(default_factory=set)
    _has_new: bool = False

    def waiting(self) -> dict[bytes, list[DataFileMeta]]:
        """Return the small files that wait for a merge, by partition."""
        return {data: list(candidates.files.values()) for data, candidates in self._partitions.items()}

    def take(self, entries: Iterable[ManifestEntry]) -> None:
        """Apply the entries that a snapshot changed.

        Files that other commits removed are forgotten; the reference keeps them, and its commit fails later.
        """
        for entry in entries:
            if entry.kind is not FileKind.ADD:
                self._busy.discard(entry.key)
                candidates = self._partitions.get(entry.partition)
                if candidates is not None:
                    candidates.files.pop(entry.file.file_name, None)
            elif self.sizes.is_small(entry.file):
                self._add(entry.partition, entry.file)

    def start(self, files: FileColumns) -> None:
        """Take the live files of a snapshot; only small ones become objects."""
        self.take(files.where(self.sizes.are_small(files)))

    def plan(self) -> tuple[CompactTask, ...]:
        """Plan one round; the files of its tasks are busy until ``finish``.

        If there is no new small file since the previous round, nothing is planned and no partition ages.
        """
        if not self._has_new:
            return ()
        self._has_new = False
        tasks = tuple(
            CompactTask(partition=partition, bucket=0, total_buckets=_UNAWARE, files=files)
            for partition, candidates in self._partitions.items()
            for files in self._plan_partition(candidates)
        )
        self._busy.update(key for task in tasks for key in task.keys)
        for partition, candidates in tuple(self._partitions.items()):
            if not candidates.files or candidates.age > _FORGET_AGE:
                del self._partitions[partition]
        return tasks

    def hold(self, task: CompactTask) -> None:
        """Keep the files of a running task out of new plans, until ``finish``."""
        candidates = self._partitions.get(task.partition, _Candidates()).files
        self._busy.update(key for key in task.keys if candidates.pop(key.file_name, None) is not None)

    def finish(self, task: CompactTask, *, is_done: bool) -> None:
        """Release the files of a task; unless the task was committed, those still live become candidates again."""
        for key, file in zip(task.keys, task.files, strict=True):
            if key in self._busy and not is_done:
                self._add(task.partition, file)
        self._busy.difference_update(task.keys)

    def _add(self, partition: bytes, file: DataFileMeta) -> None:
        candidates = self._partitions.setdefault(partition, _Candidates())
        candidates.files[file.file_name] = file
        candidates.age = 0
        self._has_new = True

    def _plan_partition(self, candidates: _Candidates) -> tuple[tuple[DataFileMeta, ...], ...]:
        bins = pack_small(tuple(candidates.files.values()), self.sizes)
        if not bins:
            candidates.age += 1
            if candidates.age > _MERGE_AGE and len(candidates.files) > 1:
                bins = (tuple(_by_size(candidates.files.values())),)
        for files in bins:
            for file in files:
                del candidates.files[file.file_name]
        return bins


def pack_small(files: Sequence[DataFileMeta], sizes: CompactSizes) -> tuple[tuple[DataFileMeta, ...], ...]:
    """Pack the small files of one partition into merges; files that fit in no merge stay as they are.

    A bin is full at twice the target size; each file counts its bytes plus ``open_file_cost_bytes``. The last bin is
    merged if it has at least ``min_files`` files. If ``max_files`` is set, the older rule holds: a bin is full with
    ``min_files`` files that together reach the target size, or with ``max_files`` files whatever their size.
    """
    bins = []
    current: list[DataFileMeta] = []
    weight = 0
    for file in _by_size(files):
        current.append(file)
        if sizes.max_files is None:
            weight += file.file_size + sizes.open_file_cost_bytes
            is_full = len(current) > 1 and weight >= 2 * sizes.target_bytes
        else:
            weight += file.file_size
            reaches_target = len(current) >= sizes.min_files and weight >= sizes.target_bytes
            is_full = reaches_target or len(current) >= sizes.max_files
        if is_full:
            bins.append(tuple(current))
            current, weight = [], 0
    if sizes.max_files is None and len(current) >= sizes.min_files:
        bins.append(tuple(current))
    return tuple(bins)


def _by_size(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    return sorted(files, key=lambda file: file.file_size)
