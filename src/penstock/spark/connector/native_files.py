"""Decide whether Spark's own reader reads all files of a plan correctly with one read schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.format.file_format import FileFormat, format_of
from penstock.io.settings import is_object_store
from penstock.spark.read.native_columns import NativeColumn, are_gregorian, plan_native_columns
from penstock.table.external_paths import ExternalPaths
from penstock.table.read.column_stats import ColumnStatsReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFiles:
    """Files that one of Spark's readers can read.

    Attributes:
        files: URI and exact size in bytes of each file.
    """

    file_format: FileFormat
    files: tuple[tuple[str, int], ...]


def list_native(ref: TableRef, splits: Sequence[DataSplit], file_format: FileFormat) -> NativeFiles:
    """Return the files of splits for which ``why_not_native`` returned None."""
    external = ExternalPaths.of(ref)
    files = tuple(
        (ref.file_io.to_uri(split.path_of(file, external)), file.file_size) for split in splits for file in split.files
    )
    return NativeFiles(file_format=file_format, files=files)


def common_format(splits: Sequence[DataSplit]) -> FileFormat | None:
    """Return the format of the files; None if there are several formats, Parquet if there are no files."""
    found = {format_of(file.file_name) for split in splits for file in split.files}
    return found.pop() if len(found) == 1 else None if found else FileFormat.PARQUET


def why_not_native(
    ref: TableRef, store: MetadataStore, splits: Sequence[DataSplit], fields: tuple[DataField, ...]
) -> str | None:
    """Return why Spark's reader cannot read the files; None if it can.

    Args:
        fields: columns to read; other columns do not matter. May be empty.
    """
    if is_object_store(ref.file_io):
        return "its files are on an object store, for which Spark would need a JAR"
    file_format = common_format(splits)
    if file_format is None:
        return "its files have several formats"
    if file_format is not FileFormat.PARQUET:
        return f"its files are {file_format}, and only Parquet is read by Spark here"
    judge = _Judge(ref, store, fields, file_format)
    return next((reason for split in splits for file in split.files if (reason := judge.why_not(file))), None)


class _Judge:
    """Decides once for each schema, and by statistics for ORC files with dates."""

    def __init__(
        self, ref: TableRef, store: MetadataStore, fields: tuple[DataField, ...], file_format: FileFormat
    ) -> None:
        self._ref = ref
        self._store = store
        self._fields = fields
        self._format = file_format
        self._known: dict[int, tuple[str | None, tuple[str, ...]]] = {}
        self._stats = ColumnStatsReader(store.load_schema, fields)

    def why_not(self, file: DataFileMeta) -> str | None:
        if file.schema_id not in self._known:
            self._known[file.schema_id] = self._judge(file.schema_id)
        reason, dates = self._known[file.schema_id]
        if reason is not None or not dates:
            return reason
        stats = self._stats.read(file)
        if all(are_gregorian(stats.get(name), file.row_count) for name in dates):
            return None
        return f"ORC files may have dates before 1582-10-15 in {', '.join(dates)}"

    def _judge(self, schema_id: int) -> tuple[str | None, tuple[str, ...]]:
        """Return the reason against files of a schema, and the columns whose dates must be checked by statistics."""
        if not self._fields:
            return None, ()
        is_today = schema_id == self._ref.schema.id
        stored = self._ref.schema.fields if is_today else self._store.load_schema(schema_id).fields
        columns = plan_native_columns(self._format, stored, self._fields)
        if columns is None:
            return f"a column has a type or a name that Spark's {self._format} reader gets wrong", ()
        reasons = (_why_not_column(column, stored) for column in columns)
        reason = next((reason for reason in reasons if reason), None)
        dates = [column.field.name for column in columns if column.is_date] if self._format is FileFormat.ORC else []
        return reason, tuple(dates)


def _why_not_column(column: NativeColumn, stored: Sequence[DataField]) -> str | None:
    """Return why a file does not have a column under its current name and type; None if it has."""
    name = column.field.name
    if column.file_field is None:
        # An earlier column had this name, and Spark matches columns by name only.
        is_taken = any(field.name.lower() == name.lower() for field in stored)
        return f"files of another schema have another column '{name}'" if is_taken else None
    if column.file_field.name != name:
        return f"column '{name}' was renamed, and files have its old name"
    return f"the type of column '{name}' was changed" if column.is_cast else None
