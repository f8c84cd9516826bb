"""The snapshots that added files: entries of manifests do not have them, but the changes of each snapshot say so."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING

from penstock.errors import NotFoundError
from penstock.format.manifest.entry import FileKind
from penstock.table.read.travel import predecessors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import FileKey
    from penstock.format.snapshot import Snapshot
    from penstock.table.store import MetadataStore


def load_origins(store: MetadataStore, snapshot: Snapshot | None, keys: Iterable[FileKey]) -> dict[FileKey, Snapshot]:
    """Return for files of a snapshot the one that added each last; without files whose snapshot has expired.

    The changes of the snapshots are read once, from this one down, until all files are found.
    """
    found: dict[FileKey, Snapshot] = {}
    left = set(keys)
    history = iter(()) if snapshot is None else chain((snapshot,), predecessors(store, snapshot.id))
    while left and (some := tuple(islice(history, store.snapshots_at_once))):
        store.fetch_deltas(some)
        for each in some:
            # It may expire meanwhile.
            with suppress(NotFoundError):
                added = left.intersection(entry.key for entry in store.load_delta(each) if entry.kind is FileKind.ADD)
                found.update(dict.fromkeys(added, each))
                left -= added
    return found
