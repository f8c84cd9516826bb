"""Operations that some storages do faster than with single ``FileIO`` calls; other storages use the plain calls.

A request to an object store takes tens of milliseconds, whatever its size; so requests run in parallel or are batched.
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
"""Maximum number of files for one ``delete_at_once``."""

_REQUESTS_AT_ONCE: Final = 32
# For data files; each one that is being read takes memory.
_FILES_AT_ONCE: Final = 8


def has_file(file_io: FileIO, path: str) -> bool:
    """Whether a file exists; the caller knows that no directory has this name."""
    return file_io.has_file(path) if isinstance(file_io, ObjectFileIO) else file_io.exists(path)


def deletes_at_once(file_io: FileIO) -> bool:
    """Whether the storage supports ``delete_at_once``."""
    return isinstance(file_io, ObjectFileIO)


def delete_at_once(file_io: FileIO, paths: Sequence[str]) -> None:
    """Delete files with one request; missing files are ignored.

    Raises:
        StorageError: some files may not be deleted.
    """
    if not isinstance(file_io, ObjectFileIO):
        raise TypeError(f"{type(file_io).__name__} deletes one by one")
    file_io.delete_files(paths)


def has_directories(file_io: FileIO) -> bool:
    """Whether empty directories remain until they are deleted."""
    return not isinstance(file_io, ObjectFileIO)


def calls_at_once(file_io: FileIO) -> int:
    """Return the useful number of parallel calls: one per core; more for object stores, which answer slowly."""
    return _REQUESTS_AT_ONCE if isinstance(file_io, ObjectFileIO) else os.cpu_count() or 1


def files_at_once(file_io: FileIO) -> int:
    """Return the useful number of data files to read in parallel."""
    return _FILES_AT_ONCE if isinstance(file_io, ObjectFileIO) else os.cpu_count() or 1


def read_at_once(file_io: FileIO, paths: Sequence[str]) -> dict[str, bytes]:
    """Read whole files in parallel, if the storage is slow to answer; missing files are left out.

    Returns:
        Contents by path; empty if sequential reads are as fast.

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
