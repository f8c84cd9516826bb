"""The changes of one commit as manifest entries, computed from the commit's base snapshot.

Source:
    Paimon ``core:operation/commit/ManifestEntryChanges.java``, ``OverwriteChangesProvider.java``;
    docs/spec/commit.md sections 3 and 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CommitConflictError, InvalidOptionError, UnsupportedFeatureError
from penstock.format.manifest.entry import DataFileMeta, FileKind, ManifestEntry
from penstock.format.snapshot import CommitKind
from penstock.table.commit.conflict import check_conflicts, find_displaced
from penstock.table.commit.sequence import BucketIndex
from penstock.table.partition_scope import OverwriteScope, WrittenPartitions, partition_test
from penstock.table.read.live import load_live_entries, load_live_numbers, load_live_of_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.request import CommitRequest
    from penstock.table.message import CommitMessage
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
    if base is not None and base.index_manifest is not None:
        raise UnsupportedFeatureError(
            f"table {ref.name}: snapshot {base.id} has index files, which an overwrite would have to rewrite; "
            "overwrite this table with an engine that maintains them"
        )
    messages = tuple(message for message in messages if message.new_files)
    touched = frozenset(message.partition for message in messages)
    test = partition_test(scope, touched=touched, ref=ref)
    if not isinstance(scope, WrittenPartitions) and not all(map(test, touched)):
        raise InvalidOptionError(
            f"table {ref.name}: rows of the overwrite are outside of the partition that it names; filter them out, "
            "or overwrite without naming a partition"
        )
    live = load_live_entries(store, base, test) if base is not None else {}
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
    delta = tuple(
        entry
        for message in messages
        for kind, files in ((FileKind.DELETE, message.compact_before), (FileKind.ADD, message.compact_after))
        for entry in _entries(kind, message, files)
    )
    partitions = frozenset(message.partition for message in messages)
    live = load_live_of_partitions(store, ref.schema, base, partitions) if base is not None else {}
    check_conflicts(live, delta, table=ref.name)
    if find_displaced(live.values(), messages):
        raise CommitConflictError(
            f"table {ref.name}: another commit has added a file that begins with the same sequence number as those "
            "that were merged; "
            "nothing was committed: plan again from the latest snapshot"
        )
    return delta


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
