"""Decide which data files Spark's own readers read correctly, and how one scan of Spark's reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from penstock.datafile.parquet.footer import load_column_names, load_field_ids
from penstock.datafile.types import has_leaf, is_char
from penstock.format.layout import FileFormat, format_of
from penstock.format.types.data_types import (
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
from penstock.spark.types import has_nanoseconds, to_spark_type
from penstock.spark.versions.facts import WIDENS_VALUES
from penstock.table.read.prune import ColumnStatsReader
from penstock.table.ref import ExternalPaths

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.stats import ColumnStats
    from penstock.io.file_io import FileIO
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_PLAIN: Final = frozenset(
    {
        TypeRoot.VARCHAR,
        TypeRoot.BOOLEAN,
        TypeRoot.BINARY,
        TypeRoot.VARBINARY,
        TypeRoot.DECIMAL,
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DATE,
    }
)
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# Excluded: TIME, which Spark reads in microseconds only, and VARIANT. ORC stores CHAR padded with blanks, and
# timestamps in the writer's zone.
_NATIVE: Final = {
    FileFormat.PARQUET: _PLAIN | _TIMESTAMPS | {TypeRoot.CHAR},
    FileFormat.ORC: _PLAIN,
    FileFormat.AVRO: frozenset[TypeRoot](),
}
FIRST_GREGORIAN_DAY: Final = -141_427
"""Epoch day of 1582-10-15, the first day of the Gregorian calendar in Java's older classes."""

_WIDTHS: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)
PADDED: Final = "values of CHAR are padded here, which Spark's own reader does not do"
_DELETED: Final = "rows of its files are deleted by deletion vectors"
_RENAMED: Final = "a column was renamed, and files have its old name, or another column of its name"
_SEVERAL_FORMATS: Final = "its files have several formats"
_AVRO: Final = "its files are avro, which Spark does not read here"
# A footer is read in about a millisecond.
_MAX_FOOTERS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeColumn:
    """How Spark reads a column from a file.

    Attributes:
        field: field to return.
        file_field: field in the file; None if the file does not have it, then all values are null.
        is_cast: whether Spark must widen the type.
    """

    field: DataField
    file_field: DataField | None
    is_cast: bool = False

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
    if file_format is FileFormat.ORC and any("`" in field.name for field in by_id.values()):
        # To Spark such a name ends at the backquote, and may be that of another column.
        return "a column has a backquote in its name, with which Spark does not find it in ORC files"
    columns = []
    for field in fields:
        column = _native_column(file_format, by_id.get(field.id), field)
        if isinstance(column, str):
            return column
        columns.append(column)
    if all(column.file_field is None for column in columns):
        return "files have none of the columns that are read, and Spark's readers need one"
    return tuple(columns)


def has_names_alike(fields: Iterable[DataField]) -> bool:
    """Whether two names are equal or differ in case only."""
    names = [field.name.lower() for field in fields]
    return len(set(names)) < len(names)


def _native_column(file_format: FileFormat, stored: DataField | None, field: DataField) -> NativeColumn | str:
    """Return how Spark reads a column of a file, or why it would read it wrong."""
    if stored is None:
        return NativeColumn(field=field, file_field=None)
    is_safe = file_format is not FileFormat.ORC or _is_safe_in_orc(stored.name, stored.type)
    if not is_safe or not _is_native(file_format, stored.type):
        kind = format_sql_type(stored.type)
        return f"column '{field.name}' has type {kind}, which Spark's {file_format} reader does not read"
    if with_nullability(stored.type, nullable=True) == with_nullability(field.type, nullable=True):
        return NativeColumn(field=field, file_field=stored)
    if _is_widening(stored.type, field.type):
        return NativeColumn(field=field, file_field=stored, is_cast=True)
    old, new = (format_sql_type(with_nullability(each, nullable=True)) for each in (stored.type, field.type))
    return f"column '{field.name}' is {old} in files and {new} in the table"


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
    if stored.root in _WIDTHS and wanted.root in _WIDTHS:
        return _WIDTHS.index(stored.root) < _WIDTHS.index(wanted.root)
    if stored.root is TypeRoot.VARCHAR and wanted.root is TypeRoot.VARCHAR:
        return (stored.length or 0) <= (wanted.length or 0)
    if stored.root is TypeRoot.DECIMAL and wanted.root is TypeRoot.DECIMAL:
        scale, wanted_scale = stored.scale or 0, wanted.scale or 0
        return 0 <= wanted_scale - scale <= (wanted.precision or 0) - (stored.precision or 0)
    return stored.root is TypeRoot.FLOAT and wanted.root is TypeRoot.DOUBLE


def list_native(ref: TableRef, splits: Sequence[DataSplit]) -> tuple[tuple[str, int], ...]:
    """Return the URI and exact size in bytes of the files of splits that Spark's reader can read."""
    external = ExternalPaths.of(ref)
    return tuple(
        (ref.file_io.to_uri(split.path_of(file, external)), file.file_size) for split in splits for file in split.files
    )


def has_chars(fields: Iterable[DataField]) -> bool:
    """Whether some column has values of CHAR(n)."""
    return any(has_leaf(field.type, is_char) for field in fields)


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
        self._columns: dict[tuple[int, FileFormat], tuple[NativeColumn, ...] | str] = {}
        self._stats = ColumnStatsReader(store.load_schema, fields)
        self._keys = _PartitionColumns(ref, store, fields)

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

    def columns_of(self, file: DataFileMeta) -> tuple[NativeColumn, ...] | str:
        """Return how Spark reads each column from a file, or why it would read one of them wrong."""
        key = (file.schema_id, format_of(file.file_name))
        if key not in self._columns:
            stored = _stored_fields(self._ref, self._store, file)
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

    def _have_statistics(self, file: DataFileMeta) -> bool:
        if file.value_stats_cols is not None:
            return all(name in file.value_stats_cols for name in self.names)
        if file.schema_id not in self._places:
            stored = _stored_fields(self._ref, self._store, file)
            self._places[file.schema_id] = tuple(
                place for place, field in enumerate(stored) if field.name in self.names
            )
        counts = file.value_stats.null_counts
        return all(place < len(counts) and counts[place] is not None for place in self._places[file.schema_id])


def _stored_fields(ref: TableRef, store: MetadataStore, file: DataFileMeta) -> Sequence[DataField]:
    """Return the columns of the schema that a file was written with."""
    return ref.schema.fields if file.schema_id == ref.schema.id else store.load_schema(file.schema_id).fields


@lru_cache(maxsize=100_000)
def _column_names(file_io: Hashable, path: str) -> frozenset[str]:
    """Return the columns of a Parquet file; data files never change, so the result is cached."""
    return load_column_names(cast("FileIO", file_io), path)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeReading:
    """The way in which Spark's reader reads the files of a scan.

    Attributes:
        by_id: columns are matched in Parquet files by field ids, since a file has other names.
        retyped_columns: columns with another type in some file; filters on them must not be pushed to the files.
    """

    file_format: FileFormat
    by_id: bool = False
    retyped_columns: frozenset[str] = frozenset()

    def pushes(self, columns: Iterable[str]) -> bool:
        """Whether the reader may skip row groups by a filter on columns, which it matches by name and type."""
        return not self.by_id and self.retyped_columns.isdisjoint(columns)


def plan_reading(
    ref: TableRef,
    store: MetadataStore,
    splits: Sequence[DataSplit],
    fields: tuple[DataField, ...],
    *,
    may_use_ids: bool = True,
    pads: bool = False,
) -> NativeReading | str:
    """Return how one scan of Spark's reads all files with one schema, or why Python workers read them.

    Args:
        fields: columns to read; other columns do not matter. May be empty.
        may_use_ids: whether columns may be matched by field ids.
        pads: whether values of CHAR are padded where they are read.
    """
    checker = NativeFileChecker(ref, store, fields)
    file_format = _common_format(splits)
    reason = _why_not_as_stored(splits, fields, pads=pads) or checker.refusal
    if reason is not None or file_format is None:
        return reason or _SEVERAL_FORMATS
    if file_format is FileFormat.AVRO:
        return _AVRO
    if not fields:
        return NativeReading(file_format=file_format)
    schemas: dict[int, _FileSchema] = {}
    for split in splits:
        for file in split.files:
            reason = checker.why_not(split, file)
            if reason is not None:
                return _with_cure(ref, splits, fields, reason)
            if file.schema_id not in schemas:
                found, stored = checker.columns_of(file), _stored_fields(ref, store, file)
                assert not isinstance(found, str)  # noqa: S101 - that would be a reason
                schemas[file.schema_id] = _FileSchema(columns=found, stored=stored)
    if file_format is FileFormat.ORC:
        reading = _plan_orc(schemas)
    else:
        reading = _plan_parquet(ref, splits, schemas, may_use_ids=may_use_ids)
    return _with_cure(ref, splits, fields, reading) if isinstance(reading, str) else reading


def _with_cure(ref: TableRef, splits: Sequence[DataSplit], fields: tuple[DataField, ...], reason: str) -> str:
    """Add to a reason how many files have an older schema, and what rewrites them, if that cures it."""
    files = [file for split in splits for file in split.files]
    older = sum(file.schema_id != ref.schema.id for file in files)
    if not older or isinstance(plan_native_columns(format_of(files[0].file_name), ref.schema.fields, fields), str):
        return reason
    return (
        f"{reason}; {older} of {len(files)} files have an older schema: compact with 'compaction.force-rewrite-all-"
        "files' = 'true' rewrites them"
    )


def _why_not_as_stored(splits: Sequence[DataSplit], fields: tuple[DataField, ...], *, pads: bool) -> str | None:
    """Return why the rows to return are not those that the files store; None if they are."""
    if pads and has_chars(fields):
        return PADDED
    return _DELETED if any(split.vectors for split in splits) else None


def _plan_orc(schemas: Mapping[int, _FileSchema]) -> NativeReading | str:
    reason = next((reason for each in schemas.values() if (reason := each.why_not_orc()) is not None), None)
    return reason or NativeReading(file_format=FileFormat.ORC)


def _plan_parquet(
    ref: TableRef, splits: Sequence[DataSplit], schemas: Mapping[int, _FileSchema], *, may_use_ids: bool
) -> NativeReading | str:
    by_id = any(schema.is_renamed for schema in schemas.values())
    reason = None
    if by_id:
        reason = _why_not_by_id(ref, splits, schemas) if may_use_ids else _RENAMED
    retyped = frozenset(name for schema in schemas.values() for name in schema.retyped_columns)
    if reason is None and retyped and not WIDENS_VALUES:
        reason = f"files have an older type of column {min(retyped)}, which this version of Spark does not widen"
    return reason or NativeReading(file_format=FileFormat.PARQUET, by_id=by_id, retyped_columns=retyped)


def why_not_native(
    ref: TableRef,
    store: MetadataStore,
    splits: Sequence[DataSplit],
    fields: tuple[DataField, ...],
    *,
    pads: bool = False,
) -> str | None:
    """Return why Spark's Parquet reader cannot read the files by column name; None if it can.

    For streams, which choose the reader for each micro-batch but have a single schema.

    Args:
        fields: columns to read, at least one.
    """
    file_format = _common_format(splits)
    if file_format not in {None, FileFormat.PARQUET}:
        return f"its files are {file_format}, and only Parquet is read by Spark here"
    reading = plan_reading(ref, store, splits, fields, may_use_ids=False, pads=pads)
    return reading if isinstance(reading, str) else None


def _common_format(splits: Sequence[DataSplit]) -> FileFormat | None:
    """Return the format of the files; None if there are several formats, Parquet if there are no files."""
    found = {format_of(file.file_name) for split in splits for file in split.files}
    return found.pop() if len(found) == 1 else None if found else FileFormat.PARQUET


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileSchema:
    """How the files of one schema differ from the columns to read, which Spark finds by name.

    Attributes:
        columns: one for each column to read.
        stored: all columns of the files.
    """

    columns: tuple[NativeColumn, ...]
    stored: Sequence[DataField]

    @property
    def is_renamed(self) -> bool:
        """Whether files have a column under another name, or another column under its name."""
        return any(map(self._has_other_name, self.columns))

    @property
    def retyped_columns(self) -> frozenset[str]:
        """The columns with another Spark type in the files."""
        return frozenset(column.field.name for column in self.columns if _has_other_type(column))

    def has_ids(self, ids: dict[str, int]) -> bool:
        """Whether these field ids, by the names in a file, find each column, and no other one."""
        wanted = {column.file_field.name: column.field.id for column in self.columns if column.file_field is not None}
        absent = {column.field.id for column in self.columns if column.file_field is None}
        return ids.items() >= wanted.items() and absent.isdisjoint(ids.values())

    def why_not_orc(self) -> str | None:
        """Return why a column of ORC files does not have its current name and type; None if all do."""
        for column in self.columns:
            name = column.field.name
            if self._has_other_name(column):
                return f"ORC files have column '{name}' under an older name, or another column of that name"
            if _has_other_type(column):
                return f"the type of column '{name}' was changed after ORC files were written"
        return None

    def _has_other_name(self, column: NativeColumn) -> bool:
        name = column.field.name
        if column.file_field is None:
            return any(field.name.lower() == name.lower() for field in self.stored)
        return column.file_field.name != name


def _has_other_type(column: NativeColumn) -> bool:
    """Whether the column has different Spark types in the file and in the table."""
    stored = column.file_field
    return column.is_cast and stored is not None and to_spark_type(stored.type) != to_spark_type(column.field.type)


def _why_not_by_id(ref: TableRef, splits: Sequence[DataSplit], schemas: Mapping[int, _FileSchema]) -> str | None:
    """Return why Spark cannot match columns by field ids, according to the footers; None if it can.

    Spark fails on a file without ids, and not all writers store them.
    """
    if sum(len(split.files) for split in splits) > _MAX_FOOTERS:
        return f"columns were renamed, and more than {_MAX_FOOTERS} files would have to be opened to find them by id"
    external = ExternalPaths.of(ref)
    for split in splits:
        for file in split.files:
            ids = _field_ids(cast("Hashable", ref.file_io), split.path_of(file, external))
            if not schemas[file.schema_id].has_ids(ids):
                return f"columns were renamed, and the file {file.file_name} has no field ids to find them by"
    return None


@lru_cache(maxsize=100_000)
def _field_ids(file_io: Hashable, path: str) -> dict[str, int]:
    """Return field ids by column name; data files never change, so the result is cached."""
    return load_field_ids(cast("FileIO", file_io), path)
