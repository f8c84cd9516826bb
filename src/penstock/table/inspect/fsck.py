"""Checks that every file that a table refers to exists.

Reads only metadata and directory listings: a data file counts as intact when it has the recorded size. Of older
snapshots, only the snapshot file is read, and its manifest lists are looked up in a listing, unless all are asked for:
one damaged snapshot file ends expirations and the history of a table, however old it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import FormatError, NotFoundError, UnsupportedFeatureError
from penstock.format.snapshot import snapshots_text
from penstock.printable import Result
from penstock.table.commit.expiring import is_expiring
from penstock.table.commit.reused_ids import find_lost_latest, load_lost_ids
from penstock.table.commit.vectors import VectorFrames
from penstock.table.expire.files import list_branches
from penstock.table.metadata_cache import MetadataCache
from penstock.table.read.files import FileColumns
from penstock.table.read.scan import load_vector_places
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.columns import ManifestColumns
    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry, ManifestFileMeta
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileStatus
    from penstock.table.ref import TableRef


class FindingKind(StrEnum):
    """Kind of a problem."""

    MISSING = "missing"
    SIZE = "size"
    DAMAGED = "damaged"
    ROWS = "rows"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem.

    Attributes:
        what: the kind of file: snapshot, tag, consumer, schema, manifest, index file or data file.
        snapshot_id: the first snapshot found to need the file; None if unknown.
    """

    kind: FindingKind
    what: str
    path: str
    snapshot_id: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FsckReport(Result):
    """The checked files, and the problems found.

    Attributes:
        snapshots: number of snapshots, those of tags included, all of whose files were checked.
        unchecked: number of further snapshots and tags, of which manifests and data files were not checked.
        files: number of distinct data files, without extra files.
        bytes: their recorded size.
    """

    snapshots: int
    unchecked: int
    manifests: int
    files: int
    bytes: int
    findings: tuple[Finding, ...]


def check_table(
    ref: TableRef,
    *,
    all_snapshots: bool = False,
    progress: Callable[[int, int | None], None] = lambda _files, _bytes: None,
) -> FsckReport:
    """Check all files that the latest readable snapshot needs, and the file of every snapshot, tag and schema.

    Args:
        all_snapshots: also check manifests and data files that only older snapshots and tags need.
        progress: called with the number of data files checked.
    """
    # With a cache of its own: a file that this process has read before may be gone from an object store.
    check = _Check(ref, MetadataStore(ref, cache=MetadataCache()), progress)
    check.check_consumers()
    for snapshot in check.snapshots():
        if all_snapshots or not check.snapshot_count:
            check.check_snapshot(snapshot)
        else:
            check.check_lists(snapshot)
    check.check_unused_schemas()
    return FsckReport(
        snapshots=check.snapshot_count,
        unchecked=check.unchecked_count,
        manifests=len(check.manifests),
        files=check.file_count,
        bytes=check.bytes,
        findings=tuple(check.findings),
    )


class _Check:
    """One run; checks each file once, however many snapshots need it."""

    def __init__(self, ref: TableRef, store: MetadataStore, progress: Callable[[int, int | None], None]) -> None:
        self.findings: list[Finding] = []
        self.manifests: set[str] = set()
        self.file_count = 0
        self.bytes = 0
        self.snapshot_count = 0
        self.unchecked_count = 0
        self._ref = ref
        self._store = store
        self._progress = progress
        self._locator = FileLocator.of(ref)
        self._listings: dict[str, _Listing] = {}
        self._paths: set[str] = set()  # of files that were checked by their entry
        self._schemas: set[int] = set()

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield readable snapshots, the latest first, then those of tags; unreadable ones are reported as findings."""
        ids = sorted(self._store.list_snapshot_ids(), reverse=True)
        found = []
        for snapshot in self._store.find_snapshots(ids, on_damaged=self._find_damaged_snapshot):
            found.append(snapshot)
            yield snapshot
        self._check_ids(found, max(ids, default=0))
        path_of = self._ref.layout.tag_path
        for _, tag in self._store.find_tags(
            lambda name, error: self._find(FindingKind.DAMAGED, "tag", path_of(name), None, str(error))
        ):
            if tag.snapshot.id not in ids:
                yield tag.snapshot

    def check_consumers(self) -> None:
        path_of = self._ref.layout.consumer_path
        for _ in self._store.find_consumers(
            lambda name, error: self._find(FindingKind.DAMAGED, "consumer", path_of(name), None, str(error))
        ):
            pass

    def _check_ids(self, found: Sequence[Snapshot], newest_id: int) -> None:
        """Check that no snapshots are missing between others, and that the newest ones are there."""
        layout = self._ref.layout
        for lost in load_lost_ids(self._store, found):
            message = (
                f"the files of {snapshots_text([lost])} are missing between others: restore them from a copy; "
                "until then, their changes cannot be read, and streams stop there"
            )
            self._find(FindingKind.MISSING, "snapshot", layout.snapshot_path(lost[0]), lost[0], message)
        lost_id = find_lost_latest(self._store, newest_id, self._store.load_latest_hint())
        if lost_id is not None:
            message = (
                f"the files of {snapshots_text([range(newest_id + 1, lost_id + 1)])} are missing: the hint "
                f"snapshot/LATEST says {lost_id}, and the rows that they added are not in the table; write nothing "
                "before they are restored from a copy. If a rollback was stopped, repeat it"
            )
            self._find(FindingKind.MISSING, "snapshot", layout.snapshot_path(lost_id), lost_id, message)
        elif not newest_id and not self._store.list_snapshot_ids():
            reason = self._why_no_snapshot()
            if reason is not None:
                self._find(FindingKind.MISSING, "snapshot", layout.snapshot_directory, None, reason)

    def _why_no_snapshot(self) -> str | None:
        """Return what the absence of snapshots means; None if nothing was ever committed."""
        file_io, layout = self._ref.file_io, self._ref.layout
        tags = self._store.list_tags()
        if tags:
            return (
                f"there is no snapshot, although there are the tags {', '.join(tags)}: restore the snapshots from a "
                "copy; without one, 'penstock rollback TABLE --tag NAME' brings the state of a tag back"
            )
        if file_io.exists(layout.earliest_hint_path):
            return (
                "there is no snapshot, although the hint snapshot/EARLIEST is there, so there was one: restore the "
                "snapshots from a copy"
            )
        has_branches = file_io.branch_name is not None or list_branches(file_io, layout)  # they share the manifests
        if not has_branches and file_io.list(layout.manifest_directory):
            return (
                "there is no snapshot, although there are manifests: if the table had rows, restore the snapshots from "
                "a copy and write nothing before; if its first job was stopped, nothing is lost, and after the next "
                "commit 'penstock remove-orphan-files' deletes what that job has left"
            )
        return None

    def _find_damaged_snapshot(self, snapshot_id: int, error: FormatError) -> None:
        path = self._ref.layout.snapshot_path(snapshot_id)
        self._find(FindingKind.DAMAGED, "snapshot", path, snapshot_id, str(error))

    def check_lists(self, snapshot: Snapshot) -> None:
        """Check that the manifest lists of a snapshot exist, which an expiration has to read."""
        self.unchecked_count += 1
        layout = self._ref.layout
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            path = layout.manifest_path(name)
            if self._size_of(path) is None and not is_expiring(self._store, snapshot.id):
                error = NotFoundError(f"snapshot {snapshot.id} needs it: restore it from a copy")
                self._find_unreadable("manifest list", path, snapshot.id, error)

    def check_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshot_count += 1
        self._check_schema(snapshot.schema_id, snapshot.id)
        manifests = self._load_manifests(snapshot)
        if manifests is None:
            return
        try:
            live = FileColumns.live(manifests)
        except FormatError as error:
            path = self._ref.layout.manifest_path(snapshot.base_manifest_list)
            self._find(FindingKind.DAMAGED, "manifest", path, snapshot.id, str(error))
            return
        for part, rows in live.by_part():
            self._check_files(part, rows, snapshot.id)
        rows_found = live.total("row_count")
        if snapshot.total_record_count not in (None, rows_found):
            self._find(
                FindingKind.ROWS,
                "snapshot",
                self._ref.layout.snapshot_path(snapshot.id),
                snapshot.id,
                f"it states {snapshot.total_record_count} rows, its live files have {rows_found}",
            )

    def _load_manifests(self, snapshot: Snapshot) -> list[ManifestColumns] | None:
        """Load all entries; None if a manifest cannot be read, because the live files are unknown then."""
        layout = self._ref.layout
        metas: list[ManifestFileMeta] = []
        is_whole = True
        for name, load in (
            (snapshot.base_manifest_list, self._store.load_base_manifests),
            (snapshot.delta_manifest_list, self._store.load_delta_manifests),
        ):
            try:
                metas += load(snapshot)
            except (NotFoundError, FormatError) as error:
                self._find_unreadable("manifest list", layout.manifest_path(name), snapshot.id, error)
                is_whole = False
        manifests: list[ManifestColumns] = []
        for meta in metas:
            self.manifests.add(meta.file_name)
            try:
                manifests += self._store.iter_columns([meta], snapshot_id=snapshot.id)
            except (NotFoundError, FormatError) as error:
                self._find_unreadable("manifest", layout.manifest_path(meta.file_name), snapshot.id, error)
                is_whole = False
        self._check_vectors(snapshot)
        return manifests if is_whole else None

    def _check_vectors(self, snapshot: Snapshot) -> None:
        try:
            places = load_vector_places(self._store, snapshot)
        except (NotFoundError, FormatError) as error:
            path = self._ref.layout.manifest_path(snapshot.index_manifest or "")
            self._find_unreadable("index manifest", path, snapshot.id, error)
            return
        frames = VectorFrames(self._ref)
        for place in places.values():
            try:
                frames.read(place)
            except UnsupportedFeatureError as error:
                path = place.external_path or place.index_file
                self._find(FindingKind.OUTSIDE, "index file", path, snapshot.id, str(error))
            except (NotFoundError, FormatError) as error:
                self._find_unreadable("index file", frames.path_of(place), snapshot.id, error)

    def check_unused_schemas(self) -> None:
        """Check the other schema files: a damaged latest one ends reads and writes before a snapshot names it."""
        for schema_id in self._store.list_schema_ids():
            self._check_schema(schema_id, None)

    def _check_schema(self, schema_id: int, snapshot_id: int | None) -> None:
        if schema_id in self._schemas:
            return
        self._schemas.add(schema_id)
        try:
            self._store.load_schema(schema_id)
        except (NotFoundError, FormatError) as error:
            self._find_unreadable("schema", self._ref.layout.schema_path(schema_id), snapshot_id, error)

    def _check_files(self, part: ManifestColumns, rows: Array, snapshot_id: int) -> None:
        """Check those files of a manifest that were not checked before; only those with problems become objects."""
        for schema_id in np.unique(part.schema_id[rows]).tolist():
            self._check_schema(schema_id, snapshot_id)
        names, sizes = part.names(rows), part.file_size[rows]
        needs_entry = part.may_have_index[rows] | part.is_external[rows]
        partitions, buckets = part.partition[rows], part.bucket[rows]
        order = np.lexsort((buckets, partitions))
        order = order[~needs_entry[order]]
        changes = (np.diff(partitions[order]) != 0) | (np.diff(buckets[order]) != 0)
        for files in np.split(order, np.flatnonzero(changes) + 1):
            if len(files):
                directory = self._locator.directory(part.partitions[partitions[files[0]]], int(buckets[files[0]]))
                is_sound, checked_bytes = self._listing(directory).check(names[files], sizes[files])
                needs_entry[files[~is_sound]] = True
                self._count(checked_bytes)
        for entry in part.entries(rows[needs_entry]) if needs_entry.any() else ():
            self._check_file(entry, snapshot_id)

    def _count(self, sizes: Sequence[int]) -> None:
        if sizes:
            self.file_count += len(sizes)
            self.bytes += sum(sizes)
            self._progress(self.file_count, self.bytes)

    def _check_file(self, entry: ManifestEntry, snapshot_id: int) -> None:
        path = self._locator.recorded_path(entry.partition, entry.bucket, entry.file)
        if path in self._paths:
            return
        self._paths.add(path)
        self._count([entry.file.file_size])
        try:
            path = self._locator.path(entry.partition, entry.bucket, entry.file)
        except UnsupportedFeatureError as error:
            self._find(FindingKind.OUTSIDE, "data file", path, snapshot_id, str(error))
            return
        size = self._size_of(path)
        if size is None:
            self._find(FindingKind.MISSING, "data file", path, snapshot_id, _lost(entry.file))
        elif size != entry.file.file_size:
            message = f"it has {size} bytes instead of {entry.file.file_size}; {_lost(entry.file)}"
            self._find(FindingKind.SIZE, "data file", path, snapshot_id, message)
        for extra in _extra_paths(path, entry.file.extra_files):
            if self._size_of(extra) is None:
                self._find(FindingKind.MISSING, "extra file", extra, snapshot_id, f"it belongs to {path}")

    def _size_of(self, path: str) -> int | None:
        """Return the size from a listing: one call for all files of a bucket."""
        directory, _, name = path.rpartition("/")
        return self._listing(directory).size_of(name)

    def _listing(self, directory: str) -> _Listing:
        listing = self._listings.get(directory)
        if listing is None:
            listing = self._listings[directory] = _Listing(self._ref.file_io.list(directory))
        return listing

    def _find_unreadable(
        self, what: str, path: str, snapshot_id: int | None, error: NotFoundError | FormatError
    ) -> None:
        kind = FindingKind.MISSING if isinstance(error, NotFoundError) else FindingKind.DAMAGED
        # One finding per file, for the newest snapshot that needs it.
        if all(finding.path != self._ref.file_io.real(path) for finding in self.findings):
            self._find(kind, what, path, snapshot_id, str(error))

    def _find(self, kind: FindingKind, what: str, path: str, snapshot_id: int | None, message: str) -> None:
        real = self._ref.file_io.real(path)
        self.findings.append(Finding(kind=kind, what=what, path=real, snapshot_id=snapshot_id, message=message))


class _Listing:
    """The files of a directory, in 60 bytes each, and which of them were checked."""

    def __init__(self, statuses: Iterable[FileStatus]) -> None:
        sizes = {status.name.encode(): status.size for status in statuses if not status.is_dir}
        names = np.array([*sizes], bytes)
        order = np.argsort(names)
        self._names = names[order]
        self._sizes = np.fromiter(sizes.values(), np.int64, len(sizes))[order]
        self._is_checked = np.zeros(len(order), bool)

    def size_of(self, name: str) -> int | None:
        """Return the size of a file, which counts as checked; None if it is missing."""
        (place,) = self._places(np.array([name.encode()])).tolist()
        if place < 0:
            return None
        self._is_checked[place] = True
        return int(self._sizes[place])

    def check(self, names: Array, sizes: Array) -> tuple[Array, list[int]]:
        """Return which files are there with these sizes, or were checked; and the sizes of those that were not."""
        places = self._places(names)
        is_sound = places >= 0
        is_known = is_sound & self._is_checked[places] if len(self._names) else is_sound
        is_sound[is_sound] = self._sizes[places[is_sound]] == sizes[is_sound]
        new, first = np.unique(places[is_sound & ~is_known], return_index=True)
        self._is_checked[new] = True
        return is_sound | is_known, sizes[is_sound & ~is_known][first].tolist()

    def _places(self, names: Array) -> Array:
        if not len(self._names):
            return np.full(len(names), -1)
        places = np.minimum(np.searchsorted(self._names, names), len(self._names) - 1)
        return np.where(self._names[places] == names, places, -1)


def _lost(file: DataFileMeta) -> str:
    return f"{file.row_count} rows cannot be read"


def _extra_paths(path: str, names: Iterable[str]) -> list[str]:
    directory = path.rpartition("/")[0]
    return [f"{directory}/{name}" for name in names]
