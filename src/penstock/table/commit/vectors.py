"""Deletion vectors in a commit: new ones are added, those of files that it removes go with them, and none is lost.

A file may be replaced only by rows that were read with the file's present vector: rows that another engine has deleted
since would come back.

Source:
    Paimon ``core:deletionvectors/append/BaseAppendDeleteFileMaintainer.java``; docs/spec/format.md section 9.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import CommitConflictError, NotFoundError, UnsupportedFeatureError
from penstock.format.deletion_vector import FRAME_BYTES, decode_deletion_vector, framed_vector
from penstock.format.layout import INDEX_MANIFEST_PREFIX
from penstock.format.manifest.entry import FileKey, FileKind
from penstock.format.manifest.index_manifest import VectorChanges, change_vectors
from penstock.options import BucketOptions, DeletionVectorOptions
from penstock.table.read.batches import DeletedRows, are_among_data_files
from penstock.table.read.scan import load_vector_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.format.manifest.entry import ManifestEntry
    from penstock.format.manifest.index_manifest import NewVector, VectorPlace
    from penstock.format.snapshot import Snapshot
    from penstock.table.commit.manifests import ManifestWriter
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


def check_vectors(
    ref: TableRef, store: MetadataStore, base: Snapshot | None, messages: Iterable[CommitMessage]
) -> None:
    """Raise CommitConflictError if rows of files to replace were deleted after the files were read."""
    if any(find_outdated(ref, store, base, messages)):
        raise CommitConflictError(
            f"table {ref.name}: another commit has deleted rows of files that were rewritten; nothing was committed: "
            "plan again from the latest snapshot"
        )


def find_outdated(
    ref: TableRef, store: MetadataStore, base: Snapshot | None, messages: Iterable[CommitMessage]
) -> list[CommitMessage]:
    """Return the messages whose files have other deletion vectors than those with which they were read.

    Messages that only remove files, with whatever rows they have, are none of them.
    """
    messages = [message for message in messages if message.compact_after or message.vectors]
    present = {} if base is None else load_vector_places(store, base)
    frames = VectorFrames(ref)
    return [
        message
        for message in messages
        for read in (dict(message.vectors),)
        if not all(frames.are_same(read.get(key.file_name), present.get(key)) for key in message.replaced)
    ]


class VectorFrames:
    """Reads deletion vectors as they are stored; each index file once."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._deleted = DeletedRows(ref)
        self._files: dict[str, bytes] = {}

    def path_of(self, place: VectorPlace) -> str:
        """Return the path of the file that has a vector."""
        return self._deleted.path_of(place)

    def read(self, place: VectorPlace) -> bytes:
        """Return a vector from its length to its checksum, which is right. Raises ``NotFoundError``."""
        path = self._deleted.path_of(place)
        if path not in self._files:
            self._files[path] = self._ref.file_io.read(path)
        return framed_vector(self._files[path][place.offset : place.offset + place.length + FRAME_BYTES], path)

    def are_same(self, read: VectorPlace | None, now: VectorPlace | None) -> bool:
        """Whether two places hold the same vector: a commit moves those of other files in the same index file."""
        if read is None or now is None:
            return read is now
        if read == now:
            return True
        try:
            return self.read(read) == self.read(now)
        except NotFoundError:
            return False  # the older one has expired

    def contains(self, place: VectorPlace | None, other: VectorPlace) -> bool:
        """Whether a vector deletes all rows of another one. Raises ``NotFoundError``."""
        if place is None or self.are_same(other, place):
            return place is not None
        rows, others = (decode_deletion_vector(self.read(each), self.path_of(each)) for each in (place, other))
        return bool(np.isin(others, rows, assume_unique=True).all())


def next_index_manifest(
    ref: TableRef,
    store: MetadataStore,
    base: Snapshot | None,
    delta: Sequence[ManifestEntry],
    messages: Sequence[CommitMessage],
    writer: ManifestWriter,
) -> str | None:
    """Return the index manifest of the next snapshot.

    It has the deletion vectors of the messages, and no more those of files that the snapshot removes.

    Args:
        delta: the entries of the next snapshot.
        writer: writes what is new.
    """
    # A file with another index is deleted and added, and keeps its vector.
    removed = {entry.key for entry in delta if entry.kind is FileKind.DELETE}
    removed -= {entry.key for entry in delta if entry.kind is FileKind.ADD}
    if removed:
        removed &= load_vector_places(store, base).keys() if base is not None else set()
    added: dict[tuple[bytes, int], list[NewVector]] = {}
    for message in messages:
        for vector in message.new_vectors:
            if vector.row_count:
                added.setdefault((message.partition, message.bucket), []).append(vector)
            else:
                removed.add(FileKey(message.partition, message.bucket, vector.data_file))
    if not removed and not added:
        return None if base is None else base.index_manifest
    is_bucketed = ref.parsed(BucketOptions).bucket > 0
    target_bytes = None if is_bucketed else ref.parsed(DeletionVectorOptions).target_file_bytes
    data = None if base is None else store.read_index_manifest(base)
    path = store.layout.manifest_path((base and base.index_manifest) or "")
    changes = VectorChanges(removed=removed, added=added, target_bytes=target_bytes)
    data = change_vectors(data, path, changes, _IndexFiles(ref, writer), store.limits)
    if data is None:
        return None
    name = f"{INDEX_MANIFEST_PREFIX}{uuid.uuid4()}-0"
    writer.write_file(store.layout.manifest_path(name), data)
    return name


class _IndexFiles(VectorFrames):
    """Reads and writes the index files of one attempt of a commit."""

    def __init__(self, ref: TableRef, writer: ManifestWriter) -> None:
        super().__init__(ref)
        self._writer = writer

    def write(self, data: bytes) -> str:
        """Write an index file and return its name."""
        if are_among_data_files(self._ref):
            raise UnsupportedFeatureError(
                f"table {self._ref.name}: 'index-file-in-data-file-dir' = 'true' puts deletion vectors into "
                "directories of buckets, where Penstock does not write them: change the table with Paimon on Flink or "
                "Spark"
            )
        name = f"index-{uuid.uuid4()}-0"
        self._writer.write_file(self._ref.layout.index_path(name), data)
        return name
