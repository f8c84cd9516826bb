"""What a snapshot names is on the disk before the snapshot is: else a power cut leaves a table that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.io.settings import flush, is_durable
from penstock.table.locate import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


def flush_new_files(ref: TableRef, messages: Iterable[CommitMessage], manifests: Sequence[str] = ()) -> None:
    """Put the new data files of messages on the disk, whoever wrote them, with manifests and all directories.

    Where the table's storage does not wait for the disk, nothing is done.

    Args:
        manifests: paths of manifests and lists.

    Raises:
        StorageError: the storage could not; nothing names the files yet.
    """
    if not is_durable(ref.file_io):
        return
    locator = FileLocator.of(ref)
    data = [
        f"{locator.directory(message.partition, message.bucket)}/{file.file_name}"
        for message in messages
        for file in (*message.new_files, *message.compact_after)
    ]
    flush(ref.file_io, [*data, *manifests], root=ref.location)
