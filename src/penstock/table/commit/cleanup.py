"""The fate of a commit's data files: live, deleted, or kept if the outcome is unknown."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import StorageError, TableStoreError
from penstock.format.layout import FILE_INDEX_SUFFIX, all_file_paths
from penstock.io.failures import enough_memory
from penstock.options import LayoutOptions
from penstock.table.bulk_files import delete_empty_directories
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.commit.delta import CommitRequest
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


def delete_new_files(ref: TableRef, messages: Iterable[CommitMessage]) -> None:
    """Delete the files that the messages add; files that cannot be deleted remain as orphans."""
    locator = FileLocator.of(ref)
    for message in messages:
        for file in new_files_of(message):
            path = locator.path(message.partition, message.bucket, file)
            for each in all_file_paths(path, file):
                with suppress(StorageError):
                    ref.file_io.delete(each)


def new_files_of(message: CommitMessage) -> tuple[DataFileMeta, ...]:
    """Return the files that a message adds, merged ones too."""
    return (*message.new_files, *message.compact_after)


def staging_directory(ref: TableRef, job_id: str) -> str:
    """Return the directory for a job's files before they are moved into the table; readers ignore it."""
    return f"{ref.location}/.penstock-{job_id}"


def delete_staging(ref: TableRef, job_id: str) -> None:
    """Delete a job's staging directory; errors are ignored, as its files are not part of the table."""
    with suppress(StorageError):
        ref.file_io.delete(staging_directory(ref, job_id), recursive=True)


def delete_job_files(ref: TableRef, job_id: str, *, keep: Collection[str]) -> None:
    """Delete the data files whose names contain the job's id, except those named in ``keep``.

    This lists every bucket of the table, so use it only for jobs that failed.

    Args:
        job_id: from ``new_job_id``.
        keep: names of the files that were or will be committed.
    """
    layout = ref.parsed(LayoutOptions)
    root = f"{ref.location}/{layout.data_directory}" if layout.data_directory else ref.location
    for directory in _bucket_directories(ref.file_io, root, len(ref.schema.partition_keys)):
        _delete_in(ref, directory, (job_id,), keep)


def delete_job_files_near(ref: TableRef, job_ids: Iterable[str], messages: Iterable[CommitMessage]) -> None:
    """Delete the data files of jobs in the buckets that the messages write to; only these buckets are listed.

    Files that cannot be listed or deleted remain as orphans.

    Args:
        job_ids: of jobs that have ended and committed nothing.
    """
    locator = FileLocator.of(ref)
    with suppress(StorageError):
        for directory in {locator.directory(message.partition, message.bucket) for message in messages}:
            _delete_in(ref, directory, tuple(job_ids), keep=())


def _delete_in(ref: TableRef, directory: str, job_ids: tuple[str, ...], keep: Collection[str]) -> None:
    prefix = ref.parsed(LayoutOptions).data_file_prefix
    starts = tuple(f"{prefix}{job_id}" for job_id in job_ids)
    for status in ref.file_io.list(directory):
        if status.name.startswith(starts) and status.name.removesuffix(FILE_INDEX_SUFFIX) not in keep:
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


def commit_or_discard(committer: TableCommitter, request: CommitRequest) -> Snapshot | None:
    """Commit the request; delete its data files if they certainly did not become live.

    That is the case if the commit fails, unless its outcome is unknown or it was interrupted during the put of the
    snapshot; and if the request is a replay that wrote its rows a second time.

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
    """Delete the empty directories of the messages if the table was dropped or renamed while files were written.

    Otherwise they would block the name for a new table.
    """
    with suppress(StorageError):
        if ref.file_io.list(ref.layout.schema_directory):
            return
        locator = FileLocator.of(ref)
        directories = {locator.directory(message.partition, message.bucket) for message in messages}
        directories |= {ref.layout.manifest_directory, ref.layout.snapshot_directory}
        delete_empty_directories(ref.file_io, directories, root=ref.location.rpartition("/")[0])


def _discard_replay(committer: TableCommitter, request: CommitRequest, committed: Snapshot) -> None:
    if (committed.commit_identifier, committed.commit_kind) != (request.commit_identifier, request.kind):
        return  # another snapshot may contain these files
    try:
        named = {entry.file.file_name for entry in committer.store.load_delta(committed)}
    except TableStoreError:
        return  # the commit has succeeded and must not fail now; the files remain as orphans
    if named.isdisjoint(file.file_name for message in request.messages for file in new_files_of(message)):
        delete_new_files(committer.ref, request.messages)
