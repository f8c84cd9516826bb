"""Decide which data files Spark's own readers read correctly, and under which names they find the columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from penstock.datafile.parquet.footer import load_column_names
from penstock.datafile.types import has_leaf, is_variant
from penstock.format.layout import FileFormat, format_of
from penstock.format.manifest.entry import StatsLayout
from penstock.format.types.data_types import (
    INTEGERS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    with_nullability,
)
from penstock.format.types.text import format_sql_type
from penstock.spark.hadoop_options import why_not_by_spark
from penstock.spark.read.conversions import can_convert
from penstock.spark.types import has_nanoseconds
from penstock.spark.versions.facts import READS_ORC_INSTANTS, VARIANT
from penstock.table.assumptions import check_schema_of_file
from penstock.table.read.files import LazyEntries, LazyFiles
from penstock.table.read.prune import ColumnStatsReader
from penstock.table.read.prune_columns import are_counted
from penstock.table.ref import ExternalPaths
from penstock.table.row_tracking import has_tracked

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.columns import ManifestColumns
    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.stats import ColumnStats
    from penstock.io.file_io import FileIO
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_PLAIN: Final = frozenset(
    {TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DECIMAL, TypeRoot.DATE}
    | {TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY}
)
TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# Excluded: TIME, which Spark reads in microseconds only. ORC stores CHAR padded with blanks, and timestamps in the
# writer's zone.
_NATIVE: Final = {
    FileFormat.PARQUET: _PLAIN | TIMESTAMPS | {TypeRoot.CHAR} | ({TypeRoot.VARIANT} if VARIANT.is_here else set()),
    FileFormat.ORC: _PLAIN,
    FileFormat.AVRO: frozenset[TypeRoot](),
}
FIRST_GREGORIAN_DAY: Final = -141_427
"""Epoch day of 1582-10-15, the first day of the Gregorian calendar in Java's older classes."""

ORC_INSTANTS: Final = "a column is TIMESTAMP_LTZ, and this version of Spark fails on ORC files that have one"
# A footer is read in about a millisecond.
_MAX_FOOTERS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeColumn:
    """How Spark reads a column from a file.

    Attributes:
        field: field to return.
        file_field: field in the file; None if the file does not have it, then all values are null.
        is_cast: whether Spark must widen the type.
        converts: whether expressions of Spark make the values of those in the file.
    """

    field: DataField
    file_field: DataField | None
    is_cast: bool = False
    converts: bool = False

    @property
    def is_date(self) -> bool:
        """Whether the file holds dates in this column."""
        stored = self.file_field
        return stored is not None and isinstance(stored.type, AtomicType) and stored.type.root is TypeRoot.DATE


def are_gregorian(stats: ColumnStats | None, row_count: int) -> bool:
    """Whether statistics show that Spark reads the dates of an ORC file correctly.

    Spark takes days before 1582-10-15 as Julian dates, but the files of tables have Gregorian dates.
    """
    if stats is None:
        return False
    is_null = stats.null_count == row_count
    return is_null or (isinstance(stats.min, int) and stats.min >= FIRST_GREGORIAN_DAY)


def plan_native_columns(
    file_format: FileFormat, file_fields: Iterable[DataField], fields: tuple[DataField, ...]
) -> tuple[NativeColumn, ...] | str:
    """Return how Spark reads the columns from files of a schema, or why it would read one of them wrong.

    Args:
        file_fields: columns of the schema that the files were written with.
        fields: columns to read, at least one.
    """
    by_id = {field.id: field for field in file_fields}
    if has_names_alike(by_id.values()) or has_names_alike(fields):
        return "names of columns differ in case only, and Spark matches them without regard to it"
    reason = _why_not_orc(tuple(by_id.values())) if file_format is FileFormat.ORC else None
    if reason is not None:
        return reason
    columns = []
    for field in fields:
        column = _native_column(file_format, by_id.get(field.id), field)
        if isinstance(column, str):
            return column
        columns.append(column)
    if all(column.file_field is None for column in columns):
        return "files have none of the columns that are read, and Spark's readers need one"
    return tuple(columns)


def _why_not_orc(stored: Sequence[DataField]) -> str | None:
    """Return why Spark would misread ORC files with these columns, or fail; None if it does not."""
    if stored and all(field.name.startswith("_col") for field in stored):
        return "columns have names that begin with _col, and Spark then takes those of ORC files by their place"
    if any("`" in field.name for field in stored):
        # To Spark such a name ends at the backquote, and may be that of another column.
        return "a column has a backquote in its name, with which Spark does not find it in ORC files"
    if not READS_ORC_INSTANTS and has_instants(stored):
        return ORC_INSTANTS
    return None


def has_instants(fields: Iterable[DataField]) -> bool:
    """Whether some column has values of TIMESTAMP_LTZ."""
    return any(has_leaf(field.type, _is_instant) for field in fields)


def _is_instant(data_type: AtomicType) -> bool:
    return data_type.root is TypeRoot.TIMESTAMP_LTZ


def has_names_alike(fields: Iterable[DataField]) -> bool:
    """Whether two names are equal or differ in case only."""
    names = [field.name.lower() for field in fields]
    return len(set(names)) < len(names)


def _native_column(file_format: FileFormat, stored: DataField | None, field: DataField) -> NativeColumn | str:
    """Return how Spark reads a column of a file, or why it would read it wrong."""
    if stored is None:
        return _missing_column(file_format, field)
    is_safe = file_format is not FileFormat.ORC or _is_safe_in_orc(stored.name, stored.type)
    if not is_safe or not _is_native(file_format, stored.type):
        kind = format_sql_type(stored.type)
        return f"column '{field.name}' has type {kind}, which Spark's {file_format} reader does not read"
    if with_nullability(stored.type, nullable=True) == with_nullability(field.type, nullable=True):
        return NativeColumn(field=field, file_field=stored)
    if _is_widening(stored.type, field.type):
        return NativeColumn(field=field, file_field=stored, is_cast=True)
    is_plain = _is_native(FileFormat.PARQUET, field.type) and not has_leaf(field.type, is_variant)
    if is_plain and can_convert(stored.type, field.type):
        return NativeColumn(field=field, file_field=stored, converts=True)
    old, new = (format_sql_type(with_nullability(each, nullable=True)) for each in (stored.type, field.type))
    return f"column '{field.name}' is {old} in files and {new} in the table"


def _missing_column(file_format: FileFormat, field: DataField) -> NativeColumn | str:
    """Return how Spark reads a column that files lack; to the ORC library it gives these columns, too."""
    if file_format is FileFormat.ORC and (
        has_leaf(field.type, is_variant) or not _is_safe_in_orc(field.name, field.type)
    ):
        return f"files lack the column '{field.name}', whose type or name Spark's ORC reader does not take"
    return NativeColumn(field=field, file_field=None)


def _is_native(file_format: FileFormat, data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _is_native(file_format, element)
        case MapType(key=key, value=value):
            return _is_native(file_format, key) and _is_native(file_format, value)
        case MultisetType(element=element):
            return _is_native(file_format, element)
        case RowType(fields=fields):
            return not has_names_alike(fields) and all(_is_native(file_format, field.type) for field in fields)
        case VectorType():
            return False
        case AtomicType(root=root):
            # With more than microseconds, Parquet files have INT96, which Spark reads as TIMESTAMP only.
            return root in _NATIVE[file_format] and not has_nanoseconds(data_type)


def _is_safe_in_orc(name: str, data_type: DataType, *, is_nested: bool = False) -> bool:
    """Whether Spark finds a column in ORC files by its name, and statistics can show that its dates are safe."""
    if "`" in name:
        return False  # Spark does not escape backquotes in names for the ORC library, and reads nulls
    match data_type:
        case ArrayType(element=element) | MultisetType(element=element):
            return _is_safe_in_orc("", element, is_nested=True)
        case MapType(key=key, value=value):
            return all(_is_safe_in_orc("", part, is_nested=True) for part in (key, value))
        case RowType(fields=fields):
            return all(_is_safe_in_orc(field.name, field.type, is_nested=True) for field in fields)
        case AtomicType(root=root):
            return root is not TypeRoot.DATE or not is_nested
        case _:
            return True


def _is_widening(stored: DataType, wanted: DataType) -> bool:
    if not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return False
    if stored.root in INTEGERS and wanted.root in INTEGERS:
        return INTEGERS.index(stored.root) < INTEGERS.index(wanted.root)
    if stored.root is TypeRoot.VARCHAR and wanted.root is TypeRoot.VARCHAR:
        return (stored.length or 0) <= (wanted.length or 0)
    if stored.root is TypeRoot.DECIMAL and wanted.root is TypeRoot.DECIMAL:
        scale, wanted_scale = stored.scale or 0, wanted.scale or 0
        return 0 <= wanted_scale - scale <= (wanted.precision or 0) - (stored.precision or 0)
    return stored.root is TypeRoot.FLOAT and wanted.root is TypeRoot.DOUBLE


class NativeFileChecker:
    """Decides for each file whether Spark's readers read it; plans the columns once for each schema and format.

    Args:
        fields: columns to read, at least one.

    Attributes:
        refusal: why they cannot open any file; None if they can.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, fields: tuple[DataField, ...]) -> None:
        self._ref = ref
        self._store = store
        self._fields = fields
        self.refusal = why_not_by_spark(ref.file_io)
        if has_tracked(fields):
            self.refusal = "files that were not rewritten lack the ids of their rows"
        self._columns: dict[tuple[int, FileFormat], tuple[NativeColumn, ...] | str] = {}
        self._stats = ColumnStatsReader(store.load_schema, fields)
        self._keys = _PartitionColumns(ref, store, fields)
        # The files of a partition, which the splits of its buckets share, and some that stand for them.
        self._alike: tuple[LazyEntries, Sequence[DataFileMeta] | None] | None = None
        self._like: dict[StatsLayout, DataFileMeta] = {}

    def why_not(self, split: DataSplit, file: DataFileMeta) -> str | None:
        """Return why Spark's readers would not read a file correctly; None if they do."""
        if self.refusal is not None:
            return self.refusal
        file_format, columns = format_of(file.file_name), self.columns_of(file)
        if isinstance(columns, str):
            return columns
        dates = [column.field.name for column in columns if column.is_date] if file_format is FileFormat.ORC else []
        if dates:
            stats = self._stats.read(file)
            if not all(are_gregorian(stats.get(name), file.row_count) for name in dates):
                return f"ORC files may have dates before 1582-10-15 in {', '.join(dates)}"
        if not self._keys.are_in(split, file):
            return (
                f"files lack the partition columns {', '.join(self._keys.names)}, or have no statistics that show them"
            )
        return None

    def files_to_check(self, split: DataSplit) -> Sequence[DataFileMeta]:
        """Return some files of a split that stand for the others: those are read like one of them.

        Returns:
            all files, if each has to be looked at.
        """
        files = split.files
        if split.vectors or not isinstance(files, LazyFiles):
            return files
        if self._alike is None or self._alike[0] is not files.entries:
            self._alike = files.entries, self._one_of_each(split, files.entries)
        return files if self._alike[1] is None else self._alike[1]

    def _one_of_each(self, split: DataSplit, entries: LazyEntries) -> Sequence[DataFileMeta] | None:
        """Return a file of each layout of statistics; None if others may be read in another way."""
        found: dict[StatsLayout, DataFileMeta] = {}
        if not entries.column("is_parquet").all():
            return None
        for part, rows in entries.by_layout():
            layout = part.layouts[part.layout[rows[0]]]
            file = self._like.get(layout) or part.entries(rows[:1])[0].file
            # The file may be of another bucket than the split, but with statistics its path does not matter.
            if not self._keys.are_in_all(part, rows, file) or self.why_not(split, file) is not None:
                return None
            # Not before: a file without statistics would have to be looked for in the directories of others.
            found[layout] = self._like[layout] = file
        return tuple(found.values())

    def columns_of(self, file: DataFileMeta) -> tuple[NativeColumn, ...] | str:
        """Return how Spark reads each column from a file, or why it would read one of them wrong."""
        key = (file.schema_id, format_of(file.file_name))
        if key not in self._columns:
            check_schema_of_file(self._ref, self._store, file.schema_id, self._fields)
            stored = stored_fields(self._ref, self._store, file)
            self._columns[key] = plan_native_columns(key[1], stored, self._fields)
        return self._columns[key]


class _PartitionColumns:
    """Whether data files have the partition columns, which Spark's readers take from the files.

    Writers of append tables store them like other columns, but the files of a migrated directory (``Catalog.migrate``
    or Paimon's ``migrate_table``) lack them: their values are those of the partition, and Spark would read NULL.
    Statistics in the manifest show it, otherwise Parquet footers.

    Args:
        fields: columns to read.
    """

    def __init__(self, ref: TableRef, store: MetadataStore, fields: Sequence[DataField]) -> None:
        self._ref = ref
        self._store = store
        wanted = {field.name for field in fields}
        self.names = tuple(key for key in ref.schema.partition_keys if key in wanted)
        self._stats = ColumnStatsReader(store.load_schema, [field for field in fields if field.name in self.names])
        self._places: dict[int, tuple[int, ...]] = {}
        self._footers = 0

    def are_in(self, split: DataSplit, file: DataFileMeta) -> bool:
        """Return whether the file certainly has the partition columns that are read."""
        if not self.names or self._have_statistics(file):
            return True
        if format_of(file.file_name) is not FileFormat.PARQUET or self._footers >= _MAX_FOOTERS:
            return False
        self._footers += 1
        path = split.path_of(file, ExternalPaths.of(self._ref))
        return _column_names(cast("Hashable", self._ref.file_io), path).issuperset(self.names)

    def are_in_all(self, part: ManifestColumns, rows: Array, like: DataFileMeta) -> bool:
        """Return whether the statistics of files show the partition columns.

        Args:
            part: entries of a manifest.
            rows: those of the files, which have one layout.
            like: one of the files.
        """
        if not self.names or like.value_stats_cols is not None:
            return not self.names or self._have_statistics(like)
        layout = StatsLayout(like.schema_id, None, like.write_cols, is_orc=False)
        places = self._stats.places(layout)
        return len(places.columns) == len(self.names) and are_counted(part, rows, places)

    def _have_statistics(self, file: DataFileMeta) -> bool:
        if file.value_stats_cols is not None:
            return all(name in file.value_stats_cols for name in self.names)
        if file.schema_id not in self._places:
            stored = stored_fields(self._ref, self._store, file)
            self._places[file.schema_id] = tuple(
                place for place, field in enumerate(stored) if field.name in self.names
            )
        counts = file.value_stats.null_counts
        return all(place < len(counts) and counts[place] is not None for place in self._places[file.schema_id])


def stored_fields(ref: TableRef, store: MetadataStore, file: DataFileMeta) -> Sequence[DataField]:
    """Return the columns of the schema that a file was written with."""
    return ref.schema.fields if file.schema_id == ref.schema.id else store.load_schema(file.schema_id).fields


@lru_cache(maxsize=100_000)
def _column_names(file_io: Hashable, path: str) -> frozenset[str]:
    """Return the columns of a Parquet file; data files never change, so the result is cached."""
    return load_column_names(cast("FileIO", file_io), path)
