"""In-place migration of a Hive-style directory of Parquet and ORC files to a table.

The table gets hard links to the files, so the directory is unchanged. The files lack the partition columns; readers
take their values from the partition, as in Paimon.

Source:
    Paimon ``core:migrate/FileMetaUtils.java``, ``hive:migrate/HiveMigrator.java``.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq

from penstock.datafile.data_format import WrittenFile
from penstock.datafile.parquet.footer import describe_parquet
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.types import from_arrow_schema, to_arrow_schema
from penstock.errors import FormatError, NotFoundError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.file_format import FileFormat
from penstock.format.types.data_types import with_nullability
from penstock.format.types.text import format_sql_type
from penstock.options import WriteOptions
from penstock.table.commit.cleanup import delete_new_files
from penstock.table.message import CommitMessage
from penstock.table.write.assign import Assigner
from penstock.table.write.hive_import import constant_array, files_below
from penstock.table.write.plan import plan_buckets, plan_files
from penstock.table.write.rolling import describe_file, file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.format.schema import TableSchema
    from penstock.format.types.ddl import ColumnSpec
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef
    from penstock.table.write.hive_import import HiveFile

_MAGIC: Final = {b"PAR1": FileFormat.PARQUET, b"ORC": FileFormat.ORC}
_BUCKET: Final = 0
_INDEX: Final = ".index"
_OF_A_TABLE: Final = frozenset({"schema", "snapshot", "manifest"})
_COPY_INSTEAD: Final = "penstock import copies the rows of Parquet files instead"


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
    """Find the files below a directory, and their common columns.

    Raises:
        NotFoundError: there are no files.
        UnsupportedFeatureError: it is not on a local file system, is already a Paimon table, or its files have columns
            that need a conversion.
        SchemaMismatchError: files with different columns, or directories with different partition columns.
    """
    if not file_io.is_local:
        raise UnsupportedFeatureError(
            f"{root} is on an object store, where a file has one name only, so it cannot be adopted; {_COPY_INSTEAD}"
        )
    if {each.name for each in file_io.list(root) if each.is_dir} >= _OF_A_TABLE:
        raise UnsupportedFeatureError(
            f"{root} is a table of Paimon already: open it by penstock.Table.at, or move it to where the tables of a "
            "database are"
        )
    found_files = tuple(files_below(file_io, root))
    paths = {file.path for file in found_files}
    # Indexes of data files, written by other engines: without them only performance is lost.
    files = tuple(file for file in found_files if file.path.removesuffix(_INDEX) not in paths - {file.path})
    if not files:
        raise NotFoundError(f"{root} holds no files; check the path (files that begin with _ or . do not count)")
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
    both = [column.name for column in columns if column.name in keys]
    if both:
        raise SchemaMismatchError(f"column '{both[0]}' is in the files and in the directories of {root}")
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

    Raises:
        UnsupportedFeatureError: the file system does not support hard links, or the directory is on another file
            system.
        TableStoreError: a file cannot be read; no files are left in the table.
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
            partition = _partition_of(ref, file)
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
        if found is FileFormat.PARQUET:
            file = pq.ParquetFile(source)
            kinds = {file.schema.column(place).physical_type for place in range(len(file.schema))}
            if "INT96" in kinds:
                raise UnsupportedFeatureError(f"{path} has timestamps of the old type INT96; {_COPY_INSTEAD}")
            schema = file.schema_arrow
        else:
            schema = orc.ORCFile(source).schema
    plain = from_arrow_schema(pa.schema([field.with_metadata({}) for field in schema]))
    return found, tuple(
        replace(each, type=with_nullability(each.type, nullable=True), description=None) for each in plain
    )


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


def _partition_of(ref: TableRef, file: HiveFile) -> bytes:
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
