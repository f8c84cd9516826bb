"""A compaction task, its result, the sizes that decide which files are merged, and the state that a stream reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

from penstock.format.manifest.entry import FileKey
from penstock.options import CompactOptions, ReadOptions, WriteOptions
from penstock.options.group import MAX_LONG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.errors import TableStoreError
    from penstock.format.avro.columns import Array
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.table.message import CommitMessage
    from penstock.table.read.files import FileColumns
    from penstock.table.ref import FileLocator, TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTask:
    """Files of one bucket to concatenate and replace. Picklable.

    Attributes:
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        bucket: 0 in unaware tables.
        total_buckets: as in the files' manifest entries; -1 for unaware.
        files: at least one, in the order in which their rows are written; in a queue this is the order of their
            sequence numbers.
        vectors: names of those with a deletion vector, whose rows are left out, and the vector.
        level: level of the new files; above 0 by incremental clustering only.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    vectors: tuple[tuple[str, VectorPlace], ...] = ()
    level: int = 0

    @property
    def keys(self) -> tuple[FileKey, ...]:
        """The keys of the files."""
        return tuple(FileKey(self.partition, self.bucket, file.file_name) for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(file.file_size for file in self.files)

    def with_vectors(self, places: Mapping[FileKey, VectorPlace]) -> CompactTask:
        """Return the task with the deletion vectors of its files among those of a snapshot."""
        found = tuple((key.file_name, places[key]) for key in self.keys if key in places)
        return self if found == self.vectors else replace(self, vectors=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFiles:
    """The result of one task.

    Attributes:
        message: None if the task failed with ``error``.
        seconds: duration of the rewrite.
    """

    task: CompactTask
    message: CommitMessage | None
    error: TableStoreError | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSizes:
    """The sizes and counts that decide which files are merged.

    Attributes:
        target_bytes: target size of the merged files.
        small_bytes: a file with fewer bytes than this, and fewer rows than ``small_rows``, is a candidate.
        min_files: number of small files that starts a merge.
        max_files: number of files that starts a merge whatever their size, the rule of releases up to 1.0; None for
            the current rule.
        open_file_cost_bytes: added to the size of each file when files are packed.
        round_files: most files that all merges of one round may read.
        small_rows: as ``small_bytes``, for tables whose files are closed at a number of rows.

    Source:
        docs/spec/compaction.md section 1.
    """

    target_bytes: int
    small_bytes: int
    min_files: int
    max_files: int | None
    open_file_cost_bytes: int
    round_files: int
    small_rows: int = MAX_LONG

    def is_small(self, file: DataFileMeta) -> bool:
        """Whether a file is a candidate for a merge."""
        return file.file_size < self.small_bytes and file.row_count < self.small_rows

    def are_small(self, files: FileColumns) -> Array:
        """Return the same for each of several files."""
        small: Array = (files.column("file_size") < self.small_bytes) & (files.column("row_count") < self.small_rows)
        return small

    @staticmethod
    def of(ref: TableRef) -> CompactSizes:
        """Return the sizes that a table's options set."""
        options = ref.parsed(CompactOptions)
        write = ref.parsed(WriteOptions)
        return CompactSizes(
            target_bytes=write.target_file_bytes,
            small_bytes=int(write.target_file_bytes * options.small_file_ratio),
            small_rows=ceil(write.target_file_rows * options.small_file_ratio),
            min_files=options.min_file_num,
            max_files=options.max_file_num,
            open_file_cost_bytes=ref.parsed(ReadOptions).split_open_file_cost_bytes,
            round_files=options.file_num_limit,
        )


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
