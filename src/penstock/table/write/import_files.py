"""Import of Parquet files that another writer has written: files are moved into the table, not rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datafile.parquet.footer import describe_parquet
from penstock.errors import SchemaMismatchError, StorageError
from penstock.format.row.row import encode_row
from penstock.options import WriteOptions
from penstock.table.commit.discard import delete_job_files
from penstock.table.message import CommitMessage
from penstock.table.write.plan import plan_files
from penstock.table.write.rolling import describe_file, file_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.datafile.data_format import WrittenFile
    from penstock.table.ref import TableRef

_BUCKET = 0


def import_parquet_files(
    ref: TableRef, paths: Iterable[str], *, job_id: str, row_count: int
) -> tuple[CommitMessage, ...]:
    """Move Parquet files into the table's one bucket, and return the messages to commit.

    Args:
        ref: a scalable table (``bucket`` = -1) without partitions; the files must have its columns, in order, with its
            physical types.
        paths: on the table's storage, in the order in which the rows shall be kept. Files without rows are not moved.
        job_id: prefix of the id in the new file names.
        row_count: total number of rows that the other writer reports for all files.

    Returns:
        One message, or none when there are no rows.

    Raises:
        StorageError: the files have more or fewer rows than the other writer reports; nothing was moved.
        SchemaMismatchError: a NOT NULL column holds null; nothing was moved.
        TableStoreError: reading or moving failed; no file is left in the bucket.
    """
    target = plan_files(ref, ref.parsed(WriteOptions), job_id=job_id)
    described = [(path, describe_parquet(ref.file_io, path, ref.schema.fields)) for path in paths]
    found = [(path, written) for path, written in described if written.row_count]
    _check_row_count(ref, sum(written.row_count for _, written in found), row_count)
    _check_not_null(ref, [written for _, written in found])
    if not found:
        return ()
    partition = encode_row((), ())
    directory = target.locator.directory(partition, _BUCKET)
    names = file_names(target)
    files = []
    rows = 0
    try:
        for path, written in found:
            name = next(names)
            ref.file_io.rename_file(path, f"{directory}/{name}")
            files.append(describe_file(target, name, written, first_row=rows))
            rows += written.row_count
    except BaseException:
        delete_job_files(ref, job_id, keep=())
        raise
    return (
        CommitMessage(partition=partition, bucket=_BUCKET, total_buckets=target.total_buckets, new_files=tuple(files)),
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
