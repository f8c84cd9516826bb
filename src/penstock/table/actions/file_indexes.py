"""Indexes of existing data files by the present options; the data files are not rewritten (design/0103).

Source:
    Paimon ``core:index/FileIndexProcessor.java``, ``spark:procedure/RewriteFileIndexProcedure.java``.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from penstock.errors import CommitConflictError, NotFoundError, StorageError, UnsupportedFeatureError
from penstock.format.file_index import WRITTEN, decode_index_places, part_of
from penstock.format.file_index_writer import NO_INDEXES, encode_file_index
from penstock.format.layout import FILE_INDEX_SUFFIX, index_file_paths
from penstock.format.snapshot import CommitKind
from penstock.options import FileIndexOptions
from penstock.table.actions.manifests import merge_everything
from penstock.table.actions.rewriting import for_existing_rows
from penstock.table.assumptions import at_latest_schema
from penstock.table.bulk_files import map_parallel
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.partition_scope import OverwriteScope, partition_test
from penstock.table.read.batches import TableReader
from penstock.table.read.live import load_live_entries
from penstock.table.read.scan import load_vector_places
from penstock.table.read.split import make_unfiltered_split
from penstock.table.ref import FileLocator
from penstock.table.write.file_index import FileIndexWriter, plan_indexes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, FileIdentity, FileKey, ManifestEntry
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.write.file_index import IndexPlan

_TRIES: Final = 5
_MAX_THREADS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndexRewrite:
    """What a rewrite of indexes changes.

    Attributes:
        partitions: number of partitions with such files.
        files: number of data files that get another index, or lose theirs.
        snapshot: None if nothing changes, or with ``dry_run``.
    """

    partitions: int
    files: int
    snapshot: Snapshot | None = None


def rewrite_file_indexes(
    committer: TableCommitter, scope: OverwriteScope, *, dry_run: bool = False
) -> FileIndexRewrite:
    """Give the live files of partitions the indexes that the options ask for, in one COMPACT snapshot.

    The commit has the files with both indexes, so their index files have names of their own. The old ones are deleted
    with orphan files, since older snapshots name them.

    Raises:
        CommitConflictError: others replaced files at every attempt.
    """
    store = committer.store
    # A file may get back an index that it had. Readers of the reference skip the ADD entries of all files of which
    # there is a DELETE entry, so none with that index may stay in the base manifests.
    committer.manifest_options = merge_everything(committer.manifest_options)
    ref = at_latest_schema(committer.ref, store)
    test = partition_test(scope, touched=frozenset(), ref=ref)
    with _NewIndexes(ref, store, dry_run=dry_run) as indexes:
        for number in range(_TRIES):
            snapshot = store.load_latest_snapshot()
            entries = () if snapshot is None else tuple(load_live_entries(store, snapshot, test).values())
            threads = min(_MAX_THREADS, os.cpu_count() or 1)
            found = list(zip(entries, map_parallel(indexes.of, entries, threads=threads), strict=True))
            changed = indexes.with_peers(found)
            rewrite = FileIndexRewrite(partitions=len({entry.partition for entry, _ in changed}), files=len(changed))
            if dry_run or not changed or snapshot is None:
                return rewrite
            request = CommitRequest(
                commit_user=new_commit_user(committer.options.user_prefix),
                kind=CommitKind.COMPACT,
                messages=_messages(changed, load_vector_places(store, snapshot)),
            )
            try:
                committed = committer.commit(request)
            except CommitConflictError:
                if number == _TRIES - 1:
                    raise
            except BaseException:
                if committer.may_be_committed:
                    indexes.keep(entry for entry, _ in changed)
                raise
            else:
                indexes.keep(entry for entry, _ in changed)
                return replace(rewrite, snapshot=committed)
    raise AssertionError("the last try returns or raises")


def _messages(
    changed: Iterable[tuple[ManifestEntry, DataFileMeta]], vectors: Mapping[FileKey, VectorPlace]
) -> tuple[CommitMessage, ...]:
    groups: dict[tuple[bytes, int, int], list[tuple[ManifestEntry, DataFileMeta]]] = {}
    for entry, meta in changed:
        groups.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append((entry, meta))
    return tuple(
        CommitMessage(
            partition=partition,
            bucket=bucket,
            total_buckets=total_buckets,
            compact_before=tuple(entry.file for entry, _ in pairs),
            compact_after=tuple(meta for _, meta in pairs),
            vectors=tuple((entry.file.file_name, vectors[entry.key]) for entry, _ in pairs if entry.key in vectors),
        )
        for (partition, bucket, total_buckets), pairs in groups.items()
    )


class _NewIndexes:
    """Builds indexes of data files from their rows; deletes the index files that it has written, unless they are kept.

    Each index is built once. Threads may share it.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, *, dry_run: bool) -> None:
        self._ref = ref
        self._store = store
        self._dry_run = dry_run
        self._locator = FileLocator.of(ref)
        self._known: dict[FileIdentity, DataFileMeta | None] = {}
        self._written: dict[FileIdentity, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in self._written.values():
            with suppress(StorageError):
                self._ref.file_io.delete(path)

    def keep(self, entries: Iterable[ManifestEntry]) -> None:
        """Keep the index files of these data files."""
        for entry in entries:
            self._written.pop(entry.identity, None)

    def of(self, entry: ManifestEntry) -> DataFileMeta | None:
        """Return the metadata of a file with the indexes of the options; None if it has exactly these."""
        if entry.identity not in self._known:
            self._known[entry.identity] = self._indexed(entry)
        return self._known[entry.identity]

    def with_peers(
        self, found: Sequence[tuple[ManifestEntry, DataFileMeta | None]]
    ) -> list[tuple[ManifestEntry, DataFileMeta]]:
        """Return the files with other indexes, and those of queues whose order among these is that of the manifests.

        Files that begin with the same sequence number are read in this order, and new entries come last in it. So all
        of them get new entries: an index that stays as it is, also one of no column, gets into a file of another name.
        """
        places = {_place_of(entry) for entry, meta in found if meta is not None and entry.total_buckets > 0}
        for entry, meta in found:
            if meta is None and _place_of(entry) in places:
                self._known[entry.identity] = self._beside(entry, self._load(entry) or NO_INDEXES)
        return [(entry, meta) for entry, _ in found if (meta := self._known[entry.identity]) is not None]

    def _load(self, entry: ManifestEntry) -> bytes | None:
        """Return the present indexes of a file; None if there are none, or if their file is lost."""
        paths = index_file_paths(self._locator.path(entry.partition, entry.bucket, entry.file), entry.file)
        if entry.file.embedded_file_index is not None or len(paths) != 1:
            return entry.file.embedded_file_index
        with suppress(NotFoundError):
            return self._ref.file_io.read(paths[0])
        return None

    def _indexed(self, entry: ManifestEntry) -> DataFileMeta | None:
        file = entry.file
        path = self._locator.path(entry.partition, entry.bucket, file)
        index_paths = index_file_paths(path, file)
        old = self._load(entry)
        plan = plan_indexes(self._ref, self._store.load_schema(file.schema_id))
        others = {
            (kind, column): data
            for column, kinds in decode_index_places(old or b"").items()
            for kind, place in kinds.items()
            if kind not in WRITTEN and (data := part_of(old or b"", *place)) is not None
        }
        new = None if plan is None and not others else self._build(entry, plan, others)
        limit = self._ref.parsed(FileIndexOptions).in_manifest_bytes
        is_embedded = new is not None and len(new) <= limit
        is_beside = new is not None and not is_embedded
        is_placed = (is_embedded, int(is_beside)) == (file.embedded_file_index is not None, len(index_paths))
        # ``with_peers`` may have written a small index of a queue, or one of no column, to a file.
        is_with_peers = entry.total_buckets > 0 and file.embedded_file_index is None and len(index_paths) == 1
        if (new or NO_INDEXES) == (old or NO_INDEXES) and (is_placed or is_with_peers):
            return None
        extra_files = tuple(name for name in file.extra_files if not name.endswith(FILE_INDEX_SUFFIX))
        if new is None or is_embedded:
            self._check_release(file)
            return replace(file, extra_files=extra_files, embedded_file_index=new)
        return self._beside(entry, new)

    def _check_release(self, file: DataFileMeta) -> None:
        if file.is_of_newer_release:
            raise UnsupportedFeatureError(
                f"table {self._ref.name}: the manifest entry of {file.file_name} has fields of a newer release of "
                "Paimon, which it would lose with a new index; use that release"
            )

    def _beside(self, entry: ManifestEntry, index: bytes) -> DataFileMeta:
        """Write the index of a file to an index file, and return the file's metadata with its name."""
        file = entry.file
        self._check_release(file)
        # Two processes may rewrite the same index.
        name = f"{file.file_name}-{uuid.uuid4()}{FILE_INDEX_SUFFIX}"
        if not self._dry_run:
            directory = self._locator.path(entry.partition, entry.bucket, file).rpartition("/")[0]
            self._written[entry.identity] = f"{directory}/{name}"
            self._ref.file_io.write(f"{directory}/{name}", index)
        others = (each for each in file.extra_files if not each.endswith(FILE_INDEX_SUFFIX))
        return replace(file, extra_files=(*others, name), embedded_file_index=None)

    def _build(self, entry: ManifestEntry, plan: IndexPlan | None, others: Mapping[tuple[str, str], bytes]) -> bytes:
        """Return the indexes of a file, with those of kinds that only other engines write."""
        if plan is None:
            return encode_file_index(others)
        schema = self._store.load_schema(entry.file.schema_id)
        ref = for_existing_rows(
            replace(self._ref, schema=replace(schema, options=self._ref.schema.options)), have_ids=False
        )
        writer = FileIndexWriter(plan)
        reader = TableReader(ref, self._store, list(dict.fromkeys(column.name for column in plan.columns)))
        # Deleted rows too: a bitmap has the positions of rows in the file.
        split = make_unfiltered_split(ref, entry, (entry.file,))
        for batch in reader.read_file(split, entry.file):
            writer.write(batch)
        return writer.encode(others)


def _place_of(entry: ManifestEntry) -> tuple[bytes, int, int]:
    return entry.partition, entry.bucket, entry.file.min_sequence_number
