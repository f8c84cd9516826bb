"""Sequence numbers, assigned at commit in input order, and the bucket counts that partitions were written with.

Numbers are dense per partition and bucket and follow the order of the commit messages. So a reader that sorts by them
sees exactly the write order, also if tasks ran in parallel. (In Paimon, each writer assigns numbers itself, and the
ranges of concurrent writers overlap.)

Source:
    Paimon ``core:operation/AbstractFileStoreWrite.java``; docs/spec/commit.md sections 2.2 and 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.errors import InvalidOptionError
from penstock.format.manifest.entry import EntryNumbers, FileKind, ManifestEntry
from penstock.format.snapshot import CommitKind
from penstock.table.read.deltas import MAX_STEPS, load_deltas, snapshots_since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.read.deltas import DeltaSource

LoadLive: TypeAlias = "Callable[[Snapshot, frozenset[bytes]], Iterable[ManifestEntry | EntryNumbers]]"
"""Loads the live entries of a snapshot in some partitions."""


class FilesWatch(Protocol):
    """Follows the live files of the partitions that an index covers."""

    def forget(self) -> None:
        """Forget all files."""
        ...

    def note(self, entry: ManifestEntry | EntryNumbers) -> None:
        """Note that a file was added or removed."""
        ...


@dataclass(slots=True)
class BucketIndex:
    """Index of the live files of known partitions: next sequence number per bucket, bucket count per partition.

    A committer keeps it between commits, so that a commit reads only the deltas since the last one.

    Attributes:
        snapshot: the snapshot that the index describes; None before the first use.
        partitions: partitions that the index covers.
        next_numbers: (partition, bucket) to the next free sequence number; absent = 0.
        total_buckets: partition to its files' bucket count.
        watch: gets all that the index reads; None if nobody asks.
    """

    snapshot: Snapshot | None = None
    partitions: set[bytes] = field(default_factory=set)
    next_numbers: dict[tuple[bytes, int], int] = field(default_factory=dict)
    total_buckets: dict[bytes, int] = field(default_factory=dict)
    watch: FilesWatch | None = None

    def advance(
        self, base: Snapshot | None, partitions: frozenset[bytes], *, source: DeltaSource, load_live: LoadLive
    ) -> None:
        """Update the index so that it describes ``base`` and covers ``partitions``."""
        if base is None:
            self._forget(None)
            self.partitions |= partitions
            return
        if not self._follow(base, source):
            self._forget(base)
        unknown = partitions - self.partitions
        if unknown:
            entries = tuple(load_live(base, unknown))
            # Added only after the load: if the load failed after that, the next commit would number from 0 again.
            self.partitions |= unknown
            self._note(entries)

    def check_total_buckets(self, messages: Sequence[CommitMessage], *, table: str) -> None:
        """Raise ``InvalidOptionError`` when a partition holds files of another bucket count."""
        for message in messages:
            known = self.total_buckets.get(message.partition)
            if known is not None and message.new_files and known != message.total_buckets:
                raise InvalidOptionError(
                    f"table {table}: a partition was written with {known} buckets, option 'bucket' is now "
                    f"{message.total_buckets}; rewrite that partition with an overwrite first, or set 'bucket' back"
                )

    def number(self, messages: Sequence[CommitMessage]) -> tuple[CommitMessage, ...]:
        """Return the messages with final sequence numbers; the index itself does not change.

        Args:
            messages: in input order; the numbers of one bucket follow it.
        """
        numbers = dict(self.next_numbers)
        result = []
        for message in messages:
            key = (message.partition, message.bucket)
            files = []
            for file in message.new_files:
                first = numbers.get(key, 0)
                numbers[key] = first + file.row_count
                files.append(replace(file, min_sequence_number=first, max_sequence_number=numbers[key] - 1))
            result.append(replace(message, new_files=tuple(files)))
        return tuple(result)

    def note_committed(self, base: Snapshot | None, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> None:
        """Add the changes of our own new snapshot to the index, if the index describes its base.

        Args:
            base: the snapshot that ours was built on. The index may describe an older one, since commits that need no
                numbers do not advance it; then it is not changed, and the next ``advance`` reads all deltas in between.
        """
        if self.snapshot == base and snapshot.commit_kind is not CommitKind.OVERWRITE:
            self._note(delta)
            self.snapshot = snapshot

    def _follow(self, base: Snapshot, source: DeltaSource) -> bool:
        """Add the deltas up to ``base``; return False if that is not possible or costs more than a new scan."""
        if self.snapshot is None:
            return False
        snapshots = snapshots_since(source, self.snapshot, base, most=MAX_STEPS)
        if snapshots is None or any(snapshot.commit_kind is CommitKind.OVERWRITE for snapshot in snapshots):
            return False
        deltas = load_deltas(source, snapshots)
        if deltas is None:
            return False
        for _, entries in deltas:
            self._note(entries)
        self.snapshot = base
        return True

    def _forget(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self.partitions.clear()
        self.next_numbers.clear()
        self.total_buckets.clear()
        if self.watch is not None:
            self.watch.forget()

    def _note(self, entries: Iterable[ManifestEntry | EntryNumbers]) -> None:
        for entry in entries:
            if entry.partition not in self.partitions:
                continue
            if self.watch is not None:
                self.watch.note(entry)
            if entry.kind is not FileKind.ADD:
                continue
            key = (entry.partition, entry.bucket)
            self.next_numbers[key] = max(self.next_numbers.get(key, 0), entry.file.max_sequence_number + 1)
            if entry.total_buckets > 0:
                self.total_buckets[entry.partition] = entry.total_buckets
