"""Whether a set of changes still fits the snapshot it is to be committed on.

Source:
    Paimon ``core:operation/commit/ConflictDetection.java``; spec/commit.md section 5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CommitConflictError
from penstock.spec.manifest import FileIdentity, FileKind, ManifestEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
