"""Paths of the data files of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.format.layout import TableLayout
from penstock.format.row.row import decode_row
from penstock.format.text.partitions import partition_dir, partition_text
from penstock.options import LayoutOptions
from penstock.table.external_paths import ExternalPaths

if TYPE_CHECKING:
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.table.ref import TableRef


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

    def stated_path(self, partition: bytes, bucket: int, file: DataFileMeta) -> str:
        """Return the path of a data file as the manifest has it; only for display, as it is not checked."""
        return file.external_path or f"{self.directory(partition, bucket)}/{file.file_name}"

    def path(self, partition: bytes, bucket: int, file: DataFileMeta) -> str:
        """Return the path of a data file to read: its external path if it has one.

        Raises:
            UnsupportedFeatureError: the external path may not be read.
        """
        path = self.stated_path(partition, bucket, file)
        return self.external.readable(path) if file.external_path else path

    def deletable_path(self, partition: bytes, bucket: int, file: DataFileMeta) -> str | None:
        """Return the path of a data file to delete; None for an external file that may not be deleted."""
        path = self.stated_path(partition, bucket, file)
        return self.external.deletable(path) if file.external_path else path

    def _partition_directory(self, partition: bytes) -> str:
        return partition_dir(
            self.partition_fields,
            decode_row(partition, [field.type for field in self.partition_fields]),
            default_name=self.layout.default_partition_name,
            legacy_name=self.layout.legacy_partition_name,
        )
