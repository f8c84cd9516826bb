"""The state that a stream's background compaction reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.ref import FileLocator

_PARTITIONS_TOLD: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFiles:
    """Small files of one partition that are in no merge yet.

    Attributes:
        partition: such as ``dt=2026-01-01``; empty where the table has no partitions.
    """

    partition: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionState:
    """The completed and pending work of a stream's background compaction.

    Attributes:
        is_active: this process holds the lease; if not, another process compacts the table, or none does.
        waiting_files: small files in no task yet.
        waiting_bytes: size of these files.
        waiting: the same for the 20 partitions with the most such files, most first.
        running_tasks: merges that run or wait for a free worker.
        committed_merges: merges committed so far.
        lost: merges discarded because another commit replaced their inputs, or won every race.
        files_in: files merged away so far, with ``bytes_in``.
        files_out: files that replaced them, with ``bytes_out``.
        last_error: text of the last error; None again when all work is done without one.
    """

    is_active: bool = False
    waiting_files: int = 0
    waiting_bytes: int = 0
    waiting: tuple[WaitingFiles, ...] = ()
    running_tasks: int = 0
    committed_merges: int = 0
    lost: int = 0
    files_in: int = 0
    bytes_in: int = 0
    files_out: int = 0
    bytes_out: int = 0
    last_error: str | None = None


def waiting_of(files: Mapping[bytes, list[DataFileMeta]], locator: FileLocator) -> tuple[WaitingFiles, ...]:
    """Return the waiting files of the partitions that have the most small files, most first.

    Args:
        files: waiting files by serialized partition.
    """
    most = sorted(files.items(), key=lambda item: len(item[1]), reverse=True)[:_PARTITIONS_TOLD]
    return tuple(
        WaitingFiles(
            partition=locator.partition_label(data), files=len(found), bytes=sum(file.file_size for file in found)
        )
        for data, found in most
        if found
    )
