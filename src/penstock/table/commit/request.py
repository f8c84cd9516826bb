"""Request for one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.snapshot import Snapshot
    from penstock.table.message import CommitMessage
    from penstock.table.partition_scope import OverwriteScope


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
    commit_empty: bool = False
    merges_manifests: bool = False
    has_read: bool = False
    read: Snapshot | None = None
    restores: bool = False
    lost: LostManifests | None = None

    @property
    def rewritten_files(self) -> Iterator[DataFileMeta]:
        """The new files that may have rows of existing files."""
        if self.restores:
            return
        for message in self.messages:
            yield from message.compact_after
            if self.has_read:
                yield from message.new_files
