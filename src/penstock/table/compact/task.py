"""A compaction task, its result, and the sizes that decide which files are merged."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from penstock.options import CompactOptions, ReadOptions, WriteOptions
from penstock.options.group import MAX_LONG

if TYPE_CHECKING:
    from penstock.errors import TableStoreError
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTask:
    """Files of one bucket to concatenate and replace. Picklable.

    Attributes:
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        bucket: 0 in unaware tables.
        total_buckets: as in the files' manifest entries; -1 for unaware.
        files: at least one, in the order in which their rows are written; in a queue this is the order of their
            sequence numbers.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(file.file_size for file in self.files)


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
