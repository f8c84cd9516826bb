"""The data files of one (partition, bucket) in one task: settings, names, rolling, and metadata for the commit.

Source:
    Paimon ``core:io/RollingFileWriterImpl.java``, ``RowDataFileWriter.java``, ``DataFilePathFactory.java``;
    docs/spec/commit.md sections 2.3 and 2.4, format.md 1.3 and 5.3.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock.clocks import local_wall_millis
from penstock.datafile.formats import FORMATS
from penstock.errors import NotFoundError
from penstock.format.layout import all_file_paths, compression_suffix, data_file_name
from penstock.format.manifest.entry import DataFileMeta, FileSource
from penstock.format.manifest.stats import NO_STATS, build_stats
from penstock.options import BucketOptions, FormatOptions, StatsOptions
from penstock.table.message import CommitMessage
from penstock.table.ref import FileLocator
from penstock.table.row_tracking import TRACKED, NumberRange, has_tracked
from penstock.table.write.assign import BucketRule
from penstock.table.write.file_index import FileIndexWriter, plan_indexes, with_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from penstock.datafile.data_format import EncodingChoices
    from penstock.datafile.formats import DataFileWriter, DataFormat, WrittenFile
    from penstock.format.manifest.stats import StatsMode
    from penstock.options import WriteOptions
    from penstock.table.ref import TableRef
    from penstock.table.write.assign import Group
    from penstock.table.write.file_index import IndexPlan

# A file's size is checked about once per 1/8 of the target size, and never more often than in the reference.
CHECKS_PER_FILE: Final = 8
LEAST_ROWS_PER_CHECK: Final = 1_000
MOST_ROWS_PER_CHECK: Final = 131_072


JOB_ID_CHARS: Final = 19


def new_job_id() -> str:
    """Return a new job id: the common prefix of the UUIDs of a job's writers, by which its files can be found."""
    return str(uuid.uuid4())[:JOB_ID_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """Settings that the files of all groups of a task share.

    Attributes:
        stats_modes: one per column.
        is_tracked: whether rows have the columns of row tracking.
        target_file_bytes: size at which a file is closed; a file may exceed it by the rows between two size checks.
        target_file_rows: exact number of rows at which a file is closed.
        total_buckets: -1 in unaware tables.
        indexes: of each file; None for none.
        clock_millis: returns creation times.
        job_id: prefix of the id in every file name.
        choices: by partition.
    """

    ref: TableRef
    locator: FileLocator
    data_format: DataFormat
    format: FormatOptions
    stats_modes: tuple[StatsMode, ...]
    stats_are_dense: bool
    is_tracked: bool
    target_file_bytes: int
    target_file_rows: int
    total_buckets: int
    job_id: str
    indexes: IndexPlan | None
    clock_millis: Callable[[], int] = local_wall_millis
    choices: dict[bytes, EncodingChoices] = field(default_factory=dict)


class GroupWriter:
    """Writes the rows of one group to data files, in order; at most one of them is open.

    A file is closed when it has reached the target size or row count, and by ``finish_file``.
    """

    __slots__ = (
        "_file",
        "_file_name",
        "_file_rows",
        "_finished",
        "_group",
        "_index",
        "_names",
        "_numbers",
        "_rows",
        "_target",
    )

    def __init__(self, target: FileTarget, group: Group) -> None:
        self._target = target
        self._group = group
        self._names = file_names(target)
        self._file: DataFileWriter | None = None
        self._file_name = ""
        self._file_rows = 0
        self._rows = 0
        self._numbers: NumberRange | None = None
        self._index: FileIndexWriter | None = None
        self._finished: list[DataFileMeta] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Append canonical rows. The batch is not copied; it stays in memory until its rows are flushed."""
        step = _rows_per_check(batch, self._target.target_file_bytes)
        offset = 0
        while offset < batch.num_rows:
            file = self._file or self._open()
            part = batch.slice(offset, min(step, self._target.target_file_rows - self._file_rows))
            file.write(part)
            if self._numbers is not None:
                self._numbers.add(part)
            if self._index is not None:
                self._index.write(part)
            offset += part.num_rows
            self._file_rows += part.num_rows
            is_long = self._file_rows >= self._target.target_file_rows
            if is_long or self._is_full(file):
                self.finish_file()

    def finish_file(self) -> None:
        """Close the open file, if there is one."""
        if self._file is None:
            return
        index, self._index = self._index, None
        # Before the file is closed: an error leaves it to ``abort``.
        data = None if index is None else index.encode()
        written = self._file.close()
        self._file = None
        meta = describe_file(self._target, self._file_name, written, first_row=self._rows)
        if self._numbers is not None:
            meta = self._numbers.describe(meta, self._target.ref.schema)
        if data is not None and self._target.indexes is not None:
            meta = with_index(meta, data, self._target.indexes)
        # Before the index file is written, so that an abort deletes the data file.
        self._finished.append(meta)
        if data is not None and meta.extra_files:
            self._target.ref.file_io.write(f"{self._directory()}/{meta.extra_files[0]}", data)
        self._rows += written.row_count
        self._file_rows = 0

    def take_message(self) -> CommitMessage:
        """Close the open file and return the message of all files written since the last message.

        Sequence numbers start at 0 in each message.
        """
        self.finish_file()
        message = CommitMessage(
            partition=self._group.partition,
            bucket=self._group.bucket,
            total_buckets=self._target.total_buckets,
            new_files=tuple(self._finished),
        )
        self._finished.clear()
        self._rows = 0
        return message

    def abort(self) -> None:
        """Delete every file that no message contains yet."""
        with ExitStack() as deletions:
            for meta in self._finished:
                path = f"{self._directory()}/{meta.file_name}"
                for each in all_file_paths(path, meta):
                    deletions.callback(self._target.ref.file_io.delete, each)
            if self._file is not None:
                # If opening failed after the storage had created the file, the file writer does not delete it.
                deletions.callback(self._target.ref.file_io.delete, f"{self._directory()}/{self._file_name}")
                deletions.callback(self._file.abort)
            self._finished.clear()
            self._file = None

    def _is_full(self, file: DataFileWriter) -> bool:
        """Whether a file has reached its target size, measured after its rows are settled, not estimated.

        Rows may compress a hundredfold. Files that were closed far too early would count as small, and compaction would
        merge them again and again into as many files of the same size.
        """
        if file.bytes_written < self._target.target_file_bytes:
            return False
        file.settle()
        return file.bytes_written >= self._target.target_file_bytes

    def _open(self) -> DataFileWriter:
        target = self._target
        self._numbers = NumberRange() if target.is_tracked else None
        self._index = None if target.indexes is None else FileIndexWriter(target.indexes)
        self._file_name = next(self._names)
        self._file = target.data_format.open_writer(
            target.ref.file_io,
            f"{self._directory()}/{self._file_name}",
            target.ref.schema.fields,
            target.format,
            target.choices.setdefault(self._group.partition, {}),
        )
        return self._file

    def _directory(self) -> str:
        return self._target.locator.directory(self._group.partition, self._group.bucket)


def describe_file(target: FileTarget, name: str, written: WrittenFile, *, first_row: int) -> DataFileMeta:
    """Return the metadata of a new file for the commit.

    Args:
        first_row: number of rows in the message's earlier files; the file's first sequence number until the commit.
    """
    schema = target.ref.schema
    stats, covered = build_stats(schema.fields, written.columns, target.stats_modes, dense=target.stats_are_dense)
    return DataFileMeta(
        file_name=name,
        file_size=written.file_size,
        row_count=written.row_count,
        min_sequence_number=first_row,
        max_sequence_number=first_row + written.row_count - 1,
        schema_id=schema.id,
        value_stats=stats,
        value_stats_cols=covered,
        creation_millis=target.clock_millis(),
        file_source=FileSource.APPEND,
    )


def file_names(target: FileTarget) -> Iterator[str]:
    """Yield names for the files of one writer, without end."""
    # The names have the form of the reference's names: a UUID and a number.
    writer_id = target.job_id + str(uuid.uuid4())[JOB_ID_CHARS:]
    suffix = (
        compression_suffix(target.format.compression) if target.locator.layout.suffix_includes_compression else None
    )
    number = 0
    while True:
        yield data_file_name(
            target.locator.layout.data_file_prefix, writer_id, number, target.format.file_format, suffix
        )
        number += 1


def _rows_per_check(batch: pa.RecordBatch, target_file_bytes: int) -> int:
    if batch.num_rows <= LEAST_ROWS_PER_CHECK:
        return LEAST_ROWS_PER_CHECK
    rows = target_file_bytes * batch.num_rows // (CHECKS_PER_FILE * max(batch.nbytes, 1))
    return min(max(rows, LEAST_ROWS_PER_CHECK), MOST_ROWS_PER_CHECK)


def plan_files(
    ref: TableRef, options: WriteOptions, *, job_id: str | None = None, clock_millis: Callable[[], int] | None = None
) -> FileTarget:
    """Return the settings that all data files of a task share.

    Args:
        options: source of the target sizes; everything else is taken from the options of ``ref``.
        job_id: from ``new_job_id``; None for a new one.
        clock_millis: returns creation times; None for the local wall clock.
    """
    format_options = ref.parsed(FormatOptions)
    stats = ref.parsed(StatsOptions)
    return FileTarget(
        ref=ref,
        locator=FileLocator.of(ref),
        data_format=FORMATS[format_options.file_format],
        format=format_options,
        stats_modes=tuple(
            NO_STATS if field in TRACKED else mode
            for field, mode in zip(ref.schema.fields, stats.modes(ref.schema.field_names), strict=True)
        ),
        stats_are_dense=stats.dense_store,
        is_tracked=has_tracked(ref.schema.fields),
        target_file_bytes=options.target_file_bytes,
        target_file_rows=options.target_file_rows,
        total_buckets=ref.parsed(BucketOptions).bucket,
        job_id=job_id or new_job_id(),
        indexes=plan_indexes(ref),
        clock_millis=clock_millis or local_wall_millis,
    )


def plan_buckets(ref: TableRef) -> BucketRule:
    """Return how the table assigns rows to buckets."""
    options = ref.parsed(BucketOptions)
    missing = [name for name in options.bucket_key if name not in ref.schema.field_names]
    if missing:
        raise NotFoundError(
            f"table {ref.name}: 'bucket-key' names '{missing[0]}', which is not one of its columns: "
            f"{', '.join(ref.schema.field_names)}"
        )
    key = options.bucket_key if options.bucket > 1 else ()
    return BucketRule(key=key, num_buckets=options.bucket, function=options.bucket_function)
