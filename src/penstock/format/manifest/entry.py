"""Manifest lists and manifests as values; the entries of several manifests, merged.

Source:
    Paimon ``core:manifest/ManifestFileMeta.java``, ``ManifestEntry.java``, ``core:io/DataFileMeta.java``;
    docs/spec/format.md section 5; ``core:manifest/FileEntry.java``; docs/spec/format.md section 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


EMPTY_ROW: Final = bytes(12)
"""The serialized BinaryRow without fields: arity 0 and 8 bytes of header."""


class FileKind(IntEnum):
    """Kind of an entry; the value is ``_KIND`` on disk."""

    ADD = 0
    DELETE = 1


class FileSource(IntEnum):
    """Origin of a file; the value is ``_FILE_SOURCE`` on disk."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleStats:
    """Minimum, maximum and null count of each covered column.

    Attributes:
        min_values: serialized BinaryRow (arity prefix included), one nullable field per covered column.
        max_values: likewise.
        null_counts: one per covered column, None if unknown.
    """

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] = ()


EMPTY_STATS: Final = SimpleStats()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileMeta:
    """Metadata of one data file in an entry.

    Attributes:
        file_size: exact size in bytes; readers rely on it.
        value_stats: over ``value_stats_cols``.
        min_sequence_number: with ``max_sequence_number`` the position of its rows in the bucket's write order.
        schema_id: the schema that the file was written with.
        creation_millis: the writer's local wall clock taken as if it were UTC, in ms (that is how Java writes it).
        value_stats_cols: columns that ``value_stats`` covers; None = all columns of the schema, () = none.
        write_cols: columns that the file holds; None = all columns of the schema.
        external_path: full path if the file is outside of the table's directory.
        is_of_newer_release: whether the manifest has more fields than these, which a manifest of ours would lack.
    """

    file_name: str
    file_size: int
    row_count: int
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    value_stats: SimpleStats = EMPTY_STATS
    value_stats_cols: tuple[str, ...] | None = ()
    min_key: bytes = EMPTY_ROW
    max_key: bytes = EMPTY_ROW
    key_stats: SimpleStats = EMPTY_STATS
    level: int = 0
    extra_files: tuple[str, ...] = ()
    creation_millis: int | None = None
    delete_row_count: int | None = 0
    embedded_file_index: bytes | None = None
    file_source: FileSource | None = FileSource.APPEND
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    is_of_newer_release: bool = False


class StatsLayout(NamedTuple):
    """What files have in common whose statistics are in the same places; the fields are those of ``DataFileMeta``."""

    schema_id: int
    value_stats_cols: tuple[str, ...] | None
    write_cols: tuple[str, ...] | None
    is_orc: bool


class FileKey(NamedTuple):
    """What no two live files share; an adopted directory may have files of one name in several partitions."""

    partition: bytes
    bucket: int
    file_name: str


class FileIdentity(NamedTuple):
    """The identity of a file: entries with equal identity refer to the same file (docs/spec/format.md section 5.2)."""

    partition: bytes
    bucket: int
    level: int
    file_name: str
    extra_files: tuple[str, ...]
    embedded_file_index: bytes | None
    external_path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One change to the set of live files.

    Attributes:
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        bucket: 0 in unaware tables.
        total_buckets: the table's bucket count when the entry was written; -1 for unaware.
    """

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def key(self) -> FileKey:
        """The key of this entry's file among the live ones."""
        return FileKey(self.partition, self.bucket, self.file.file_name)

    @property
    def identity(self) -> FileIdentity:
        """The identity of this entry's file."""
        file = self.file
        return FileIdentity(
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_file_index,
            file.external_path,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNumbers:
    """The part of ``DataFileMeta`` that is needed to assign sequence numbers, and to see whether a merge is due."""

    file_name: str
    file_size: int
    row_count: int
    min_sequence_number: int
    max_sequence_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryNumbers:
    """The part of ``ManifestEntry`` that goes with ``FileNumbers``."""

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: FileNumbers


class BucketNumbers(NamedTuple):
    """The largest sequence numbers of a manifest's entries in one bucket.

    Attributes:
        total_buckets: of all these entries.
        added_max: largest sequence number of files in ADD entries; 0 if there are none.
        added_count: number of ADD entries with this number.
        deleted_max: largest sequence number of files in DELETE entries; 0 if there are none.
        deleted_count: number of DELETE entries with this number.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    added_max: int
    added_count: int
    deleted_max: int
    deleted_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFileMeta:
    """Metadata of one manifest in a manifest list.

    Attributes:
        file_size: exact size in bytes.
        num_added_files: number of ADD entries.
        num_deleted_files: number of DELETE entries; if it is 0, readers skip reading them.
        partition_stats: over the partition fields of all entries, never truncated.
        schema_id: the largest ``schema_id`` of the entries' files.
        min_bucket: None if the writer was older than 1.2.
    """

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


def merge_entries(
    entries: Iterable[ManifestEntry], is_whole: Callable[[ManifestEntry], bool] | None = None
) -> dict[FileIdentity, ManifestEntry]:
    """Cancel each ADD with the DELETE of the same file that follows it.

    Args:
        entries: in the order of the manifests, and of the entries in each.
        is_whole: whether all entries of the file of an entry are among them; of others, a DELETE between two ADD
            entries may be missing. None if all are.

    Returns:
        The remaining entries, in order of first occurrence. A remaining DELETE refers to a file that an older manifest
        adds; with all manifests of a snapshot as input there is none, unless the table is damaged.
    """
    merged: dict[FileIdentity, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        known = merged.get(identity)
        if known is None:
            merged[identity] = entry
        elif entry.kind is FileKind.ADD:
            if is_whole is not None and not is_whole(entry):
                del merged[identity]
                merged[identity] = entry
                continue
            raise FormatError(
                f"data file {entry.file.file_name} in bucket {entry.bucket} of partition {entry.partition.hex()} is "
                "added twice: the table's manifests are damaged; roll the table back to a snapshot before that"
            )
        elif known.kind is FileKind.ADD:
            del merged[identity]
        # A second DELETE changes nothing, and must not bring the file back.
    return merged
