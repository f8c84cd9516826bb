"""The snapshot file ``snapshot/snapshot-N`` as a value.

Source:
    Paimon ``api:Snapshot.java``; docs/spec/format.md section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

BATCH_COMMIT_IDENTIFIER: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CommitKind(StrEnum):
    """Why a snapshot exists; the value is the text on disk."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One version of the table.

    Attributes:
        id: N of the file's name; no gaps while it grows.
        schema_id: the latest schema when this was committed, not the writer's.
        base_manifest_list: everything before this snapshot; a name in ``manifest/``.
        delta_manifest_list: the changes of this snapshot.
        base_manifest_list_size: exact bytes; readers trust it.
        commit_identifier: strictly increasing per commit user; ``BATCH_COMMIT_IDENTIFIER`` for batch commits.
        time_millis: commit time, ms since 1970-01-01 UTC, by the committer's clock.
        watermark: event time in ms up to which input is complete; None when never set. Kept as stored here, so
            -2**63 (which means "none" too) survives being copied forward.
        properties: pairs, in file order.
        extra: keys of newer versions as (key, JSON text), so that copies of this file (tags) keep them.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int | None
    delta_record_count: int | None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    next_row_id: int | None = None
    uuid: str | None = None
    writer_version: str | None = None
    operation: str | None = None
    version: int = 3
    extra: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        """Show what people ask for, not where its manifests are."""
        parts = [f"id={self.id}", f"kind={self.commit_kind.value}", f"time={_time_text(self.time_millis)}"]
        parts += [f"rows={self.total_record_count}"] if self.total_record_count is not None else []
        parts += [f"change={self.delta_record_count:+}"] if self.delta_record_count is not None else []
        parts += [f"schema_id={self.schema_id}", f"user={self.commit_user!r}"]
        parts += [f"watermark={self.watermark}"] if self.watermark is not None else []
        return f"Snapshot({', '.join(parts)})"


def _time_text(millis: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
