"""Orphan removal: deletes files that stopped jobs left and that no snapshot, tag or branch uses.

Candidates are all files of known kinds in the table's own directories. Files of unknown kinds are never candidates:
files in other directories, or with other names next to the metadata.

The files on storage are listed first, and the used files are read afterwards, so a file that a concurrent commit makes
live counts as used. Files that a running job has written and not yet committed look like orphans; only files above a
minimum age are deleted, which protects them.

Source:
    Paimon ``core:operation/OrphanFilesClean.java``, ``LocalOrphanFilesClean.java``; docs/spec/commit.md section 7.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import FormatError, InvalidOptionError, StorageError
from penstock.format.layout import (
    INDEX_MANIFEST_PREFIX,
    MAIN_BRANCH,
    MANIFEST_PREFIX,
    STAGING_PREFIX,
    TableLayout,
    escape_path_name,
)
from penstock.io.failures import enough_memory
from penstock.options import LayoutOptions, RetentionOptions
from penstock.printable import Result
from penstock.table.branches import check_not_on_branch
from penstock.table.bulk_files import delete_empty_directories, delete_files, map_parallel, thread_count
from penstock.table.expire.files import list_branches
from penstock.table.expire.used_files import UsedFiles
from penstock.table.times import load_storage_millis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.io.file_io import Directories, FileStatus
    from penstock.table.ref import TableRef

# Temporary files, which are renamed or linked after they are written: those of Penstock and Java, and the checksums of
# Hadoop's local files.
_TEMPORARY: Final = re.compile(r"^\..+\.tmp(\.crc)?$")
_BUCKET: Final = "bucket-"


class OrphanKind(StrEnum):
    """Kind of an orphan."""

    DATA = "data"
    MANIFEST = "manifest"
    INDEX = "index"
    STATISTICS = "statistics"
    TEMPORARY = "temporary"
    STAGING = "staging"
    LEASE = "lease"


_COMMITTED: Final = (OrphanKind.DATA, OrphanKind.MANIFEST, OrphanKind.INDEX, OrphanKind.STATISTICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """A file that is an orphan if it is unused, or the staging directory of a job that never finished.

    Attributes:
        size: in bytes; for a directory, the sum over its files.
        modified_millis: ms since 1970-01-01 UTC by the storage's clock, 0 if the storage has no times; for a directory,
            the latest time of the directory and its files.
    """

    path: str
    size: int
    modified_millis: int
    kind: OrphanKind

    @property
    def name(self) -> str:
        """Last component of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Listing of a table's directory.

    Attributes:
        candidates: files that could be orphans.
        buckets: directories of data files.
    """

    candidates: tuple[OrphanFile, ...]
    buckets: tuple[FileStatus, ...]


def list_candidates(
    ref: TableRef,
    directories: Directories,
    *,
    threads: int,
    progress: Callable[[int, int | None], None] = lambda _files, _total: None,
) -> Listing:
    """List every file that could be an orphan, used or not.

    Args:
        directories: of the table.
        threads: number of directories that are listed in parallel.
        progress: called with the number of files found so far.
    """
    found = list(_list_metadata(directories, ref.layout))
    found += _list_staging(ref, directories)
    progress(len(found), None)
    buckets = _list_buckets(ref, directories, threads)
    paths = [bucket.path for bucket in buckets]
    for statuses in map_parallel(directories.list, paths, threads=threads):
        found += [
            _candidate(status, OrphanKind.TEMPORARY if _TEMPORARY.match(status.name) else OrphanKind.DATA)
            for status in statuses
            if not status.is_dir
        ]
        progress(len(found), None)
    return Listing(candidates=tuple(found), buckets=tuple(buckets))


def _list_metadata(directories: Directories, layout: TableLayout) -> Iterator[OrphanFile]:
    for status in _files(directories, layout.manifest_directory):
        if status.name.startswith((MANIFEST_PREFIX, INDEX_MANIFEST_PREFIX)):
            yield _candidate(status, OrphanKind.MANIFEST)
    for status in _files(directories, layout.index_directory):
        yield _candidate(status, OrphanKind.INDEX)
    for status in _files(directories, layout.statistics_directory):
        yield _candidate(status, OrphanKind.STATISTICS)
    for status in _files(directories, layout.lease_directory):
        yield _candidate(status, OrphanKind.LEASE)
    branches = [layout.branch(name) for name in (MAIN_BRANCH, *list_branches(directories, layout))]
    directories_of_branches = (
        directory
        for branch in branches
        for directory in (
            branch.schema_directory,
            branch.snapshot_directory,
            branch.changelog_directory,
            branch.tag_directory,
            branch.consumer_directory,
        )
    )
    shared = (layout.manifest_directory, layout.own_directory, layout.query_directory)
    for directory in (*shared, *directories_of_branches):
        for status in _files(directories, directory):
            if _TEMPORARY.match(status.name):
                yield _candidate(status, OrphanKind.TEMPORARY)


def _list_staging(ref: TableRef, directories: Directories) -> Iterator[OrphanFile]:
    for status in directories.list(ref.location):
        if status.is_dir and status.name.startswith(STAGING_PREFIX):
            files = list(_walk(directories, status.path))
            size = sum(file.size for file in files)
            if not size and not ref.file_io.has_directories:
                continue  # empty objects, by which Hadoop's connectors mark directories; those of S3 stay
            yield OrphanFile(
                path=status.path,
                size=size,
                modified_millis=max([status.modified_millis, *(file.modified_millis for file in files)]),
                kind=OrphanKind.STAGING,
            )


def _list_buckets(ref: TableRef, directories: Directories, threads: int) -> list[FileStatus]:
    data_directory = ref.parsed(LayoutOptions).data_directory
    level = [f"{ref.location}/{data_directory}" if data_directory else ref.location]
    for key in ref.schema.partition_keys:
        prefix = f"{escape_path_name(key)}="
        below = _directories(directories, level, prefix, threads)
        level = [status.path for status in below]
    return list(_directories(directories, level, _BUCKET, threads))


def _directories(directories: Directories, paths: Sequence[str], prefix: str, threads: int) -> Iterator[FileStatus]:
    for statuses in map_parallel(directories.list, paths, threads=threads):
        yield from (status for status in statuses if status.is_dir and status.name.startswith(prefix))


def _files(directories: Directories, directory: str) -> Iterator[FileStatus]:
    return (status for status in directories.list(directory) if not status.is_dir)


def _walk(directories: Directories, directory: str) -> Iterator[FileStatus]:
    for status in directories.list(directory):
        if status.is_dir:
            yield from _walk(directories, status.path)
        else:
            yield status


def _candidate(status: FileStatus, kind: OrphanKind) -> OrphanFile:
    return OrphanFile(path=status.path, size=status.size, modified_millis=status.modified_millis, kind=kind)


DEFAULT_AGE_MS: Final = 86_400_000
MIN_AGE_MS: Final = 3_600_000
# Smaller differences between the clocks are ignored: file times are coarse, and a few seconds do not matter here.
_SKEW_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrphanReport(Result):
    """Result of an orphan removal.

    Attributes:
        orphans: files that were deleted, or would be in a dry run; sorted by path.
        bytes: total size of the orphans.
        young: number of further unused files that are too young to be deleted.
        used: number of candidates that are used.
        older_than_millis: files last changed up to this time are deleted; ms since 1970-01-01 UTC.
    """

    orphans: tuple[OrphanFile, ...]
    bytes: int
    young: int
    used: int
    older_than_millis: int
    is_dry_run: bool


@dataclass(slots=True)
class _Found:
    """What is found before anything is deleted."""

    now_millis: int = 0
    cutoff: int = 0
    listing: Listing = field(default_factory=lambda: Listing(candidates=(), buckets=()))
    used: frozenset[str] = frozenset()
    has_snapshots: bool = False


def remove_orphan_files(
    ref: TableRef,
    *,
    older_than_millis: int | None = None,
    dry_run: bool = True,
    allow_recent: bool = False,
    clock_millis: Callable[[], int] | None = None,
    progress: Callable[[int, int | None], None] = lambda _files, _total: None,
) -> OrphanReport:
    """Find the unused files of a table and delete them.

    Args:
        older_than_millis: delete files last changed up to this time, ms since 1970-01-01 UTC by the storage's clock;
            None for a day ago. It must be further back than the longest job takes from its first file to its commit.
        dry_run: only find the files.
        allow_recent: accept an ``older_than_millis`` of less than an hour ago; then no job may write to the table.
        clock_millis: returns the current time, ms since 1970-01-01 UTC; None for the storage's clock.
        progress: called with the number of files listed and read so far, then of files deleted.

    Raises:
        InvalidOptionError: ``older_than_millis`` is too recent, or in the future.
        NotFoundError: the table or a branch has no schema.
        FormatError: metadata is damaged or missing, also a snapshot, so the used files are not known; nothing was
            deleted.
        StorageError: a directory or file cannot be listed or read, and nothing was deleted; or an orphan could not be
            deleted.
    """
    check_not_on_branch(ref.file_io, ref.name, "removing orphan files")
    threads = thread_count(ref.parsed(RetentionOptions).file_operation_threads, ref.file_io)
    found = _Found()

    def find_cutoff() -> None:
        found.now_millis = clock_millis() if clock_millis is not None else _storage_millis(ref, utc_millis())
        found.cutoff = _check_cutoff(ref.name, older_than_millis, found.now_millis, allow_recent=allow_recent)

    def find_files() -> None:
        directories = ref.file_io.list_tree(ref.location)
        found.listing = list_candidates(ref, directories, threads=threads, progress=progress)
        shared = None if directories is ref.file_io else directories
        listed = len(found.listing.candidates)
        used_files = UsedFiles(
            ref, threads=threads, progress=lambda read, _: progress(listed + read, None), directories=shared
        )
        found.used = used_files.collect()
        found.has_snapshots = used_files.has_snapshots

    with enough_memory(ref.name):
        ref.file_io.run_many([find_cutoff, find_files])
    now_millis, cutoff, listing, used = found.now_millis, found.cutoff, found.listing, found.used
    leases_until = min(cutoff, now_millis - MIN_AGE_MS)
    unused = [candidate for candidate in listing.candidates if candidate.name not in used]
    orphans = [each for each in unused if _is_old(each, leases_until if each.kind is OrphanKind.LEASE else cutoff)]
    if not found.has_snapshots and any(each.kind in _COMMITTED for each in orphans):
        raise FormatError(
            f"table {ref.name} has no snapshot, but manifests or data files, so it is unknown which files are used, "
            "and nothing was deleted: restore the files in snapshot/ from a copy; if nothing was ever committed, so "
            "that a stopped job has left the files, append to the table and repeat this"
        )
    report = OrphanReport(
        orphans=tuple(sorted(orphans, key=lambda orphan: orphan.path)),
        bytes=sum(orphan.size for orphan in orphans),
        young=sum(1 for each in unused if each.kind is not OrphanKind.LEASE and each.modified_millis > cutoff),
        used=len(listing.candidates) - len(unused),
        older_than_millis=cutoff,
        is_dry_run=dry_run,
    )
    if not dry_run:
        _delete(ref, report, listing, threads, progress)
    return report


def _storage_millis(ref: TableRef, now_millis: int) -> int:
    """Return the current time by the storage's clock, if that differs much from the clock of this process.

    Files have times of the storage's clock. With a process clock that is a day ahead, files that other processes are
    writing would look old.
    """
    try:
        stored = load_storage_millis(ref.file_io, ref.location)
    except StorageError as error:
        if error.retryable:
            raise  # the deletions after it may work
        return now_millis  # the storage is read-only, so nothing will be deleted
    return stored if stored and abs(stored - now_millis) > _SKEW_MS else now_millis


def _check_cutoff(table: str, older_than_millis: int | None, now_millis: int, *, allow_recent: bool) -> int:
    if older_than_millis is None:
        return now_millis - DEFAULT_AGE_MS
    if older_than_millis > now_millis:
        raise InvalidOptionError(
            f"table {table}: 'older_than' is in the future, so all files that jobs are writing would count as orphans; "
            "give a time in the past"
        )
    if older_than_millis > now_millis - MIN_AGE_MS and not allow_recent:
        raise InvalidOptionError(
            f"table {table}: files younger than an hour may belong to a job that will commit them soon; give an "
            "earlier time, or state that nothing writes (allow_recent, --allow-recent)"
        )
    return older_than_millis


def _is_old(candidate: OrphanFile, cutoff: int) -> bool:
    # If the storage has no file times, no file counts as old.
    return 0 < candidate.modified_millis <= cutoff


def _delete(
    ref: TableRef,
    report: OrphanReport,
    listing: Listing,
    threads: int,
    progress: Callable[[int, int | None], None],
) -> None:
    gone = 0

    def note_deleted(count: int) -> None:
        nonlocal gone
        gone += count
        progress(gone, None)

    staging = [orphan.path for orphan in report.orphans if orphan.kind is OrphanKind.STAGING]
    files = [orphan.path for orphan in report.orphans if orphan.kind is not OrphanKind.STAGING]
    delete_files(ref.file_io, files, threads=threads, deleted=note_deleted)
    for path in staging:
        ref.file_io.delete(path, recursive=True)
        note_deleted(1)
    # Use the times of the listing: the deletion of files has updated the directories' times.
    old = [bucket.path for bucket in listing.buckets if 0 < bucket.modified_millis <= report.older_than_millis]
    delete_empty_directories(ref.file_io, old, root=ref.location)
