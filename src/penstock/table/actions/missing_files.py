"""Removal of missing data files and missing manifests from a table's metadata.

Source:
    Paimon ``core:operation/ListUnexistingFiles.java``, ``flink:action/RemoveUnexistingFilesAction.java``,
    ``RemoveUnexistingManifestsAction.java``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import CommitConflictError
from penstock.format.snapshot import RESTORES, CommitKind
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest, LostManifests
from penstock.table.message import CommitMessage
from penstock.table.read.scan import live_entries, plan_scan
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry, ManifestFileMeta
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
    """Return the data files of the latest snapshot that are missing on storage, in scan order."""
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
    """Remove files from the metadata in an OVERWRITE snapshot; None if there are none."""
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
    plan = plan_scan(store, ref, store.load_latest_snapshot(), with_vectors=True)
    return [entry for partition in plan.partitions for entry in partition.entries]


_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingManifest:
    """A manifest of the latest snapshot that does not exist.

    Attributes:
        added_files: number of data files that it added, whose rows cannot be read.
        deleted_files: number of data files that it deleted and other manifests add; these become live again.
    """

    path: str
    added_files: int
    deleted_files: int


def find_missing_manifests(store: MetadataStore) -> tuple[MissingManifest, ...]:
    """Return the manifests of the latest snapshot that are missing on storage, in the order of its lists."""
    base = store.load_latest_snapshot()
    return () if base is None else tuple(_described(store, meta) for meta in _missing(store, base))


def drop_missing_manifests(committer: TableCommitter) -> tuple[MissingManifest, ...]:
    """Remove the missing manifests in an OVERWRITE snapshot that names the others; no snapshot if none is missing."""
    store = committer.store
    for number in range(_TRIES):
        base = store.load_latest_snapshot()
        missing = () if base is None else _missing(store, base)
        if base is None or not missing:
            return ()
        lost = frozenset(meta.file_name for meta in missing)
        request = CommitRequest(
            commit_user=new_commit_user(committer.options.user_prefix),
            kind=CommitKind.OVERWRITE,
            commit_empty=True,
            lost=LostManifests(names=lost, total_record_count=_count_rows(store, base, lost)),
            has_read=True,
            read=base,
            properties=((RESTORES, ""),),
        )
        try:
            committer.commit(request)
        except CommitConflictError:
            if number == _TRIES - 1:
                raise
            continue
        return tuple(_described(store, meta) for meta in missing)
    return ()


def _missing(store: MetadataStore, base: Snapshot) -> tuple[ManifestFileMeta, ...]:
    file_io, metas = store.file_io, store.load_manifests(base)
    if not metas:
        return ()
    directory = store.layout.manifest_path(metas[0].file_name).rpartition("/")[0]
    listed = {each.name for each in file_io.list(directory)}
    # Also checked by name: the listing may be slightly older than the file.
    return tuple(
        meta
        for meta in metas
        if meta.file_name not in listed and not file_io.has_file(store.layout.manifest_path(meta.file_name))
    )


def _count_rows(store: MetadataStore, base: Snapshot, lost: frozenset[str]) -> int:
    """Count the rows that can be read without the lost manifests."""
    metas = [meta for meta in store.load_manifests(base) if meta.file_name not in lost]
    entries = [entry for part in store.iter_manifests(metas, snapshot_id=base.id) for entry in part]
    return sum(entry.file.row_count for entry in live_entries(entries))


def _described(store: MetadataStore, meta: ManifestFileMeta) -> MissingManifest:
    return MissingManifest(
        path=store.layout.manifest_path(meta.file_name),
        added_files=meta.num_added_files,
        deleted_files=meta.num_deleted_files,
    )
