"""Commit messages: the files that a writer passes to the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.format.manifest.entry import FileKey

if TYPE_CHECKING:
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import NewVector, VectorPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """The files that one task wrote for one bucket. Holds only values; tasks send it to the driver by pickle.

    Attributes:
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        bucket: 0 in unaware tables.
        total_buckets: the table's bucket count; -1 for unaware.
        new_files: in write order; their sequence numbers are preliminary (0 .. rows-1 over this message's files). The
            commit assigns the final ones, in the order of the messages.
        compact_before: files that ``compact_after`` replaces.
        vectors: file names and deletion vectors with which ``compact_before`` was read.
        new_vectors: deletion vectors that other files get; the commit writes their index files. Only with ``has_read``
            of the request.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    vectors: tuple[tuple[str, VectorPlace], ...] = ()
    new_vectors: tuple[NewVector, ...] = ()

    @property
    def replaced(self) -> tuple[FileKey, ...]:
        """The keys of the files of ``compact_before``."""
        return tuple(FileKey(self.partition, self.bucket, file.file_name) for file in self.compact_before)
