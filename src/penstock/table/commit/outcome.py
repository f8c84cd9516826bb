"""A commit and the fate of its data files: live, deleted, or kept if the outcome is unknown."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import StorageError, TableStoreError
from penstock.table.bulk_files import delete_empty_directories
from penstock.table.commit.discard import delete_new_files, new_files_of
from penstock.table.locate import FileLocator
from penstock.table.memory import enough_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.commit.request import CommitRequest
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


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
