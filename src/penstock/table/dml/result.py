"""What a change of rows did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a change replaces.

    Attributes:
        partition: such as ``dt=2026-01-01``; empty in a table without partitions.
        rows: in the file before.
    """

    partition: str
    bucket: int
    file_name: str
    rows: int
    deleted: int
    updated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    """What a DELETE, UPDATE or MERGE did; with ``is_dry_run`` what it would do.

    Attributes:
        snapshot: None where nothing was to change, and for a dry run.
        files: the files that are replaced.
        files_added: the new ones.
    """

    snapshot: Snapshot | None
    is_dry_run: bool
    files: tuple[ChangedFile, ...] = ()
    files_added: int = 0
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
