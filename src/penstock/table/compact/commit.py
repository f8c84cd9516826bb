"""Commit merged files; merges whose inputs were replaced meanwhile are dropped.

A merge may conflict with another compaction, an overwrite or a dropped partition. This is normal: the merged files are
deleted, and the next plan starts from the latest snapshot.

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
    """The outcome of committing merges.

    Attributes:
        snapshot: the new snapshot; None where no merge could be committed.
        committed: merges that replaced their inputs.
        lost: merges that conflicted: an input was not live any more, or another live file began with the same sequence
            number as an output. Their new files are deleted.
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
    """Commit merges as one snapshot; merges that conflict with other commits are left out.

    Args:
        kind: COMPACT, or OVERWRITE where rows change their order. Both replace only the files that a message names.

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
            if not gone:  # all inputs are live: only the races for a snapshot id were lost
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
    """Whether another commit has removed an input of a task from the table."""
    live = _names(_load_live(committer, frozenset({task.partition})))
    return any((task.partition, task.bucket, file.file_name) not in live for file in task.files)


def _split_by_life(
    committer: TableCommitter, messages: tuple[CommitMessage, ...]
) -> tuple[tuple[CommitMessage, ...], tuple[CommitMessage, ...]]:
    """Return the messages that can still replace their inputs, and the others."""
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
    """Load the live entries of the latest snapshot in these partitions."""
    latest = committer.store.load_latest_snapshot()
    if latest is None:
        return ()
    return tuple(load_live_of_partitions(committer.store, committer.ref.schema, latest, partitions).values())


def _names(entries: Iterable[ManifestEntry]) -> set[tuple[bytes, int, str]]:
    """Return partition, bucket and file name of each entry."""
    return {(entry.partition, entry.bucket, entry.file.file_name) for entry in entries}
