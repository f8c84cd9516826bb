"""What a storage does faster than the calls of ``FileIO`` say: asked of those that have a way, else done by the calls.

A request to an object store takes tens of milliseconds, whatever it asks for; so there many go at once, or in one.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError
from penstock.io.object_store.file_io import ObjectFileIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.io.file_io import FileIO

DELETED_AT_ONCE: Final = 1_000
"""Most files that ``delete_at_once`` takes."""

_REQUESTS_AT_ONCE: Final = 32
# Of data files, each of which takes memory.
_FILES_AT_ONCE: Final = 8


def has_file(file_io: FileIO, path: str) -> bool:
    """Whether a file is there, where no directory has such a name."""
    return file_io.has_file(path) if isinstance(file_io, ObjectFileIO) else file_io.exists(path)


def deletes_at_once(file_io: FileIO) -> bool:
    """Whether ``delete_at_once`` works."""
    return isinstance(file_io, ObjectFileIO)


def delete_at_once(file_io: FileIO, paths: Sequence[str]) -> None:
    """Delete files with one request; those that are gone already are none the worse.

    Raises:
        StorageError: some may still be there.
    """
    if not isinstance(file_io, ObjectFileIO):
        raise TypeError(f"{type(file_io).__name__} deletes one by one")
    file_io.delete_files(paths)


def has_directories(file_io: FileIO) -> bool:
    """Whether empty directories stay, and have to be deleted."""
    return not isinstance(file_io, ObjectFileIO)


def calls_at_once(file_io: FileIO) -> int:
    """How many calls make sense at the same time: one a core, or as many as wait for answers."""
    return _REQUESTS_AT_ONCE if isinstance(file_io, ObjectFileIO) else os.cpu_count() or 1


def files_at_once(file_io: FileIO) -> int:
    """How many data files make sense to be read at the same time."""
    return _FILES_AT_ONCE if isinstance(file_io, ObjectFileIO) else os.cpu_count() or 1


def read_at_once(file_io: FileIO, paths: Sequence[str]) -> dict[str, bytes]:
    """Read whole files at the same time, where a storage answers slowly; those that are not there are left out.

    Returns:
        Contents by path; nothing where one call after the other is as fast.

    Raises:
        StorageError: the storage failed.
    """
    if not isinstance(file_io, ObjectFileIO) or len(paths) < 2:
        return {}

    def read(path: str) -> bytes | None:
        try:
            return file_io.read(path)
        except NotFoundError:
            return None

    with ThreadPoolExecutor(min(_REQUESTS_AT_ONCE, len(paths)), thread_name_prefix="penstock-reads") as pool:
        contents = list(pool.map(read, paths))
    return {path: content for path, content in zip(paths, contents, strict=True) if content is not None}
