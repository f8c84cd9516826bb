"""Compare the stored files of a table with those that its snapshots and tags need, for tests of deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.format.layout import all_file_paths
from penstock.format.manifest.index_manifest import decode_index_files
from penstock.table.read.live import load_live_entries
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


def needed_files(ref: TableRef) -> set[str]:
    """Return the paths of all files that reads of any snapshot or tag need.

    Raises:
        TableStoreError: a snapshot, tag or manifest cannot be read.
    """
    store, locator = MetadataStore(ref), FileLocator.of(ref)
    needed: set[str] = set()
    for snapshot in _readable(store):
        names = {snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.index_manifest}
        names |= {meta.file_name for meta in store.load_manifests(snapshot)}
        needed |= {ref.layout.manifest_path(name) for name in names if name is not None}
        index = store.read_index_manifest(snapshot)
        if index is not None:
            needed |= {ref.layout.index_path(name) for name in decode_index_files(index, "")}
        if snapshot.statistics is not None:
            needed.add(ref.layout.statistics_path(snapshot.statistics))
        for entry in load_live_entries(store, snapshot).values():
            path = locator.path(entry.partition, entry.bucket, entry.file)
            needed.update(all_file_paths(path, entry.file))
    return needed


def stored_files(ref: TableRef) -> set[str]:
    """Return the paths of all stored data files, manifests, lists, index files and statistics, needed or not."""
    kinds = ("/manifest/", "/index/", "/statistics/", "/bucket-")
    start = len(ref.location)  # a bucket of an object store may have any name
    return {path for path in walk(ref.file_io, ref.location) if any(kind in path[start:] for kind in kinds)}


def walk(file_io: FileIO, directory: str) -> Iterator[str]:
    """Yield the paths of all files below a directory."""
    for status in file_io.list(directory):
        if status.is_dir:
            yield from walk(file_io, status.path)
        else:
            yield status.path


def _readable(store: MetadataStore) -> Iterator[Snapshot]:
    yield from store.snapshots_between()
    for name in store.list_tags():
        yield store.load_tag(name).snapshot
