"""Contents of metadata files, cached for all tables of this process.

Names of manifests, manifest lists and index files contain a UUID, and their content never changes. So what this process
has read or written is not read and decoded again by another handle, query or store of the table, or of a branch. If a
storage can say cheaply which version of a file it holds (``FileIO.file_version``), that is compared, so that files
that were deleted, damaged or restored are noticed; elsewhere the name is enough.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from penstock.clocks import elapsed_seconds
from penstock.errors import TableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from penstock.format.manifest.columns import ManifestColumns
    from penstock.format.manifest.entry import ManifestEntry, ManifestFileMeta
    from penstock.io.file_io import FileIO

# 840 bytes per entry of a file with eight columns, measured: manifests of 300,000 such files.
_MAX_BYTES: Final = 268_435_456
# Separate from manifests, which a hundred Bloom filters would evict.
_MAX_INDEX_BYTES: Final = 33_554_432
# A process that only appends never learns which snapshots have expired, and that nobody needs their manifests any more.
_MAX_UNUSED_SECONDS: Final = 600.0
_IN_USE_SECONDS: Final = 60.0
_ENTRY_BYTES: Final = 560
_META_BYTES: Final = 700

Content: TypeAlias = "bytes | tuple[Any, ...] | ManifestColumns"
"""The bytes of a file, or what they were decoded to."""


@dataclass(slots=True)
class _Cached:
    content: Content
    size: int
    version: Hashable
    used: float


class MetadataCache:
    """Contents by storage and path. Thread-safe.

    The least recently used are evicted when the limit is exceeded, and all that nobody has used for ten minutes. If all
    were used in the last minute, what is in use exceeds the limit: then those that were added last are evicted, so
    that a part of the manifests of a very large table stays for its next plan. The limit does not count the largest
    content: so a manifest is cached however large it is, and small ones with it.

    Args:
        max_bytes: limit of the estimated memory of all contents except the largest.
        clock: seconds that only grow.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES, *, clock: Callable[[], float] = elapsed_seconds) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._size = 0
        self._largest = 0
        self._files: OrderedDict[tuple[FileIO, str], _Cached] = OrderedDict()

    def __reduce__(self) -> tuple[Callable[[], MetadataCache], tuple[()]]:
        """Pickle as the cache of the process in which it is loaded."""
        return _of_process, ()

    def get(self, file_io: FileIO, path: str) -> Content | None:
        """Return a content, if it is cached and the file is the same."""
        key = _key(file_io, path)
        with self._lock:
            cached = self._files.get(key)
        if cached is None:
            return None
        try:
            is_same = file_io.file_version(path) == cached.version
        except TableStoreError:
            is_same = False
        with self._lock:
            if self._files.get(key) is not cached:
                pass  # another thread has replaced or evicted it
            elif is_same:
                cached.used = self._clock()
                self._files.move_to_end(key)
            else:
                self._discard(key)
        return cached.content if is_same else None

    def put(self, file_io: FileIO, path: str, content: Content, size: int) -> None:
        """Cache the content of a file that was read or written; ``size`` is the memory that it takes."""
        try:
            version = file_io.file_version(path)
        except TableStoreError:
            return
        key = _key(file_io, path)
        with self._lock:
            now = self._clock()
            self._discard(key)
            self._files[key] = _Cached(content, size, version, now)
            self._size += size
            self._largest = max(self._largest, size)
            oldest, cached = next(iter(self._files.items()))
            while cached.used < now - _MAX_UNUSED_SECONDS:
                self._discard(oldest)
                oldest, cached = next(iter(self._files.items()))
            while self._size - self._largest > self._max_bytes:
                self._discard(self._victim(key, now))

    def has_space(self, size: int) -> bool:
        """Whether so much memory may be added without eviction."""
        with self._lock:
            return self._size + size <= self._max_bytes

    def clear(self) -> None:
        """Evict all."""
        with self._lock:
            self._files.clear()
            self._size = self._largest = 0

    def _victim(self, new: tuple[FileIO, str], now: float) -> tuple[FileIO, str]:
        oldest, cached = next(iter(self._files.items()))
        if cached.used < now - _IN_USE_SECONDS:
            return oldest
        smaller = (each for each, other in reversed(self._files.items()) if each != new and other.size < self._largest)
        return next(smaller, next(each for each in reversed(self._files) if each != new))

    def _discard(self, key: tuple[FileIO, str]) -> None:
        cached = self._files.pop(key, None)
        if cached is None:
            return
        self._size -= cached.size
        if cached.size == self._largest:
            self._largest = max((each.size for each in self._files.values()), default=0)


def _key(file_io: FileIO, path: str) -> tuple[FileIO, str]:
    return file_io.relaxed(), path  # flushing or not, it is the same storage


METADATA: Final = MetadataCache()
"""Manifests and manifest lists of this process: decoded, or the bytes of those that were not decoded yet."""


def _of_process() -> MetadataCache:
    return METADATA


_INDEX_PARTS: Final = MetadataCache(_MAX_INDEX_BYTES)


def clear_metadata_cache() -> None:
    """Evict all, so that each file is read again."""
    METADATA.clear()
    _INDEX_PARTS.clear()


def read_index_part(file_io: FileIO, path: str, start: int, length: int) -> bytes:
    """Read some bytes of an index file, fewer at its end; cache them if a request is slow."""
    if not file_io.is_slow:
        return file_io.read_range(path, start, length)
    part = f"{path}#{start}+{length}"
    data = _INDEX_PARTS.get(file_io, part)
    if not isinstance(data, bytes):
        data = file_io.read_range(path, start, length)
        _INDEX_PARTS.put(file_io, part, data, len(data))
    return data


def entry_bytes(entries: Sequence[ManifestEntry]) -> int:
    """Return about how much memory entries take: what an entry always has, its statistics and its index."""
    size = len(entries) * _ENTRY_BYTES
    for entry in entries:
        stats = entry.file.value_stats
        size += len(stats.min_values) + len(stats.max_values) + 8 * len(stats.null_counts)
        size += len(entry.file.embedded_file_index or b"")
    return size


def meta_bytes(metas: Sequence[ManifestFileMeta]) -> int:
    """Return about how much memory the content of a manifest list takes."""
    stats = (meta.partition_stats for meta in metas)
    return len(metas) * _META_BYTES + sum(len(each.min_values) + len(each.max_values) for each in stats)
