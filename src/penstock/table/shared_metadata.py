"""Bytes of manifests, manifest lists and index files on object stores, shared by all tables of this process.

Names of such files contain a UUID, and their content never changes. So a file that this process has read or written
need not be requested again by another handle of the table. On other storages the operating system does this.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from penstock.clocks import elapsed_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.io.file_io import FileIO

_MAX_BYTES: Final = 67_108_864
# One large manifest must not evict hundreds of small ones.
_MAX_FILE_BYTES: Final = _MAX_BYTES // 8
# Separate from manifests, which a hundred Bloom filters would evict.
_MAX_INDEX_BYTES: Final = 33_554_432


# A process that only appends never learns which snapshots have expired, and that nobody needs their manifests any more.
_LONGEST_UNUSED_SECONDS: Final = 600.0


class SharedFiles:
    """Contents by storage and path; the least recently used are evicted, and all that nobody used for ten minutes.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, max_bytes: int, *, clock: Callable[[], float] = elapsed_seconds) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._size = 0
        self._contents: OrderedDict[tuple[FileIO, str], tuple[bytes, float]] = OrderedDict()

    def get(self, file_io: FileIO, path: str) -> bytes | None:
        """Return a content, if it is cached."""
        with self._lock:
            data, _ = self._contents.pop((file_io, path), (None, 0.0))
            if data is not None:
                self._contents[file_io, path] = data, self._clock()
            return data

    def put(self, file_io: FileIO, path: str, data: bytes) -> None:
        """Cache a content."""
        if len(data) > _MAX_FILE_BYTES:
            return
        with self._lock:
            now = self._clock()
            self._size += len(data) - len(self._contents.pop((file_io, path), (b"", now))[0])
            self._contents[file_io, path] = data, now
            while self._size > self._max_bytes or self._first_used() < now - _LONGEST_UNUSED_SECONDS:
                self._size -= len(self._contents.popitem(last=False)[1][0])

    def _first_used(self) -> float:
        return next(iter(self._contents.values()))[1]

    def clear(self) -> None:
        """Evict all."""
        with self._lock:
            self._contents.clear()
            self._size = 0


_FILES: Final = SharedFiles(_MAX_BYTES)
_INDEXES: Final = SharedFiles(_MAX_INDEX_BYTES)


def write_metadata(file_io: FileIO, path: str, data: bytes) -> None:
    """Write a manifest or a manifest list."""
    file_io.write(path, data)
    share_metadata(file_io, path, data)


def share_metadata(file_io: FileIO, path: str, data: bytes) -> None:
    """Cache the content of a manifest or list that was read or written."""
    if file_io.is_object_store:
        _FILES.put(file_io, path, data)


def shared_metadata(file_io: FileIO, path: str) -> bytes | None:
    """Return the content of a manifest or list, if it is cached."""
    return _FILES.get(file_io, path) if file_io.is_object_store else None


def read_shared(file_io: FileIO, path: str) -> bytes:
    """Read a manifest or list, and cache its content.

    Raises:
        StorageError: it cannot be read.
    """
    data = shared_metadata(file_io, path)
    if data is None:
        data = file_io.read(path)
        share_metadata(file_io, path, data)
    return data


def read_index_part(file_io: FileIO, path: str, start: int, length: int) -> bytes:
    """Read some bytes of an index file, and cache them; fewer at the end of the file.

    Raises:
        StorageError: they cannot be read.
        OSError: likewise, on some storages.
    """
    if not file_io.is_object_store:
        return file_io.read_range(path, start, length)
    part = f"{path}#{start}+{length}"
    data = _INDEXES.get(file_io, part)
    if data is None:
        data = file_io.read_range(path, start, length)
        _INDEXES.put(file_io, part, data)
    return data


def forget_shared_metadata() -> None:
    """Clear the cache, so that each file is read again."""
    _FILES.clear()
    _INDEXES.clear()
