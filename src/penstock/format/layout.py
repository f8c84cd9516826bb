"""Names and paths of all files in a warehouse; paths are strings joined with ``/``.

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
    "branch_claim_path",
    "branch_identity_path",
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
    "freed_ids_of",
    "freed_ids_path",
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
"""Prefix of directories in a table's location where jobs write files for the table to adopt; the job's id follows."""

SUCCESS_NAME: Final = "_SUCCESS"
"""The file that marks a partition as done; also the suffix of a tag's success file."""

_SCHEMA_PREFIX: Final = "schema-"
_FREED_IDS_PREFIX: Final = "rolled-back-"
_SNAPSHOT_PREFIX: Final = "snapshot-"
_TAG_PREFIX: Final = "tag-"
_CONSUMER_PREFIX: Final = "consumer-"
_BRANCH_PREFIX: Final = "branch-"
_CHANGELOG_PREFIX: Final = "changelog-"

# Warehouse


def database_path(warehouse: str, database: str) -> str:
    """Return the directory of a database."""
    return f"{warehouse}/{database}{DATABASE_SUFFIX}"


def table_path(warehouse: str, database: str, table: str) -> str:
    """Return the directory of a table: its ``location``."""
    return f"{database_path(warehouse, database)}/{table}"


def branches_directory(location: str) -> str:
    """Return the directory of the branches other than main."""
    return f"{location}/branch"


def branch_path(location: str, branch: str) -> str:
    """Return the root of a branch's schemas, snapshots, tags and consumers; manifests and data stay at ``location``."""
    return location if branch == MAIN_BRANCH else f"{branches_directory(location)}/{_BRANCH_PREFIX}{branch}"


def branch_identity_path(root: str) -> str:
    """Return the file with the identity of a branch; other engines neither make nor read it.

    Args:
        root: result of ``branch_path``.
    """
    return f"{root}/.penstock-identity"


def branch_claim_path(root: str) -> str:
    """Return the file that names the process that is creating a branch; arguments as ``branch_identity_path``."""
    return f"{root}/.penstock-creation"


def database_name_of(name: str) -> str | None:
    """Return the database name for a directory of the warehouse; None if it is not a database."""
    database = name.removesuffix(DATABASE_SUFFIX)
    return database if database and database != name else None


# Metadata of a table


def schema_directory(location: str) -> str:
    """Return the directory of the schema files."""
    return f"{location}/schema"


def schema_path(location: str, schema_id: int) -> str:
    """Return the schema file of that id."""
    return f"{location}/schema/{_SCHEMA_PREFIX}{schema_id}"


def freed_ids_path(location: str, first: int, last: int) -> str:
    """Return the file whose name records that a rollback has freed these snapshot ids; ``last`` included.

    It is among the schemas, whose directory every commit lists; other engines ignore it.
    """
    return f"{schema_directory(location)}/{_FREED_IDS_PREFIX}{first}-{last}"


def snapshot_directory(location: str) -> str:
    """Return the directory of the snapshot files and hints."""
    return f"{location}/snapshot"


def snapshot_path(location: str, snapshot_id: int) -> str:
    """Return the snapshot file of that id."""
    return f"{location}/snapshot/{_SNAPSHOT_PREFIX}{snapshot_id}"


def latest_hint_path(location: str) -> str:
    """Return the hint file for the latest snapshot; it may lag, be partially written, or be missing."""
    return f"{location}/snapshot/LATEST"


def earliest_hint_path(location: str) -> str:
    """Return the hint file for the earliest snapshot; it may lag, be partially written, or be missing."""
    return f"{location}/snapshot/EARLIEST"


def changelog_directory(location: str) -> str:
    """Return the directory of changelogs that are kept after their snapshots have expired."""
    return f"{location}/changelog"


def tag_directory(location: str) -> str:
    """Return the directory of the tag files."""
    return f"{location}/tag"


def tag_path(location: str, tag: str) -> str:
    """Return the tag file of that name, which is not escaped."""
    return f"{location}/tag/{_TAG_PREFIX}{tag}"


def tag_success_path(location: str, tag: str) -> str:
    """Return the file that marks a tag as complete, written if ``tag.create-success-file`` is set."""
    return f"{location}/tag/tag-success-file/{tag}{SUCCESS_NAME}"


def partition_success_path(location: str, partition: str) -> str:
    """Return the file that marks a partition as done.

    Args:
        partition: result of ``partition_dir``. The option ``data-file.path-directory`` is not used.
    """
    return f"{location}/{partition}/{SUCCESS_NAME}"


def consumer_directory(location: str) -> str:
    """Return the directory of the consumer files."""
    return f"{location}/consumer"


def consumer_path(location: str, consumer: str) -> str:
    """Return the consumer file of that id."""
    return f"{location}/consumer/{_CONSUMER_PREFIX}{consumer}"


def manifest_directory(location: str) -> str:
    """Return the directory of manifests, manifest lists and index manifests."""
    return f"{location}/manifest"


def manifest_path(location: str, name: str) -> str:
    """Return the file of a manifest, manifest list or index manifest."""
    return f"{location}/manifest/{name}"


def index_directory(location: str) -> str:
    """Return the directory of the index files."""
    return f"{location}/index"


def index_path(location: str, name: str) -> str:
    """Return an index file named in an index manifest."""
    return f"{location}/index/{name}"


def statistics_directory(location: str) -> str:
    """Return the directory of the statistics files."""
    return f"{location}/statistics"


def statistics_path(location: str, name: str) -> str:
    """Return a statistics file named in a snapshot."""
    return f"{location}/statistics/{name}"


def own_directory(location: str) -> str:
    """Return the directory of Penstock's own files: leases, the ledger of done partitions, files of queries."""
    return f"{location}/.penstock"


def expiring_path(location: str) -> str:
    """Return the file with the id of the first snapshot that the furthest expiration so far keeps."""
    return f"{own_directory(location)}/expiring"


def rolling_back_path(location: str, name: str) -> str:
    """Return the file that marks a running rollback; ``name`` is random."""
    return f"{own_directory(location)}/rolling-back-{name}"


def query_directory(location: str) -> str:
    """Return the directory with one file per streaming query that writes to the table."""
    return f"{own_directory(location)}/queries"


def lease_directory(location: str) -> str:
    """Return the directory of the leases; other engines do not use it."""
    return f"{own_directory(location)}/leases"


def done_ledger_path(location: str) -> str:
    """Return the file that lists the partitions marked done; other engines do not use it."""
    return f"{own_directory(location)}/done-partitions"


# Names in a listing


def snapshot_id_of(name: str) -> int | None:
    """Return the snapshot id in a file name; None for other files."""
    return _number_after(_SNAPSHOT_PREFIX, name)


def changelog_id_of(name: str) -> int | None:
    """Return the changelog id in a file name; None for other files."""
    return _number_after(_CHANGELOG_PREFIX, name)


def schema_id_of(name: str) -> int | None:
    """Return the schema id in a file name; None for other files."""
    return _number_after(_SCHEMA_PREFIX, name)


def freed_ids_of(name: str) -> range | None:
    """Return the snapshot ids that a file name records as freed by a rollback; None for other files."""
    first, _, last = (_rest_after(_FREED_IDS_PREFIX, name) or "").partition("-")
    first_id, last_id = _number_after("", first), _number_after("", last)
    return None if first_id is None or last_id is None else range(first_id, last_id + 1)


def tag_name_of(name: str) -> str | None:
    """Return the tag name in a file name; None for other files."""
    return _rest_after(_TAG_PREFIX, name)


def consumer_id_of(name: str) -> str | None:
    """Return the consumer id in a file name; None for other files."""
    return _rest_after(_CONSUMER_PREFIX, name)


def branch_name_of(name: str) -> str | None:
    """Return the branch name in a directory name; None for other directories."""
    return _rest_after(_BRANCH_PREFIX, name)


def _number_after(prefix: str, name: str) -> int | None:
    digits = _rest_after(prefix, name) or ""
    # 19 digits suffice for every 64-bit id; with leading zeros the name would denote the id of another file.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19) or str(int(digits)) != digits:
        return None
    return int(digits)


def _rest_after(prefix: str, name: str) -> str | None:
    return name[len(prefix) :] or None if name.startswith(prefix) else None


# Data files


def bucket_dir(location: str, partition: str, bucket: int, data_directory: str | None = None) -> str:
    """Return the directory of a bucket's data files.

    Args:
        partition: result of ``partition_dir``.
        bucket: 0 in unaware tables.
        data_directory: option ``data-file.path-directory``.
    """
    return "/".join(part for part in (location, data_directory, partition, f"bucket-{bucket}") if part)


def data_file_path(location: str, entry: ManifestEntry, partition: str, data_directory: str | None = None) -> str:
    """Return the path of an entry's data file: its external path if it has one.

    Args:
        partition: result of ``partition_dir`` for the entry's partition.
        data_directory: option ``data-file.path-directory``.
    """
    external = entry.file.external_path
    if external is not None:
        return external
    return f"{bucket_dir(location, partition, entry.bucket, data_directory)}/{entry.file.file_name}"


def extra_file_paths(data_path: str, file: DataFileMeta) -> tuple[str, ...]:
    """Return the paths of a data file's extra files (indexes), which are in the same directory."""
    directory = data_path.rpartition("/")[0]
    return tuple(f"{directory}/{name}" for name in file.extra_files)


def compression_suffix(codec: str) -> str | None:
    """Return a codec's extension for ``file.suffix.include.compression``; None for a codec without one."""
    return CODEC_SUFFIXES.get(codec.lower())


def data_file_name(
    prefix: str, uuid: str, number: int, file_format: FileFormat, compression_suffix: str | None = None
) -> str:
    """Return the name of a new data file.

    Args:
        prefix: option ``data-file.prefix``.
        uuid: random, one per writer of a bucket.
        number: sequence number of the writer's file, from 0.
        compression_suffix: result of ``compression_suffix``, if the table's file names include the codec.
    """
    codec = f".{compression_suffix}" if compression_suffix else ""
    return f"{prefix}{uuid}-{number}{codec}.{file_format}"


class NameSource:
    """Generates ``<prefix><uuid>-0``, ``-1``, …; one for each kind of file and commit.

    Args:
        prefix: such as ``MANIFEST_PREFIX``.
        uuid: random, one per commit; several kinds may share it.
    """

    def __init__(self, prefix: str, uuid: str) -> None:
        self._stem = f"{prefix}{uuid}"
        self._numbers = count()

    def next_name(self) -> str:
        """Return the next unused name."""
        return f"{self._stem}-{next(self._numbers)}"
