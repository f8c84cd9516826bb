"""What is to become one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind

if TYPE_CHECKING:
    from penstock.table.message import CommitMessage
    from penstock.table.partition_scope import OverwriteScope


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """What is to become one snapshot.

    Attributes:
        commit_user: one per job; a streaming query keeps its own over restarts.
        commit_identifier: strictly increasing per commit user; batch commits share ``BATCH_COMMIT_IDENTIFIER``.
        messages: in input order, which the sequence numbers follow.
        scope: what an OVERWRITE replaces; None where the messages name the files, and for other kinds.
        watermark: event time in ms; the snapshot never falls behind its predecessor's, and is made where nothing else
            changes but that.
        check_committed: first look whether this user has committed this identifier or a later one (a replayed batch).
        committed_after_id: that look need not go back to this snapshot, nor behind it; 0 for as far as there are any.
        commit_empty: make a snapshot even when nothing changes.
    """

    commit_user: str
    kind: CommitKind
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    messages: tuple[CommitMessage, ...] = ()
    scope: OverwriteScope | None = None
    watermark: int | None = None
    properties: tuple[tuple[str, str], ...] = ()
    check_committed: bool = False
    committed_after_id: int = 0
    commit_empty: bool = False
