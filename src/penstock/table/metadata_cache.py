"""What a process remembers of manifests and of the lists that name them."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import ManifestEntry, ManifestFileMeta

# About 2 KB an entry: 100 MB for the metadata of a table with many files, if they are all read.
_MAX_ENTRIES: Final = 50_000
_MAX_METAS: Final = 10_000
# Two a snapshot. Commits, streams and compactors go on from the latest one, and need none that is much older.
_MAX_LISTS: Final = 128

_Item = TypeVar("_Item")


class ManifestCache:
    """Manifest lists and manifests by their names, which never change once written.

    A manifest that none of the lists used last names is forgotten with the last list that did: a writer that commits
    for days would otherwise keep the manifests of expired snapshots until it had its 50,000 entries.

    Args:
        max_lists: that are kept.
        max_entries: of manifests, in all.
    """

    def __init__(self, *, max_lists: int = _MAX_LISTS, max_entries: int = _MAX_ENTRIES) -> None:
        self._lists: _SizedCache[ManifestFileMeta] = _SizedCache(max_items=_MAX_METAS, max_names=max_lists)
        self._manifests: _SizedCache[ManifestEntry] = _SizedCache(max_items=max_entries)
        self._uses: Counter[str] = Counter()

    def get_list(self, name: str) -> Sequence[ManifestFileMeta] | None:
        """Return what a manifest list names, if it is remembered."""
        return self._lists.get(name)

    def put_list(self, name: str, metas: Sequence[ManifestFileMeta]) -> None:
        """Remember a manifest list."""
        if name in self._lists:
            return
        gone = self._lists.put(name, metas)
        if name in self._lists:
            self._uses.update(meta.file_name for meta in metas)
        for meta in (meta for dropped in gone for meta in dropped):
            self._uses[meta.file_name] -= 1
            if self._uses[meta.file_name] == 0:
                del self._uses[meta.file_name]
                self._manifests.discard(meta.file_name)

    def get_manifest(self, name: str) -> Sequence[ManifestEntry] | None:
        """Return the entries of a manifest, if they are remembered."""
        return self._manifests.get(name)

    def put_manifest(self, name: str, entries: Sequence[ManifestEntry]) -> None:
        """Remember the entries of a manifest."""
        self._manifests.put(name, entries)


class _SizedCache(Generic[_Item]):
    """Sequences by name; forgets the least recently used ones above a total number of items, or of names."""

    def __init__(self, *, max_items: int, max_names: int | None = None) -> None:
        self._max_items = max_items
        self._max_names = max_names
        self._items = 0
        self._by_name: OrderedDict[str, Sequence[_Item]] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Sequence[_Item] | None:
        found = self._by_name.get(name)
        if found is not None:
            self._by_name.move_to_end(name)
        return found

    def put(self, name: str, items: Sequence[_Item]) -> list[Sequence[_Item]]:
        """Remember a sequence, unless it alone is too much, and return those that are forgotten for it."""
        if len(items) > self._max_items or name in self._by_name:
            return []
        self._by_name[name] = items
        self._items += len(items)
        gone = []
        while self._items > self._max_items or (self._max_names is not None and len(self._by_name) > self._max_names):
            _, dropped = self._by_name.popitem(last=False)
            self._items -= len(dropped)
            gone.append(dropped)
        return gone

    def discard(self, name: str) -> None:
        self._items -= len(self._by_name.pop(name, ()))
