"""Names and paths of all files in a warehouse; paths are strings joined with ``/``.

The format of a data file follows from its name alone.

Source:
    Paimon ``core:utils/FileStorePathFactory.java``, ``SnapshotManager.java``, ``TagManager.java``,
    ``core:consumer/ConsumerManager.java``, ``core:io/DataFilePathFactory.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Final

from penstock.errors import UnsupportedFeatureError
from penstock.format.text.partitions import escape_path_name, partition_dir

if TYPE_CHECKING:
    from penstock.format.manifest.entry import DataFileMeta

__all__ = [
    "BRANCH_MARK",
    "DATABASE_SUFFIX",
    "DATA_PREFIX",
    "FILE_INDEX_SUFFIX",
    "INDEX_MANIFEST_PREFIX",
    "MAIN_BRANCH",
    "MANIFEST_LIST_PREFIX",
    "MANIFEST_PREFIX",
    "STAGING_PREFIX",
    "SUCCESS_NAME",
    "NameSource",
    "TableLayout",
    "all_file_paths",
    "branch_name_of",
    "changelog_id_of",
    "compression_suffix",
    "consumer_id_of",
    "data_file_name",
    "database_name_of",
    "database_path",
    "escape_path_name",
    "format_of",
    "freed_ids_of",
    "index_file_paths",
    "partition_dir",
    "schema_id_of",
    "snapshot_id_of",
    "split_branch",
    "table_path",
    "tag_name_of",
]


class FileFormat(StrEnum):
    """Format of a data file; the value is the file extension and the text of option ``file.format``."""

    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


CODEC_SUFFIXES: Final = {
    "gzip": "gz",
    "bzip2": "bz2",
    "deflate": "deflate",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zst",
}
"""Codec name to the extension that Hadoop uses for it."""

_CODEC_EXTENSIONS: Final = frozenset(CODEC_SUFFIXES.values())

_FORMATS: Final = {each.value: each for each in FileFormat}


def format_of(file_name: str) -> FileFormat:
    """Return a data file's format from its last extension; one codec extension after it is skipped.

    Table options are not used: one table may mix formats.
    """
    parts = file_name.rpartition("/")[2].split(".")[1:]
    if len(parts) > 1 and parts[-1] in _CODEC_EXTENSIONS:
        parts.pop()
    extension = parts[-1] if parts else ""
    found = _FORMATS.get(extension)
    if found is None:
        raise UnsupportedFeatureError(
            f"data file '{file_name}' has format '{extension}': only parquet, orc and avro are read; "
            "rewrite it with one of them"
        )
    return found


DATABASE_SUFFIX: Final = ".db"
DATA_PREFIX: Final = "data-"
MANIFEST_PREFIX: Final = "manifest-"
MANIFEST_LIST_PREFIX: Final = "manifest-list-"
INDEX_MANIFEST_PREFIX: Final = "index-manifest-"
MAIN_BRANCH: Final = "main"
BRANCH_MARK: Final = "$branch_"
"""What stands between the names of a table and of its branch: ``t$branch_b``."""

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


def database_name_of(name: str) -> str | None:
    """Return the database name for a directory of the warehouse; None if it is not a database."""
    database = name.removesuffix(DATABASE_SUFFIX)
    return database if database and database != name else None


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Paths of the files and directories of one table.

    Attributes:
        location: the table's directory, without a slash at the end; for a branch see ``branch``.
    """

    location: str

    # Schemas, snapshots, tags and consumers; each branch has its own.

    @property
    def schema_directory(self) -> str:
        """Directory of the schema files."""
        return f"{self.location}/schema"

    def schema_path(self, schema_id: int) -> str:
        """Return the schema file of that id."""
        return f"{self.location}/schema/{_SCHEMA_PREFIX}{schema_id}"

    def freed_ids_path(self, first: int, last: int) -> str:
        """Return the file whose name records that a rollback has freed these snapshot ids; ``last`` included.

        It is among the schemas, whose directory every commit lists; other engines ignore it.
        """
        return f"{self.schema_directory}/{_FREED_IDS_PREFIX}{first}-{last}"

    @property
    def snapshot_directory(self) -> str:
        """Directory of the snapshot files and hints."""
        return f"{self.location}/snapshot"

    def snapshot_path(self, snapshot_id: int) -> str:
        """Return the snapshot file of that id."""
        return f"{self.location}/snapshot/{_SNAPSHOT_PREFIX}{snapshot_id}"

    @property
    def latest_hint_path(self) -> str:
        """Hint file for the latest snapshot; it may lag, be partially written, or be missing."""
        return f"{self.location}/snapshot/LATEST"

    @property
    def earliest_hint_path(self) -> str:
        """Hint file for the earliest snapshot; it may lag, be partially written, or be missing."""
        return f"{self.location}/snapshot/EARLIEST"

    @property
    def changelog_directory(self) -> str:
        """Directory of changelogs that are kept after their snapshots have expired."""
        return f"{self.location}/changelog"

    @property
    def tag_directory(self) -> str:
        """Directory of the tag files."""
        return f"{self.location}/tag"

    def tag_path(self, tag: str) -> str:
        """Return the tag file of that name, which is not escaped."""
        return f"{self.location}/tag/{_TAG_PREFIX}{tag}"

    def tag_success_path(self, tag: str) -> str:
        """Return the file that marks a tag as complete, written if ``tag.create-success-file`` is set."""
        return f"{self.location}/tag/tag-success-file/{tag}{SUCCESS_NAME}"

    @property
    def consumer_directory(self) -> str:
        """Directory of the consumer files."""
        return f"{self.location}/consumer"

    def consumer_path(self, consumer: str) -> str:
        """Return the consumer file of that id."""
        return f"{self.location}/consumer/{_CONSUMER_PREFIX}{consumer}"

    # Branches

    @property
    def branches_directory(self) -> str:
        """Directory of the branches other than main."""
        return f"{self.location}/branch"

    def branch(self, name: str) -> TableLayout:
        """Return the layout of a branch's schemas, snapshots, tags and consumers; the other files are the table's."""
        return self if name == MAIN_BRANCH else TableLayout(f"{self.branches_directory}/{_BRANCH_PREFIX}{name}")

    @property
    def branch_identity_path(self) -> str:
        """File with the identity of a branch, whose layout this is; other engines neither make nor read it."""
        return f"{self.location}/.penstock-identity"

    @property
    def branch_claim_path(self) -> str:
        """File that names the process that is creating a branch, whose layout this is."""
        return f"{self.location}/.penstock-creation"

    # Manifests and data

    @property
    def manifest_directory(self) -> str:
        """Directory of manifests, manifest lists and index manifests."""
        return f"{self.location}/manifest"

    def manifest_path(self, name: str) -> str:
        """Return the file of a manifest, manifest list or index manifest."""
        return f"{self.location}/manifest/{name}"

    @property
    def index_directory(self) -> str:
        """Directory of the index files."""
        return f"{self.location}/index"

    def index_path(self, name: str) -> str:
        """Return an index file named in an index manifest."""
        return f"{self.location}/index/{name}"

    @property
    def statistics_directory(self) -> str:
        """Directory of the statistics files."""
        return f"{self.location}/statistics"

    def statistics_path(self, name: str) -> str:
        """Return a statistics file named in a snapshot."""
        return f"{self.location}/statistics/{name}"

    def partition_success_path(self, partition: str) -> str:
        """Return the file that marks a partition as done.

        Args:
            partition: result of ``partition_dir``. The option ``data-file.path-directory`` is not used.
        """
        return f"{self.location}/{partition}/{SUCCESS_NAME}"

    def bucket_directory(self, partition: str, bucket: int, data_directory: str | None = None) -> str:
        """Return the directory of a bucket's data files.

        Args:
            partition: result of ``partition_dir``.
            bucket: 0 in unaware tables.
            data_directory: option ``data-file.path-directory``.
        """
        return "/".join(part for part in (self.location, data_directory, partition, f"bucket-{bucket}") if part)

    # Penstock's own files, which other engines do not use

    @property
    def own_directory(self) -> str:
        """Directory of Penstock's own files: leases, the ledger of done partitions, files of queries."""
        return f"{self.location}/.penstock"

    @property
    def expiring_path(self) -> str:
        """File with the id of the first snapshot that the furthest expiration so far keeps."""
        return f"{self.own_directory}/expiring"

    @property
    def restored_path(self) -> str:
        """File that is there if files may have become live again after they were deleted."""
        return f"{self.own_directory}/restored"

    def rolling_back_path(self, name: str) -> str:
        """Return the file that marks a running rollback; ``name`` is random."""
        return f"{self.own_directory}/rolling-back-{name}"

    @property
    def query_directory(self) -> str:
        """Directory with one file per streaming query that writes to the table."""
        return f"{self.own_directory}/queries"

    @property
    def lease_directory(self) -> str:
        """Directory of the leases."""
        return f"{self.own_directory}/leases"

    @property
    def done_ledger_path(self) -> str:
        """File that lists the partitions marked done."""
        return f"{self.own_directory}/done-partitions"


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


def split_branch(name: str) -> tuple[str, str | None]:
    """Return the name of the table and of the branch in ``t$branch_b``; None for the main branch."""
    table, mark, branch = name.partition(BRANCH_MARK)
    return (table, branch) if mark and branch else (name, None)


def _number_after(prefix: str, name: str) -> int | None:
    digits = _rest_after(prefix, name) or ""
    # 19 digits suffice for every 64-bit id; with leading zeros the name would denote the id of another file.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19) or str(int(digits)) != digits:
        return None
    return int(digits)


def _rest_after(prefix: str, name: str) -> str | None:
    return name[len(prefix) :] or None if name.startswith(prefix) else None


# Data files


FILE_INDEX_SUFFIX: Final = ".index"


def all_file_paths(data_path: str, file: DataFileMeta) -> tuple[str, ...]:
    """Return the paths of a data file and of its extra files (indexes), which are in the same directory."""
    directory = data_path.rpartition("/")[0]
    return data_path, *(f"{directory}/{name}" for name in file.extra_files)


def index_file_paths(data_path: str, file: DataFileMeta) -> list[str]:
    """Return the paths of a data file's index files: one, unless another engine wrote more."""
    return [path for path in all_file_paths(data_path, file)[1:] if path.endswith(FILE_INDEX_SUFFIX)]


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
