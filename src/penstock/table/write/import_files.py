"""Import of Parquet files of another writer: files are moved into the table, not rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datafile.parquet.footer import describe_parquet
from penstock.errors import SchemaMismatchError, StorageError
from penstock.format.row.row import encode_row
from penstock.options import WriteOptions
from penstock.table.commit.cleanup import delete_job_files
from penstock.table.message import CommitMessage
from penstock.table.write.plan import plan_files
from penstock.table.write.rolling import describe_file, file_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.datafile.data_format import WrittenFile
    from penstock.table.ref import TableRef
    from penstock.table.write.rolling import FileTarget

_BUCKET = 0


def import_parquet_files(
    ref: TableRef, paths: Iterable[str], *, job_id: str, row_count: int
) -> tuple[CommitMessage, ...] | None:
    """Move Parquet files into bucket 0 of their partitions, and return the messages to commit.

    Args:
        ref: a scalable table (``bucket`` = -1); the files must have its columns, in order, with its physical types. The
            partition of a file is determined from its statistics of the partition columns.
        paths: on the table's storage, in the order of the rows. Files without rows are not moved.
        job_id: prefix of the id in the new file names.
        row_count: total number of rows that the other writer reports for all files.

    Returns:
        One message for each partition; no messages if there are no rows. None if the statistics of a file do not show
        that all its rows belong to one partition; nothing was moved then.

    Raises:
        StorageError: the files have more or fewer rows than the other writer reports; nothing was moved.
        SchemaMismatchError: a NOT NULL column holds null; nothing was moved.
        TableStoreError: reading or moving failed; no file is left in the buckets.
    """
    target = plan_files(ref, ref.parsed(WriteOptions), job_id=job_id)
    described = [(path, describe_parquet(ref.file_io, path, ref.schema.fields)) for path in paths]
    found = [(path, written) for path, written in described if written.row_count]
    _check_row_count(ref, sum(written.row_count for _, written in found), row_count)
    _check_not_null(ref, [written for _, written in found])
    by_partition: dict[bytes, list[tuple[str, WrittenFile]]] = {}
    for path, written in found:
        partition = _partition_of(ref, written)
        if partition is None:
            return None
        by_partition.setdefault(partition, []).append((path, written))
    names = file_names(target)
    try:
        return tuple(_move(target, names, partition, files) for partition, files in by_partition.items())
    except BaseException:
        delete_job_files(ref, job_id, keep=())
        raise


def _partition_of(ref: TableRef, written: WrittenFile) -> bytes | None:
    """Return the partition of all rows of a file; None if the statistics do not show that there is only one."""
    places = {field.name: place for place, field in enumerate(ref.schema.fields)}
    values = []
    for field in ref.schema.partition_fields:
        stats = written.columns[places[field.name]]
        if stats is None or stats.null_count not in {0, written.row_count} or stats.min != stats.max:
            return None
        if stats.min is None and not stats.null_count:
            return None
        values.append(stats.min)
    return encode_row(values, [field.type for field in ref.schema.partition_fields])


def _move(
    target: FileTarget, names: Iterator[str], partition: bytes, files: Iterable[tuple[str, WrittenFile]]
) -> CommitMessage:
    directory = target.locator.directory(partition, _BUCKET)
    moved = []
    rows = 0
    for path, written in files:
        name = next(names)
        target.ref.file_io.rename_file(path, f"{directory}/{name}")
        moved.append(describe_file(target, name, written, first_row=rows))
        rows += written.row_count
    return CommitMessage(
        partition=partition, bucket=_BUCKET, total_buckets=target.total_buckets, new_files=tuple(moved)
    )


def _check_row_count(ref: TableRef, found: int, written: int) -> None:
    if found != written:
        raise StorageError(
            f"table '{ref.name}': {written} rows were written for this append, but the driver finds files with {found} "
            f"rows in {ref.location}, so nothing was committed; on a cluster, put the warehouse where the driver and "
            "all workers see it at the same path; on one machine, remove the settings that change how Spark commits "
            "the files of a job"
        )


def _check_not_null(ref: TableRef, files: Iterable[WrittenFile]) -> None:
    for written in files:
        for field, stats in zip(ref.schema.fields, written.columns, strict=True):
            if not field.type.nullable and stats is not None and stats.null_count:
                raise SchemaMismatchError(
                    f"table '{ref.name}': column '{field.name}' is NOT NULL, but {stats.null_count} rows of a task "
                    "have null; fill it or drop the rows before writing"
                )
