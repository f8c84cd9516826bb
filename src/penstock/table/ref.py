"""Reference to a table as a picklable value: name, location, storage, schema and options; the paths of its data files.

A manifest can name any path of the machine, so the table alone must not decide which files are opened. A file outside
of the table's directory is used only if the table declares its directory and the user allows it: the table's option
``data-file.external-paths`` declares where its writers put files. The options ``penstock.external-paths.read`` and
``.delete``, set on the catalog or for one handle, say which of those directories this process may use (design/0017).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

from penstock.errors import TableStoreError, UnsupportedFeatureError
from penstock.format.layout import TableLayout
from penstock.format.row.row import decode_row
from penstock.format.text.partitions import partition_dir, partition_text
from penstock.io.resolve import resolve
from penstock.options import CommitOptions, LayoutOptions, metadata_limits
from penstock.options.check import check_one_use
from penstock.options.external import PREFIX, ExternalPathOptions
from penstock.options.group import OptionGroup
from penstock.options.write import DURABLE_KEY

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from penstock.format.avro.values import AvroLimits
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO


GroupT = TypeVar("GroupT", bound=OptionGroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table with one schema and the options of one handle. Picklable, so that it can be sent to Spark tasks.

    Attributes:
        name: ``db.table`` for messages, or the location where the table was opened without a catalog.
        location: the table's directory, in the form that ``file_io`` takes, without a slash at the end.
        file_io: storage of the location.
        schema: the schema to read or write with; its options are those stored on disk.
        dynamic_options: options of this handle; they override those of the schema.
    """

    name: str
    location: str
    file_io: FileIO
    schema: TableSchema
    dynamic_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def layout(self) -> TableLayout:
        """Paths of the table's files."""
        return TableLayout(self.location)

    @property
    def options(self) -> dict[str, str]:
        """Stored options, overridden by those of this handle."""
        return {**dict(self.schema.options), **dict(self.dynamic_options)}

    def parsed(self, group: type[GroupT]) -> GroupT:
        """Return one group of the options, parsed once per schema and handle."""
        return cast("GroupT", _parsed(cast("Hashable", group), self.schema.options, self.dynamic_options, self.name))

    @property
    def limits(self) -> AvroLimits:
        """Size limits for metadata files. Raises ``InvalidOptionError``."""
        return metadata_limits(dict(self.schema.options), dict(self.dynamic_options), table=self.name)

    def with_options(self, options: Mapping[str, str]) -> TableRef:
        """Return the same table with further options."""
        check_one_use(options, dict(self.schema.options), self.name, self.location)
        merged = {**dict(self.dynamic_options), **options}
        file_io = self.file_io
        if any(key == DURABLE_KEY or key.startswith(PREFIX) for key in options):
            file_io = storage_of_table(file_io, self.location, self.schema.option_map, merged, self.name)
        return replace(self, file_io=file_io, dynamic_options=tuple(merged.items()))


# A process works on few tables and groups at a time; evicted groups are parsed again.
@lru_cache(maxsize=1024)
def _parsed(
    group: Hashable, stored: tuple[tuple[str, str], ...], given: tuple[tuple[str, str], ...], table: str
) -> OptionGroup:
    return cast("type[OptionGroup]", group).parse(dict(stored), dict(given), table=table)


def storage_of_table(
    file_io: FileIO, location: str, stored: Mapping[str, str], given: Mapping[str, str], table: str
) -> FileIO:
    """Return the storage of a table, restricted to its directory and to the external paths that the user allows.

    If the commit options ask for durability, the storage also flushes written files to disk.

    Args:
        location: the table's directory.
        stored: options of the table.
        given: options of the catalog and of one handle; they override those of the table, and only they can allow
            external paths.
        table: its name, for messages.
    """
    allowed = ExternalPathOptions.parse(given, table=table)
    is_durable = CommitOptions.parse(stored, given, table=table).durable
    bounded = file_io.confined(
        location, readable=local_paths(allowed.readable), deletable=local_paths(allowed.deletable)
    )
    return bounded.with_durability(durable=is_durable)


def local_paths(locations: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of the locations on this machine; those of other storages are left out.

    Raises:
        InvalidOptionError: one of them is not a valid location.
    """
    found = []
    for location in locations:
        with suppress(UnsupportedFeatureError):
            file_io, path = resolve(location)
            found += [path] if file_io.is_local else []
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPaths:
    """Which external paths of one table this process may read and delete.

    Attributes:
        name: of the table, for messages.
        file_io: storage of the table; external files are opened with it, so they must lie on the same storage.
        declared: external directories declared by the table's option.
        allowed: the directories that the user allows.
    """

    name: str
    file_io: FileIO
    declared: tuple[str, ...]
    allowed: ExternalPathOptions

    @staticmethod
    def of(ref: TableRef) -> ExternalPaths:
        """Return the external paths of a table; the user's keys are ignored if they are stored with the table."""
        return ExternalPaths(
            name=ref.name,
            file_io=ref.file_io,
            declared=ref.parsed(LayoutOptions).external_paths,
            allowed=ExternalPathOptions.parse(dict(ref.dynamic_options), table=ref.name),
        )

    def readable(self, path: str) -> str:
        """Return an external path in the form that the storage takes."""
        found = self._find(path)
        if found is None or not _is_in(found, self.declared):
            raise UnsupportedFeatureError(
                f"table {self.name}: the data file {ascii(path)[:200]} is outside of the table, and in none of the "
                "directories of its option 'data-file.external-paths'; it was not opened. Roll the table back to a "
                "snapshot without it, or copy it to the table's directory"
            )
        if not _is_in(found, self.allowed.readable):
            raise UnsupportedFeatureError(
                f"table {self.name}: the data file {ascii(path)[:200]} is outside of the table and was not opened; "
                "if you trust who wrote the table, give the catalog or this read the option "
                f"'penstock.external-paths.read' = '{found.rpartition('/')[0]}'"
            )
        return found

    def deletable(self, path: str) -> str | None:
        """Return an external path in the form that the storage takes; None if the file must not be deleted."""
        found = self._find(path)
        is_free = found is not None and _is_in(found, self.declared) and _is_in(found, self.allowed.deletable)
        return found if is_free else None

    def _find(self, path: str) -> str | None:
        found = _resolved(path)
        if found is None or type(found[0]) is not type(self.file_io.storage):
            return None
        return found[1]


def _is_in(path: str, directories: tuple[str, ...]) -> bool:
    known = (_resolved(directory) for directory in directories)
    return any(each is not None and path.startswith(f"{each[1].rstrip('/')}/") for each in known)


def _resolved(path: str) -> tuple[FileIO, str] | None:
    """Return storage and normalized path; None unless it is an absolute path or a URI of a built-in storage."""
    if (not path.startswith("/") and ":" not in path) or any(character < " " for character in path):
        return None
    try:
        return resolve(path.strip())
    except TableStoreError:
        return None


@dataclass(slots=True, kw_only=True)
class FileLocator:
    """Maps (partition, bucket) to its directory, and caches each directory's text.

    Attributes:
        location: the table's directory.
        external: which files outside of that directory may be read and deleted.
        directories: cache of (serialized partition, bucket) to directory.
    """

    location: str
    partition_fields: tuple[DataField, ...]
    layout: LayoutOptions
    external: ExternalPaths
    directories: dict[tuple[bytes, int], str] = field(default_factory=dict)

    @staticmethod
    def of(ref: TableRef) -> FileLocator:
        """Return the locator of a table."""
        return FileLocator(
            location=ref.location,
            partition_fields=ref.schema.partition_fields,
            layout=ref.parsed(LayoutOptions),
            external=ExternalPaths.of(ref),
        )

    def directory(self, partition: bytes, bucket: int) -> str:
        """Return the directory of the data files of a bucket.

        Args:
            partition: serialized BinaryRow, arity prefix included.
        """
        key = (partition, bucket)
        directory = self.directories.get(key)
        if directory is None:
            text = self._partition_directory(partition)
            directory = TableLayout(self.location).bucket_directory(text, bucket, self.layout.data_directory)
            self.directories[key] = directory
        return directory

    def partition_name(self, partition: bytes) -> str:
        """Return a partition's directory relative to the table's, such as ``dt=20454``; empty without partitions."""
        return self._partition_directory(partition).rstrip("/")

    def partition_label(self, partition: bytes) -> str:
        """Return a readable text of a partition, such as ``dt=2026-01-01/hour=3``; ``parse_partition`` parses it."""
        values = decode_row(partition, [field.type for field in self.partition_fields])
        return "/".join(
            f"{each.name}="
            + (self.layout.default_partition_name if value is None else partition_text(each, value, legacy_name=False))
            for each, value in zip(self.partition_fields, values, strict=True)
        )

    def partition_values(self, partition: bytes) -> dict[str, str]:
        """Return the text of each partition column, not escaped, as the name of the directory has it."""
        values = decode_row(partition, [field.type for field in self.partition_fields])
        layout = self.layout
        return {
            each.name: layout.default_partition_name
            if value is None
            else partition_text(each, value, legacy_name=layout.legacy_partition_name)
            for each, value in zip(self.partition_fields, values, strict=True)
        }

    def recorded_path(self, partition: bytes, bucket: int, file: DataFileMeta) -> str:
        """Return the path of a data file as the manifest has it; only for display, as it is not checked."""
        return file.external_path or f"{self.directory(partition, bucket)}/{file.file_name}"

    def path(self, partition: bytes, bucket: int, file: DataFileMeta) -> str:
        """Return the path of a data file to read: its external path if it has one."""
        path = self.recorded_path(partition, bucket, file)
        return self.external.readable(path) if file.external_path else path

    def deletable_path(self, partition: bytes, bucket: int, file: DataFileMeta) -> str | None:
        """Return the path of a data file to delete; None for an external file that may not be deleted."""
        path = self.recorded_path(partition, bucket, file)
        return self.external.deletable(path) if file.external_path else path

    def _partition_directory(self, partition: bytes) -> str:
        return partition_dir(
            self.partition_fields,
            decode_row(partition, [field.type for field in self.partition_fields]),
            default_name=self.layout.default_partition_name,
            legacy_name=self.layout.legacy_partition_name,
        )
