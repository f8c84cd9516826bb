"""Decide whether Spark's own reader reads all files of a plan correctly with one read schema."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from penstock.datafile.parquet.footer import load_field_ids
from penstock.datafile.types import has_leaf, is_char
from penstock.format.file_format import FileFormat, format_of
from penstock.spark.hadoop_options import why_not_by_spark
from penstock.spark.read.native_columns import NativeColumn, are_gregorian, plan_native_columns
from penstock.spark.read.partition_columns import PartitionColumns
from penstock.spark.types import to_spark_type
from penstock.table.external_paths import ExternalPaths
from penstock.table.read.column_stats import ColumnStatsReader

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


PADDED: Final = "values of CHAR are padded here, which Spark's own reader does not do"
_RENAMED: Final = "a column was renamed, and files have its old name, or another column of its name"
# A footer is read in about a millisecond.
_MOST_FOOTERS: Final = 1_000


def list_native(ref: TableRef, splits: Sequence[DataSplit]) -> tuple[tuple[str, int], ...]:
    """Return the URI and exact size in bytes of the files of splits that Spark's reader can read."""
    external = ExternalPaths.of(ref)
    return tuple(
        (ref.file_io.to_uri(split.path_of(file, external)), file.file_size) for split in splits for file in split.files
    )


def has_chars(fields: Iterable[DataField]) -> bool:
    """Whether some column has values of CHAR(n)."""
    return any(has_leaf(field.type, is_char) for field in fields)


def common_format(splits: Sequence[DataSplit]) -> FileFormat | None:
    """Return the format of the files; None if there are several formats, Parquet if there are no files."""
    found = {format_of(file.file_name) for split in splits for file in split.files}
    return found.pop() if len(found) == 1 else None if found else FileFormat.PARQUET


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeReading:
    """The way in which Spark's reader reads the files of a scan.

    Attributes:
        by_id: columns are matched in Parquet files by field ids, since a file has other names.
        unlike: columns with another type in some file; filters on them must not be pushed to the files.
    """

    file_format: FileFormat
    by_id: bool = False
    unlike: frozenset[str] = frozenset()

    def pushes(self, columns: Iterable[str]) -> bool:
        """Whether the reader may skip row groups by a filter on columns, which it matches by name and type."""
        return not self.by_id and self.unlike.isdisjoint(columns)


def plan_reading(
    ref: TableRef,
    store: MetadataStore,
    splits: Sequence[DataSplit],
    fields: tuple[DataField, ...],
    *,
    may_use_ids: bool = True,
) -> NativeReading | str:
    """Return how Spark's reader reads the files, or the reason why it cannot.

    Args:
        fields: columns to read; other columns do not matter. May be empty.
        may_use_ids: whether columns may be matched by field ids.
    """
    refused = why_not_by_spark(ref.file_io)
    if refused is not None:
        return refused
    file_format = common_format(splits)
    if file_format is None:
        return "its files have several formats"
    if file_format is FileFormat.AVRO:
        return "its files are avro, which Spark does not read here"
    judge = _Judge(ref, store, fields, file_format)
    reason = next((reason for split in splits for file in split.files if (reason := judge.why_not(file))), None)
    keys = PartitionColumns(ref, store, fields)
    if reason is None and not all(keys.are_in(split, file) for split in splits for file in split.files):
        reason = f"files lack the partition columns {', '.join(keys.names)}, or have no statistics that show them"
    if reason is None and judge.by_id:
        reason = _why_not_by_id(ref, splits, judge) if may_use_ids else _RENAMED
    if reason is not None:
        return reason
    return NativeReading(file_format=file_format, by_id=judge.by_id, unlike=frozenset(judge.unlike))


def why_not_native(
    ref: TableRef, store: MetadataStore, splits: Sequence[DataSplit], fields: tuple[DataField, ...]
) -> str | None:
    """Return why Spark's Parquet reader cannot read the files by column name; None if it can.

    For streams, which choose the reader for each micro-batch but have a single schema.

    Args:
        fields: columns to read, at least one.
    """
    file_format = common_format(splits)
    if file_format not in {None, FileFormat.PARQUET}:
        return f"its files are {file_format}, and only Parquet is read by Spark here"
    reading = plan_reading(ref, store, splits, fields, may_use_ids=False)
    return reading if isinstance(reading, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """Result for the files of one schema.

    Attributes:
        reason: why Spark's reader cannot read them; None if it can.
        dates: columns of ORC files whose dates must be checked by statistics.
        ids: field ids of the columns to read, by their names in the files.
        absent: field ids of the columns that the files lack.
        by_id: names in the files differ from those of the table.
        unlike: columns that have another type in the files.
    """

    reason: str | None = None
    dates: tuple[str, ...] = ()
    ids: tuple[tuple[str, int], ...] = ()
    absent: frozenset[int] = frozenset()
    by_id: bool = False
    unlike: frozenset[str] = frozenset()


class _Judge:
    """Decides once per schema, and by statistics for ORC files with dates.

    Attributes:
        by_id: whether a file needs columns to be matched by field ids.
        unlike: columns that have another type in some file.
    """

    def __init__(
        self, ref: TableRef, store: MetadataStore, fields: tuple[DataField, ...], file_format: FileFormat
    ) -> None:
        self._ref = ref
        self._store = store
        self._fields = fields
        self._format = file_format
        self._known: dict[int, _Verdict] = {}
        self._stats = ColumnStatsReader(store.load_schema, fields)
        self.by_id = False
        self.unlike: set[str] = set()

    def verdict(self, file: DataFileMeta) -> _Verdict:
        if file.schema_id not in self._known:
            found = self._judge(file.schema_id)
            self._known[file.schema_id] = found
            self.by_id |= found.by_id
            self.unlike |= found.unlike
        return self._known[file.schema_id]

    def why_not(self, file: DataFileMeta) -> str | None:
        found = self.verdict(file)
        if found.reason is not None or not found.dates:
            return found.reason
        stats = self._stats.read(file)
        if all(are_gregorian(stats.get(name), file.row_count) for name in found.dates):
            return None
        return f"ORC files may have dates before 1582-10-15 in {', '.join(found.dates)}"

    def _judge(self, schema_id: int) -> _Verdict:
        if not self._fields:
            return _Verdict()
        is_today = schema_id == self._ref.schema.id
        stored = self._ref.schema.fields if is_today else self._store.load_schema(schema_id).fields
        columns = plan_native_columns(self._format, stored, self._fields)
        if columns is None:
            return _Verdict(reason=f"a column has a type or a name that Spark's {self._format} reader gets wrong")
        if self._format is FileFormat.PARQUET:
            return _judge_parquet(columns, stored)
        reason = next((reason for column in columns if (reason := _why_not_orc(column, stored))), None)
        return _Verdict(reason=reason, dates=tuple(column.field.name for column in columns if column.is_date))


def _judge_parquet(columns: Sequence[NativeColumn], stored: Sequence[DataField]) -> _Verdict:
    return _Verdict(
        ids=tuple((column.file_field.name, column.field.id) for column in columns if column.file_field is not None),
        absent=frozenset(column.field.id for column in columns if column.file_field is None),
        by_id=any(_has_other_name(column, stored) for column in columns),
        unlike=frozenset(column.field.name for column in columns if _has_other_type(column)),
    )


def _has_other_name(column: NativeColumn, stored: Sequence[DataField]) -> bool:
    """Whether a file has a column under another name, or another column under its name."""
    name = column.field.name
    if column.file_field is None:
        return any(field.name.lower() == name.lower() for field in stored)
    return column.file_field.name != name


def _has_other_type(column: NativeColumn) -> bool:
    """Whether the column has different Spark types in the file and in the table."""
    stored = column.file_field
    return column.is_cast and stored is not None and to_spark_type(stored.type) != to_spark_type(column.field.type)


def _why_not_orc(column: NativeColumn, stored: Sequence[DataField]) -> str | None:
    """Return why a column of an ORC file does not have its current name and type; None if it does."""
    name = column.field.name
    if _has_other_name(column, stored):
        return f"ORC files have column '{name}' under an older name, or another column of that name"
    return f"the type of column '{name}' was changed after ORC files were written" if _has_other_type(column) else None


def _why_not_by_id(ref: TableRef, splits: Sequence[DataSplit], judge: _Judge) -> str | None:
    """Return why Spark cannot match columns by field ids, according to the footers; None if it can.

    Spark fails on a file without ids, and not all writers store them.
    """
    if sum(len(split.files) for split in splits) > _MOST_FOOTERS:
        return f"columns were renamed, and more than {_MOST_FOOTERS} files would have to be opened to find them by id"
    external = ExternalPaths.of(ref)
    for split in splits:
        for file in split.files:
            found = _field_ids(cast("Hashable", ref.file_io), split.path_of(file, external))
            wanted = judge.verdict(file)
            if not found.items() >= dict(wanted.ids).items() or not wanted.absent.isdisjoint(found.values()):
                return f"columns were renamed, and the file {file.file_name} has no field ids to find them by"
    return None


@lru_cache(maxsize=100_000)
def _field_ids(file_io: Hashable, path: str) -> dict[str, int]:
    """Return field ids by column name; data files never change, so the result is cached."""
    return load_field_ids(cast("FileIO", file_io), path)
