"""Candidates for orphan removal: all files of known kinds in the table's own directories.

Files of unknown kinds are never candidates: files in other directories, or with other names next to the metadata.

Source:
    Paimon ``core:operation/OrphanFilesClean.java``; docs/spec/commit.md section 7.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from penstock.format.layout import (
    INDEX_MANIFEST_PREFIX,
    MAIN_BRANCH,
    MANIFEST_PREFIX,
    STAGING_PREFIX,
    TableLayout,
    escape_path_name,
)
from penstock.options import LayoutOptions
from penstock.table.bulk_files import map_parallel
from penstock.table.expire.branches import list_branches

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

    Raises:
        StorageError: a directory cannot be listed.
    """
    found = list(_list_metadata(directories, ref.layout))
    found += _list_staging(directories, ref.location)
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


def _list_staging(directories: Directories, location: str) -> Iterator[OrphanFile]:
    for status in directories.list(location):
        if status.is_dir and status.name.startswith(STAGING_PREFIX):
            files = list(_walk(directories, status.path))
            yield OrphanFile(
                path=status.path,
                size=sum(file.size for file in files),
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
