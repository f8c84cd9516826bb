"""The result of a row change, or of its dry run."""

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
    """The result of a DELETE, UPDATE or MERGE; with ``is_dry_run``, its expected result.

    Attributes:
        snapshot: None if there was nothing to change, and for a dry run.
        files: the files that are replaced.
        files_added: number of new files.
    """

    snapshot: Snapshot | None
    is_dry_run: bool
    files: tuple[ChangedFile, ...] = ()
    files_added: int = 0
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
