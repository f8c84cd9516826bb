"""Deleting the data files of work that did not become a snapshot."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import StorageError, TableStoreError
from penstock.format.layout import extra_file_paths, manifest_directory, schema_directory, snapshot_directory
from penstock.options import LayoutOptions
from penstock.table.bulk_files import delete_empty_directories
from penstock.table.locate import FileLocator
from penstock.table.memory import enough_memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.commit.request import CommitRequest
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


def delete_new_files(ref: TableRef, messages: Iterable[CommitMessage]) -> None:
    """Delete the files that the messages add; what cannot be deleted stays an orphan."""
    locator = FileLocator.of(ref)
    for message in messages:
        for file in _new_files(message):
            path = locator.path(message.partition, message.bucket, file)
            for each in (path, *extra_file_paths(path, file)):
                with suppress(StorageError):
                    ref.file_io.delete(each)


def _new_files(message: CommitMessage) -> tuple[DataFileMeta, ...]:
    return (*message.new_files, *message.compact_after)


def commit_or_discard(committer: TableCommitter, request: CommitRequest) -> Snapshot | None:
    """Commit; delete the request's data files where they surely did not become live.

    That is when the commit fails, unless its outcome is unknown or an interrupt came while the snapshot was put; and
    when the request is a replay that wrote its rows once more.

    Raises:
        TableStoreError: as ``TableCommitter.commit``.
    """
    try:
        with enough_memory(committer.ref.name):
            snapshot = committer.commit(request)
    except BaseException:
        if not committer.may_be_committed:
            delete_new_files(committer.ref, request.messages)
            _delete_remains(committer.ref, request.messages)
        raise
    if snapshot is not None and not committer.may_be_committed:
        _discard_replay(committer, request, snapshot)
    return snapshot


def _delete_remains(ref: TableRef, messages: Iterable[CommitMessage]) -> None:
    """Where the table was dropped or renamed while its files were written, delete the empty directories they leave.

    They would block the name for a new table.
    """
    with suppress(StorageError):
        if ref.file_io.list(schema_directory(ref.location)):
            return
        locator = FileLocator.of(ref)
        directories = {locator.directory(message.partition, message.bucket) for message in messages}
        directories |= {manifest_directory(ref.location), snapshot_directory(ref.location)}
        delete_empty_directories(ref.file_io, directories, root=ref.location.rpartition("/")[0])


def _discard_replay(committer: TableCommitter, request: CommitRequest, landed: Snapshot) -> None:
    if (landed.commit_identifier, landed.commit_kind) != (request.commit_identifier, request.kind):
        return  # an older snapshot has the request's rows: these files, for all that we know here
    try:
        named = {entry.file.file_name for entry in committer.store.load_delta(landed)}
    except TableStoreError:
        return  # nothing fails a commit that has landed; the files stay orphans
    if named.isdisjoint(file.file_name for message in request.messages for file in _new_files(message)):
        delete_new_files(committer.ref, request.messages)


def staging_directory(ref: TableRef, job_id: str) -> str:
    """Return where a job's files lie before the table takes them over: no place where readers look."""
    return f"{ref.location}/.penstock-{job_id}"


def delete_staging(ref: TableRef, job_id: str) -> None:
    """Delete what a job has left there; what cannot be deleted is no file of the table."""
    with suppress(StorageError):
        ref.file_io.delete(staging_directory(ref, job_id), recursive=True)


def delete_job_files(ref: TableRef, job_id: str, *, keep: Collection[str]) -> None:
    """Delete the data files whose names bear the job's id, except those named in ``keep``.

    Lists every bucket of the table, so it is for jobs of which something went wrong.

    Args:
        job_id: as ``new_job_id`` made it.
        keep: names of the files that were committed, or will be.
    """
    layout = ref.parsed(LayoutOptions)
    root = f"{ref.location}/{layout.data_directory}" if layout.data_directory else ref.location
    for directory in _bucket_directories(ref.file_io, root, len(ref.schema.partition_keys)):
        _delete_in(ref, directory, (job_id,), keep)


def delete_job_files_beside(ref: TableRef, job_ids: Iterable[str], messages: Iterable[CommitMessage]) -> None:
    """Delete the data files of jobs that lie in the buckets that the messages write to; lists those alone.

    What cannot be listed or deleted stays an orphan.

    Args:
        job_ids: of jobs that are over and of which nothing was committed.
    """
    locator = FileLocator.of(ref)
    with suppress(StorageError):
        for directory in {locator.directory(message.partition, message.bucket) for message in messages}:
            _delete_in(ref, directory, tuple(job_ids), keep=())


def _delete_in(ref: TableRef, directory: str, job_ids: tuple[str, ...], keep: Collection[str]) -> None:
    prefix = ref.parsed(LayoutOptions).data_file_prefix
    starts = tuple(f"{prefix}{job_id}" for job_id in job_ids)
    for status in ref.file_io.list(directory):
        if status.name.startswith(starts) and status.name not in keep:
            with suppress(StorageError):
                ref.file_io.delete(status.path)


def _bucket_directories(file_io: FileIO, directory: str, depth: int) -> Iterator[str]:
    for status in file_io.list(directory):
        if not status.is_dir:
            continue
        if depth == 0 and status.name.startswith("bucket-"):
            yield status.path
        elif depth > 0 and "=" in status.name:
            yield from _bucket_directories(file_io, status.path, depth - 1)
