"""Search for the files to delete when snapshots expire, and for what still needs them.

A data file is deleted with the last snapshot that reads it: the one before the snapshot whose delta deletes the file.
So reading the deltas is enough, and no list of live files is needed. Metadata files are deleted when no kept snapshot
names them. Branches have their own snapshots and tags, and share manifests and data files with the table; and a
snapshot may have made deleted files live again.

Source:
    Paimon ``core:operation/FileDeletionBase.java``, ``SnapshotDeletion.java``, ``TagDeletion.java``,
    ``core:utils/FileSystemBranchManager.java``; docs/spec/format.md section 1, docs/spec/commit.md sections 7.1, 7.2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.layout import TableLayout, all_file_paths, branch_name_of, snapshot_id_of, tag_name_of
from penstock.format.manifest.entry import FileKind
from penstock.format.manifest.index_manifest import decode_index_files
from penstock.format.snapshot import RESTORES, CommitKind, decode_snapshot
from penstock.format.tag import decode_tag
from penstock.table.assumptions import WRITER_VERSION
from penstock.table.bulk_files import map_parallel
from penstock.table.read.branch import has_branch
from penstock.table.read.live import is_in_history, load_live_entries, load_live_of_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock.format.manifest.entry import FileKey, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import Directories, FileIO
    from penstock.table.ref import FileLocator, TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesToDelete:
    """Files to delete with some snapshots.

    Attributes:
        data: paths of data files and of the files that belong to them.
        data_file_count: number of data files among them.
        data_bytes: size of the data files.
        manifests: paths of manifests, index files and statistics.
        lists: paths of manifest lists and index manifests; deleted after the manifests, because they name these.
        kept_by_tags: tag to the number of data files that are kept only because of it.
        kept_by_branches: likewise for branches.
    """

    data: tuple[str, ...]
    data_file_count: int
    data_bytes: int
    manifests: tuple[str, ...]
    lists: tuple[str, ...]
    kept_by_tags: tuple[tuple[str, int], ...] = ()
    kept_by_branches: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A data file that a snapshot's delta deleted.

    Attributes:
        snapshot_id: the snapshot of that delta, which is the first one without the file.
    """

    entry: ManifestEntry
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSnapshot:
    """A snapshot with the name of a tag or branch that keeps it."""

    name: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataNames:
    """Metadata files that a snapshot names, as paths: see ``FilesToDelete``."""

    manifests: frozenset[str]
    lists: frozenset[str]


def find_deletions(store: MetadataStore, snapshots: Sequence[Snapshot]) -> tuple[dict[FileKey, Deletion], bool]:
    """Find the data files that the deltas of the snapshots deleted and did not add again, and whether all were read.

    The key of a file decides: one that is added again with another index is the same file. Its old index file
    becomes an orphan, as in the reference.

    A delta that cannot be read is skipped: its files were deleted by an earlier attempt, or remain as orphans. It may
    have added some of the others again.

    Args:
        snapshots: ascending.
    """
    found: dict[FileKey, Deletion] = {}
    is_whole = True
    for snapshot in snapshots:
        try:
            if not found and not any(meta.num_deleted_files for meta in store.load_delta_manifests(snapshot)):
                continue  # it only adds files, which matters to those that were deleted before
            delta = store.load_delta(snapshot)
        except (NotFoundError, FormatError):
            is_whole = False
            continue
        for entry in delta:
            if entry.kind is FileKind.DELETE:
                found[entry.key] = Deletion(entry=entry, snapshot_id=snapshot.id)
            else:
                found.pop(entry.key, None)
    return found, is_whole


def retain_readded(store: MetadataStore, deletions: dict[FileKey, Deletion], later: Iterable[Snapshot]) -> None:
    """Remove from the deletions the files that a later snapshot made live again."""
    for snapshot in later:
        for entry in store.load_delta(snapshot) if deletions else ():
            if entry.kind is FileKind.ADD:
                deletions.pop(entry.key, None)


def note_restored(store: MetadataStore) -> None:
    """Record that files may have become live again after they were deleted, so that a tag between lacks them.

    The record is never deleted: the tags can outlive every snapshot.
    """
    if not is_restored(store):
        store.file_io.write(store.layout.restored_path, b"")


def is_restored(store: MetadataStore) -> bool:
    """Whether files may have become live again before the earliest snapshot: see ``note_restored``."""
    return store.file_io.has_file(store.layout.restored_path)


def retain_tagged(
    ref: TableRef,
    store: MetadataStore,
    deletions: dict[FileKey, Deletion],
    tags: Mapping[int, NamedSnapshot],
    *,
    restored: bool,
) -> Counter[str]:
    """Remove from the deletions the files that a tag still reads; return the number of such files by tag.

    For each file, only the nearest tag before its deletion is read: if the file is not live there, it is not live in
    any older tag, unless it was restored since.

    Args:
        tags: by snapshot id.
        restored: whether files may have become live again.
    """
    spared: Counter[str] = Counter()
    ids = sorted(tags)
    by_tag: dict[int, list[FileKey]] = {}
    for key, deletion in deletions.items():
        place = bisect_left(ids, deletion.snapshot_id)
        for tag_id in ids if restored else ids[max(0, place - 1) : place]:
            by_tag.setdefault(tag_id, []).append(key)
    for tag_id, keys in sorted(by_tag.items(), reverse=True):
        live = _load_live_keys(ref, store, tags[tag_id].snapshot, keys)
        for key in keys:
            if key in live and key in deletions:
                del deletions[key]
                spared[tags[tag_id].name] += 1
    return spared


def retain_read(
    ref: TableRef, store: MetadataStore, deletions: dict[FileKey, Deletion], readers: Iterable[NamedSnapshot]
) -> Counter[str]:
    """Remove from the deletions the files that one of the snapshots reads; return their number by snapshot name."""
    spared: Counter[str] = Counter()
    for reader in readers:
        live = _load_live_keys(ref, store, reader.snapshot, deletions) if deletions else frozenset()
        for key in [each for each in deletions if each in live]:
            del deletions[key]
            spared[reader.name] += 1
    return spared


def _load_live_keys(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot, keys: Iterable[FileKey]
) -> frozenset[FileKey]:
    """Load the keys of the live files of the partitions of some files."""
    partitions = frozenset(key.partition for key in keys)
    live = load_live_of_partitions(store, ref.schema, snapshot, partitions)
    return frozenset(entry.key for entry in live.values())


def retain_added(
    store: MetadataStore, deletions: dict[FileKey, Deletion], readers: Iterable[NamedSnapshot]
) -> Counter[str]:
    """Remove from the deletions the files that one of the snapshots added; return their number by snapshot name."""
    spared: Counter[str] = Counter()
    for reader in readers:
        for entry in store.load_delta(reader.snapshot) if deletions else ():
            if entry.kind is FileKind.ADD and deletions.pop(entry.key, None) is not None:
                spared[reader.name] += 1
    return spared


def tags_between(tags: Mapping[int, NamedSnapshot], first: int, end: int, *, restored: bool) -> list[Snapshot]:
    """Return the tagged snapshots that may share metadata files with snapshots ``first`` to ``end - 1``.

    These are the tagged snapshots in that range, and the nearest one before it. A file that an older tagged snapshot
    shares with the range is also named by the nearest one, unless files were restored.
    """
    ids = sorted(tags)
    low = 0 if restored else max(0, bisect_left(ids, first + 1) - 1)
    return [tags[each].snapshot for each in ids[low : bisect_left(ids, end)]]


def load_metadata_names(store: MetadataStore, snapshot: Snapshot, *, is_partial: bool = False) -> MetadataNames:
    """Return every metadata file that a snapshot names, without the snapshot file itself.

    Args:
        is_partial: skip the content of lists that are missing or damaged. A list is deleted after all files that it
            names, so these were deleted by an earlier attempt.
    """

    def attempt(load: Callable[[], Iterable[str]]) -> Iterable[str]:
        try:
            return tuple(load())
        except (NotFoundError, FormatError):
            if not is_partial:
                raise
            return ()

    lists = {store.layout.manifest_path(name) for name in _list_names(snapshot)}
    manifests = {
        store.layout.manifest_path(name)
        for load in (store.load_base_manifests, store.load_delta_manifests)
        for name in attempt(lambda load=load: (meta.file_name for meta in load(snapshot)))  # type: ignore[misc]
    }
    index = attempt(lambda: _index_files(store, snapshot))
    manifests.update(store.layout.index_path(name) for name in index)
    if snapshot.statistics is not None:
        manifests.add(store.layout.statistics_path(snapshot.statistics))
    return MetadataNames(manifests=frozenset(manifests), lists=frozenset(lists))


def _list_names(snapshot: Snapshot) -> tuple[str, ...]:
    names = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.index_manifest)
    return tuple(name for name in names if name is not None)


def _index_files(store: MetadataStore, snapshot: Snapshot) -> frozenset[str]:
    data = store.read_index_manifest(snapshot)
    if data is None:
        return frozenset()
    return decode_index_files(data, snapshot.index_manifest or "", store.limits)


def find_metadata(
    store: MetadataStore, expired: Iterable[Snapshot], kept: Iterable[Snapshot]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the manifests and lists that only the expired snapshots name."""
    kept_names = [load_metadata_names(store, snapshot) for snapshot in kept]
    expired_names = [load_metadata_names(store, snapshot, is_partial=True) for snapshot in expired]
    manifests = frozenset().union(*(names.manifests for names in expired_names))
    lists = frozenset().union(*(names.lists for names in expired_names))
    for names in kept_names:
        manifests, lists = manifests - names.manifests, lists - names.lists
    return tuple(sorted(manifests)), tuple(sorted(lists))


def data_paths(locator: FileLocator, entries: Iterable[ManifestEntry]) -> list[str]:
    """Return the paths of the entries' data files and their extra files, without external files we may not delete."""
    paths: list[str] = []
    for entry in entries:
        path = locator.deletable_path(entry.partition, entry.bucket, entry.file)
        if path is not None:
            paths += all_file_paths(path, entry.file)
    return paths


_TRIES: Final = 10


def list_branches(directories: Directories, layout: TableLayout) -> tuple[str, ...]:
    """Return the names of all branches except the main one, sorted; also those that are being created or deleted."""
    names = (branch_name_of(status.name) for status in directories.list(layout.branches_directory) if status.is_dir)
    return tuple(sorted(name for name in names if name is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReaders:
    """Snapshots of branches that may read files that the main branch does not read any more.

    Attributes:
        names: as ``list_branches``.
        oldest: the earliest snapshot and the tagged ones of each branch.
        later: further snapshots, ascending in each branch, which may add files to those.
    """

    names: tuple[str, ...]
    oldest: tuple[NamedSnapshot, ...]
    later: tuple[NamedSnapshot, ...]

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots of ``oldest`` and ``later``."""
        return tuple(each.snapshot for each in (*self.oldest, *self.later))


def load_branch_readers(store: MetadataStore, *, up_to: int) -> BranchReaders:
    """Load the snapshots of branches that may read files of main snapshots with ids up to ``up_to``.

    A branch shares the files that it started with. After the main branch was fast-forwarded to a branch, it also shares
    the files that the branch added; these snapshots have the same ids in both. Java merges branches that have all of
    their snapshots (``sys.merge_branch``): then one of them has files of the other.

    A branch that is being created has its snapshot already. What an interrupted creation has left may have lost files:
    such snapshots are skipped.
    """
    names = list_branches(store.file_io, store.layout)
    for _ in range(_TRIES):
        oldest: list[NamedSnapshot] = []
        later: list[NamedSnapshot] = []
        for name in names:
            layout = store.layout.branch(name)
            snapshots = [NamedSnapshot(name=name, snapshot=each) for each in _snapshots(store.file_io, layout, up_to)]
            tagged = [NamedSnapshot(name=name, snapshot=each) for each in _tagged(store.file_io, layout)]
            if not has_branch(store.file_io, store.location, name):
                snapshots, tagged = ([each for each in some if _is_whole(store, each)] for some in (snapshots, tagged))
            oldest += [*snapshots[:1], *tagged]
            later += snapshots[1:]
        # Snapshots of a branch that was renamed meanwhile may have been found under neither name.
        before, names = names, list_branches(store.file_io, store.layout)
        if names == before:
            return BranchReaders(names=names, oldest=tuple(oldest), later=tuple(later))
    raise StorageError(
        f"table {store.name}: its branches change faster than they can be read; try again when they do not",
        True,  # noqa: FBT003 - positional, so that pickling works
    )


def _is_whole(store: MetadataStore, named: NamedSnapshot) -> bool:
    """Whether all metadata of a snapshot can be read."""
    try:
        load_live_entries(store, named.snapshot, lambda _: False)
    except (NotFoundError, FormatError):
        return False
    return True


def _snapshots(file_io: FileIO, layout: TableLayout, up_to: int) -> Iterator[Snapshot]:
    """Yield the earliest snapshot, whatever its id, and the others with ids up to ``up_to``, ascending.

    All, if the branch begins at the first id: its files may be merged into the main branch, and those of that into it,
    at any ids of both.
    """
    is_first = True
    found = (snapshot_id_of(status.name) for status in file_io.list(layout.snapshot_directory))
    ids = sorted(each for each in found if each is not None)
    for snapshot_id in ids:
        if snapshot_id > up_to and not is_first and ids[0] > 1:
            break
        path = layout.snapshot_path(snapshot_id)
        try:
            yield decode_snapshot(file_io.read(path), path)
        except NotFoundError:  # a concurrent expiration has deleted it
            continue
        is_first = False


def _tagged(file_io: FileIO, layout: TableLayout) -> Iterator[Snapshot]:
    for status in file_io.list(layout.tag_directory):
        if tag_name_of(status.name) is not None:
            try:
                yield decode_tag(file_io.read(status.path), status.path).snapshot
            except NotFoundError:
                continue


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterSnapshots:
    """Kept snapshots that may read files that an older delta deleted, ascending.

    Attributes:
        adding: snapshots whose deltas may add such files again.
        after_gaps: the first readable snapshots after lost or damaged ones, which may have added such files again, and
            those that omit lost manifests.
        unreadable_ids: of the damaged ones.
    """

    adding: tuple[Snapshot, ...]
    after_gaps: tuple[Snapshot, ...]
    unreadable_ids: tuple[int, ...]

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All of them."""
        return (*self.adding, *self.after_gaps)


class ReaddedFiles:
    """Finds the snapshots after which files that an older delta deleted may be live again.

    A rollback as the latest is a new snapshot that adds the old files again. Each snapshot is read only once, however
    often ``find`` is called.

    Source:
        docs/spec/commit.md section 7.2, "rollback as latest".
    """

    def __init__(self) -> None:
        self._adding: dict[int, Snapshot] = {}
        self._after_gaps: dict[int, Snapshot] = {}
        self._unreadable: set[int] = set()
        self._from = 0
        self._until: Snapshot | None = None

    def find(self, store: MetadataStore, *, after_id: int, latest_id: int, threads: int) -> LaterSnapshots:
        """Return such snapshots with ``after_id`` < id <= ``latest_id``.

        Raises:
            FormatError: the latest snapshot is damaged, so it is not known which files it reads.
        """
        seen = self._until
        # After a rollback, the same ids may have other content.
        if seen is None or self._from > after_id or not is_in_history(store, seen):
            self._adding.clear()
            self._after_gaps.clear()
            self._unreadable.clear()
            self._from, seen = after_id, None
        first = after_id + 1 if seen is None else seen.id + 1
        ids = range(first, latest_id + 1)
        is_gap = False
        for snapshot_id, snapshot in zip(
            ids, map_parallel(partial(self._load, store, latest_id), ids, threads=threads), strict=True
        ):
            if snapshot is None:
                is_gap = True
                continue
            seen = snapshot
            if is_gap or adds_unnamed(snapshot):
                self._after_gaps[snapshot_id] = snapshot
                is_gap = False
            elif may_add_again(snapshot):
                self._adding[snapshot_id] = snapshot
        self._until = seen
        return LaterSnapshots(
            adding=_within(self._adding, after_id, latest_id),
            after_gaps=_within(self._after_gaps, after_id, latest_id),
            unreadable_ids=tuple(sorted(each for each in self._unreadable if each > after_id)),
        )

    def _load(self, store: MetadataStore, latest_id: int, snapshot_id: int) -> Snapshot | None:
        try:
            return store.find_snapshot(snapshot_id)
        except FormatError:
            if snapshot_id == latest_id:
                raise
            self._unreadable.add(snapshot_id)
            return None


def may_add_again(snapshot: Snapshot) -> bool:
    """Whether a snapshot may add files of older ones; of Penstock's, only a rollback as the latest does."""
    if snapshot.commit_kind is not CommitKind.OVERWRITE:
        return False
    return snapshot.writer_version != WRITER_VERSION or RESTORES in dict(snapshot.properties)


def adds_unnamed(snapshot: Snapshot) -> bool:
    """Whether files became live again that the snapshot's delta does not name, since manifests were lost."""
    return dict(snapshot.properties).get(RESTORES) == ""


def _within(snapshots: Mapping[int, Snapshot], after_id: int, latest_id: int) -> tuple[Snapshot, ...]:
    return tuple(snapshots[each] for each in sorted(snapshots) if after_id < each <= latest_id)
