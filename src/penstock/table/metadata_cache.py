"""Cache of manifests and manifest lists in one process."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.manifest.entry import ManifestEntry, ManifestFileMeta

# Measured for files with eight columns: 840 bytes per entry, so the entries of 100,000 such files are kept.
_MAX_ENTRY_BYTES: Final = 100_000_000
_ENTRY_BYTES: Final = 560
_MAX_METAS: Final = 10_000
# Two lists per snapshot. Commits, streams and compactions use the latest snapshots and need no much older ones.
_MAX_LISTS: Final = 128
_MAX_UNNAMED: Final = 256

_Item = TypeVar("_Item")


class ManifestCache:
    """Cache of manifest lists and manifests by name; such files never change once written.

    When a list is evicted, the manifests that no other cached list names are evicted with it. Otherwise a writer that
    commits for days would keep the manifests of expired snapshots until the cache was full. Of manifests
    that no cached list names, such as those of commits that lost a race, the last few are kept.

    Args:
        max_lists: number of manifest lists to keep.
        max_entry_bytes: memory for manifest entries, as ``entry_bytes`` estimates it.
    """

    def __init__(self, *, max_lists: int = _MAX_LISTS, max_entry_bytes: int = _MAX_ENTRY_BYTES) -> None:
        self._lists: _SizedCache[ManifestFileMeta] = _SizedCache(len, most=_MAX_METAS, max_names=max_lists)
        self._manifests: _SizedCache[ManifestEntry] = _SizedCache(entry_bytes, most=max_entry_bytes)
        self._uses: Counter[str] = Counter()
        self._unnamed: OrderedDict[str, None] = OrderedDict()

    def get_list(self, name: str) -> Sequence[ManifestFileMeta] | None:
        """Return the manifests that a manifest list names, if the list is cached."""
        return self._lists.get(name)

    def put_list(self, name: str, metas: Sequence[ManifestFileMeta]) -> None:
        """Cache a manifest list."""
        if name in self._lists:
            return
        gone = self._lists.put(name, metas)
        if name in self._lists:
            self._uses.update(meta.file_name for meta in metas)
            for meta in metas:
                self._unnamed.pop(meta.file_name, None)
        for meta in (meta for dropped in gone for meta in dropped):
            self._uses[meta.file_name] -= 1
            if self._uses[meta.file_name] == 0:
                del self._uses[meta.file_name]
                self._manifests.discard(meta.file_name)

    def get_manifest(self, name: str) -> Sequence[ManifestEntry] | None:
        """Return the entries of a manifest, if they are cached."""
        return self._manifests.get(name)

    def put_manifest(self, name: str, entries: Sequence[ManifestEntry]) -> None:
        """Cache the entries of a manifest."""
        self._manifests.put(name, entries)
        if not self._uses[name]:
            self._unnamed[name] = None
            if len(self._unnamed) > _MAX_UNNAMED:
                self._manifests.discard(self._unnamed.popitem(last=False)[0])


class _SizedCache(Generic[_Item]):
    """LRU cache of sequences by name, limited by their total size and, if set, by the number of names.

    Args:
        size_of: returns the size of a sequence.
        most: limit of the total size.
    """

    def __init__(self, size_of: Callable[[Sequence[_Item]], int], *, most: int, max_names: int | None = None) -> None:
        self._size_of = size_of
        self._most = most
        self._max_names = max_names
        self._size = 0
        self._by_name: OrderedDict[str, tuple[Sequence[_Item], int]] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Sequence[_Item] | None:
        found = self._by_name.get(name)
        if found is None:
            return None
        self._by_name.move_to_end(name)
        return found[0]

    def put(self, name: str, items: Sequence[_Item]) -> list[Sequence[_Item]]:
        """Cache a sequence, unless it exceeds the limit alone, and return the sequences that were evicted for it."""
        if name in self._by_name:
            return []
        size = self._size_of(items)
        if size > self._most:
            return []
        self._by_name[name] = items, size
        self._size += size
        gone = []
        while self._size > self._most or (self._max_names is not None and len(self._by_name) > self._max_names):
            _, (dropped, dropped_size) = self._by_name.popitem(last=False)
            self._size -= dropped_size
            gone.append(dropped)
        return gone

    def discard(self, name: str) -> None:
        self._size -= self._by_name.pop(name, ((), 0))[1]


def entry_bytes(entries: Sequence[ManifestEntry]) -> int:
    """Return about how much memory entries take: what an entry always has, its statistics and its index."""
    size = len(entries) * _ENTRY_BYTES
    for entry in entries:
        stats = entry.file.value_stats
        size += len(stats.min_values) + len(stats.max_values) + 8 * len(stats.null_counts)
        size += len(entry.file.embedded_file_index or b"")
    return size
