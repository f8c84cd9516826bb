"""Names and places of everything in a warehouse; paths are strings joined with ``/``.

Source:
    Paimon ``core:utils/FileStorePathFactory.java``, ``SnapshotManager.java``, ``TagManager.java``,
    ``core:consumer/ConsumerManager.java``, ``core:io/DataFilePathFactory.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from penstock.format.file_format import CODEC_SUFFIXES, format_of
from penstock.format.text.partitions import escape_path_name, partition_dir

if TYPE_CHECKING:
    from penstock.format.file_format import FileFormat
    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry

__all__ = [
    "DATABASE_SUFFIX",
    "DATA_PREFIX",
    "INDEX_MANIFEST_PREFIX",
    "MAIN_BRANCH",
    "MANIFEST_LIST_PREFIX",
    "MANIFEST_PREFIX",
    "STAGING_PREFIX",
    "SUCCESS_NAME",
    "NameSource",
    "branch_name_of",
    "branch_path",
    "branches_directory",
    "bucket_dir",
    "changelog_directory",
    "changelog_id_of",
    "compression_suffix",
    "consumer_directory",
    "consumer_id_of",
    "consumer_path",
    "data_file_name",
    "data_file_path",
    "database_name_of",
    "database_path",
    "done_ledger_path",
    "earliest_hint_path",
    "escape_path_name",
    "expiring_path",
    "extra_file_paths",
    "format_of",
    "index_directory",
    "index_path",
    "latest_hint_path",
    "lease_directory",
    "manifest_directory",
    "manifest_path",
    "own_directory",
    "partition_dir",
    "partition_success_path",
    "query_directory",
    "rolling_back_path",
    "schema_directory",
    "schema_id_of",
    "schema_path",
    "snapshot_directory",
    "snapshot_id_of",
    "snapshot_path",
    "statistics_directory",
    "statistics_path",
    "table_path",
    "tag_directory",
    "tag_name_of",
    "tag_path",
    "tag_success_path",
]

DATABASE_SUFFIX: Final = ".db"
DATA_PREFIX: Final = "data-"
MANIFEST_PREFIX: Final = "manifest-"
MANIFEST_LIST_PREFIX: Final = "manifest-list-"
INDEX_MANIFEST_PREFIX: Final = "index-manifest-"
MAIN_BRANCH: Final = "main"
STAGING_PREFIX: Final = ".penstock-"
"""Directories at a table's location in which jobs write what the table then takes over; the job's id follows."""

SUCCESS_NAME: Final = "_SUCCESS"
"""The file of a partition that is done; the end of the name of a tag's."""

_SCHEMA_PREFIX: Final = "schema-"
_SNAPSHOT_PREFIX: Final = "snapshot-"
_TAG_PREFIX: Final = "tag-"
_CONSUMER_PREFIX: Final = "consumer-"
_BRANCH_PREFIX: Final = "branch-"
_CHANGELOG_PREFIX: Final = "changelog-"

# Warehouse


def database_path(warehouse: str, database: str) -> str:
    """Directory of a database."""
    return f"{warehouse}/{database}{DATABASE_SUFFIX}"


def table_path(warehouse: str, database: str, table: str) -> str:
    """Directory of a table: its ``location``."""
    return f"{database_path(warehouse, database)}/{table}"


def branches_directory(location: str) -> str:
    """Directory of the branches beside the main one."""
    return f"{location}/branch"


def branch_path(location: str, branch: str) -> str:
    """Root of a branch's schemas, snapshots, tags and consumers; manifests and data stay at ``location``."""
    return location if branch == MAIN_BRANCH else f"{branches_directory(location)}/{_BRANCH_PREFIX}{branch}"


def database_name_of(name: str) -> str | None:
    """Name of the database that a directory of the warehouse is; None when it is none."""
    database = name.removesuffix(DATABASE_SUFFIX)
    return database if database and database != name else None


# Metadata of a table


def schema_directory(location: str) -> str:
    """Directory of the schema files."""
    return f"{location}/schema"


def schema_path(location: str, schema_id: int) -> str:
    """Schema file of that id."""
    return f"{location}/schema/{_SCHEMA_PREFIX}{schema_id}"


def snapshot_directory(location: str) -> str:
    """Directory of the snapshot files and hints."""
    return f"{location}/snapshot"


def snapshot_path(location: str, snapshot_id: int) -> str:
    """Snapshot file of that id."""
    return f"{location}/snapshot/{_SNAPSHOT_PREFIX}{snapshot_id}"


def latest_hint_path(location: str) -> str:
    """Hint at the latest snapshot; may lag, be half-written, or be missing."""
    return f"{location}/snapshot/LATEST"


def earliest_hint_path(location: str) -> str:
    """Hint at the earliest snapshot; may lag, be half-written, or be missing."""
    return f"{location}/snapshot/EARLIEST"


def changelog_directory(location: str) -> str:
    """Directory of changelogs that outlive their snapshots."""
    return f"{location}/changelog"


def tag_directory(location: str) -> str:
    """Directory of the tag files."""
    return f"{location}/tag"


def tag_path(location: str, tag: str) -> str:
    """Tag file of that name, which is not escaped."""
    return f"{location}/tag/{_TAG_PREFIX}{tag}"


def tag_success_path(location: str, tag: str) -> str:
    """File that says that a tag is whole, where ``tag.create-success-file`` asks for one."""
    return f"{location}/tag/tag-success-file/{tag}{SUCCESS_NAME}"


def partition_success_path(location: str, partition: str) -> str:
    """File that says that a partition is done.

    Args:
        partition: what ``partition_dir`` returned. An option ``data-file.path-directory`` plays no part.
    """
    return f"{location}/{partition}/{SUCCESS_NAME}"


def consumer_directory(location: str) -> str:
    """Directory of the consumer files."""
    return f"{location}/consumer"


def consumer_path(location: str, consumer: str) -> str:
    """Consumer file of that id."""
    return f"{location}/consumer/{_CONSUMER_PREFIX}{consumer}"


def manifest_directory(location: str) -> str:
    """Directory of manifests, manifest lists and index manifests."""
    return f"{location}/manifest"


def manifest_path(location: str, name: str) -> str:
    """File of a manifest, manifest list or index manifest."""
    return f"{location}/manifest/{name}"


def index_directory(location: str) -> str:
    """Directory of the index files."""
    return f"{location}/index"


def index_path(location: str, name: str) -> str:
    """Index file that an index manifest names."""
    return f"{location}/index/{name}"


def statistics_directory(location: str) -> str:
    """Directory of the statistics files."""
    return f"{location}/statistics"


def statistics_path(location: str, name: str) -> str:
    """Statistics file that a snapshot names."""
    return f"{location}/statistics/{name}"


def own_directory(location: str) -> str:
    """Directory of what no other engine knows: leases, the ledger of done partitions, notes of queries."""
    return f"{location}/.penstock"


def expiring_path(location: str) -> str:
    """File that names the first snapshot which the furthest expiration so far keeps."""
    return f"{own_directory(location)}/expiring"


def rolling_back_path(location: str, name: str) -> str:
    """Mark of a rollback that runs; such names are drawn at random."""
    return f"{own_directory(location)}/rolling-back-{name}"


def query_directory(location: str) -> str:
    """Directory with a file for each streaming query that writes to the table."""
    return f"{own_directory(location)}/queries"


def lease_directory(location: str) -> str:
    """Directory of the leases; no other engine knows it."""
    return f"{own_directory(location)}/leases"


def done_ledger_path(location: str) -> str:
    """File that remembers which partitions were marked done; no other engine knows it."""
    return f"{own_directory(location)}/done-partitions"


# Names in a listing


def snapshot_id_of(name: str) -> int | None:
    """Id of the snapshot file of that name; None when it is something else."""
    return _number_after(_SNAPSHOT_PREFIX, name)


def changelog_id_of(name: str) -> int | None:
    """Id of the changelog file of that name; None when it is something else."""
    return _number_after(_CHANGELOG_PREFIX, name)


def schema_id_of(name: str) -> int | None:
    """Id of the schema file of that name; None when it is something else."""
    return _number_after(_SCHEMA_PREFIX, name)


def tag_name_of(name: str) -> str | None:
    """Name of the tag whose file has that name; None when it is something else."""
    return _rest_after(_TAG_PREFIX, name)


def consumer_id_of(name: str) -> str | None:
    """Id of the consumer whose file has that name; None when it is something else."""
    return _rest_after(_CONSUMER_PREFIX, name)


def branch_name_of(name: str) -> str | None:
    """Name of the branch whose directory has that name; None when it is something else."""
    return _rest_after(_BRANCH_PREFIX, name)


def _number_after(prefix: str, name: str) -> int | None:
    digits = _rest_after(prefix, name) or ""
    # 19 digits hold every 64-bit id; one with zeros in front would stand for another file's id.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19) or str(int(digits)) != digits:
        return None
    return int(digits)


def _rest_after(prefix: str, name: str) -> str | None:
    return name[len(prefix) :] or None if name.startswith(prefix) else None


# Data files


def bucket_dir(location: str, partition: str, bucket: int, data_directory: str | None = None) -> str:
    """Directory of a bucket's data files.

    Args:
        partition: what ``partition_dir`` returned.
        bucket: 0 in unaware tables.
        data_directory: option ``data-file.path-directory``.
    """
    return "/".join(part for part in (location, data_directory, partition, f"bucket-{bucket}") if part)


def data_file_path(location: str, entry: ManifestEntry, partition: str, data_directory: str | None = None) -> str:
    """Path of the data file that an entry names: its external path if it has one.

    Args:
        partition: what ``partition_dir`` returned for the entry's partition.
        data_directory: option ``data-file.path-directory``.
    """
    external = entry.file.external_path
    if external is not None:
        return external
    return f"{bucket_dir(location, partition, entry.bucket, data_directory)}/{entry.file.file_name}"


def extra_file_paths(data_path: str, file: DataFileMeta) -> tuple[str, ...]:
    """Paths of the files that belong to a data file (indexes); they lie beside it."""
    directory = data_path.rpartition("/")[0]
    return tuple(f"{directory}/{name}" for name in file.extra_files)


def compression_suffix(codec: str) -> str | None:
    """Extension of a codec for ``file.suffix.include.compression``; None for a codec without one."""
    return CODEC_SUFFIXES.get(codec.lower())


def data_file_name(
    prefix: str, uuid: str, number: int, file_format: FileFormat, compression_suffix: str | None = None
) -> str:
    """Name of a writer's data file.

    Args:
        prefix: option ``data-file.prefix``.
        uuid: drawn once per writer of one bucket.
        number: counts a writer's files from 0.
        compression_suffix: what ``compression_suffix`` returned, where the table's names carry the codec.
    """
    codec = f".{compression_suffix}" if compression_suffix else ""
    return f"{prefix}{uuid}-{number}{codec}.{file_format}"


class NameSource:
    """Gives out ``<prefix><uuid>-0``, ``-1``, …; one for each kind of file and commit.

    Args:
        prefix: such as ``MANIFEST_PREFIX``.
        uuid: drawn by the caller, once per commit; kinds may share it.
    """

    def __init__(self, prefix: str, uuid: str) -> None:
        self._stem = f"{prefix}{uuid}"
        self._numbers = count()

    def next_name(self) -> str:
        """Return a name that was not given out before."""
        return f"{self._stem}-{next(self._numbers)}"
