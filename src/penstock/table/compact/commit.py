"""Commit merged files into the table: what can still take its place does, the rest is dropped.

Losing to another compaction, an overwrite or a dropped partition is an ordinary event: what was merged is deleted, and
planned again from the latest snapshot if there is still anything to merge.

Source:
    docs/spec/compaction.md sections 2 and 4.4, docs/spec/commit.md section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import CommitConflictError
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from penstock.table.commit.conflict import find_displaced
from penstock.table.commit.discard import delete_new_files
from penstock.table.commit.request import CommitRequest
from penstock.table.read.live import load_live_of_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.compact.task import CompactTask
    from penstock.table.message import CommitMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What became of merges.

    Attributes:
        snapshot: None where nothing was left to commit.
        committed: took the place of their inputs.
        lost: an input was gone, or a file had come that was to be merged too; their new files are deleted.
    """

    snapshot: Snapshot | None
    committed: tuple[CommitMessage, ...] = ()
    lost: tuple[CommitMessage, ...] = ()


def commit_compacted(
    committer: TableCommitter,
    messages: Sequence[CommitMessage],
    *,
    commit_user: str,
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER,
    kind: CommitKind = CommitKind.COMPACT,
) -> Compacted:
    """Commit merges as one snapshot, without those that others have outrun.

    Args:
        kind: COMPACT, or OVERWRITE where rows change their order. Either replaces the files that a message names and
            no other.

    Raises:
        TableStoreError: as ``TableCommitter.commit``; unless the outcome is unknown, all new files are deleted.
    """
    pending = tuple(messages)
    lost: tuple[CommitMessage, ...] = ()
    while pending:
        request = CommitRequest(
            commit_user=commit_user,
            kind=kind,
            commit_identifier=commit_identifier,
            messages=pending,
        )
        try:
            snapshot = committer.commit(request)
        except CommitConflictError:
            alive, gone = _split_by_life(committer, pending)
            delete_new_files(committer.ref, gone)
            if not gone:  # the races for a snapshot id were lost, not the files
                delete_new_files(committer.ref, alive)
                raise
            pending, lost = alive, (*lost, *gone)
        except BaseException:
            if not committer.may_be_committed:
                delete_new_files(committer.ref, pending)
            raise
        else:
            return Compacted(snapshot=snapshot, committed=pending, lost=lost)
    return Compacted(snapshot=None, lost=lost)


def has_lost_race(committer: TableCommitter, task: CompactTask) -> bool:
    """Whether another commit has taken an input of a task out of the table."""
    live = _names(_load_live(committer, frozenset({task.partition})))
    return any((task.partition, task.bucket, file.file_name) not in live for file in task.files)


def _split_by_life(
    committer: TableCommitter, messages: tuple[CommitMessage, ...]
) -> tuple[tuple[CommitMessage, ...], tuple[CommitMessage, ...]]:
    """Return the messages that can still take the place of their inputs, and the others."""
    entries = _load_live(committer, frozenset(message.partition for message in messages))
    live, displaced = _names(entries), find_displaced(entries, messages)
    alive = tuple(
        message
        for message in messages
        if (message.partition, message.bucket) not in displaced
        and all((message.partition, message.bucket, file.file_name) in live for file in message.compact_before)
    )
    kept = set(map(id, alive))
    return alive, tuple(message for message in messages if id(message) not in kept)


def _load_live(committer: TableCommitter, partitions: frozenset[bytes]) -> tuple[ManifestEntry, ...]:
    """Load what is live now in some partitions."""
    latest = committer.store.load_latest_snapshot()
    if latest is None:
        return ()
    return tuple(load_live_of_partitions(committer.store, committer.ref.schema, latest, partitions).values())


def _names(entries: Iterable[ManifestEntry]) -> set[tuple[bytes, int, str]]:
    """Return partition, bucket and name of the files."""
    return {(entry.partition, entry.bucket, entry.file.file_name) for entry in entries}
