"""Whether a set of changes still fits the snapshot it is to be committed on.

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
    """Return partition and bucket of merges behind whose rows a live file of a queue would no longer stand.

    Files that begin with the same number are read in the order of the manifest, where a new one comes last; so none may
    be live beside a merged file that is not one of its parts. Writers that do not number their rows make such files.
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
    """Raise ``CommitConflictError`` unless every delete is of a live file and every add is new.

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
                f"table {table}: file {entry.file.file_name} stands twice in one commit; nothing was committed"
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
                f"table {table}: file {identity.file_name} is in the table already; this commit has landed before"
            )
