"""Append with Spark's own Parquet writer, then import its files into the table.

Moving rows from the JVM to Python costs as much as writing them. So Spark writes the files if they are exactly the
files that Penstock would write (design/0007).
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as spark_types

from penstock.datafile.parquet.footer import CODECS, load_plain_columns
from penstock.datafile.types import timestamp_precision
from penstock.errors import TableStoreError
from penstock.format.layout import FileFormat
from penstock.format.manifest.entry import FileKind
from penstock.format.types.data_types import (
    INTEGERS,
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)
from penstock.options import BucketOptions, FormatOptions, SinkStrategy, WriteOptions
from penstock.spark.logical_plan import analyzed_plan
from penstock.spark.native_settings import WRITE_OPTIONS, WRITE_SETTINGS, clone_session, unknown_parquet_keys
from penstock.spark.types import SPARK_PRECISION, to_spark_type
from penstock.spark.versions.facts import HAS_SAVE_COMMAND
from penstock.spark.versions.python_api import classic
from penstock.spark.watermark.query_shape import observes_rows
from penstock.table.commit.cleanup import delete_staging, staging_directory
from penstock.table.ref import FileLocator
from penstock.table.row_tracking import has_tracked
from penstock.table.store import MetadataStore
from penstock.table.write.file_index import plan_indexes
from penstock.table.write.imports import import_parquet_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.datafile.data_format import WrittenFile
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

Reason: TypeAlias = "Callable[[], str | None]"
"""Returns why Spark must not write the rows of a query; None if this is no reason."""

_LOG: Final = logging.getLogger(__name__)
# Spark's names of the codecs that both writers encode in the same way.
_CODECS: Final = {name: codec.spark for name, codec in CODECS.items() if codec.spark is not None}
_PLAIN: Final = frozenset(
    {TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DECIMAL, TypeRoot.DATE}
)
_UNBOUNDED: Final = frozenset({TypeRoot.VARCHAR, TypeRoot.VARBINARY})
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
# Timestamps of up to three digits are stored as milliseconds; Spark writes microseconds only.
_MIN_PRECISION: Final = 4
# Types of partition columns whose values are in statistics, and which Spark and the table compare in the same way.
_PARTITION_ROOTS: Final = frozenset({TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.DATE})
# Counts rows of committed tasks only (BasicWriteJobStatsTracker).
_ROWS_METRIC: Final = "numOutputRows"
_FIELD_ID: Final = "parquet.field.id"
_DICTIONARY: Final = "parquet.enable.dictionary"
# Of Parquet's writer, which decides about the dictionary of a column after so many rows.
_PAGE_ROWS: Final = 20_000
_WRITES_WITHOUT: Final = 10
# Of the last commit; of more, the manifests are not read again for a choice.
_MAX_FILES_BEFORE: Final = 1_000
# In a file, rows take about half of Spark's default sizes. If rows differ from that, so does the file size.
_FILE_BYTES_PER_DEFAULT_BYTE: Final = 0.5
_CONFIGURED: Final = "the Hadoop configuration sets"
_PART: Final = re.compile(r"part-(\d+)-.*[-.]c(\d+)\..*parquet")


class Dictionaries:
    """Which columns of the files of an append, or of a query's next micro-batch, get no dictionary.

    Parquet's writer tries a dictionary for the first page of each column, and encodes this page again if its values
    repeat too rarely. So none is tried for columns that have none in the files before, until all are tried again.

    Args:
        without: columns that get none in the first write.
    """

    def __init__(self, without: Iterable[str] = ()) -> None:
        self._without = _with_plain_names(without)
        self._writes_until_all = 0

    @classmethod
    def after_last_commit(cls, ref: TableRef) -> Self:
        """Return those of an append, by two files of the last commit; every tenth append tries all."""
        store = MetadataStore(ref)
        # What is damaged or deleted here matters to the commit, not to this choice.
        with suppress(TableStoreError):
            snapshot = store.load_latest_snapshot()
            if snapshot is None or snapshot.id % _WRITES_WITHOUT == 0:
                return cls()
            metas = store.load_delta_manifests(snapshot)
            if sum(meta.num_added_files for meta in metas) > _MAX_FILES_BEFORE:
                return cls()
            added = [entry for entry in store.load_delta(snapshot) if entry.kind is FileKind.ADD]
            if added and min(entry.file.row_count for entry in added) >= _PAGE_ROWS:
                locator = FileLocator.of(ref)
                paths = [locator.path(each.partition, each.bucket, each.file) for each in (added[0], added[-1])]
                return cls(frozenset.intersection(*(load_plain_columns(ref.file_io, path) for path in set(paths))))
        return cls()

    def options(self) -> dict[str, str]:
        """Return options of a write, which are the same for several writes."""
        return {f"{_DICTIONARY}#{name}": "false" for name in sorted(self._without)}

    def note(self, written: Sequence[WrittenFile]) -> None:
        """Note which columns the files of a write have no dictionaries for."""
        self._writes_until_all -= 1
        if self._writes_until_all > 0:
            return
        has_tried_all, self._without = not self._without, frozenset()
        if has_tried_all and written and min(file.row_count for file in written) >= _PAGE_ROWS:
            plain = frozenset[str].intersection(*(file.without_dictionary for file in written))
            self._without = _with_plain_names(plain)
            self._writes_until_all = _WRITES_WITHOUT


def _with_plain_names(columns: Iterable[str]) -> frozenset[str]:
    # Nested columns, and names with points, would need other keys.
    return frozenset(filter(str.isidentifier, columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRows:
    """A query whose micro-batches are written.

    Attributes:
        rows: the streaming DataFrame: the plan of a micro-batch does not show what the query does.
        dictionaries: of its files.
    """

    rows: DataFrame
    dictionaries: Dictionaries


def write_natively(
    df: DataFrame,
    ref: TableRef,
    job_id: str,
    file_rows: int | None = None,
    query: StreamRows | None = None,
) -> tuple[CommitMessage, ...] | None:
    """Let Spark write the rows of a DataFrame to Parquet files, and import these files; nothing is committed.

    Files are closed at ``target-file-row-num`` rows, or at about ``target-file-size``: Spark limits files by their
    number of rows only, so the size is estimated from the width of rows. The write runs in a clone of the session, so
    the session's configuration does not change and other threads do not see our settings.

    Args:
        job_id: part of the names of the files and of the directory where Spark writes them.
        file_rows: number of rows that reach ``target-file-size``; None to estimate it.
        query: of which the rows are a micro-batch.

    Returns:
        One message with the files in the order of tasks, or no message if there are no rows. None if Spark would not
        write exactly what the table needs; no files are left then.
    """
    order = native_order(df.schema, ref, partial(why_configured, _session_of(df)), partial(_why_observed, df))
    if order is None:
        return None
    staging = staging_directory(ref, job_id)
    dictionaries = Dictionaries.after_last_commit(ref) if query is None else query.dictionaries
    try:
        rows = _columns_with_ids(in_clone(df, WRITE_SETTINGS), ref, order)
        row_count = _write_files(rows, ref, staging, file_rows, dictionaries.options())
        if row_count is None:
            return None
        return import_parquet_files(
            ref,
            part_files(ref.file_io, staging, levels=0),
            job_id=job_id,
            row_count=row_count,
            note=dictionaries.note,
        )
    finally:
        delete_staging(ref, job_id)


def why_configured(session: Any) -> str | None:  # noqa: ANN401 - an object of the JVM
    """Return the reason that a session's Hadoop configuration has against Spark's writer; None without any."""
    keys = unknown_parquet_keys(session)
    return f"{_CONFIGURED} {', '.join(keys)}: unset it for faster writes" if keys else None


def _why_observed(df: DataFrame) -> str | None:
    return "the query observes metrics" if observes_rows(str(analyzed_plan(df).toString())) else None


def native_order(rows: spark_types.StructType, ref: TableRef, *more: Reason) -> tuple[int, ...] | None:
    """Return the position of each table column among those of rows; None if Python workers write the rows."""
    reason = why_python(rows, ref, *more)
    if reason is not None:
        _log_once(ref.name, reason)
        return None
    return tuple(rows.names.index(field.name) for field in ref.schema.fields)


@lru_cache(maxsize=1_000)
def _log_once(table: str, reason: str) -> None:
    level = logging.WARNING if reason.startswith(_CONFIGURED) else logging.INFO
    _LOG.log(level, "table %s: rows are written by Python workers, not by Spark's own writer: %s", table, reason)


def writer_text(rows: spark_types.StructType, ref: TableRef, *more: Reason) -> str:
    """Return text that says who writes rows, for ``explain``."""
    reason = why_python(rows, ref, *more)
    return "by Spark's own writer" if reason is None else f"by Python workers, because {reason}"


def why_python(rows: spark_types.StructType, ref: TableRef, *more: Reason) -> str | None:
    """Return why Spark must not write the rows; None if it writes them.

    Files of several partitions take Python workers half of the time (design/0007).

    Args:
        more: asked if neither the table nor the types of the rows are a reason.
    """
    reason = "it has partitions" if ref.schema.partition_keys else _why_not_native(ref)
    if reason is not None:
        return reason
    names = rows.names
    if sorted(names) != sorted(ref.schema.field_names) or not _are_distinct(names):
        return "the rows have other columns"
    for field in ref.schema.fields:
        if not _is_native_field(field):
            return f"Spark would store column '{field.name}' otherwise"
        if not _fits(rows[field.name].dataType, to_spark_type(field.type)):
            return f"column '{field.name}' of the rows has another type"
    return next(filter(None, (each() for each in more)), None)


def _why_not_native(ref: TableRef) -> str | None:
    write = ref.parsed(WriteOptions)
    encoding = ref.parsed(FormatOptions)
    conditions = {
        "it is not on a disk": ref.file_io.is_local,
        "it has buckets": ref.parsed(BucketOptions).bucket == -1,
        "its files are not Parquet": encoding.file_format is FileFormat.PARQUET,
        "its options choose another encoding": encoding.compression in _CODECS
        and encoding.block_bytes is None
        and not encoding.parquet,
        "its options choose how writers work": write.sink_strategy is SinkStrategy.NONE
        and not write.write_buffer_for_append,
        "its rows come with their ids": not has_tracked(ref.schema.fields),
        "its files have indexes": plan_indexes(ref) is None,
    }
    return next((reason for reason, holds in conditions.items() if not holds), None)


def takes_spark_files(ref: TableRef) -> bool:
    """Whether files that Spark writes with the table's columns are exactly files of the table."""
    names = [field.name for field in ref.schema.fields]
    return (
        _why_not_native(ref) is None
        and _are_distinct(names)
        and all(map(_is_native_field, ref.schema.fields))
        and all(_is_native_key(field.type) for field in ref.schema.partition_fields)
    )


def _are_distinct(names: list[str]) -> bool:
    # Spark refuses to write names that differ only in case.
    return len({name.lower() for name in names}) == len(names)


def _is_native_field(field: DataField) -> bool:
    return field.default_value is None and _is_native_type(field.type)


def _is_native_type(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _is_native_type(element)
        case MapType(key=key, value=value):
            return _is_native_type(key) and _is_native_type(value)
        case RowType(fields=fields):
            names = [field.name for field in fields]
            return bool(fields) and _are_distinct(names) and all(_is_native_type(field.type) for field in fields)
        case AtomicType(root=root):
            return root in _PLAIN or _is_unbounded(data_type) or _is_in_micros(data_type)
        case _:
            return False


def _is_native_key(data_type: DataType) -> bool:
    # Statistics have no ranges of bytes.
    is_text = isinstance(data_type, AtomicType) and data_type.root is TypeRoot.VARCHAR and _is_unbounded(data_type)
    return is_text or (isinstance(data_type, AtomicType) and data_type.root in _PARTITION_ROOTS)


def _is_unbounded(data_type: AtomicType) -> bool:
    return data_type.root in _UNBOUNDED and data_type.length == MAX_LENGTH


def _is_in_micros(data_type: AtomicType) -> bool:
    return data_type.root in _TIMESTAMPS and _MIN_PRECISION <= timestamp_precision(data_type) <= SPARK_PRECISION


def _fits(actual: spark_types.DataType, wanted: spark_types.DataType) -> bool:
    """Whether the types are equal, and the given type has no nullable part that must not be null in the wanted type."""
    match actual, wanted:
        case spark_types.ArrayType(), spark_types.ArrayType():
            return _holds(actual.containsNull, wanted.containsNull) and _fits(actual.elementType, wanted.elementType)
        case spark_types.MapType(), spark_types.MapType():
            return (
                _holds(actual.valueContainsNull, wanted.valueContainsNull)
                and _fits(actual.keyType, wanted.keyType)
                and _fits(actual.valueType, wanted.valueType)
            )
        case spark_types.StructType(), spark_types.StructType():
            return actual.names == wanted.names and all(
                _holds(mine.nullable, theirs.nullable)
                and _FIELD_ID not in mine.metadata  # of another table; the writer would store it in the file
                and _fits(mine.dataType, theirs.dataType)
                for mine, theirs in zip(actual.fields, wanted.fields, strict=True)
            )
        case _:
            return actual == wanted


def _holds(given_nullable: bool, wanted_nullable: bool) -> bool:  # noqa: FBT001 - two of a kind
    return wanted_nullable or not given_nullable


def in_clone(df: DataFrame, settings: Mapping[str, str]) -> DataFrame:
    """Return the DataFrame in a session that has the DataFrame's configuration and other settings.

    A write takes the Parquet type of timestamps from the session only. Metrics that the rows of the DataFrame are
    observed for do not reach the user from there.
    """
    java_frame: Any = df._jdf  # noqa: SLF001 - Python has no way to clone a session
    session = clone_session(java_frame.sparkSession(), settings)
    jvm: Any = df.sparkSession._jvm  # noqa: SLF001 - see above
    moved = classic(jvm).Dataset.ofRows(session, java_frame.queryExecution().analyzed())
    # Keep the Python session of the DataFrame: creating another one has side effects on all sessions.
    return DataFrame(moved, df.sparkSession)


def _session_of(df: DataFrame) -> Any:  # noqa: ANN401 - an object of the JVM
    java_frame: Any = df._jdf  # noqa: SLF001 - Python may know another session
    return java_frame.sparkSession()


def _columns_with_ids(df: DataFrame, ref: TableRef, order: tuple[int, ...]) -> DataFrame:
    """Select the table's columns in its order, with its names and field ids and no other metadata."""
    plain = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    return plain.select(
        *[
            F.col(f"c{place}").alias(field.name, metadata={_FIELD_ID: field.id})
            for field, place in zip(ref.schema.fields, order, strict=True)
        ]
    )


def _write_files(
    df: DataFrame,
    ref: TableRef,
    staging: str,
    file_rows: int | None,
    more_options: Mapping[str, str],
) -> int | None:
    """Run Spark's job; return the number of rows that its tasks report as written, None if Spark does not report it."""
    rows = file_rows or rows_of_target(df._jdf.schema(), ref)  # noqa: SLF001 - Python's types have no sizes
    options = {**parquet_options(ref, rows), **more_options}
    writer: Any = df.write.options(**options).format("parquet")
    jvm: Any = df.sparkSession._jvm  # noqa: SLF001 - Python's writer drops the job's metrics
    # Not percent-encoded: Hadoop uses the text of a path unchanged.
    if HAS_SAVE_COMMAND:
        command = writer._jwrite.saveCommand(jvm.scala.Option.apply(f"file://{staging}"))  # noqa: SLF001 - see above
    else:
        command = _save_command(df, staging, options)
    state = _session_of(df).sessionState()
    execution = state.executePlan(command, getattr(state, "executePlan$default$2")())
    execution.assertCommandExecuted()
    count = execution.commandExecuted().commandPhysicalPlan().metrics().get(_ROWS_METRIC)
    return int(count.get().value()) if count.isDefined() else None


def _save_command(df: DataFrame, staging: str, options: dict[str, str]) -> Any:  # noqa: ANN401 - of the JVM
    """Return what ``DataFrameWriter.saveCommand`` of newer versions does."""
    jvm: Any = df.sparkSession._jvm  # noqa: SLF001 - see _write_files
    sql, utilities, nothing = jvm.org.apache.spark.sql, jvm.PythonUtils, jvm.scala.Option.empty()
    place = utilities.toScalaMap({**options, "path": f"file://{staging}"})
    session = _session_of(df)
    source = sql.execution.datasources.DataSource(
        session, "parquet", utilities.toSeq([]), nothing, utilities.toSeq([]), nothing, place, nothing
    )
    return source.planForWriting(sql.SaveMode.ErrorIfExists, analyzed_plan(df))


def parquet_options(ref: TableRef, file_rows: int) -> dict[str, str]:
    """Return the options with which Spark writes files of a table that takes them."""
    encoding = ref.parsed(FormatOptions)
    return {
        **WRITE_OPTIONS,
        "compression": _CODECS[encoding.compression],
        "parquet.compression.codec.zstd.level": str(encoding.compression_zstd_level),
        "maxRecordsPerFile": str(min(file_rows, ref.parsed(WriteOptions).target_file_rows)),
    }


def rows_of_target(schema: Any, ref: TableRef) -> int:  # noqa: ANN401 - a schema of the JVM
    """Return the approximate number of rows of a schema that reach ``target-file-size``."""
    row_bytes = schema.defaultSize() * _FILE_BYTES_PER_DEFAULT_BYTE
    return max(int(ref.parsed(WriteOptions).target_file_bytes / row_bytes), 1)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Part:
    """A file that a task wrote; files sort in the order of rows."""

    task: int
    number: int
    path: str


def part_files(file_io: FileIO, staging: str, *, levels: int) -> list[str]:
    """Return the files of a staging directory in the order of the rows that Spark wrote.

    Args:
        levels: of directories of partitions that they are in.
    """
    statuses = list(file_io.list(staging))
    for _ in range(levels):
        statuses = [each for status in statuses if status.is_dir for each in file_io.list(status.path)]
    parts = []
    for status in statuses:
        match = _PART.fullmatch(status.name)
        if match is not None:
            parts.append(_Part(task=int(match[1]), number=int(match[2]), path=status.path))
    return [part.path for part in sorted(parts)]
