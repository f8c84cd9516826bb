"""How Spark's own readers read the files of a scan: one reader for each kind of file, or Python workers instead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from penstock.datafile.types import has_leaf, is_char
from penstock.format.layout import FileFormat, format_of
from penstock.format.manifest.entry import FileKey
from penstock.options import FormatOptions
from penstock.spark.native_settings import scan_options
from penstock.spark.read.native_files import (
    ORC_INSTANTS,
    NativeColumn,
    NativeFileChecker,
    has_instants,
    plan_native_columns,
    stored_fields,
)
from penstock.spark.types import to_spark_type
from penstock.spark.versions.facts import PYTHON_SCANS, READS_ORC_INSTANTS, WIDENS_VALUES
from penstock.table import row_tracking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField, DataType
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

PADDED: Final = "values of CHAR are padded here, which Spark's own reader does not do"
_DELETED: Final = "rows of its files are deleted by deletion vectors"
_RENAMED: Final = "a column was renamed, and some files have its old name, or another column of its name"
ROW_ID: Final = row_tracking.ROW_ID.name
SEQUENCE_NUMBER: Final = row_tracking.SEQUENCE_NUMBER.name
"""Metadata columns of tables with row tracking, which files that were rewritten have."""

ROW_NUMBER: Final = "_tmp_metadata_row_index"
"""Column in which Spark's Parquet reader returns the number of a row in its file.

Source:
    ``FileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME`` of Spark.
"""
_NUMBERS: Final = frozenset({ROW_NUMBER, ROW_ID.lower(), SEQUENCE_NUMBER.lower()})
_RETYPED: Final = "the type of a column was changed, and some files have the older one"
_SEVERAL_FORMATS: Final = "its files have several formats"
_AVRO: Final = "Spark does not read Avro files here"


# Format, names, whether there are deletion vectors, and conversions, as in FileReader.
_ReaderKey: TypeAlias = "tuple[FileFormat, tuple[str, ...], bool, tuple[tuple[DataType, DataType] | None, ...]]"


def has_chars(fields: Iterable[DataField]) -> bool:
    """Whether some column has values of CHAR(n)."""
    return any(has_leaf(field.type, is_char) for field in fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReader:
    """One of Spark's readers, for the files of a format in which the columns have the same names and types.

    Attributes:
        names: of the columns to read, in the files.
        pushable: columns of the table by which it may skip row groups, as it matches them by name and type.
        deletes: whether the files have deletion vectors.
        conversions: for each column None, or the type in the files and the type of which our class makes its values.
    """

    file_format: FileFormat
    names: tuple[str, ...]
    pushable: frozenset[str]
    deletes: bool = False
    conversions: tuple[tuple[DataType, DataType] | None, ...] = ()

    @property
    def converts(self) -> bool:
        """Whether our class makes values of others."""
        return any(self.conversions)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeReading:
    """The way in which Spark's readers read the files of a scan.

    Attributes:
        readers: those that are needed.
        places: the place of its reader for each kind of file: schema, format, and whether it has a deletion vector.
        numbers_rows: whether the readers can return the number of a row in its file.
        made: metadata columns that are made of several columns of the readers.
        left: files that are left to Python workers.
        reason: why, of one of them.
        file_count: number of all files.
        options: of the readers, see ``scan_options``.
    """

    readers: tuple[FileReader, ...]
    places: Mapping[tuple[int, FileFormat, bool], int]
    numbers_rows: bool
    made: tuple[str, ...] = ()
    left: frozenset[FileKey] = frozenset()
    reason: str = ""
    file_count: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs_class(self) -> bool:
        """Whether executors need a class of ours: it gives each file its reader, leaves rows out and makes columns."""
        is_changed = any(reader.deletes or reader.converts for reader in self.readers)
        return bool(self.left or self.made or len(self.readers) > 1 or is_changed)

    @property
    def formats(self) -> str:
        """The formats of the files that Spark's readers read."""
        return " and ".join(sorted({reader.file_format for reader in self.readers}))

    @property
    def reads_variants(self) -> bool:
        """Whether the readers of all files return fields of VARIANT if they are asked for them."""
        is_plain = not self.left and not any(reader.converts for reader in self.readers)
        return is_plain and self.formats == FileFormat.PARQUET

    def place_of(self, file: DataFileMeta, *, has_vector: bool) -> int:
        """Return the place of the reader of a file."""
        return self.places[file.schema_id, format_of(file.file_name), has_vector]

    def divided(self, splits: Sequence[DataSplit]) -> tuple[list[DataSplit], list[DataSplit]]:
        """Return what Spark's readers read of splits, and what Python workers do."""
        found: tuple[list[DataSplit], list[DataSplit]] = ([], [])
        for split in splits:
            files: tuple[list[DataFileMeta], list[DataFileMeta]] = ([], [])
            for file in split.files:
                files[FileKey(split.partition, split.bucket, file.file_name) in self.left].append(file)
            for parts, some in zip(found, files, strict=True):
                if some:
                    parts.append(replace(split, files=tuple(some)))
        return found

    def __str__(self) -> str:
        """Return the text for ``explain``."""
        schemas = len({reader.names for reader in self.readers})
        parts = [f"{self.formats} reader{'s' if ' ' in self.formats else ''} of Spark"]
        parts += ["with deletion vectors"] if any(reader.deletes for reader in self.readers) else []
        parts += [f"columns by the names in files of {schemas} schemas"] if schemas > 1 else []
        parts += ["values of older types converted"] if any(reader.converts for reader in self.readers) else []
        if self.left:
            parts.append(f"and Python workers for {len(self.left)} of {self.file_count} files, because {self.reason}")
        return ", ".join(parts)


def describe_reading(reading: NativeReading | str) -> str:
    """Return what reads the files, for ``explain``."""
    return f"Python workers, because {reading}" if isinstance(reading, str) else str(reading)


def plan_reading(
    ref: TableRef,
    store: MetadataStore,
    splits: Sequence[DataSplit],
    fields: tuple[DataField, ...],
    *,
    has_class: Callable[[], bool],
    pads: bool = False,
) -> NativeReading | str:
    """Return how Spark's readers read the files, or why Python workers read all of them.

    Args:
        fields: columns to read; other columns do not matter. May be empty.
        has_class: whether executors have our class; only called if it is needed.
        pads: whether values of CHAR are padded where they are read.
    """
    checker = NativeFileChecker(ref, store, fields)
    reason = PADDED if pads and has_chars(fields) else checker.refusal
    if reason is not None:
        return reason
    columns: dict[tuple[int, FileFormat], _FileColumns | str] = {}
    kinds: set[tuple[int, FileFormat, bool]] = set()
    left: dict[FileKey, DataFileMeta] = {}
    for split in splits:
        deleted = {name for name, _ in split.vectors}
        for file in checker.files_to_check(split):
            key = file.schema_id, format_of(file.file_name)
            if key not in columns:
                stored = stored_fields(ref, store, file)
                columns[key] = _columns_of(key[1], checker.columns_of(file) if fields else (), stored)
            found, deletes = columns[key], file.file_name in deleted
            why_not = _why_not(key[1], found, deletes=deletes) or (checker.why_not(split, file) if fields else None)
            if why_not is None:
                kinds.add((*key, deletes))
            else:
                left[FileKey(split.partition, split.bucket, file.file_name)] = file
                reason = reason or why_not
    if reason is not None:
        reason += _cure_of(ref, left.values(), fields)
        if not kinds or not PYTHON_SCANS.is_here:
            return reason
    reading = replace(
        _plan(fields, columns, kinds),
        left=frozenset(left),
        reason=reason or "",
        file_count=sum(len(split.files) for split in splits),
        options=scan_options(ref.file_io),
    )
    return reading if not reading.needs_class or has_class() else _why_class(reading)


def _why_class(reading: NativeReading) -> str:
    """Return for what a reading needs our class."""
    if any(reader.deletes for reader in reading.readers):
        return _DELETED
    if any(reader.converts for reader in reading.readers):
        return _RETYPED
    return reading.reason or (_SEVERAL_FORMATS if " " in reading.formats else _RENAMED)


def _columns_of(
    file_format: FileFormat, columns: tuple[NativeColumn, ...] | str, stored: Sequence[DataField]
) -> _FileColumns | str:
    """Return how columns are read from files of a schema, or why Spark's reader would read one of them wrong.

    Args:
        stored: all columns of the files.
    """
    if file_format is FileFormat.AVRO:
        return _AVRO
    # Where it fails on an instant, Spark's reader does so whichever columns are read, if any.
    if file_format is FileFormat.ORC and not READS_ORC_INSTANTS and has_instants(stored):
        return ORC_INSTANTS
    if isinstance(columns, str):
        return columns
    return _FileColumns.of(columns, stored, widens=file_format is FileFormat.PARQUET and WIDENS_VALUES)


def _why_not(file_format: FileFormat, columns: _FileColumns | str, *, deletes: bool) -> str | None:
    """Return why Spark's reader would not read files of a schema correctly; None if it does."""
    if isinstance(columns, str) or not deletes or _can_number(file_format, columns):
        return columns if isinstance(columns, str) else None
    return f"{_DELETED}, and Spark's {file_format} reader cannot number their rows"


def _can_number(file_format: FileFormat, columns: _FileColumns | str) -> bool:
    """Whether Spark's reader returns the numbers of rows; it would mix up a stored column of that name with them."""
    return file_format is FileFormat.PARQUET and not isinstance(columns, str) and not columns.has_row_number


def _plan(
    fields: tuple[DataField, ...],
    columns: Mapping[tuple[int, FileFormat], _FileColumns | str],
    kinds: Collection[tuple[int, FileFormat, bool]],
) -> NativeReading:
    """Return the readers of files of these schemas and formats, with deletion vectors and without."""
    pushable: dict[_ReaderKey, frozenset[str]] = {}
    keys = {}
    for schema_id, file_format, deletes in sorted(kinds):
        found = columns[schema_id, file_format]
        assert not isinstance(found, str)  # noqa: S101 - such files are left out
        key = keys[schema_id, file_format, deletes] = file_format, found.names, deletes, found.conversions
        pushable[key] = pushable.get(key, found.pushable) & found.pushable
    if not pushable:
        names = tuple(field.name for field in fields)
        pushable[FileFormat.PARQUET, names, False, ()] = frozenset(names)
    readers = tuple(
        FileReader(file_format=file_format, names=names, pushable=each, deletes=deletes, conversions=conversions)
        for (file_format, names, deletes, conversions), each in pushable.items()
    )
    places = {key: place for place, key in enumerate(pushable)}
    return NativeReading(
        readers=readers,
        places={kind: places[key] for kind, key in keys.items()},
        numbers_rows=all(_can_number(kind[1], columns[kind[:2]]) for kind in kinds),
    )


def _cure_of(ref: TableRef, files: Collection[DataFileMeta], fields: tuple[DataField, ...]) -> str:
    """Return what rewrites files that are left to Python workers, with a semicolon before; empty if that is no cure."""
    now = ref.parsed(FormatOptions).file_format
    are_current = all(file.schema_id == ref.schema.id and format_of(file.file_name) is now for file in files)
    if are_current or isinstance(plan_native_columns(now, ref.schema.fields, fields), str):
        return ""
    return "; compact with 'compaction.force-rewrite-all-files' = 'true' rewrites them"


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileColumns:
    """How the columns to read differ from the table's in the files of a schema.

    Attributes:
        names: in the files; a column that they do not have has a name that none of theirs has.
        pushable: columns with the same name and type.
        conversions: as in ``FileReader``.
        has_row_number: whether they have a column with a name by which rows are numbered.
    """

    names: tuple[str, ...]
    pushable: frozenset[str]
    conversions: tuple[tuple[DataType, DataType] | None, ...]
    has_row_number: bool

    @classmethod
    def of(cls, columns: tuple[NativeColumn, ...], stored: Sequence[DataField], *, widens: bool) -> Self:
        """Return the columns of the files of a schema, which can be read.

        Args:
            stored: all columns of the files.
            widens: whether Spark's reader widens values itself.
        """
        taken = {field.name.lower() for field in stored}
        names = []
        for column in columns:
            name = column.field.name if column.file_field is None else column.file_field.name
            while column.file_field is None and name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            names.append(name)
        retyped = frozenset(column.field.name for column in columns if column.converts or _has_other_type(column))
        same = {column.field.name for column, name in zip(columns, names, strict=True) if column.field.name == name}
        return cls(
            names=tuple(names),
            pushable=frozenset(same - retyped),
            conversions=tuple(
                (column.file_field.type, column.field.type)
                if column.file_field is not None and _has_other_type(column) and (column.converts or not widens)
                else None
                for column in columns
            ),
            has_row_number=not _NUMBERS.isdisjoint(taken),
        )


def _has_other_type(column: NativeColumn) -> bool:
    """Whether the column has different Spark types in the file and in the table."""
    stored = column.file_field
    is_changed = column.is_cast or column.converts
    return is_changed and stored is not None and to_spark_type(stored.type) != to_spark_type(column.field.type)
