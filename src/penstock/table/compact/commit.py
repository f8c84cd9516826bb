"""Commit merged files; merges whose inputs were replaced meanwhile are discarded.

A merge may conflict with another compaction, an overwrite or a dropped partition. This is normal: the merged files are
deleted, and the next plan starts from the latest snapshot.

Source:
    docs/spec/compaction.md sections 2 and 4.4, docs/spec/commit.md section 5.1.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.errors import CommitConflictError, NotFoundError
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.delta import CommitRequest, find_displaced
from penstock.table.commit.vectors import find_outdated
from penstock.table.read.live import load_live_of_partitions
from penstock.table.read.scan import load_vector_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.compact.task import CompactTask, MergedFiles
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_GROUP_TASKS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The outcome of committing merges.

    Attributes:
        snapshot: the new snapshot; None if no merge could be committed.
        committed: merges that replaced their inputs.
        lost: merges that conflicted: an input was not live any more, rows of it were deleted meanwhile, or another live
            file began with the same sequence number as an output. Their new files are deleted.
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
    """Commit merges as one snapshot, without those that conflict with other commits.

    Args:
        kind: COMPACT, or OVERWRITE where rows change their order. Both replace only the files that a message names.
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


@dataclass(slots=True, kw_only=True)
class MergeGroup:
    """Finished merges that are committed together.

    With a snapshot for each merge, a table would get as many snapshots as it has partitions and buckets, each in a race
    with other commits; with one for all, a failure of the job would lose everything.

    Attributes:
        kind: as for ``commit_compacted``.
        seconds: after this long, a group is committed even if it is small.
    """

    commit_user: str
    seconds: float
    kind: CommitKind = CommitKind.COMPACT
    _merges: list[tuple[CompactTask, CommitMessage]] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def add(self, merged: MergedFiles) -> None:
        """Add a merge that has not failed."""
        if merged.message is not None:
            self._merges.append((merged.task, merged.message))

    @property
    def tasks(self) -> tuple[CompactTask, ...]:
        """The tasks of the merges that wait."""
        return tuple(task for task, _ in self._merges)

    @property
    def is_due(self) -> bool:
        """Whether the group is large enough, or old enough, to be committed."""
        return len(self._merges) >= _GROUP_TASKS or time.monotonic() - self._started >= self.seconds

    def commit(self, committer: TableCommitter) -> Compacted:
        """Commit the merges, if there are any, and begin the next group."""
        messages = self._take()
        if not messages:
            return Compacted(snapshot=None)
        return commit_compacted(committer, messages, commit_user=self.commit_user, kind=self.kind)

    def discard(self, ref: TableRef) -> None:
        """Delete the files of the merges."""
        delete_new_files(ref, self._take())

    def _take(self) -> tuple[CommitMessage, ...]:
        messages = tuple(message for _, message in self._merges)
        self._merges, self._started = [], time.monotonic()
        return messages


def is_lost(committer: TableCommitter, task: CompactTask, error: BaseException | None) -> bool:
    """Whether a merge failed because another commit had replaced its inputs, which have expired; other errors count."""
    return isinstance(error, NotFoundError) and has_lost_race(task, committer.ref, committer.store)


def has_lost_race(task: CompactTask, ref: TableRef, store: MetadataStore) -> bool:
    """Whether another commit has removed an input of a task from the table, or moved the deletion vector of one."""
    live = {entry.key for entry in _load_live(ref, store, frozenset({task.partition}))}
    latest = store.load_latest_snapshot()
    moved = latest is not None and task.with_vectors(load_vector_places(store, latest)).vectors != task.vectors
    return moved or not live.issuperset(task.keys)


def _split_by_life(
    committer: TableCommitter, messages: tuple[CommitMessage, ...]
) -> tuple[tuple[CommitMessage, ...], tuple[CommitMessage, ...]]:
    """Return the messages that can still replace their inputs, and the others."""
    entries = _load_live(committer.ref, committer.store, frozenset(message.partition for message in messages))
    live, displaced = {entry.key for entry in entries}, find_displaced(committer.ref, entries, messages)
    alive = tuple(
        message
        for message in messages
        if (message.partition, message.bucket) not in displaced and live.issuperset(message.replaced)
    )
    latest = committer.store.load_latest_snapshot()
    outdated = set(map(id, find_outdated(committer.ref, committer.store, latest, alive)))
    alive = tuple(message for message in alive if id(message) not in outdated)
    kept = set(map(id, alive))
    return alive, tuple(message for message in messages if id(message) not in kept)


def _load_live(ref: TableRef, store: MetadataStore, partitions: frozenset[bytes]) -> tuple[ManifestEntry, ...]:
    """Load the live entries of the latest snapshot in these partitions."""
    latest = store.load_latest_snapshot()
    if latest is None:
        return ()
    return tuple(load_live_of_partitions(store, ref.schema, latest, partitions).values())
