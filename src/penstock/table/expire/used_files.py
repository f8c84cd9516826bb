"""Names of all files that a snapshot, tag or changelog of a table or of one of its branches uses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.layout import MAIN_BRANCH, changelog_id_of, schema_id_of, snapshot_id_of, tag_name_of
from penstock.format.manifest.files import decode_manifest, decode_manifest_list
from penstock.format.manifest.index_manifest import decode_index_files
from penstock.format.snapshot import decode_snapshot, snapshots_text
from penstock.format.tag import decode_tag
from penstock.table.bulk_files import map_parallel
from penstock.table.commit.reused_ids import find_lost_latest, load_lost_ids
from penstock.table.expire.files import list_branches
from penstock.table.location import TableLocation
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.format.avro.values import AvroLimits
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import Directories, FileStatus
    from penstock.table.location import HasLocation

_T = TypeVar("_T")

_TRIES: Final = 3
_WAIT_SECONDS: Final = 0.005
_MAX_ROUNDS: Final = 100
_GONE_TRIES: Final = 20
_GONE_WAIT_SECONDS: Final = 0.1


class UsedFiles:
    """Collects the names of used files in rounds, until a listing has no new snapshot.

    A snapshot that expires meanwhile is skipped: later snapshots name the files that are still used. Any other file
    that cannot be read ends the search with an error, because then the used files are not known.

    Args:
        table: such as a ``TableRef``.
        threads: number of files that are read in parallel.
        progress: called with the number of metadata files read so far.
        directories: listed already, for the first round; None to list them.
        sleep: called with seconds, between tries.
    """

    def __init__(
        self,
        table: HasLocation,
        *,
        threads: int,
        progress: Callable[[int, int | None], None] = lambda _files, _total: None,
        directories: Directories | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sleep = sleep
        self._directories = directories
        self.names: set[str] = set()
        self._file_io = table.file_io
        self._layout = table.layout
        self._table = table.name
        self._limits = table.limits
        self._threads = threads
        self._progress = progress
        self._seen: set[FileStatus] = set()
        # Directories of branches that are being created or deleted, or were when the process was killed.
        self._unfinished: set[str] = set()
        # Metadata file to those that name it, up to the files of snapshots and tags.
        self._owners: dict[str, set[str]] = {}
        self._read: set[str] = set()
        # Locations of the table and its branches, as listed last.
        self._branches: tuple[str, ...] = ()
        # Directory to its snapshots.
        self._snapshots: dict[str, list[Snapshot]] = {}
        # Location of the table or a branch to the hint of its latest snapshot.
        self._hints: dict[str, int | None] = {}

    def collect(self) -> frozenset[str]:
        """Return the base names of all used files.

        Raises:
            FormatError: snapshots were lost, or other metadata is missing or damaged.
            StorageError: the storage failed.
        """
        for _ in range(_MAX_ROUNDS):
            new = [status for status in self._list_roots() if status not in self._seen]
            self._directories = None
            if not new:
                self._check_no_snapshot_lost()
                return frozenset(self.names)
            self._seen.update(new)
            self._load_roots(new)
        raise StorageError(
            f"table {self._table}: snapshots are committed faster than they can be read; try again when less is "
            "written",
            True,  # noqa: FBT003 - positional, so that pickling works
        )

    @property
    def has_snapshots(self) -> bool:
        """Whether the main branch has snapshots."""
        return self._layout.snapshot_directory in self._snapshots

    def _check_no_snapshot_lost(self) -> None:
        """Raise ``FormatError`` if the table or a branch lacks snapshots: the files that they use are unknown."""
        for branch in self._branches:
            if branch in self._unfinished:
                continue
            store = self._store_of(branch)
            layout = store.layout
            snapshots = self._snapshots.get(layout.snapshot_directory, [])
            newest_id = max((snapshot.id for snapshot in snapshots), default=0)
            lost = load_lost_ids(store, snapshots)
            read = self._hints[branch] if branch in self._hints else store.load_latest_hint()
            hint = find_lost_latest(store, newest_id, read)
            if hint is not None:
                lost.append(range(newest_id + 1, hint + 1))
            if lost:
                raise FormatError(
                    f"table {self._table}: the files of {snapshots_text(lost)} in {layout.snapshot_directory} are "
                    "missing, so it is unknown which files are used, and nothing was deleted: restore them from a "
                    "copy; if a rollback was stopped, repeat it. If there is no copy, copy the rows of the "
                    "other snapshots to a new table"
                )

    def _store_of(self, location: str) -> MetadataStore:
        return MetadataStore(TableLocation(file_io=self._file_io, location=location, name=self._table))

    def _list_roots(self) -> list[FileStatus]:
        """Return the files of snapshots, tags and changelogs."""
        if self._directories is not None:
            return list(self._roots_in(self._directories))
        with self._file_io.prefetch() as ahead:
            layout = self._layout
            for directory in (
                layout.branches_directory,
                layout.schema_directory,
                layout.snapshot_directory,
                layout.tag_directory,
                layout.changelog_directory,
            ):
                ahead.request_list(directory)
            ahead.request_read(layout.latest_hint_path)
            roots = list(self._roots_in(ahead))
            for branch in self._branches:
                self._hints[branch] = self._store_of(branch).reading(ahead).load_latest_hint()
            return roots

    def _roots_in(self, directories: Directories) -> Iterator[FileStatus]:
        layouts = [self._layout.branch(name) for name in (MAIN_BRANCH, *list_branches(directories, self._layout))]
        self._branches = tuple(layout.location for layout in layouts)
        for layout in layouts:
            schema_ids = {schema_id_of(status.name) for status in directories.list(layout.schema_directory)}
            if 0 not in schema_ids and layout != self._layout:
                self._unfinished.add(layout.location)
            elif schema_ids <= {None}:
                raise NotFoundError(
                    f"table {self._table}: {layout.location} has no schema, so it is unknown which files it needs; "
                    "nothing was deleted: restore the schema"
                )
            for directory, id_of in (
                (layout.snapshot_directory, snapshot_id_of),
                (layout.tag_directory, tag_name_of),
                (layout.changelog_directory, changelog_id_of),
            ):
                for status in directories.list(directory):
                    if not status.is_dir and id_of(status.name) is not None:
                        yield status

    def _load_roots(self, roots: Sequence[FileStatus]) -> None:
        lists: set[str] = set()
        indexes: set[str] = set()
        for status, snapshot in zip(roots, map_parallel(self._load_root, roots, threads=self._threads), strict=True):
            if snapshot is not None:
                self._snapshots.setdefault(status.path.rpartition("/")[0], []).append(snapshot)
                self._own_metadata(snapshot, status.path, lists, indexes)
        for _, files in self._load_all(indexes, decode_index_files):
            self.names.update(files)
        manifests: set[str] = set()
        for name, metas in self._load_all(lists, decode_manifest_list):
            for meta in metas:
                self._own(meta.file_name, name, manifests)
        for _, entries in self._load_all(manifests, decode_manifest):
            for entry in entries:
                self.names.add(entry.file.file_name)
                self.names.update(entry.file.extra_files)

    def _own_metadata(self, snapshot: Snapshot, owner: str, lists: set[str], indexes: set[str]) -> None:
        if snapshot.statistics is not None:
            self.names.add(snapshot.statistics)
        if snapshot.index_manifest is not None:
            self._own(snapshot.index_manifest, owner, indexes)
        self._own(snapshot.base_manifest_list, owner, lists)
        self._own(snapshot.delta_manifest_list, owner, lists)
        if snapshot.changelog_manifest_list is not None:
            self._own(snapshot.changelog_manifest_list, owner, lists)

    def _own(self, name: str, owner: str, fresh: set[str]) -> None:
        """Record which file names a metadata file; add it to ``fresh`` unless it was read already."""
        self.names.add(name)
        self._owners.setdefault(name, set()).add(owner)
        if name not in self._read:
            fresh.add(name)

    def _load_root(self, status: FileStatus) -> Snapshot | None:
        decode = decode_tag if tag_name_of(status.name) is not None else decode_snapshot
        try:
            found = self._try(lambda: decode(self._file_io.read(status.path), status.path))
        except NotFoundError:
            return None  # the snapshot has expired, or the tag was deleted, since the listing
        return found if not hasattr(found, "snapshot") else found.snapshot

    def _load_all(
        self, names: Iterable[str], decode: Callable[[bytes, str, AvroLimits], _T]
    ) -> Iterator[tuple[str, _T]]:
        """Load metadata files; skip a missing file if every snapshot that named it is gone too."""

        def load(name: str) -> _T | None:
            path = self._layout.manifest_path(name)
            try:
                return self._try(lambda: decode(self._file_io.read(path), path, self._limits))
            except NotFoundError:
                return None

        ordered = sorted(names)
        for name, content in zip(ordered, map_parallel(load, ordered, threads=self._threads), strict=True):
            if content is None:
                self._check_gone(name)
                continue
            self._read.add(name)
            self._progress(len(self._read), None)
            yield name, content

    def _check_gone(self, name: str) -> None:
        """Wait until all snapshots and tags that need a missing file are gone too; raise ``FormatError`` if they stay.

        A running expiration deletes the snapshot files last. A branch whose files were deleted while it was created is
        not created.
        """
        for root in sorted(self._roots_of(name)):
            if self._is_expiring(root) or root.rsplit("/", 2)[0] in self._unfinished:
                continue  # an expiration or a creation was interrupted; its repetition will delete the rest
            for _ in range(_GONE_TRIES):
                if not self._file_io.exists(root):
                    break
                self._sleep(_GONE_WAIT_SECONDS)
            else:
                raise FormatError(
                    f"table {self._table}: {self._layout.manifest_path(name)} is missing, which {root} needs; so it is "
                    "unknown which files are used, and nothing was deleted. If an expiration was stopped "
                    "halfway, expire up to that snapshot with 'penstock expire'; else look with 'penstock fsck "
                    "--all-snapshots'"
                )

    def _is_expiring(self, root: str) -> bool:
        """Whether an expiration has announced that it deletes the files of this snapshot file."""
        directory, _, name = root.rpartition("/")
        snapshot_id = snapshot_id_of(name)
        if snapshot_id is None or directory != self._layout.snapshot_directory:
            return False
        place = TableLocation(file_io=self._file_io, location=self._layout.location, name=self._table)
        return snapshot_id < MetadataStore(place).load_expiring_end()

    def _roots_of(self, name: str) -> Iterator[str]:
        for owner in self._owners.get(name, ()):
            if owner in self._owners:
                yield from self._roots_of(owner)
            else:
                yield owner

    def _try(self, load: Callable[[], _T]) -> _T:
        for _ in range(_TRIES - 1):
            try:
                return load()
            except (StorageError, FormatError):
                self._sleep(_WAIT_SECONDS)  # the file may have been half-written, or the storage busy
        return load()
