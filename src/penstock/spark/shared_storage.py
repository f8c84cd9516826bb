"""Check that the driver and every machine that runs a task share the table's storage.

On a machine that does not mount the same storage, a local path names another directory. Files that a task writes there
are lost: rows would be missing, or the snapshot would name files that other machines cannot read. So before a task
writes, it compares the table that it sees with the one that the driver sees; and before the driver commits, it checks
that it sees every file of the tasks. The second check also detects a worker that has a copy of the table, which the
first check cannot distinguish from the table itself.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError, StorageError
from penstock.table.assumptions import load_identity
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

CURE: Final = (
    "put the warehouse where the driver and all workers see it at the same path, such as a mounted network file system "
    "or an object store, or run Spark with a local master"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageMark:
    """Identity of the table that the driver sees at a location; tasks receive it.

    Attributes:
        host: name of the driver's machine.
        identity: from ``load_identity``.
    """

    host: str
    identity: str

    def error_here(self, ref: TableRef) -> StorageError | None:
        """Return why this machine cannot write files for the driver's table; None if it sees the same table."""
        try:
            found = load_identity(ref)
        except NotFoundError:
            found = None
        if found == self.identity:
            return None
        seen = "there is no table" if found is None else "there is another table"
        return StorageError(
            f"table {ref.name}: the worker on machine '{socket.gethostname()}' does not share the table's storage: the "
            f"driver, on '{self.host}', has the table at {ref.location}, and on the worker {seen} at this path; "
            f"none of its files was committed; {CURE}"
        )


def mark_storage(ref: TableRef, *, is_staged: bool = False) -> StorageMark | None:
    """Return the mark that tasks must find at the table's location; None if storage is the same on every machine.

    Args:
        is_staged: the table may have no schema on storage yet, so there is no mark; ``check_files_arrived`` remains.
    """
    if is_staged or not ref.file_io.storage.is_local:
        return None
    return StorageMark(host=socket.gethostname(), identity=load_identity(ref))


def check_files_arrived(ref: TableRef, messages: Sequence[CommitMessage]) -> None:
    """Make sure that the driver sees all files that tasks have written."""
    if not ref.file_io.storage.is_local:
        return
    locator = FileLocator.of(ref)
    for message in messages:
        for file in (*message.new_files, *message.compact_after):
            path = locator.path(message.partition, message.bucket, file)
            if not ref.file_io.exists(path):
                delete_new_files(ref, messages)
                raise StorageError(
                    f"table {ref.name}: a task has written the data file {path}, but on the driver's machine "
                    f"('{socket.gethostname()}') there is no such file, so the worker does not share the table's "
                    f"storage; none of its files was committed; {CURE}"
                )
