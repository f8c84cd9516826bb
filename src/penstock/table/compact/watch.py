"""Follows a table's small files from snapshot to snapshot and plans their merges.

Source:
    docs/spec/compaction.md sections 4.1 and 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.format.snapshot import CommitKind
from penstock.options import BucketOptions, CompactOptions
from penstock.table.compact.coordinator import SmallFiles
from penstock.table.compact.plan import check_compactable
from penstock.table.compact.queue_files import QueueFiles
from penstock.table.compact.task import CompactSizes
from penstock.table.read.deltas import load_deltas, snapshots_since
from penstock.table.read.live import load_live_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.table.compact.task import CompactTask
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(slots=True)
class CompactionWatch:
    """Plans merges while a table grows. For one thread; keeps only the small files in memory.

    It scans the whole table at the start, after a rollback, and when snapshots expired before it saw them. In between
    it reads the deltas only.

    Attributes:
        ref: replace it by ``use`` when the table's options have changed.
    """

    ref: TableRef
    store: MetadataStore
    _files: SmallFiles | QueueFiles = field(init=False)
    _seen: Snapshot | None = field(init=False, default=None)
    _commits: int = field(init=False, default=0)
    # Running tasks by the name of their first file, which is in no other task.
    _assigned: dict[str, CompactTask] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Start without any snapshot read."""
        self._files = self._new_files()

    def waiting(self) -> dict[bytes, list[DataFileMeta]]:
        """Return the small files that wait for a merge, by partition."""
        return self._files.waiting()

    def use(self, ref: TableRef) -> None:
        """Use the changed options of a table from the next round on."""
        if ref.schema.id != self.ref.schema.id:
            self.ref = ref
            self._seen = None

    def plan(self) -> tuple[CompactTask, ...]:
        """Read the snapshots committed since the last call, and plan.

        The caller must return every task by ``finish``.

        Raises:
            StorageError, FormatError: metadata cannot be read; call again.
            UnsupportedFeatureError: merges would change the meaning of the table's files.
        """
        latest = self.store.load_latest_snapshot()
        if latest is None:
            return ()
        check_compactable(self.ref, self.store, latest)
        if not self._follow(latest):
            self._files = self._new_files()
            self._files.take(load_live_entries(self.store, latest, lambda _: True).values())
            for task in self._assigned.values():
                self._files.hold(task)
            self._seen = latest
        tasks = tuple(self._cut((*self._files.plan(), *self._full_tasks())))
        self._assigned.update((task.files[0].file_name, task) for task in tasks)
        return tasks

    def finish(self, task: CompactTask, *, is_done: bool) -> None:
        """Take back a task.

        Args:
            is_done: the merge was committed; if not, its files are planned again where they are still live.
        """
        self._assigned.pop(task.files[0].file_name, None)
        self._files.finish(task, is_done=is_done)

    def _cut(self, tasks: Iterable[CompactTask]) -> Iterator[CompactTask]:
        """Yield as many tasks as one round may have, at least one; the others wait for the next round."""
        max_files = CompactSizes.of(self.ref).round_files
        files = 0
        for task in tasks:
            if files and files + len(task.files) > max_files:
                self.finish(task, is_done=False)
            else:
                files += len(task.files)
                yield task

    def _full_tasks(self) -> tuple[CompactTask, ...]:
        """Return the merges of ``full-compaction.delta-commits``, if enough commits were made since the last ones."""
        every = self.ref.parsed(CompactOptions).delta_commits
        if every is None or self._commits < every or not isinstance(self._files, QueueFiles):
            return ()
        self._commits = 0
        return self._files.plan_fully()

    def _follow(self, latest: Snapshot) -> bool:
        """Apply the snapshots since the last call; False when a full scan is necessary."""
        snapshots = None if self._seen is None else snapshots_since(self.store, self._seen, latest)
        deltas = None if snapshots is None else load_deltas(self.store, snapshots)
        if deltas is None:
            return False
        for snapshot, entries in deltas:
            self._files.take(entries)
            if entries and snapshot.commit_kind is CommitKind.APPEND:
                self._commits += 1
            self._seen = snapshot
        return True

    def _new_files(self) -> SmallFiles | QueueFiles:
        sizes = CompactSizes.of(self.ref)
        is_queue = self.ref.parsed(BucketOptions).bucket > 0
        return QueueFiles(sizes) if is_queue else SmallFiles(sizes)
