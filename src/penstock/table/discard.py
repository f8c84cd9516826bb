"""Deleting the data files of work that did not become a snapshot."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.errors import CommitUnknownError, StorageError, TableStoreError
from penstock.spec.layout import extra_file_paths
from penstock.table.locate import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.spec.snapshot import Snapshot
    from penstock.table.commit import TableCommitter
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.request import CommitRequest


def delete_new_files(ref: TableRef, messages: Iterable[CommitMessage]) -> None:
    """Delete the files that the messages add; what cannot be deleted stays an orphan."""
    locator = FileLocator.of(ref)
    for message in messages:
        for file in (*message.new_files, *message.compact_after):
            path = locator.path(message.partition, message.bucket, file)
            for each in (path, *extra_file_paths(path, file)):
                with suppress(StorageError):
                    ref.file_io.delete(each)


def commit_or_discard(committer: TableCommitter, request: CommitRequest) -> Snapshot | None:
    """Commit; when that fails for sure, delete the request's data files before raising.

    Raises:
        TableStoreError: as ``TableCommitter.commit``; after a ``CommitUnknownError`` the files stay, for they may be
            live.
    """
    try:
        return committer.commit(request)
    except CommitUnknownError:
        raise
    except TableStoreError:
        delete_new_files(committer.ref, request.messages)
        raise
