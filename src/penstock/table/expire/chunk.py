"""The files to delete with a run of expired snapshots; they are found before anything is deleted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import NotFoundError
from penstock.table.expire.branches import BranchReaders, load_branch_readers
from penstock.table.expire.files import (
    FilesToDelete,
    NamedSnapshot,
    data_paths,
    find_deletions,
    find_metadata,
    spare_added,
    spare_read,
    spare_revived,
    spare_tagged,
    tags_between,
)
from penstock.table.expire.plan import Retainer, RetainerKind
from penstock.table.expire.readded import ReaddedFiles
from penstock.table.locate import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.tags.reader import TagReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A run of snapshots to delete.

    Attributes:
        end: id of the first snapshot that is kept.
        kept: that snapshot.
    """

    snapshot_ids: tuple[int, ...]
    end: int
    kept: Snapshot
    files: FilesToDelete


class ChunkFinder:
    """Finds chunks of one table. Not thread-safe."""

    def __init__(self, ref: TableRef, store: MetadataStore, tags: TagReader, *, threads: int) -> None:
        self._ref = ref
        self._store = store
        self._tags = tags
        self._threads = threads
        self._watch = ReaddedFiles()
        self._locator = FileLocator.of(ref)
        self._tags_seen: dict[int, NamedSnapshot] = {}
        self._branches_seen = BranchReaders(names=(), oldest=(), later=())

    def has_seen_all_readers(self, end: int) -> bool:
        """Whether tags and branches are unchanged since the last chunk, which ends there, was found."""
        branches = load_branch_readers(self._store, up_to=end)
        return branches == self._branches_seen and self._load_tags() == self._tags_seen

    def find(self, first: int, end: int, latest_id: int) -> Chunk | None:
        """Find the files to delete with snapshots ``first`` to ``end - 1``; None if ``end`` has expired itself."""
        # Load the first kept snapshot before all others: if it has expired, the other work is useless.
        kept = self._store.find_snapshot(end)
        if kept is None:
            return None
        expired = list(self._store.find_snapshots(range(first, end)))
        self._store.fetch_changes([*expired, kept])
        try:
            files = self._find_files(expired, kept, latest_id)
        except NotFoundError:
            if self._store.find_snapshot(end) is None:
                return None
            raise
        return Chunk(snapshot_ids=tuple(snapshot.id for snapshot in expired), end=end, kept=kept, files=files)

    def _find_files(self, expired: list[Snapshot], kept: Snapshot, latest_id: int) -> FilesToDelete:
        # Files that the first snapshot's delta deleted are only read by earlier snapshots, and were deleted with those.
        changed = [*expired[1:], kept] if expired else []
        deletions = find_deletions(self._store, changed)
        later: list[Snapshot] = []
        if deletions or any(snapshot.index_manifest or snapshot.statistics for snapshot in expired):
            later = self._watch.find(self._store, after_id=kept.id, latest_id=latest_id, threads=self._threads)
            spare_revived(self._store, deletions, later)
        tags = self._tags_seen = self._load_tags()
        spared = spare_tagged(self._ref, self._store, deletions, tags)
        branches = self._branches_seen = load_branch_readers(self._store, up_to=kept.id)
        by_branches = spare_read(self._ref, self._store, deletions, branches.oldest)
        by_branches += spare_added(self._store, deletions, branches.later)
        first = expired[0].id if expired else kept.id
        keepers = (kept, *later, *tags_between(tags, first, kept.id), *branches.snapshots)
        manifests, lists = find_metadata(self._store, expired, keepers)
        entries = [deletion.entry for deletion in deletions.values()]
        return FilesToDelete(
            data=tuple(data_paths(self._locator, entries)),
            data_file_count=len(entries),
            data_bytes=sum(entry.file.file_size for entry in entries),
            manifests=manifests,
            lists=lists,
            kept_by_tags=tuple(spared.items()),
            kept_by_branches=tuple(by_branches.items()),
        )

    def _load_tags(self) -> dict[int, NamedSnapshot]:
        return {
            tag.snapshot.id: NamedSnapshot(name=name, snapshot=tag.snapshot) for name, tag in self._tags.load().items()
        }


def add_file_holds(holds: Iterable[Retainer], files: FilesToDelete) -> tuple[Retainer, ...]:
    """Return the holds, with the numbers of files that each tag and branch keeps added."""
    found = {(hold.kind, hold.name): hold for hold in holds}
    for kind, pairs in ((RetainerKind.TAG, files.kept_by_tags), (RetainerKind.BRANCH, files.kept_by_branches)):
        for name, count in pairs:
            old = found.get((kind, name), Retainer(kind=kind, name=name))
            found[kind, name] = replace(old, files=old.files + count)
    return tuple(found.values())
