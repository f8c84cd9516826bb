"""Flush of new files to disk before their snapshot is created: after a power cut, every snapshot must be readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.table.locate import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef


def flush_new_files(ref: TableRef, messages: Iterable[CommitMessage], manifests: Sequence[str] = ()) -> None:
    """Flush the new data files of messages, from all writers, with manifests and all their directories, to disk.

    If the table's storage is not durable, this does nothing.

    Args:
        manifests: paths of manifests and lists.

    Raises:
        StorageError: the flush failed; no snapshot names the files yet.
    """
    if not ref.file_io.is_durable:
        return
    locator = FileLocator.of(ref)
    data = [
        f"{locator.directory(message.partition, message.bucket)}/{file.file_name}"
        for message in messages
        for file in (*message.new_files, *message.compact_after)
    ]
    ref.file_io.flush([*data, *manifests], root=ref.location)
