"""Decide which data files Spark's own readers read correctly, and how one scan of Spark's reads them."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self, cast

from penstock.datafile.parquet.footer import load_column_names
from penstock.datafile.types import has_leaf, is_char
from penstock.errors import FormatError
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
from penstock.spark.versions.facts import READS_ORC_INSTANTS, VARIANT, WIDENS_VALUES
from penstock.table.read.batches import DeletedRows
from penstock.table.read.prune import ColumnStatsReader
from penstock.table.ref import ExternalPaths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import VectorPlace
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
# Types whose values JSON does not tell apart, as Driver.java names them.
_CELLS: Final = {
    TypeRoot.BINARY: "binary",
    TypeRoot.VARBINARY: "binary",
    TypeRoot.TINYINT: "byte",
    TypeRoot.SMALLINT: "short",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.TIMESTAMP: "long",
    TypeRoot.TIMESTAMP_LTZ: "long",
}
_UNLIKE_JAVA: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
# Excluded: TIME, which Spark reads in microseconds only. ORC stores CHAR padded with blanks, and timestamps in the
# writer's zone.
_NATIVE: Final = {
    FileFormat.PARQUET: _PLAIN | _TIMESTAMPS | {TypeRoot.CHAR} | ({TypeRoot.VARIANT} if VARIANT.is_here else set()),
    FileFormat.ORC: _PLAIN,
    FileFormat.AVRO: frozenset[TypeRoot](),
}
FIRST_GREGORIAN_DAY: Final = -141_427
"""Epoch day of 1582-10-15, the first day of the Gregorian calendar in Java's older classes."""

_WIDTHS: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)
PADDED: Final = "values of CHAR are padded here, which Spark's own reader does not do"
_DELETED: Final = "rows of its files are deleted by deletion vectors"
_RENAMED: Final = "a column was renamed, and some files have its old name, or another column of its name"
_ORC_INSTANTS: Final = "a column is TIMESTAMP_LTZ, and this version of Spark fails on ORC files that have one"
FILE_PATH: Final = "__paimon_file_path"
BUCKET: Final = "__paimon_bucket"
PARTITION: Final = "__paimon_partition"
"""Metadata columns with the path of a row's file, its bucket and its partition.

Source:
    Paimon ``spark:schema/PaimonMetadataColumn.scala``.
"""
ROW_ID: Final = "_ROW_ID"
SEQUENCE_NUMBER: Final = "_SEQUENCE_NUMBER"
FIRST_ROW_ID: Final = f"{ROW_ID}_first"
LAST_SEQUENCE_NUMBER: Final = f"{SEQUENCE_NUMBER}_last"
"""Metadata columns of tables with row tracking. Files that were rewritten have them; in the others, ids count from the
first one of the file, and all rows have its last sequence number.

Source:
    Paimon ``core:io/DataFileRecordReader.java``, ``common:reader/FileRecordIterator`` (``assignRowTracking``).
"""
ROW_NUMBER: Final = "_tmp_metadata_row_index"
"""Column in which Spark's Parquet reader returns the number of a row in its file.

Source:
    ``FileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME`` of Spark.
"""
_NUMBERS: Final = frozenset({ROW_NUMBER, ROW_ID.lower(), SEQUENCE_NUMBER.lower()})
_SEVERAL_FORMATS: Final = "its files have several formats"
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
    if not READS_ORC_INSTANTS and any(has_leaf(field.type, _is_instant) for field in stored):
        return _ORC_INSTANTS
    return None


def _is_instant(data_type: AtomicType) -> bool:
    return data_type.root is TypeRoot.TIMESTAMP_LTZ


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


def list_native(
    ref: TableRef, splits: Sequence[DataSplit], reading: NativeReading, constants: Sequence[str] = ()
) -> tuple[tuple[str, int, str], ...]:
    """Return the URI, exact size in bytes and tag of the files of splits that Spark's reader can read.

    Args:
        constants: what the reader returns that has one value in all rows of a file.
    """
    external = ExternalPaths.of(ref)
    if not reading.needs_class and not constants:
        return tuple(
            (ref.file_io.to_uri(split.path_of(file, external)), file.file_size, "\t")
            for split in splits
            for file in split.files
        )
    deleted, found = DeletedRows(ref), []
    cells: dict[str, str | None] = {FIRST_ROW_ID: "long", LAST_SEQUENCE_NUMBER: "long"}
    cells |= {partition_constant(field.name): _cell_of(field.type) for field in ref.schema.partition_fields}
    for split in splits:
        vectors = dict(split.vectors)
        values: dict[str, object] = {BUCKET: split.bucket}
        for field, value in zip(ref.schema.partition_fields, split.values, strict=True):
            values[partition_constant(field.name)] = _in_json(field.type, value)
        for file in split.files:
            path = split.path_of(file, external)
            values |= {FILE_PATH: path, FIRST_ROW_ID: file.first_row_id, LAST_SEQUENCE_NUMBER: file.max_sequence_number}
            row = json.dumps([[cells.get(name) for name in constants], [values[name] for name in constants]])
            tag = _tag(ref, reading, deleted, file, vectors.get(file.file_name)) if reading.needs_class else ""
            found.append((ref.file_io.to_uri(path), file.file_size, f"{row if constants else ''}\t{tag}"))
    return tuple(found)


def partition_constant(name: str) -> str:
    """Return under which name, of plain letters, readers return the value of a partition column."""
    return f"{PARTITION}_{name.encode().hex()}"


def _cell_of(data_type: DataType) -> str | None:
    """Return the type of a value of a partition, as ``Driver.java`` takes it; None if JSON says it."""
    assert isinstance(data_type, AtomicType)  # noqa: S101 - no other type is one of partitions
    if data_type.root is TypeRoot.DECIMAL:
        return f"decimal {data_type.precision} {data_type.scale}"
    return _CELLS.get(data_type.root)


def _in_json(data_type: DataType, value: object) -> object:
    """Return a value of a partition in JSON, as Spark has it in its rows."""
    match value:
        case bytes():
            return b64encode(value).decode()
        case Decimal() | float():
            return _UNLIKE_JAVA.get(str(value), str(value))
        case int() if isinstance(data_type, AtomicType) and data_type.root in _TIMESTAMPS:
            return value // 1_000
        case _:
            return value


def _tag(
    ref: TableRef, reading: NativeReading, deleted: DeletedRows, file: DataFileMeta, place: VectorPlace | None
) -> str:
    """Return which reader reads a file, and where its deletion vector is, as ``FileReaders.java`` takes them."""
    number = str(reading.place_of(file.schema_id, has_vector=place is not None))
    if place is None:
        return number
    path = deleted.path_of(place)
    if place.length > _most_bytes(file.row_count):
        raise FormatError(f"{path}: the deletion vector of {file.file_name} is longer than one of its rows can be")
    return "\t".join((number, ref.file_io.to_uri(path), str(place.offset), str(place.length), str(file.row_count)))


def _most_bytes(rows: int) -> int:
    """Return the most bytes of a deletion vector: a container for each 65,536 rows, with its size and place."""
    return 64 + (rows // 65_536 + 1) * (8_192 + 12)


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
class FileReader:
    """One of Spark's readers, for the files in which the columns have the same names.

    Attributes:
        names: of the columns to read, in the files.
        pushable: columns of the table by which it may skip row groups, as it matches them by name and type.
        deletes: whether the files have deletion vectors.
    """

    names: tuple[str, ...]
    pushable: frozenset[str]
    deletes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeReading:
    """The way in which Spark's readers read the files of a scan.

    Attributes:
        readers: those that are needed.
        names: of the columns in files, by the id of their schema.
        numbers_rows: whether the readers can return the number of a row in its file.
        made: metadata columns that are made of several columns of the readers.
    """

    file_format: FileFormat
    readers: tuple[FileReader, ...]
    names: Mapping[int, tuple[str, ...]]
    numbers_rows: bool
    made: tuple[str, ...] = ()

    @property
    def needs_class(self) -> bool:
        """Whether executors need a class of ours: it gives each file its reader, leaves rows out and makes columns."""
        return len(self.readers) > 1 or any(reader.deletes for reader in self.readers) or bool(self.made)

    def place_of(self, schema_id: int, *, has_vector: bool) -> int:
        """Return the place of the reader of a file."""
        names = self.names.get(schema_id, ())
        return next(
            place for place, reader in enumerate(self.readers) if reader.names == names and reader.deletes == has_vector
        )

    def __str__(self) -> str:
        """Return the text for ``explain``."""
        schemas = len({reader.names for reader in self.readers})
        parts = [f"{self.file_format} reader of Spark"]
        parts += ["with deletion vectors"] if any(reader.deletes for reader in self.readers) else []
        parts += [f"columns by the names in files of {schemas} schemas"] if schemas > 1 else []
        return ", ".join(parts)


def describe_reading(reading: NativeReading | str) -> str:
    """Return what reads the files, for ``explain``."""
    return f"Python workers, because {reading}" if isinstance(reading, str) else str(reading)


def plan_reading(  # noqa: PLR0913 - what depends on the query, by name
    ref: TableRef,
    store: MetadataStore,
    splits: Sequence[DataSplit],
    fields: tuple[DataField, ...],
    *,
    has_class: Callable[[], bool],
    pads: bool = False,
    numbers: bool = False,
) -> NativeReading | str:
    """Return how Spark's readers read all files, or why Python workers read them.

    Args:
        fields: columns to read; other columns do not matter. May be empty.
        has_class: whether executors have our class; only called if it is needed.
        pads: whether values of CHAR are padded where they are read.
        numbers: whether metadata columns need the numbers of rows.
    """
    checker = NativeFileChecker(ref, store, fields)
    file_format = _common_format(splits)
    reason = PADDED if pads and has_chars(fields) else checker.refusal
    if reason is not None or file_format is None:
        return reason or _SEVERAL_FORMATS
    if file_format is FileFormat.AVRO:
        return "its files are avro, which Spark does not read here"
    found: dict[int, _FileColumns] = {}
    has_vectors = any(split.vectors for split in splits)
    # Where it fails on an instant, Spark's reader does so whichever columns are read, if any.
    fails_on_instants = file_format is FileFormat.ORC and not READS_ORC_INSTANTS
    needs_stored = bool(fields) or has_vectors or numbers or fails_on_instants
    # Which schemas have files with deletion vectors, and without.
    kinds: set[tuple[int, bool]] = set()
    for split in splits:
        deleted = {name for name, _ in split.vectors}
        for file in split.files:
            stored = _stored_fields(ref, store, file) if needs_stored and file.schema_id not in found else ()
            reason = checker.why_not(split, file) if fields else None
            if reason is None and fails_on_instants and any(has_leaf(field.type, _is_instant) for field in stored):
                reason = _ORC_INSTANTS
            if reason is not None:
                return _with_cure(ref, splits, fields, reason)
            kinds.add((file.schema_id, file.file_name in deleted))
            if file.schema_id not in found:
                columns = checker.columns_of(file) if fields else ()
                found[file.schema_id] = _FileColumns.of(columns, stored)
    reading = _plan(file_format, fields, found, kinds)
    if isinstance(reading, NativeReading) and reading.needs_class and not has_class():
        reading = _DELETED if any(reader.deletes for reader in reading.readers) else _RENAMED
    return _with_cure(ref, splits, fields, reading) if isinstance(reading, str) else reading


def _plan(
    file_format: FileFormat,
    fields: tuple[DataField, ...],
    found: Mapping[int, _FileColumns],
    kinds: Collection[tuple[int, bool]],
) -> NativeReading | str:
    """Return the readers of files of these schemas, or why one of them would read a column wrong."""
    # Spark would mix up such a column with the stored one.
    numbers_rows = file_format is FileFormat.PARQUET and not any(each.has_row_number for each in found.values())
    if any(deletes for _, deletes in kinds) and not numbers_rows:
        return f"{_DELETED}, and Spark's {file_format} reader cannot number their rows"
    retyped = frozenset[str]().union(*(each.retyped for each in found.values()))
    if retyped and file_format is FileFormat.ORC:
        return f"the type of column '{min(retyped)}' was changed after ORC files were written"
    if retyped and not WIDENS_VALUES:
        return f"files have an older type of column {min(retyped)}, which this version of Spark does not widen"
    pushable: dict[tuple[tuple[str, ...], bool], frozenset[str]] = {}
    for schema_id, deletes in sorted(kinds):
        columns = found[schema_id]
        key = (columns.names, deletes)
        pushable[key] = pushable.get(key, columns.pushable) & columns.pushable
    if not pushable:
        names = tuple(field.name for field in fields)
        pushable[names, False] = frozenset(names)
    readers = tuple(
        FileReader(names=names, pushable=each, deletes=deletes) for (names, deletes), each in pushable.items()
    )
    names_of = {schema_id: columns.names for schema_id, columns in found.items()}
    return NativeReading(file_format=file_format, readers=readers, names=names_of, numbers_rows=numbers_rows)


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


def _common_format(splits: Sequence[DataSplit]) -> FileFormat | None:
    """Return the format of the files; None if there are several formats, Parquet if there are no files."""
    found = {format_of(file.file_name) for split in splits for file in split.files}
    return found.pop() if len(found) == 1 else None if found else FileFormat.PARQUET


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileColumns:
    """How the columns to read differ from the table's in the files of a schema.

    Attributes:
        names: in the files; a column that they do not have has a name that none of theirs has.
        pushable: columns with the same name and type.
        retyped: columns with another Spark type.
        has_row_number: whether they have a column with a name by which rows are numbered.
    """

    names: tuple[str, ...]
    pushable: frozenset[str]
    retyped: frozenset[str]
    has_row_number: bool

    @classmethod
    def of(cls, columns: tuple[NativeColumn, ...] | str, stored: Sequence[DataField]) -> Self:
        """Return the columns of the files of a schema, which can be read.

        Args:
            stored: all columns of the files.
        """
        assert not isinstance(columns, str)  # noqa: S101 - that would be a reason not to read them
        taken = {field.name.lower() for field in stored}
        names = []
        for column in columns:
            name = column.field.name if column.file_field is None else column.file_field.name
            while column.file_field is None and name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            names.append(name)
        retyped = frozenset(column.field.name for column in columns if _has_other_type(column))
        same = {column.field.name for column, name in zip(columns, names, strict=True) if column.field.name == name}
        return cls(
            names=tuple(names),
            pushable=frozenset(same - retyped),
            retyped=retyped,
            has_row_number=not _NUMBERS.isdisjoint(taken),
        )


def _has_other_type(column: NativeColumn) -> bool:
    """Whether the column has different Spark types in the file and in the table."""
    stored = column.file_field
    return column.is_cast and stored is not None and to_spark_type(stored.type) != to_spark_type(column.field.type)
