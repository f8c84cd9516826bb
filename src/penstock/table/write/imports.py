"""Files of other writers that become files of a table: moved by a Spark job, or linked from a Hive-style directory.

A migration in place links the files, so the directory is unchanged. The files lack the partition columns; readers take
their values from the partition, as in Paimon.

Source:
    Paimon ``core:migrate/FileMetaUtils.java``, ``hive:migrate/HiveMigrator.java``.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc
from pyarrow import parquet as pq
from pyarrow import types as arrow

from penstock.datafile.data_format import WrittenFile
from penstock.datafile.parquet.footer import describe_parquet
from penstock.datafile.parquet.schema import leaves_of
from penstock.datafile.python_values import parse_floats
from penstock.datafile.spark_types import unstored_types
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.types import ArrowAny, from_arrow_schema, to_arrow_schema, to_arrow_type
from penstock.errors import FormatError, NotFoundError, SchemaMismatchError, StorageError, UnsupportedFeatureError
from penstock.format.layout import FILE_INDEX_SUFFIX, FileFormat
from penstock.format.row.row import encode_row
from penstock.format.text.partitions import DEFAULT_PARTITION_NAME
from penstock.format.types.data_types import AtomicType, with_nullability
from penstock.format.types.text import format_sql_type
from penstock.options import WriteOptions
from penstock.predicate.literals import parse_time_text
from penstock.table.commit.cleanup import delete_job_files, delete_new_files
from penstock.table.message import CommitMessage
from penstock.table.write.assign import Assigner
from penstock.table.write.rolling import describe_file, file_names, plan_buckets, plan_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField
    from penstock.format.types.ddl import ColumnSpec
    from penstock.io.file_io import FileIO, FileStatus
    from penstock.table.ref import TableRef
    from penstock.table.write.rolling import FileTarget

_NULL_NAME: Final = "__HIVE_DEFAULT_PARTITION__"
# Engines leave markers (_SUCCESS) and temporary files (.part-0.parquet.crc, _temporary) next to the data files.
_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveFile:
    """A file to import.

    Attributes:
        partition: partition columns in the table's order with the text of their directory; None for NULL.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...]


def plan_hive_import(ref: TableRef, file_io: FileIO, root: str) -> tuple[HiveFile, ...]:
    """List the files to import, sorted by path.

    Args:
        ref: the table; its partition columns are those of the directories, in any order.
        root: the parent directory of the partitions.
    """
    files = tuple(
        replace(file, partition=_in_order(ref, file.partition, file.path))
        for file in files_below(file_io, root)
        if file.path.endswith((".parquet", ".parq"))
    )
    if not files:
        raise not_found(file_io, root, "no Parquet file; check the path")
    fields = {field.name: field for field in ref.schema.partition_fields}
    for name, text in {pair for file in files for pair in file.partition}:
        constant_array(fields[name], text, 0)
    return files


def not_found(file_io: FileIO, root: str, what: str) -> NotFoundError:
    """Return the error of a directory that holds nothing to import."""
    if any(each.path == root and not each.is_dir for each in file_io.list(root.rpartition("/")[0])):
        return NotFoundError(f"{root} is a file: give its directory, or copy its rows by penstock import")
    return NotFoundError(f"{root} holds {what} (files that begin with _ or . do not count)")


def constant_array(field: DataField, text: str | None, rows: int) -> ArrowAny:
    """Return a column that repeats one value, parsed from the text of its partition directory."""
    wanted: ArrowAny = to_arrow_type(field.type)
    if text is None:
        return pa.nulls(rows, wanted)
    try:
        one: ArrowAny = pa.array([parse_time_text(text) if arrow.is_time(wanted) else text])
        if arrow.is_boolean(wanted):
            one = pc.utf8_lower(one)
        if isinstance(field.type, AtomicType) and arrow.is_floating(wanted):
            one = parse_floats(one, field.type, field.name)
        value: ArrowAny = one.cast(wanted)[0]
    except (ValueError, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"directory {field.name}={text}: '{text}' is not a value of the column's type {format_sql_type(field.type)}"
        ) from error
    return pa.repeat(value, rows)


def files_below(
    file_io: FileIO, directory: str, partition: tuple[tuple[str, str | None], ...] = ()
) -> Iterator[HiveFile]:
    """Yield the files below a directory, except hidden ones; partition columns are in directory order."""
    for status in file_io.list(directory):
        if status.name.startswith(_HIDDEN):
            continue
        if status.is_dir:
            yield from files_below(file_io, status.path, (*partition, _named_value(status)))
        else:
            yield HiveFile(path=status.path, size=status.size, partition=partition)


def _named_value(status: FileStatus) -> tuple[str, str | None]:
    name, equals, text = status.name.partition("=")
    if not equals:
        raise SchemaMismatchError(
            f"directory {status.path} is not named column=value; name the directory right above the partitions"
        )
    text = unquote(text)
    if text == DEFAULT_PARTITION_NAME:
        raise SchemaMismatchError(
            f"directory {status.path}: {text} is NULL to Flink, but a text to Spark and Hive; if the rows have NULL, "
            f"rename the directory to {name}={_NULL_NAME}"
        )
    return unquote(name), None if text == _NULL_NAME else text


def _in_order(
    ref: TableRef, partition: tuple[tuple[str, str | None], ...], path: str
) -> tuple[tuple[str, str | None], ...]:
    given = dict(partition)
    keys = ref.schema.partition_keys
    if len(given) != len(partition) or set(given) != set(keys):
        found = ", ".join(name for name, _ in partition) or "no partition directories"
        raise SchemaMismatchError(
            f"table {ref.name} is partitioned by {', '.join(keys) or 'nothing'}, but {path} lies below {found}; import "
            "into a table with these partition columns"
        )
    return tuple((name, given[name]) for name in keys)


_BUCKET: Final = 0


def import_parquet_files(
    ref: TableRef,
    paths: Iterable[str],
    *,
    job_id: str,
    row_count: int,
    note: Callable[[Sequence[WrittenFile]], None] = lambda _: None,
) -> tuple[CommitMessage, ...] | None:
    """Move Parquet files into bucket 0 of their partitions, and return the messages to commit.

    Args:
        ref: a scalable table (``bucket`` = -1); the files must have its columns, in order, with its physical types. The
            partition of a file is determined from its statistics of the partition columns.
        paths: on the table's storage, in the order of the rows. Files without rows are not moved.
        job_id: prefix of the id in the new file names.
        row_count: total number of rows that the other writer reports for all files.
        note: called with the metadata of the files that have rows.

    Returns:
        One message for each partition; no messages if there are no rows. None if the statistics of a file do not show
        that all its rows belong to one partition; nothing was moved then.

    Raises:
        StorageError: the files have more or fewer rows than the other writer reports; nothing was moved.
        SchemaMismatchError: a NOT NULL column holds null; nothing was moved.
        TableStoreError: reading or moving failed; no file is left in the buckets.
    """
    target = plan_files(ref, ref.parsed(WriteOptions), job_id=job_id)
    described = [(path, describe_parquet(ref.file_io, path, ref.schema.fields)) for path in paths]
    found = [(path, written) for path, written in described if written.row_count]
    _check_row_count(ref, sum(written.row_count for _, written in found), row_count)
    _check_not_null(ref, [written for _, written in found])
    note([written for _, written in found])
    by_partition: dict[bytes, list[tuple[str, WrittenFile]]] = {}
    for path, written in found:
        partition = _common_partition(ref, written)
        if partition is None:
            return None
        by_partition.setdefault(partition, []).append((path, written))
    names = file_names(target)
    try:
        return tuple(_move(target, names, partition, files) for partition, files in by_partition.items())
    except BaseException:
        delete_job_files(ref, job_id, keep=())
        raise


def _common_partition(ref: TableRef, written: WrittenFile) -> bytes | None:
    """Return the partition of all rows of a file; None if the statistics do not show that there is only one."""
    places = {field.name: place for place, field in enumerate(ref.schema.fields)}
    values = []
    for field in ref.schema.partition_fields:
        stats = written.columns[places[field.name]]
        if stats is None or stats.null_count not in {0, written.row_count} or stats.min != stats.max:
            return None
        if stats.min is None and not stats.null_count:
            return None
        values.append(stats.min)
    return encode_row(values, [field.type for field in ref.schema.partition_fields])


def _move(
    target: FileTarget, names: Iterator[str], partition: bytes, files: Iterable[tuple[str, WrittenFile]]
) -> CommitMessage:
    directory = target.locator.directory(partition, _BUCKET)
    moved = []
    rows = 0
    for path, written in files:
        name = next(names)
        target.ref.file_io.rename_file(path, f"{directory}/{name}")
        moved.append(describe_file(target, name, written, first_row=rows))
        rows += written.row_count
    return CommitMessage(
        partition=partition, bucket=_BUCKET, total_buckets=target.total_buckets, new_files=tuple(moved)
    )


def _check_row_count(ref: TableRef, found: int, written: int) -> None:
    if found != written:
        raise StorageError(
            f"table {ref.name}: {written} rows were written for this append, but the driver finds files with {found} "
            f"rows in {ref.location}, so nothing was committed; on a cluster, put the warehouse where the driver and "
            "all workers see it at the same path; on one machine, remove the settings that change how Spark commits "
            "the files of a job"
        )


def _check_not_null(ref: TableRef, files: Iterable[WrittenFile]) -> None:
    for written in files:
        for field, stats in zip(ref.schema.fields, written.columns, strict=True):
            if not field.type.nullable and stats is not None and stats.null_count:
                raise SchemaMismatchError(
                    f"table {ref.name}: column '{field.name}' is NOT NULL, but {stats.null_count} rows of a task "
                    "have null; fill it or drop the rows before writing"
                )


_MAGIC: Final = {b"PAR1": FileFormat.PARQUET, b"ORC": FileFormat.ORC}
_TABLE_DIRECTORIES: Final = frozenset({"schema", "snapshot", "manifest"})
_COPY_INSTEAD: Final = "penstock import copies the rows of Parquet files instead"
# Values that columns of a table do not have, by what the schema of Parquet says of them.
_TO_CONVERT: Final = {
    "INT96": "timestamps of the old type INT96",
    "nanoseconds": "timestamps in nanoseconds",
    "UINT_32": "unsigned numbers",
    "UINT_64": "unsigned numbers",
    "Float16": "numbers of two bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionPlan:
    """The files of a directory, and the definition of the table.

    Attributes:
        columns: of the files, without partition columns.
        partition_keys: partition columns, from the outermost directory to the innermost.
        files: sorted by path; the partition of each is in the order of ``partition_keys``.
        formats: of the files.
    """

    columns: tuple[ColumnSpec, ...]
    partition_keys: tuple[str, ...]
    files: tuple[HiveFile, ...]
    formats: tuple[FileFormat, ...]


def plan_adoption(file_io: FileIO, root: str) -> AdoptionPlan:
    """Find the files below a directory, and their common columns."""
    if not file_io.is_local:
        raise UnsupportedFeatureError(
            f"{root} is on an object store, where a file has one name only, so it cannot be adopted; {_COPY_INSTEAD}"
        )
    if {each.name for each in file_io.list(root) if each.is_dir} >= _TABLE_DIRECTORIES:
        raise UnsupportedFeatureError(
            f"{root} is a table of Paimon already: open it by penstock.Table.at, or move it to where the tables of a "
            "database are"
        )
    found_files = tuple(files_below(file_io, root))
    paths = {file.path for file in found_files}
    # Indexes of data files, written by other engines: without them only performance is lost.
    files = tuple(file for file in found_files if file.path.removesuffix(FILE_INDEX_SUFFIX) not in paths - {file.path})
    if not files:
        raise not_found(file_io, root, "no files; check the path")
    first = files[0]
    keys = tuple(name for name, _ in first.partition)
    formats, columns = [], None
    for file in files:
        if tuple(name for name, _ in file.partition) != keys:
            raise SchemaMismatchError(f"{file.path} has other partition columns in its path than {first.path}")
        file_format, found = _columns_of(file_io, file.path)
        formats.append(file_format)
        columns = columns or found
        if found != columns:
            raise SchemaMismatchError(
                f"{file.path} has the columns {_text(found)}, but {first.path} has {_text(columns)}; {_COPY_INSTEAD}"
            )
    columns = columns or ()
    check_names([*(column.name for column in columns), *keys], root)
    return AdoptionPlan(columns=columns, partition_keys=keys, files=files, formats=tuple(formats))


def check_partitions(schema: TableSchema, plan: AdoptionPlan) -> None:
    """Raise SchemaMismatchError if a directory name cannot be parsed as its column's type."""
    fields = {field.name: field for field in schema.partition_fields}
    for name, text in {pair for file in plan.files for pair in file.partition}:
        constant_array(fields[name], text, 0)


def adopt_files(
    ref: TableRef, plan: AdoptionPlan, source: FileIO, *, copy: bool, report: Callable[[int, int], None]
) -> tuple[CommitMessage, ...]:
    """Link the files of a plan into a table with its columns; return the messages to commit.

    Args:
        source: storage of the files.
        copy: copy the files instead of linking them.
        report: called with the number of rows and bytes processed so far.
    """
    file_io = ref.file_io
    if not file_io.is_local:
        raise UnsupportedFeatureError(f"table {ref.name} is on an object store, where files cannot be adopted")
    target = plan_files(ref, ref.parsed(WriteOptions))
    names = {
        each: file_names(replace(target, format=replace(target.format, file_format=each))) for each in set(plan.formats)
    }
    messages: list[CommitMessage] = []
    rows = done_bytes = 0
    try:
        for file, file_format in zip(plan.files, plan.formats, strict=True):
            written = _describe(source, file.path, file_format, ref.schema)
            rows += written.row_count
            done_bytes += file.size
            report(rows, done_bytes)
            if not written.row_count:
                continue
            partition = _encoded_partition(ref, file)
            name = next(names[file_format])
            meta = describe_file(target, name, written, first_row=0)
            message = CommitMessage(
                partition=partition, bucket=_BUCKET, total_buckets=target.total_buckets, new_files=(meta,)
            )
            messages.append(message)
            path = f"{target.locator.directory(partition, _BUCKET)}/{name}"
            if copy:
                file_io.copy_file(file.path, path)
            else:
                file_io.link_file(file.path, path)
    except BaseException:
        delete_new_files(ref, messages)
        raise
    return tuple(messages)


def _columns_of(file_io: FileIO, path: str) -> tuple[FileFormat, tuple[ColumnSpec, ...]]:
    with reading(path), closing(file_io.open_input(path)) as opened:
        source = as_native_file(opened)
        magic = bytes(source.read(4))
        found = next((kind for start, kind in _MAGIC.items() if magic.startswith(start)), None)
        source.seek(0)
        if found is None:
            raise FormatError("is neither a Parquet nor an ORC file; move it away, or give its name a leading _")
        file = pq.ParquetFile(source) if found is FileFormat.PARQUET else None
        schema = orc.ORCFile(source).schema if file is None else file.schema_arrow
        for name, kind in unstored_types(schema, None if file is None else file.schema).items():
            raise UnsupportedFeatureError(
                f"has values of Spark's type {kind} in column '{name}'; penstock convert --spark local[2] copies the "
                "rows instead"
            )
        plain = from_arrow_schema(pa.schema([field.with_metadata({}) for field in schema]))
        if file is not None:
            _check_layout(file.schema, plain)
    return found, tuple(
        replace(each, type=with_nullability(each.type, nullable=True), description=None) for each in plain
    )


def _check_layout(schema: pq.ParquetSchema, columns: Sequence[ColumnSpec]) -> None:
    """Refuse files with another layout than Paimon's of the same columns, which readers would misread."""
    leaves: list[ArrowAny] = [schema.column(place) for place in range(len(schema))]
    for leaf in leaves:
        said = f"{leaf.physical_type} {leaf.converted_type} {leaf.logical_type.to_json()}"
        for sign, what in _TO_CONVERT.items():
            if sign in said:
                raise UnsupportedFeatureError(f"has {what} in column '{leaf.path}'; {_COPY_INSTEAD}")
    paths = [leaf.path for leaf in leaves]
    if paths != [leaf.path for leaf in leaves_of(columns)]:
        raise UnsupportedFeatureError(f"has arrays or maps in an old layout ({', '.join(paths)}); {_COPY_INSTEAD}")


def check_names(names: Iterable[str], root: str) -> None:
    """Raise ``SchemaMismatchError`` if two columns, of files or directories, have the same name in SQL."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise SchemaMismatchError(
                f"{root}: the columns '{seen[name.lower()]}' and '{name}', of files or of directories, have one name "
                "where SQL ignores upper and lower case: rename one of them in the source"
            )
        seen[name.lower()] = name


def _describe(file_io: FileIO, path: str, file_format: FileFormat, schema: TableSchema) -> WrittenFile:
    """Return rows, size and statistics of a file; its statistics lack the partition columns."""
    keys = set(schema.partition_keys)
    inside = [field for field in schema.fields if field.name not in keys]
    if file_format is FileFormat.PARQUET:
        written = describe_parquet(file_io, path, inside)
        found = dict(zip((field.name for field in inside), written.columns, strict=True))
        return replace(written, columns=tuple(found.get(field.name) for field in schema.fields))
    with reading(path), closing(file_io.open_input(path)) as opened:
        source = as_native_file(opened)
        rows = orc.ORCFile(source).nrows
        return WrittenFile(file_size=source.size(), row_count=rows, columns=(None,) * len(schema.fields))


def _encoded_partition(ref: TableRef, file: HiveFile) -> bytes:
    texts = dict(file.partition)
    arrow = to_arrow_schema(ref.schema.fields)
    row = [
        constant_array(field, texts[field.name], 1)
        if field.name in texts
        else pa.nulls(1, arrow.field(field.name).type)
        for field in ref.schema.fields
    ]
    assigner = Assigner(ref.schema, plan_buckets(ref))
    assigner.assign(pa.RecordBatch.from_arrays(row, names=arrow.names))
    return assigner.groups[0].partition


def _text(columns: Sequence[ColumnSpec]) -> str:
    return ", ".join(f"{each.name} {format_sql_type(each.type)}" for each in columns)
