"""Removal of missing data files from a table's metadata.

Source:
    Paimon ``core:operation/ListUnexistingFiles.java``, ``flink:action/RemoveUnexistingFilesAction.java``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.format.snapshot import CommitKind
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.request import CommitRequest
from penstock.table.locate import FileLocator
from penstock.table.message import CommitMessage
from penstock.table.read.scan import plan_scan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFile:
    """A live data file that does not exist.

    Attributes:
        row_count: rows that cannot be read.
    """

    path: str
    row_count: int
    entry: ManifestEntry


def find_missing_files(ref: TableRef, store: MetadataStore) -> tuple[MissingFile, ...]:
    """Return the data files of the latest snapshot that are missing on storage, in scan order.

    Raises:
        StorageError: a directory cannot be listed, so it is unknown what is missing.
    """
    locator, listed, found = FileLocator.of(ref), dict[str, frozenset[str]](), []
    for entry in _live(ref, store):
        path = locator.path(entry.partition, entry.bucket, entry.file)
        directory, _, name = path.rpartition("/")
        if directory not in listed:
            listed[directory] = frozenset(each.name for each in ref.file_io.list(directory))
        # Also checked by name: the listing may be slightly older than the file.
        if name not in listed[directory] and not ref.file_io.has_file(path):
            found.append(MissingFile(path=path, row_count=entry.file.row_count, entry=entry))
    return tuple(found)


def drop_missing_files(committer: TableCommitter, missing: Iterable[MissingFile]) -> Snapshot | None:
    """Remove files from the metadata in an OVERWRITE snapshot; None if there are none.

    Raises:
        TableStoreError: as ``TableCommitter.commit``.
    """
    groups: dict[tuple[bytes, int, int], list[DataFileMeta]] = defaultdict(list)
    for each in missing:
        entry = each.entry
        groups[entry.partition, entry.bucket, entry.total_buckets].append(entry.file)
    messages = tuple(
        CommitMessage(partition=partition, bucket=bucket, total_buckets=total, compact_before=tuple(files))
        for (partition, bucket, total), files in groups.items()
    )
    if not messages:
        return None
    return committer.commit(
        CommitRequest(
            commit_user=new_commit_user(committer.options.user_prefix), kind=CommitKind.OVERWRITE, messages=messages
        )
    )


def _live(ref: TableRef, store: MetadataStore) -> list[ManifestEntry]:
    plan = plan_scan(store, ref, store.load_latest_snapshot())
    return [entry for partition in plan.partitions for entry in partition.entries]
