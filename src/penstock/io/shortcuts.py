"""Operations that some storages do faster than with single ``FileIO`` calls; other storages use the plain calls.

A request to an object store takes tens of milliseconds, whatever its size; so requests run in parallel or are batched.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import NotFoundError
from penstock.io.ahead import Ahead
from penstock.io.object_store.file_io import ObjectFileIO
from penstock.io.settings import storage_of_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.io.file_io import FileIO, FileStatus

DELETED_AT_ONCE: Final = 1_000
"""Maximum number of files for one ``delete_at_once``."""

_REQUESTS_AT_ONCE: Final = 64
# For data files; each one that is being read takes memory, so more of them are read at once if they are small.
_FILES_AT_ONCE: Final = 8
_SMALL_FILES_AT_ONCE: Final = 32
_FILE_BYTES_AT_ONCE: Final = 67_108_864


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
    return not _answers_slowly(file_io)


class Directories(Protocol):
    """Listings of directories: a ``FileIO``, or one listing of everything below a directory."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children of a directory, as ``FileIO.list``."""
        ...


class _ListedTree:
    def __init__(self, children: Mapping[str, Sequence[FileStatus]]) -> None:
        self._children = children

    def list(self, path: str) -> Sequence[FileStatus]:
        return self._children.get(path, ())


def list_once(file_io: FileIO, directory: str) -> Directories:
    """Return the directories below a directory, from one recursive listing where supported, else on demand."""
    return _ListedTree(file_io.list_all(directory)) if isinstance(file_io, ObjectFileIO) else file_io


@contextmanager
def requests_ahead(file_io: FileIO) -> Iterator[Ahead]:
    """Open a block in which this thread's requests may be sent before their results are needed, on object stores."""
    if isinstance(file_io, ObjectFileIO):
        with file_io.requests_ahead() as block:
            yield block
    else:
        yield Ahead()


def do_at_once(file_io: FileIO, calls: Sequence[Callable[[], None]]) -> None:
    """Make independent calls: in parallel on object stores, otherwise in the given order.

    Raises:
        Exception: the first error, in the order of the calls, after all calls have ended.
    """
    if not _answers_slowly(file_io) or len(calls) < 2:
        for call in calls:
            call()
        return
    with ThreadPoolExecutor(min(_REQUESTS_AT_ONCE, len(calls)), thread_name_prefix="penstock-calls") as pool:
        tasks = [pool.submit(call) for call in calls]
    for task in tasks:
        task.result()


def calls_at_once(file_io: FileIO) -> int:
    """Return the useful number of parallel calls: one per core; more for object stores, which answer slowly."""
    return _REQUESTS_AT_ONCE if _answers_slowly(file_io) else os.cpu_count() or 1


def files_at_once(file_io: FileIO, largest_bytes: int) -> int:
    """Return the useful number of data files to read in parallel.

    Args:
        largest_bytes: size of the largest of them.
    """
    if not _answers_slowly(file_io):
        return os.cpu_count() or 1
    return min(_SMALL_FILES_AT_ONCE, max(_FILES_AT_ONCE, _FILE_BYTES_AT_ONCE // max(largest_bytes, 1)))


def files_ahead(file_io: FileIO, largest_bytes: int) -> int:
    """Return how many data files a sequential reader opens at once: one, and more small ones on object stores.

    Args:
        largest_bytes: size of the largest of them.
    """
    if not _answers_slowly(file_io):
        return 1
    return min(_SMALL_FILES_AT_ONCE, max(2, _FILE_BYTES_AT_ONCE // max(largest_bytes, 1)))


def read_range(file_io: FileIO, path: str, start: int, length: int) -> bytes:
    """Return some bytes of a file, fewer at its end; one request on object stores.

    Raises:
        NotFoundError: the file does not exist.
        StorageError: it cannot be read.
        OSError: likewise, on some storages.
    """
    if isinstance(file_io, ObjectFileIO):
        return file_io.read_range(path, start, length)
    with file_io.open_input(path) as stream:
        stream.seek(start)
        return bytes(stream.read(length))


def read_at_once(file_io: FileIO, paths: Sequence[str]) -> dict[str, bytes]:
    """Read whole files in parallel, if the storage is slow to answer; missing files are left out.

    Returns:
        Contents by path; empty if sequential reads are as fast.

    Raises:
        StorageError: the storage failed.
    """
    if not _answers_slowly(file_io) or len(paths) < 2:
        return {}

    def read(path: str) -> bytes | None:
        try:
            return file_io.read(path)
        except NotFoundError:
            return None

    with ThreadPoolExecutor(min(_REQUESTS_AT_ONCE, len(paths)), thread_name_prefix="penstock-reads") as pool:
        contents = list(pool.map(read, paths))
    return {path: content for path, content in zip(paths, contents, strict=True) if content is not None}


def _answers_slowly(file_io: FileIO) -> bool:
    """Whether the files are on an object store, also those of a branch or of a table of a server."""
    return isinstance(storage_of_files(file_io), ObjectFileIO)
