"""The changes of one commit: the request, its manifest entries and numbers, and whether they fit the base snapshot.

Sequence numbers are assigned at commit in input order. They are dense per partition and bucket and follow the order of
the commit messages. So a reader that sorts by them sees exactly the write order, also if tasks ran in parallel. (In
Paimon, each writer assigns numbers itself, and the ranges of concurrent writers overlap.)

Source:
    Paimon ``core:operation/commit/ManifestEntryChanges.java``, ``OverwriteChangesProvider.java``,
    ``ConflictDetection.java``, ``core:operation/AbstractFileStoreWrite.java``; docs/spec/commit.md sections 2.2, 2.3,
    3, 4.4 and 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.errors import CommitConflictError, InvalidOptionError
from penstock.format.manifest.entry import DataFileMeta, EntryNumbers, FileIdentity, FileKind, ManifestEntry
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from penstock.options import BucketOptions
from penstock.table.commit.vectors import check_vectors
from penstock.table.partition_scope import OverwriteScope, WholeTable, WrittenPartitions, partition_test
from penstock.table.read.live import (
    MAX_STEPS,
    load_bucket_numbers,
    load_deltas,
    load_live_entries,
    load_live_numbers,
    load_live_of_partitions,
    pruner_of_scope,
    snapshots_since,
)
from penstock.table.read.scan import check_index_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock.format.manifest.entry import BucketNumbers, DataFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.partition_scope import OverwriteScope
    from penstock.table.read.live import DeltaSource
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


def append_delta(
    messages: tuple[CommitMessage, ...],
    base: Snapshot | None,
    *,
    ref: TableRef,
    store: MetadataStore,
    index: BucketIndex,
) -> tuple[ManifestEntry, ...]:
    """Return the ADD entries of an APPEND, with final sequence numbers in bucketed tables.

    Raises:
        InvalidOptionError: a partition holds files of another bucket count.
    """
    partitions = frozenset(message.partition for message in messages if message.new_files)
    if _is_bucketed(messages):
        index.advance(
            base,
            partitions,
            source=store,
            load_live=lambda snapshot, wanted: load_live_numbers(store, ref.schema, snapshot, wanted),
            load_numbers=lambda snapshot, wanted: load_bucket_numbers(store, ref.schema, snapshot, wanted),
        )
        index.check_total_buckets(messages, table=ref.name)
        messages = index.number(messages)
    return _added(messages)


def overwrite_delta(
    messages: tuple[CommitMessage, ...],
    base: Snapshot | None,
    *,
    ref: TableRef,
    store: MetadataStore,
    scope: OverwriteScope,
) -> tuple[ManifestEntry, ...]:
    """Return DELETE entries of the live files in scope, followed by the ADD entries of the new files.

    Raises:
        InvalidOptionError: a new file is outside of the scope.
        UnsupportedFeatureError: the base snapshot has index files, which would have to be rewritten.
    """
    check_index_files(store, base)
    messages = tuple(message for message in messages if message.new_files)
    touched = frozenset(message.partition for message in messages)
    test = partition_test(scope, touched=touched, ref=ref)
    if not isinstance(scope, WrittenPartitions) and not all(map(test, touched)):
        raise InvalidOptionError(
            f"table {ref.name}: rows of the overwrite are outside of the partition that it names; filter them out, "
            "or overwrite without naming a partition"
        )
    pruner = pruner_of_scope(ref.schema, scope, touched)
    keep = None if isinstance(scope, WholeTable) else test
    live = load_live_entries(store, base, keep, pruner) if base is not None else {}
    # The replaced files are ignored, so the numbers start at 0 again (docs/spec/commit.md section 2.2).
    numbered = BucketIndex().number(messages) if _is_bucketed(messages) else messages
    added = _added(numbered)
    deleted = tuple(
        ManifestEntry(
            kind=FileKind.DELETE,
            partition=entry.partition,
            bucket=entry.bucket,
            total_buckets=entry.total_buckets,
            file=entry.file,
        )
        for entry in live.values()
    )
    delta = deleted + added
    check_conflicts(live, delta, table=ref.name)
    return delta


def compact_delta(
    messages: tuple[CommitMessage, ...], base: Snapshot | None, *, ref: TableRef, store: MetadataStore
) -> tuple[ManifestEntry, ...]:
    """Return DELETE entries of the files that the messages replace, and ADD entries of the replacements.

    Raises:
        CommitConflictError: a file to replace is not live any more, or the order of rows in a queue would change.
    """
    partitions = frozenset(message.partition for message in messages)
    live = load_live_of_partitions(store, ref.schema, base, partitions) if base is not None else {}
    # A file may have got another index since it was read.
    now = {entry.key: entry.file for entry in live.values()}
    delta: list[ManifestEntry] = []
    for message in messages:
        replaced = (now.get(key, file) for key, file in zip(message.replaced, message.compact_before, strict=True))
        delta += [
            *_entries(FileKind.DELETE, message, replaced),
            *_entries(FileKind.ADD, message, message.compact_after),
        ]
    check_conflicts(live, delta, table=ref.name)
    if find_displaced(ref, live.values(), messages):
        raise CommitConflictError(
            f"table {ref.name}: another commit has added a file that begins with the same sequence number as those "
            "that were merged; "
            "nothing was committed: plan again from the latest snapshot"
        )
    return tuple(delta)


def build_delta(
    request: CommitRequest, base: Snapshot | None, *, ref: TableRef, store: MetadataStore, index: BucketIndex
) -> tuple[ManifestEntry, ...]:
    """Return the manifest entries of a request for that base.

    Rows that a request adds in addition to the files that it replaces come last in their buckets.
    """
    if request.has_read and base != request.read:
        raise CommitConflictError(
            f"table {ref.name}: others committed after snapshot {request.read.id if request.read else 0}, which the "
            "change was computed from; nothing was committed: retry"
        )
    if request.kind is CommitKind.OVERWRITE and request.scope is not None:
        return overwrite_delta(request.messages, base, ref=ref, store=store, scope=request.scope)
    if not request.messages:
        return ()
    if request.kind in {CommitKind.COMPACT, CommitKind.OVERWRITE}:
        has_vectors = base is not None and base.index_manifest is not None
        if not request.has_read and (has_vectors or any(message.vectors for message in request.messages)):
            check_vectors(ref, store, base, request.messages)
        replaced = compact_delta(request.messages, base, ref=ref, store=store)
        return replaced + append_delta(request.messages, base, ref=ref, store=store, index=index)
    return append_delta(request.messages, base, ref=ref, store=store, index=index)


def _is_bucketed(messages: tuple[CommitMessage, ...]) -> bool:
    return any(message.total_buckets > 0 for message in messages)


def _added(messages: tuple[CommitMessage, ...]) -> tuple[ManifestEntry, ...]:
    return tuple(entry for message in messages for entry in _entries(FileKind.ADD, message, message.new_files))


def _entries(kind: FileKind, message: CommitMessage, files: Iterable[DataFileMeta]) -> list[ManifestEntry]:
    return [
        ManifestEntry(
            kind=kind,
            partition=message.partition,
            bucket=message.bucket,
            total_buckets=message.total_buckets,
            file=file,
        )
        for file in files
    ]


def find_displaced(
    ref: TableRef, live: Iterable[ManifestEntry], messages: Iterable[CommitMessage]
) -> frozenset[tuple[bytes, int]]:
    """Return partition and bucket of the merges that would change the order of rows in a queue that keeps it.

    Files with the same first sequence number are read in manifest order, and a new file comes last in the manifest. So
    a merge conflicts with a live file that has the same first number as the merged file and is not one of its inputs.
    Writers that do not give rows sequence numbers at commit can create such files.
    """
    merges = [message for message in messages if message.total_buckets > 0 and message.compact_before]
    inputs = {key for message in merges for key in message.replaced}
    firsts = {
        (message.partition, message.bucket, file.min_sequence_number)
        for message in merges
        for file in message.compact_after
    }
    return frozenset(
        (entry.partition, entry.bucket)
        for entry in (live if firsts and ref.parsed(BucketOptions).is_append_ordered else ())
        if (entry.partition, entry.bucket, entry.file.min_sequence_number) in firsts and entry.key not in inputs
    )


def check_conflicts(live: Mapping[FileIdentity, ManifestEntry], delta: Sequence[ManifestEntry], *, table: str) -> None:
    """Raise ``CommitConflictError`` unless every deleted file is live and every added file is new.

    Args:
        live: live entries of the base snapshot, at least in the partitions of ``delta``.
    """
    added: set[FileIdentity] = set()
    deleted: set[FileIdentity] = set()
    for entry in delta:
        seen = added if entry.kind is FileKind.ADD else deleted
        identity = entry.identity
        if identity in added or identity in deleted:
            raise CommitConflictError(
                f"table {table}: file {entry.file.file_name} is given twice in one commit; nothing was committed"
            )
        seen.add(identity)
    for identity in deleted:
        if identity not in live:
            raise CommitConflictError(
                f"table {table}: file {identity.file_name} was to be replaced, but another commit (a compaction, an "
                "overwrite, a dropped partition) has removed it; nothing was committed: plan again from the latest "
                "snapshot"
            )
    for identity in added:
        if identity in live:
            raise CommitConflictError(
                f"table {table}: file {identity.file_name} is in the table already; this commit was already made"
            )


LoadLive: TypeAlias = "Callable[[Snapshot, frozenset[bytes]], Iterable[ManifestEntry | EntryNumbers]]"
"""Loads the live entries of a snapshot in some partitions."""
LoadNumbers: TypeAlias = "Callable[[Snapshot, frozenset[bytes]], tuple[Iterable[BucketNumbers], frozenset[bytes]]]"
"""Loads the largest sequence numbers by bucket, and returns the partitions for which the entries are needed."""


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
        self,
        base: Snapshot | None,
        partitions: frozenset[bytes],
        *,
        source: DeltaSource,
        load_live: LoadLive,
        load_numbers: LoadNumbers,
    ) -> None:
        """Update the index so that it describes ``base`` and covers ``partitions``.

        Args:
            load_live: called for partitions of which the entries are needed: all if there is a ``watch``.
            load_numbers: called for the others.
        """
        if base is None:
            self._forget(None)
            self.partitions |= partitions
            return
        if not self._follow(base, source):
            self._forget(base)
        unknown = partitions - self.partitions
        if unknown:
            numbers, rest = load_numbers(base, unknown) if self.watch is None else ((), unknown)
            entries = tuple(load_live(base, rest)) if rest else ()
            # Added only after the load: if the load failed after that, the next commit would number from 0 again.
            self.partitions |= unknown
            for each in numbers:
                self._note_number(each.partition, each.bucket, each.total_buckets, each.added_max)
            self._note(entries)

    def check_total_buckets(self, messages: Sequence[CommitMessage], *, table: str) -> None:
        """Raise ``InvalidOptionError`` when a partition holds files of another bucket count."""
        for message in messages:
            known = self.total_buckets.get(message.partition)
            if known is not None and message.new_files and known != message.total_buckets:
                raise InvalidOptionError(
                    f"table {table}: a partition was written with {known} buckets, option 'bucket' is now "
                    f"{message.total_buckets}; rewrite it first, with table.maintenance.rescale() or an "
                    "overwrite, or set 'bucket' back"
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
            if entry.kind is FileKind.ADD:
                number = entry.file.max_sequence_number
                self._note_number(entry.partition, entry.bucket, entry.total_buckets, number)

    def _note_number(self, partition: bytes, bucket: int, total_buckets: int, number: int) -> None:
        key = (partition, bucket)
        self.next_numbers[key] = max(self.next_numbers.get(key, 0), number + 1)
        if total_buckets > 0:
            self.total_buckets[partition] = total_buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class LostManifests:
    """Manifests that are missing on storage and that the new snapshot omits.

    Attributes:
        names: file names.
        total_record_count: rows of the live files in the other manifests of the base.
    """

    names: frozenset[str]
    total_record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """Changes to commit as one snapshot.

    Attributes:
        commit_user: one per job; a streaming query keeps its commit user over restarts.
        commit_identifier: strictly increasing per commit user; batch commits share ``BATCH_COMMIT_IDENTIFIER``.
        messages: in input order; sequence numbers follow this order.
        scope: what an OVERWRITE replaces; None if the messages name the files to replace, and for other kinds.
        schema: the table's next schema, with which the new files were written; it is put right before the snapshot, and
            only if no other schema was put since the committer's. None if the schema does not change.
        watermark: event time in ms; a snapshot never has an earlier watermark than the one before it. A snapshot is
            also created if only the watermark changes.
        check_committed: first check whether this user has committed this identifier or a later one (a replayed batch).
        committed_after_id: that check reads only snapshots after this id; 0 for all snapshots.
        check_alone: for that check if snapshots have expired: raises if another process has taken over the job; reads
            storage. None if this cannot be checked.
        commit_empty: create a snapshot even if nothing changes.
        merges_manifests: only merge manifests, as many as possible; no snapshot if there is nothing to merge.
        read: the snapshot from which the changes were computed, if no other snapshot may come in between; ``has_read``
            is set then, and the snapshot is None if nothing was ever committed.
        restores: the files of ``compact_after`` are those of an earlier snapshot, with the schemas that they had.
        lost: manifests of the base that the new snapshot omits; only with ``read`` and without messages. No manifests
            are merged then.
    """

    commit_user: str
    kind: CommitKind
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    messages: tuple[CommitMessage, ...] = ()
    scope: OverwriteScope | None = None
    schema: TableSchema | None = None
    watermark: int | None = None
    properties: tuple[tuple[str, str], ...] = ()
    check_committed: bool = False
    committed_after_id: int = 0
    check_alone: Callable[[], None] | None = None
    commit_empty: bool = False
    merges_manifests: bool = False
    has_read: bool = False
    read: Snapshot | None = None
    restores: bool = False
    lost: LostManifests | None = None

    @property
    def adds_vectors(self) -> bool:
        """Whether files get deletion vectors."""
        return any(message.new_vectors for message in self.messages)

    @property
    def rewritten_files(self) -> Iterator[DataFileMeta]:
        """The new files that may have rows of existing files; one that only gets another index is not new."""
        if self.restores:
            return
        for message in self.messages:
            names = {file.file_name for file in message.compact_before}
            yield from (file for file in message.compact_after if file.file_name not in names)
            if self.has_read:
                yield from message.new_files
