"""How Spark's own readers read the files of a scan: one reader for each kind of file, or Python workers instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from penstock.datafile.types import has_leaf, is_char
from penstock.format.layout import FileFormat, format_of
from penstock.spark.read.native_files import (
    ORC_INSTANTS,
    NativeColumn,
    NativeFileChecker,
    has_instants,
    plan_native_columns,
    stored_fields,
)
from penstock.spark.types import to_spark_type
from penstock.spark.versions.facts import READS_ORC_INSTANTS, WIDENS_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from penstock.format.types.data_types import DataField
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

PADDED: Final = "values of CHAR are padded here, which Spark's own reader does not do"
_DELETED: Final = "rows of its files are deleted by deletion vectors"
_RENAMED: Final = "a column was renamed, and some files have its old name, or another column of its name"
ROW_ID: Final = "_ROW_ID"
SEQUENCE_NUMBER: Final = "_SEQUENCE_NUMBER"
"""Metadata columns of tables with row tracking, which files that were rewritten have."""

ROW_NUMBER: Final = "_tmp_metadata_row_index"
"""Column in which Spark's Parquet reader returns the number of a row in its file.

Source:
    ``FileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME`` of Spark.
"""
_NUMBERS: Final = frozenset({ROW_NUMBER, ROW_ID.lower(), SEQUENCE_NUMBER.lower()})
_SEVERAL_FORMATS: Final = "its files have several formats"


def has_chars(fields: Iterable[DataField]) -> bool:
    """Whether some column has values of CHAR(n)."""
    return any(has_leaf(field.type, is_char) for field in fields)


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
            stored = stored_fields(ref, store, file) if needs_stored and file.schema_id not in found else ()
            reason = checker.why_not(split, file) if fields else None
            if reason is None and fails_on_instants and has_instants(stored):
                reason = ORC_INSTANTS
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
