"""Conflict detection: whether changes still fit the snapshot on which they are to be committed.

Source:
    Paimon ``core:operation/commit/ConflictDetection.java``; docs/spec/commit.md section 5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CommitConflictError
from penstock.format.manifest.entry import FileIdentity, FileKind, ManifestEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.table.message import CommitMessage


def find_displaced(live: Iterable[ManifestEntry], messages: Iterable[CommitMessage]) -> frozenset[tuple[bytes, int]]:
    """Return partition and bucket of the merges that would change the order of rows in a queue.

    Files with the same first sequence number are read in manifest order, and a new file comes last in the manifest. So
    a merge conflicts with a live file that has the same first number as the merged file and is not one of its inputs.
    Writers that do not give rows sequence numbers at commit can create such files.
    """
    merges = [message for message in messages if message.total_buckets > 0 and message.compact_before]
    inputs = {file.file_name for message in merges for file in message.compact_before}
    firsts = {
        (message.partition, message.bucket, file.min_sequence_number)
        for message in merges
        for file in message.compact_after
    }
    return frozenset(
        (entry.partition, entry.bucket)
        for entry in (live if firsts else ())
        if (entry.partition, entry.bucket, entry.file.min_sequence_number) in firsts
        and entry.file.file_name not in inputs
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
