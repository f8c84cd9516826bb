"""Executes a merge: reads the files of one bucket in order and writes their rows to new files.

Source:
    Paimon ``core:operation/BaseAppendFileStoreWrite.java`` (``compactRewrite``); docs/spec/compaction.md section 2.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import FormatError, SchemaMismatchError
from penstock.format.manifest.entry import FileSource
from penstock.io.failures import enough_memory
from penstock.options import WriteOptions
from penstock.table.actions.rewriting import as_replacement, for_existing_rows
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.commit.put import flush_new_files
from penstock.table.compact.copy import copy_row_groups
from penstock.table.message import CommitMessage
from penstock.table.read.batches import DeletedRows, TableReader
from penstock.table.read.split import make_unfiltered_split
from penstock.table.row_tracking import has_ids, with_numbers
from penstock.table.store import MetadataStore
from penstock.table.write.assign import Group
from penstock.table.write.rolling import GroupWriter, plan_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.table.compact.task import CompactTask
    from penstock.table.ref import TableRef
    from penstock.table.write.rolling import FileTarget


def rewrite(task: CompactTask, ref: TableRef, *, job_id: str | None = None) -> CommitMessage:
    """Write the rows of a task's files to new files, without a commit; the old files are not deleted.

    Memory is bounded by a batch of rows and one row group, whatever the files' sizes; on object stores by that of the
    files that are read ahead.

    Args:
        ref: the new files have its schema, and older files are evolved to it. If a file has a newer schema, that one is
            used.
        job_id: from ``new_job_id``; part of the new files' names, so that they can be found.

    Returns:
        The message of a COMPACT commit: the task's files before, the new ones after.
    """
    store = MetadataStore(ref)
    stored = _at_schema_of(task, ref, store).schema
    ref = for_existing_rows(replace(ref, schema=stored), have_ids=any(map(has_ids, task.files)))
    target = plan_files(ref, ref.parsed(WriteOptions), job_id=job_id)
    with enough_memory(ref.name), ExitStack() as on_error:
        new_files = copy_row_groups(task, stored, store, target)
        if new_files is None:
            new_files = _write_rows(task, ref, store, target)
        message = CommitMessage(
            partition=task.partition, bucket=task.bucket, total_buckets=task.total_buckets, new_files=new_files
        )
        on_error.callback(delete_new_files, ref, [message])
        check_rows(task, new_files, ref)
        flush_new_files(ref, [message])
        on_error.pop_all()
    return CommitMessage(
        partition=task.partition,
        bucket=task.bucket,
        total_buckets=task.total_buckets,
        compact_before=task.files,
        compact_after=_as_outputs(task, as_replacement(ref, task.files, new_files)),
        vectors=task.vectors,
    )


def _write_rows(task: CompactTask, ref: TableRef, store: MetadataStore, target: FileTarget) -> tuple[DataFileMeta, ...]:
    """Read the rows of a task's files and write them to new files."""
    reader = TableReader(ref, store)
    split = replace(make_unfiltered_split(ref, task, task.files), vectors=task.vectors)
    writer = GroupWriter(target, Group(partition=task.partition, bucket=task.bucket))
    with ExitStack() as on_error:
        on_error.callback(writer.abort)
        try:
            for batch in reader.read_split(split):
                writer.write(batch)
            writer.finish_file()
        except SchemaMismatchError as error:
            if isinstance(error.__cause__, UnicodeDecodeError):
                raise FormatError(
                    f"table {ref.name}: one of the files {_names(task)} holds a text that is not UTF-8; nothing was "
                    "changed: find it with 'penstock fsck', and roll back to a snapshot without the damaged one"
                ) from error
            raise
        on_error.pop_all()
    return writer.take_message().new_files


def _at_schema_of(task: CompactTask, ref: TableRef, store: MetadataStore) -> TableRef:
    """Return the table at the newest schema of the task's files, if that is newer: an older one may lack columns."""
    newest = max(file.schema_id for file in task.files)
    return ref if newest <= ref.schema.id else replace(ref, schema=store.load_schema(newest))


def _names(task: CompactTask) -> str:
    return ", ".join(file.file_name for file in task.files)


def check_rows(task: CompactTask, new_files: Sequence[DataFileMeta], ref: TableRef) -> None:
    """Raise ``FormatError`` unless the new files have as many rows as the task's files, without deleted ones."""
    before = sum(file.row_count for file in task.files) - DeletedRows(ref).count(task.files, task.vectors)
    after = sum(file.row_count for file in new_files)
    if before != after:
        raise FormatError(
            f"table {ref.name}: the files {_names(task)} should hold {before} rows, but {after} were read; nothing was "
            "changed: look at them with 'penstock fsck', and roll back to a snapshot without the damaged one"
        )


def _as_outputs(task: CompactTask, outputs: Sequence[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    """Give the new files the sequence numbers of the old ones, unless their rows have numbers of their own."""
    first, last = _number_range(task.files)
    result = []
    number = first
    is_dense = _is_dense(task.files) and not task.vectors
    for output in outputs:
        # With several writers of other engines, ranges have gaps or overlap. Ascending numbers could exceed those of
        # the next file, so all outputs get one range; equal numbers keep manifest order.
        numbers = (number, number + output.row_count - 1) if is_dense else (first, last)
        result.append(with_numbers(replace(output, file_source=FileSource.COMPACT), *numbers))
        number += output.row_count
    return tuple(result)


def _number_range(files: Sequence[DataFileMeta]) -> tuple[int, int]:
    return files[0].min_sequence_number, max(file.max_sequence_number for file in files)


def _is_dense(files: Sequence[DataFileMeta]) -> bool:
    return all(file.max_sequence_number - file.min_sequence_number == file.row_count - 1 for file in files) and all(
        after.min_sequence_number == before.max_sequence_number + 1 for before, after in pairwise(files)
    )
