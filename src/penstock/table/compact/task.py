"""What compaction merges, and by which sizes it decides."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from penstock.options import CompactOptions, ReadOptions, WriteOptions
from penstock.options.values import MAX_LONG

if TYPE_CHECKING:
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTask:
    """Files of one bucket to be replaced by their concatenation. Picklable.

    Attributes:
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        bucket: 0 in unaware tables.
        total_buckets: as the files' entries say; -1 for unaware.
        files: in the order of the rows to write, in a queue that of their sequence numbers; at least one.
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
class CompactSizes:
    """The numbers that decide what is merged.

    Attributes:
        target_bytes: size of the files to make.
        small_bytes: files that are smaller, and have fewer rows than ``small_rows``, are candidates.
        min_files: small files at which a merge starts.
        max_files: files at which a merge starts whatever their size, the rule of releases up to 1.0; None for
            today's rule.
        open_file_cost_bytes: what a file weighs beside its bytes.
        round_files: files that the merges planned in one round may have together.
        small_rows: of files that are closed by their rows.

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
        """Whether a file is a candidate: a merge would make a larger one of it and others."""
        return file.file_size < self.small_bytes and file.row_count < self.small_rows

    @staticmethod
    def of(ref: TableRef) -> CompactSizes:
        """Return those of a table's options."""
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
