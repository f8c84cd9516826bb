"""Convert a directory of files, or a table of another format, into a new table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from penstock.api.arguments import (
    FLAG,
    FUNCTION,
    LOCATION,
    NAMES,
    NONE,
    TEXT,
    TEXT_MAPPING,
    Names,
    Options,
    Progress,
    accepts,
    instance_of,
    no_progress,
    to_columns,
    to_names,
)
from penstock.api.catalog import Catalog
from penstock.api.exchange.source import (
    SourceFile,
    SourceFormat,
    count_rows,
    find_lake,
    list_source,
    load_with_spark,
    partition_columns,
    partition_types,
    read_file,
    source_schema,
)
from penstock.api.lazy import lazy_spark
from penstock.api.rows import fit_rows
from penstock.catalog.names import parse_data_table_name
from penstock.datafile.types import to_arrow_type
from penstock.errors import AlreadyExistsError, FormatError, InvalidOptionError, NotFoundError
from penstock.format.text.names import quoted
from penstock.format.types.ddl import ColumnSpec, parse_columns
from penstock.format.types.text import format_sql_type
from penstock.io.resolve import resolve
from penstock.printable import Result
from penstock.table.write.imports import check_names, constant_array

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from penstock.api.table import Table
    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import FileIO


_LAKES: Final = frozenset({SourceFormat.DELTA, SourceFormat.ICEBERG})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConversionPlan(Result):
    """The plan of a conversion.

    Attributes:
        columns: of the new table, as DDL text.
        files: to copy, with ``bytes``; None if Spark reads the source.
        rows: according to the footers of the files; None for text files, and if Spark reads the source.
        partitions: number of partition directories.
    """

    table: str
    source: str
    format: str
    columns: str
    partition_by: tuple[str, ...]
    files: int | None
    bytes: int | None
    rows: int | None
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Conversion(Result):
    """The result of a conversion.

    Attributes:
        snapshot: with all rows; None for a dry run, and for a source without rows.
        rows: read from the source, and counted again in the new table.
    """

    plan: ConversionPlan
    snapshot: Snapshot | None
    rows: int


@accepts(
    catalog=instance_of(Catalog),
    name=TEXT,
    source=LOCATION,
    format=TEXT | NONE,
    partition_by=NAMES | NONE,
    types=TEXT_MAPPING | NONE,
    dry_run=FLAG,
    progress=FUNCTION,
)
def convert(  # noqa: PLR0913 - the options of a command
    catalog: Catalog,
    name: str,
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    partition_by: Names | None = None,
    types: Mapping[str, str] | None = None,
    options: Options | None = None,
    spark: SparkSession | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> Conversion:
    """Copy a directory of Parquet, ORC, CSV or JSON files, or a table of Delta Lake or Iceberg, into a new table.

    Columns are inferred from the files, and partition columns from directories such as ``dt=2026-01-01``. All rows are
    one commit and are counted again in the new table. A failed conversion removes the table that it created; the source
    is never changed.

    Args:
        name: ``database.table``, which must not exist yet. The database is created if it does not exist.
        source: the directory; with Spark also anything that ``load`` accepts, except for Iceberg.
        format: ``parquet``, ``orc``, ``csv``, ``json``, ``delta`` or ``iceberg``; None detects it.
        partition_by: partition columns; None for those of the directory names, or of the Delta or Iceberg table.
        types: override the inferred types of columns, such as ``{"dt": "DATE"}``.
        options: of the new table.
        spark: a session that reads the source; needed for Delta Lake and Iceberg.
        dry_run: only return the plan.
        progress: called with the rows copied so far, and the bytes of the completed files.

    Raises:
        AlreadyExistsError: the table exists; ``append`` and ``penstock import`` copy into an existing table.
        NotFoundError: there is no such directory, or it has no file with rows.
        SchemaMismatchError: the files are inconsistent, or a value does not fit its column.
        UnsupportedFeatureError: a table of Delta Lake or Iceberg without a session that can read it.
        FormatError: the row counts of the new table and the source differ; the table was removed.
    """
    file_io, root = resolve(str(source))
    source_format = _format_of(format)
    lake: SourceFormat | None = source_format if source_format in _LAKES else None
    if source_format is None and (spark is None or file_io.exists(root)):
        lake = find_lake(file_io, root)
    if lake is not None or spark is not None:
        reading: _Reading = _SparkReading(file_io, root, spark, lake or source_format, types or {})
    else:
        reading = _FileReading(file_io, root, source_format, types or {})
    plan = _plan(reading, name, to_names(partition_by), types or {})
    if dry_run:
        return Conversion(plan=plan, snapshot=None, rows=plan.rows or 0)
    _check_new(catalog, name)
    catalog.create_database(parse_data_table_name(name).database, if_not_exists=True)
    table = catalog.create_table(name, plan.columns, partition_by=plan.partition_by, options=options)
    try:
        copied = reading.copy(table, progress)
        _verify(table, copied)
    except BaseException:
        catalog.drop_table(name, if_exists=True)
        raise
    return Conversion(plan=plan, snapshot=copied.snapshot, rows=copied.rows)


class _Copied(NamedTuple):
    """The snapshot of an append, the number of rows read, and their number per partition text, if known."""

    snapshot: Snapshot | None
    rows: int
    by_partition: Counter[tuple[str | None, ...]] | None


class _Reading(ABC):
    """A source that can be planned and copied.

    Attributes:
        location: where it is.
    """

    location: str

    @abstractmethod
    def columns(self) -> tuple[ColumnSpec, ...]: ...

    @abstractmethod
    def partition_keys(self) -> tuple[str, ...]: ...

    @abstractmethod
    def describe(self, plan: ConversionPlan) -> ConversionPlan: ...

    @abstractmethod
    def copy(self, table: Table, progress: Progress) -> _Copied:
        """Append all rows as one commit."""


class _FileReading(_Reading):
    def __init__(
        self, file_io: FileIO, root: str, source_format: SourceFormat | None, types: Mapping[str, str]
    ) -> None:
        if not file_io.exists(root):
            raise NotFoundError(f"there is no directory {root} to convert; check the path")
        self._file_io, self.location = file_io, root
        self._files = list_source(file_io, root, source_format)
        arrow_types = {each.name: to_arrow_type(each.type) for each in _specs(types)}
        self._schema = source_schema(file_io, self._files, arrow_types)
        self._partition_types = {**partition_types(self._files)}

    def columns(self) -> tuple[ColumnSpec, ...]:
        return (*to_columns(self._schema), *_specs(self._partition_types))

    def partition_keys(self) -> tuple[str, ...]:
        return tuple(self._partition_types)

    def describe(self, plan: ConversionPlan) -> ConversionPlan:
        counts = [count_rows(self._file_io, file) for file in self._files]
        known = [count for count in counts if count is not None]
        return replace(
            plan,
            format=str(self._files[0].format),
            files=len(self._files),
            bytes=sum(file.size for file in self._files),
            rows=sum(known) if len(known) == len(counts) else None,
            partitions=len({file.partition for file in self._files if file.partition}),
        )

    def copy(self, table: Table, progress: Progress) -> _Copied:
        counts: Counter[tuple[str | None, ...]] = Counter()
        rows = pa.RecordBatchReader.from_batches(table.arrow_schema, self._rows(table, counts, progress))
        snapshot = table.append(rows)
        is_same_layout = table.schema.partition_keys == self.partition_keys()
        return _Copied(snapshot, counts.total(), counts if is_same_layout else None)

    def _rows(
        self, table: Table, counts: Counter[tuple[str | None, ...]], progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        done_bytes = 0
        for file in self._files:
            batches = self._checked(file)
            for batch in fit_rows(table.schema, table.name, batches, file.partition):
                counts[tuple(text for _, text in file.partition)] += batch.num_rows
                progress(counts.total(), done_bytes)
                yield batch
            done_bytes += file.size
            progress(counts.total(), done_bytes)

    def _checked(self, file: SourceFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, checking their number against its footer."""
        expected, rows = count_rows(self._file_io, file), 0
        for batch in read_file(self._file_io, file, self._schema):
            rows += batch.num_rows
            yield batch
        if expected is not None and rows != expected:
            raise FormatError(
                f"{file.path}: {rows} rows were read, but its footer says {expected}; nothing was converted"
            )


class _SparkReading(_Reading):
    def __init__(
        self,
        file_io: FileIO,
        root: str,
        spark: SparkSession | None,
        name: SourceFormat | None,
        types: Mapping[str, str],
    ) -> None:
        files: tuple[SourceFile, ...] = ()
        with suppress(NotFoundError):  # Spark reads other places too, such as single files
            files = () if name in _LAKES else list_source(file_io, root, name)
        self.location, self._name = root, name or (files[0].format if files else SourceFormat.PARQUET)
        of_directories = tuple(key for file in files[:1] for key, _ in file.partition)
        declared = [each for each in _specs(types) if each.name in of_directories]
        self._frame: DataFrame = load_with_spark(spark, file_io, root, self._name, declared)
        self._keys = partition_columns(file_io, root, self._name) or of_directories

    def columns(self) -> tuple[ColumnSpec, ...]:
        return lazy_spark.from_spark_schema(self._frame.schema)

    def partition_keys(self) -> tuple[str, ...]:
        return self._keys

    def describe(self, plan: ConversionPlan) -> ConversionPlan:
        return replace(plan, format=f"{self._name} (by Spark)")

    def copy(self, table: Table, progress: Progress) -> _Copied:
        names = [quoted(field.name) for field in table.schema.fields]
        rows = self._frame.count()
        snapshot = table.append(self._frame.select(*names))
        progress(rows, None)
        return _Copied(snapshot, rows, None)


def _plan(
    reading: _Reading, name: str, partition_by: tuple[str, ...] | None, types: Mapping[str, str]
) -> ConversionPlan:
    overrides = {each.name: each for each in _specs(types)}
    columns = reading.columns()
    unknown = sorted(overrides.keys() - {each.name for each in columns})
    if unknown:
        raise InvalidOptionError(
            f"types: there is no column '{unknown[0]}' in the source; its columns are "
            f"{', '.join(each.name for each in columns)}"
        )
    columns = tuple(overrides.get(each.name, each) for each in columns)
    check_names((each.name for each in columns), reading.location)
    text = ", ".join(f"{quoted(each.name)} {format_sql_type(each.type)}" for each in columns)
    plan = ConversionPlan(
        table=name,
        source=reading.location,
        format="",
        columns=text,
        partition_by=reading.partition_keys() if partition_by is None else partition_by,
        files=None,
        bytes=None,
        rows=None,
        partitions=0,
    )
    return reading.describe(plan)


def _verify(table: Table, copied: _Copied) -> None:
    """Count the rows of the new table by reading them. Raises ``FormatError`` if the number differs."""
    rows, by_partition = copied.rows, copied.by_partition
    keys = table.schema.partition_keys
    column = keys or (table.schema.field_names[0],)
    counted: Counter[tuple[object, ...]] = Counter()
    total = 0
    for batch in table.to_batches(columns=list(column)):
        total += batch.num_rows
        if by_partition is not None and keys:
            groups = pa.Table.from_batches([batch]).group_by(list(keys)).aggregate([([], "count_all")])
            for row in groups.to_pylist():
                counted[_comparable(row[key] for key in keys)] += row["count_all"]
    if total != rows:
        raise FormatError(
            f"table {table.name}: {total} rows were read back, but the source has {rows}; the table was removed"
        )
    if keys and by_partition is not None and counted != _typed(by_partition, table):
        raise FormatError(f"table {table.name}: rows are in other partitions than in the source; the table was removed")


def _typed(counts: Counter[tuple[str | None, ...]], table: Table) -> Counter[tuple[object, ...]]:
    """Return counts keyed by partition values instead of their texts."""
    fields = table.schema.partition_fields
    typed: Counter[tuple[object, ...]] = Counter()
    for texts, count in counts.items():
        values = (constant_array(field, text, 1)[0].as_py() for field, text in zip(fields, texts, strict=True))
        typed[_comparable(values)] += count
    return typed


def _comparable(values: Iterable[object]) -> tuple[object, ...]:
    """Return values of a partition, with a text for NaN, which is not equal to itself."""
    return tuple("NaN" if value != value else value for value in values)  # noqa: PLR0124 - only of NaN


def _check_new(catalog: Catalog, name: str) -> None:
    try:
        catalog.load_table(name)
    except NotFoundError:
        return
    raise AlreadyExistsError(
        f"table {name} already exists: convert creates a new table; penstock import and Table.append copy into this one"
    )


def _specs(types: Mapping[str, str]) -> tuple[ColumnSpec, ...]:
    if not types:
        return ()
    return parse_columns(", ".join(f"{quoted(name)} {text}" for name, text in types.items()))


def _format_of(name: str | None) -> SourceFormat | None:
    try:
        return None if name is None else SourceFormat(name)
    except ValueError as error:
        raise InvalidOptionError(
            f"format '{name}': expected one of {', '.join(SourceFormat)}; other formats: table.append(spark.read...)"
        ) from error
