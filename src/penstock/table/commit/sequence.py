"""Sequence numbers, given out at commit in input order, and the bucket counts that partitions were written with.

Numbers are dense per partition and bucket and follow the order of the commit messages, so a reader that sorts by
them sees exactly the write order, whatever tasks ran at once. (Paimon's writers number on their own; the ranges
of concurrent writers overlap.)

Source:
    Paimon ``core:operation/AbstractFileStoreWrite.java``; docs/spec/commit.md sections 2.2 and 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, NotFoundError
from penstock.format.manifest.entry import EntryNumbers, FileKind, ManifestEntry
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage

# Beyond this many snapshots a fresh scan of the partitions costs less than walking the deltas.
MAX_DELTA_STEPS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySource:
    """Where the index reads.

    Attributes:
        load_live: live entries of a snapshot in some partitions.
        load_snapshot: by id; raises ``NotFoundError``.
        load_delta: what a snapshot changed.
    """

    load_live: Callable[[Snapshot, frozenset[bytes]], Iterable[ManifestEntry | EntryNumbers]]
    load_snapshot: Callable[[int], Snapshot]
    load_delta: Callable[[Snapshot], Sequence[ManifestEntry]]


@dataclass(slots=True)
class BucketIndex:
    """What the live files of known partitions say: the largest sequence number per bucket, the bucket counts.

    Kept by a committer between commits: a commit then reads only the deltas since its last one.

    Attributes:
        snapshot: the snapshot that the index describes; None before the first use.
        partitions: partitions that are known.
        next_numbers: (partition, bucket) to the next free sequence number; absent = 0.
        total_buckets: partition to its files' bucket count.
    """

    snapshot: Snapshot | None = None
    partitions: set[bytes] = field(default_factory=set)
    next_numbers: dict[tuple[bytes, int], int] = field(default_factory=dict)
    total_buckets: dict[bytes, int] = field(default_factory=dict)

    def advance(self, base: Snapshot | None, partitions: frozenset[bytes], source: EntrySource) -> None:
        """Make the index describe ``base`` and know ``partitions``."""
        if base is None:
            self._forget(None)
            self.partitions |= partitions
            return
        if not self._follow(base, source):
            self._forget(base)
        unknown = partitions - self.partitions
        if unknown:
            entries = tuple(source.load_live(base, unknown))
            # Known only now: were it so before a load that fails, the next commit would number from 0 again.
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

    def landed(self, base: Snapshot | None, snapshot: Snapshot, delta: Sequence[ManifestEntry]) -> None:
        """Take in a snapshot of our own, where that is all there is to know.

        Args:
            base: what the snapshot was built on. The index may describe an older one, since commits that need no
                numbers do not advance it; it then stays there, and the next ``advance`` reads all deltas in between.
        """
        if self.snapshot == base and snapshot.commit_kind is not CommitKind.OVERWRITE:
            self._note(delta)
            self.snapshot = snapshot

    def _follow(self, base: Snapshot, source: EntrySource) -> bool:
        """Take in the deltas up to ``base``; False when that cannot be done, or costs more than looking anew."""
        known = self.snapshot
        if known is None or not 0 <= base.id - known.id <= MAX_DELTA_STEPS:
            return False
        entries: list[ManifestEntry] = []
        try:
            # A rollback may have put another history under the same ids.
            if (base if base.id == known.id else source.load_snapshot(known.id)) != known:
                return False
            for snapshot_id in range(known.id + 1, base.id + 1):
                snapshot = base if snapshot_id == base.id else source.load_snapshot(snapshot_id)
                if snapshot.commit_kind is CommitKind.OVERWRITE:
                    return False
                entries.extend(source.load_delta(snapshot))
        except NotFoundError:  # expired meanwhile
            return False
        self._note(entries)
        self.snapshot = base
        return True

    def _forget(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self.partitions.clear()
        self.next_numbers.clear()
        self.total_buckets.clear()

    def _note(self, entries: Iterable[ManifestEntry | EntryNumbers]) -> None:
        for entry in entries:
            if entry.kind is not FileKind.ADD or entry.partition not in self.partitions:
                continue
            key = (entry.partition, entry.bucket)
            self.next_numbers[key] = max(self.next_numbers.get(key, 0), entry.file.max_sequence_number + 1)
            if entry.total_buckets > 0:
                self.total_buckets[entry.partition] = entry.total_buckets
