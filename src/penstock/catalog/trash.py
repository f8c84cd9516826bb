"""Dropping a directory so that nobody ever sees half of it.

The directory is renamed out of sight first, which storage does at once, and deleted from there. A crash in between
leaves files that no reader looks at; the next drop of the same warehouse deletes them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock.catalog.warehouse import trash_path
from penstock.errors import NotFoundError, StorageError

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO


def discard(file_io: FileIO, path: str, trash: str, name: str) -> None:
    """Rename a directory into the trash, then empty the trash.

    Raises:
        NotFoundError: it is not there, or somebody else was faster.
        StorageError: it could not be renamed, and is whole; or it is gone from its place but not yet deleted.
    """
    aside = trash_path(trash, name)
    if not file_io.rename_dir(path, aside):
        raise StorageError(f"cannot drop {path}: {aside} is taken", True)  # noqa: FBT003 - see StorageError
    file_io.delete(aside, recursive=True)
    _empty(file_io, trash)


def _empty(file_io: FileIO, trash: str) -> None:
    """Delete what earlier drops left; others may be at it too, so what fails is left for the next time."""
    for status in file_io.list(trash):
        with contextlib.suppress(StorageError, NotFoundError):
            file_io.delete(status.path, recursive=True)
    with contextlib.suppress(StorageError, NotFoundError):
        file_io.delete(trash)
