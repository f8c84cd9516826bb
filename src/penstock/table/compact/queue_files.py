"""Tracks the small files of a queue's buckets, and their write order, from scan to merge."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.format.manifest.entry import DataFileMeta, FileKind
from penstock.table.compact.queue import in_write_order, plan_bucket, plan_bucket_fully
from penstock.table.compact.task import CompactTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.format.manifest.entry import EntryNumbers, ManifestEntry
    from penstock.table.compact.task import CompactSizes
    from penstock.table.read.files import FileColumns

    Key = tuple[bytes, int, int]
    """Serialized partition, bucket, total buckets."""
    Plan = Callable[[Iterable[DataFileMeta], CompactSizes], tuple[tuple[DataFileMeta, ...], ...]]


@dataclass(slots=True)
class _Bucket:
    """The known files of one bucket.

    Attributes:
        small: small files by name, including those in ``in_task``.
        large_file_starts: first sequence numbers of files that are large enough, by name: no merge crosses them.
        in_task: names of the small files that a task already has.
    """

    small: dict[str, DataFileMeta] = field(default_factory=dict)
    large_file_starts: dict[str, int] = field(default_factory=dict)
    in_task: set[str] = field(default_factory=set)

    def runs(self) -> Iterator[list[DataFileMeta]]:
        """Yield runs of adjacent small files that no task has, in write order.

        A small file that begins with the same sequence number as a large file or one in a task is left out;
        ``blocks_of`` in ``queue.py`` says why.
        """
        large_starts = sorted(self.large_file_starts.values(), reverse=True)
        taken = {*large_starts, *(self.small[name].min_sequence_number for name in self.in_task)}
        run: list[DataFileMeta] = []
        for file in in_write_order(self.small.values()):
            is_taken = is_cut = file.min_sequence_number in taken
            while large_starts and large_starts[-1] <= file.min_sequence_number:
                large_starts.pop()
                is_cut = True
            if is_cut:
                yield run
                run = []
            if not is_taken:
                run.append(file)
        yield run


@dataclass(slots=True)
class QueueFiles:
    """Tracks the small files of all buckets, for as long as a stream runs.

    Of a file that is large enough, only the name and the first sequence number are kept.

    Attributes:
        sizes: may be replaced between rounds.
    """

    sizes: CompactSizes
    _buckets: dict[Key, _Bucket] = field(default_factory=lambda: defaultdict(_Bucket))
    _touched: set[Key] = field(default_factory=set)
    _touched_since_full: set[Key] = field(default_factory=set)

    def waiting(self) -> dict[bytes, list[DataFileMeta]]:
        """Return the small files that no task has, by partition."""
        found: dict[bytes, list[DataFileMeta]] = {}
        for (partition, _, _), bucket in self._buckets.items():
            files = [file for name, file in bucket.small.items() if name not in bucket.in_task]
            if files:
                found.setdefault(partition, []).extend(files)
        return found

    def take(self, entries: Iterable[ManifestEntry]) -> None:
        """Apply the entries that a snapshot changed."""
        for entry in entries:
            key = (entry.partition, entry.bucket, entry.total_buckets)
            bucket = self._buckets[key]
            name = entry.file.file_name
            if entry.kind is not FileKind.ADD:
                bucket.small.pop(name, None)
                bucket.large_file_starts.pop(name, None)
                bucket.in_task.discard(name)
                if not bucket.small and not bucket.large_file_starts:
                    del self._buckets[key]
            elif self.sizes.is_small(entry.file):
                bucket.small[name] = entry.file
                self._touched.add(key)
                self._touched_since_full.add(key)
            else:
                bucket.large_file_starts[name] = entry.file.min_sequence_number

    def start(self, files: FileColumns) -> None:
        """Take the live files of a snapshot; only small ones become objects."""
        are_small = self.sizes.are_small(files)
        self.take(files.where(are_small))
        large = files.where(~are_small)
        data, codes = large.partitions()
        columns = (codes, large.column("bucket"), large.column("total_buckets"), large.names())
        for code, bucket, total, name, first in zip(
            *(each.tolist() for each in (*columns, large.min_sequence_numbers())), strict=True
        ):
            self._buckets[data[code], bucket, total].large_file_starts[name.decode()] = first

    def plan(self) -> tuple[CompactTask, ...]:
        """Plan merges in the buckets that got small files since the previous round."""
        touched, self._touched = self._touched, set()
        return tuple(self._tasks(touched, plan_bucket))

    def plan_fully(self) -> tuple[CompactTask, ...]:
        """Plan full merges of the small files, in the buckets that got small files since the previous full plan.

        Files that are large enough are not rewritten.
        """
        touched, self._touched_since_full = self._touched_since_full, set()
        return tuple(self._tasks(touched, lambda files, sizes: plan_bucket_fully(files, sizes, force=False)))

    def hold(self, task: CompactTask) -> None:
        """Keep the files of a running task out of new plans, until ``finish``."""
        bucket = self._buckets.get((task.partition, task.bucket, task.total_buckets))
        if bucket is not None:
            bucket.in_task.update(file.file_name for file in task.files if file.file_name in bucket.small)

    def finish(self, task: CompactTask, *, is_done: bool) -> None:
        """Release the files of a task; unless the task was committed, they are planned again."""
        key = (task.partition, task.bucket, task.total_buckets)
        bucket = self._buckets.get(key)
        if bucket is None:
            return
        for file in task.files:
            bucket.in_task.discard(file.file_name)
            if is_done:
                bucket.small.pop(file.file_name, None)
        if not is_done:
            self._touched.add(key)
            self._touched_since_full.add(key)

    def _tasks(self, keys: Iterable[Key], plan: Plan) -> Iterator[CompactTask]:
        for partition, number, total in sorted(keys):
            bucket = self._buckets.get((partition, number, total))
            if bucket is None:
                continue
            for run in tuple(bucket.runs()):
                for files in plan(run, self.sizes):
                    bucket.in_task.update(file.file_name for file in files)
                    yield CompactTask(partition=partition, bucket=number, total_buckets=total, files=files)


@dataclass(slots=True)
class OpenTails:
    """The newest files of each bucket: those after the last one that is large enough. Watches a ``BucketIndex``."""

    sizes: CompactSizes
    _small: dict[tuple[bytes, int], dict[str, DataFileMeta]] = field(default_factory=dict)
    _large_file_starts: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget all files."""
        self._small.clear()
        self._large_file_starts.clear()

    def note(self, entry: ManifestEntry | EntryNumbers) -> None:
        """Note that a file was added or removed."""
        key, file = (entry.partition, entry.bucket), entry.file
        if entry.kind is not FileKind.ADD:
            self._small.get(key, {}).pop(file.file_name, None)
            return
        numbers = DataFileMeta(
            file_name=file.file_name,
            file_size=file.file_size,
            row_count=file.row_count,
            min_sequence_number=file.min_sequence_number,
            max_sequence_number=file.max_sequence_number,
            schema_id=0,
        )
        if self.sizes.is_small(numbers):
            self._small.setdefault(key, {})[file.file_name] = numbers
            return
        large_start = self._large_file_starts[key] = max(self._large_file_starts.get(key, -1), file.min_sequence_number)
        small = self._small.get(key, {})
        self._small[key] = {name: each for name, each in small.items() if each.min_sequence_number > large_start}

    def buckets_to_merge(self, keys: Iterable[tuple[bytes, int]]) -> frozenset[tuple[bytes, int]]:
        """Return which of some buckets are to be merged now: none, until at least half of them have a merge.

        Buckets get unequal numbers of rows, so their merges come due at different appends. If each were made at once,
        most appends to a table of many buckets would be followed by a snapshot of merges.
        """
        keys = frozenset(keys)
        max_files = 2 * self.sizes.min_files
        found = {key for key in keys if plan_bucket(self._small.get(key, {}).values(), self.sizes)}
        is_due = 2 * len(found) >= len(keys) or any(len(self._small[key]) > max_files for key in found)
        return frozenset(found) if is_due else frozenset()
