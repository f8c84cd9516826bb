"""Read tables as DataFrames: native scans if Spark's readers read every value correctly, else Penstock's reader.

Penstock's reader is also used for files on object stores that Spark cannot open without a JAR and keys in its own
configuration.
"""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.datafile.conform import with_padding
from penstock.datafile.types import has_leaf, is_variant
from penstock.format.layout import FileFormat, format_of
from penstock.format.text.names import quoted
from penstock.predicate.tree import TRUE
from penstock.printable import mask_locations, open_log
from penstock.spark.batches import to_spark_batches
from penstock.spark.native_settings import scan_options, scan_session
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.read.filters import to_column, without_float_pushdown
from penstock.spark.read.native_files import NativeFileChecker
from penstock.spark.read.native_listing import (
    BUCKET,
    COMMIT_TIME,
    FILE_PATH,
    PARTITION,
    ROW_INDEX,
    SNAPSHOT_ID,
    origin_of,
)
from penstock.spark.types import nullable, to_spark_schema, to_spark_type
from penstock.spark.versions.python_api import classic
from penstock.table.read.batches import DeletedRows, TableReader, select_fields
from penstock.table.read.prune import NO_FILTER
from penstock.table.read.split import by_directory, plan_splits
from penstock.table.ref import ExternalPaths
from penstock.table.row_tracking import TRACKED
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.spark.read.native_files import NativeColumn
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
_SPLIT_COLUMN: Final = "split"
_PLACES: Final = frozenset({ROW_INDEX, FILE_PATH, BUCKET, PARTITION, SNAPSHOT_ID, COMMIT_TIME})
_TIME: Final = pa.timestamp("us", "UTC")
LOG_DIRECTORY: Final = "_spark_metadata"
"""Name of the sink's log directory, below the directory that the sink writes to."""

# Block size in the log; Spark uses it only to split files.
_BLOCK_BYTES: Final = 134_217_728


def to_frame(
    spark: SparkSession, ref: TableRef, store: MetadataStore, plan: ScanPlan, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return the rows of a plan that match its filter; their order is not kept.

    Args:
        columns: column names, in the order of the result; None for all.
    """
    fields = select_fields(ref, columns)
    needed = (*fields, *(field for field in plan.predicate.fields if field not in fields))
    native: dict[_NativeGroup, list[tuple[str, int]]] = defaultdict(list)
    others: list[DataSplit] = []
    external = ExternalPaths.of(ref)
    checker = NativeFileChecker(ref, store, needed)
    # Spark's own source would cast fields of a VARIANT in the reader, also those of rows that a filter leaves out.
    has_variants = any(has_leaf(field.type, is_variant) for field in needed)
    if checker.refusal is not None:
        _LOG.info("table %s is read by Python workers, because %s", mask_locations(ref.name), checker.refusal)
    for split in plan_splits(ref, plan):
        left = []
        deleted = {name for name, _ in split.vectors}
        for file in split.files:
            found = checker.columns_of(file)
            is_odd = has_variants or file.file_name in deleted or checker.why_not(split, file) is not None
            if isinstance(found, str) or is_odd or any(column.converts for column in found):
                left.append(file)
            else:
                group = _NativeGroup(schema_id=file.schema_id, file_format=format_of(file.file_name), columns=found)
                native[group].append((split.path_of(file, external), file.file_size))
        if left:
            others.append(replace(split, files=tuple(left)))
    frames = []
    for group, files in native.items():
        listed = (ref.file_io.to_uris(*some) for some in by_directory(path for path, _ in files))
        uris = (f"{parent}/{name}" for parent, names in listed for name in names)
        sized = [(uri, size) for uri, (_, size) in zip(uris, files, strict=True)]
        frames.append(_native_frame(spark, plan, fields, group, sized, scan_options(ref.file_io)))
    if others or not frames:
        frames.append(_python_frame(spark, ref, fields, others))
    return reduce(lambda left, right: left.union(right), frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NativeGroup:
    """Schema and format of the files that one native scan reads.

    Attributes:
        columns: one for each field that is needed.
    """

    schema_id: int
    file_format: FileFormat
    columns: tuple[NativeColumn, ...]


def _native_frame(
    spark: SparkSession,
    plan: ScanPlan,
    fields: tuple[DataField, ...],
    group: _NativeGroup,
    files: list[tuple[str, int]],
    options: Mapping[str, str],
) -> DataFrame:
    stored = [column.file_field for column in group.columns if column.file_field is not None]
    # The file may hold NULL from before a column became NOT NULL.
    frame = scan_files(spark, group.file_format, nullable(to_spark_schema(stored)), files, options)
    # Partition columns are read from the files, which have them: see PartitionColumns.
    frame = frame.select(*[_column(column, group.file_format) for column in group.columns])
    if plan.predicate.root != TRUE:
        frame = frame.where(to_column(plan.predicate))
    return frame.select(*[F.col(quoted(field.name)) for field in fields])


def _column(column: NativeColumn, file_format: FileFormat) -> Column:
    field = column.field
    wanted = to_spark_type(field.type)
    metadata = {"comment": field.description} if field.description else {}
    if column.file_field is None:
        value = F.lit(None).cast(wanted)
    else:
        value = F.col(quoted(column.file_field.name))
        if file_format is FileFormat.PARQUET:
            value = without_float_pushdown(value, column.file_field.type)
        if column.is_cast:
            value = value.cast(wanted)
    return value.alias(field.name, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """Reads splits, which come pickled in rows; for ``mapInArrow``.

    Attributes:
        pads: whether values of CHAR are padded.
        metadata: names of columns to add: those that say where a row is, and others of BIGINT, which are NULL in every
            row.
    """

    ref: TableRef
    columns: tuple[str, ...]
    pads: bool = False
    metadata: tuple[str, ...] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the splits of a task."""
        for batch in batches:
            for data in batch.column(0):
                yield from self.read(pickle.loads(data.as_py() or b""))  # noqa: S301 - our own driver wrote it

    def read(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, in order."""
        store = MetadataStore(self.ref)
        tracked = [field.name for field in TRACKED if field.name in self.metadata]
        if not tracked and _PLACES.isdisjoint(self.metadata):
            rows = TableReader(self.ref, store, self.columns).read_split(split)
            yield from map(self._with_metadata, self._to_spark(rows, self.columns))
            return
        keys = self.ref.schema.partition_keys if PARTITION in self.metadata else ()
        names = tuple(dict.fromkeys((*self.columns, *tracked, *keys)))
        reader = TableReader(self.ref, store, names)
        deleted, external = DeletedRows(self.ref), ExternalPaths.of(self.ref)
        # Spark applies all filters, and the numbers are those of all rows.
        split = replace(split, rest=NO_FILTER)
        for file in split.files:
            path, place = split.path_of(file, external), dict(split.vectors).get(file.file_name)
            origin = zip(origin_of(dict(split.origins), file), (pa.int64(), _TIME), strict=True)
            added: list[ArrowAny] = [pa.scalar(value, kind) for value, kind in origin]
            stays = np.ones(file.row_count, dtype=bool)
            if place is not None:
                stays[deleted.load(file, place)] = False
            numbers, first = pa.array(np.flatnonzero(stays)), 0
            for found in self._to_spark(reader.read_file(split, file), names):
                count = found.num_rows
                known: dict[str, ArrowAny] = {
                    ROW_INDEX: numbers.slice(first, count),
                    FILE_PATH: pa.repeat(path, count),
                    BUCKET: pa.repeat(pa.scalar(split.bucket, pa.int32()), count),
                    SNAPSHOT_ID: pa.repeat(added[0], count),
                    COMMIT_TIME: pa.repeat(added[1], count),
                    **{name: found.column(name) for name in tracked},
                }
                if keys:
                    known[PARTITION] = pa.StructArray.from_arrays([found.column(key) for key in keys], list(keys))
                elif PARTITION in self.metadata:
                    known[PARTITION] = pa.array([{}] * count, pa.struct([]))
                yield self._with_metadata(found.select(self.columns), known)
                first += count

    def _to_spark(self, rows: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        fields = select_fields(self.ref, names)
        padded = (with_padding(each, fields) for each in rows)
        return to_spark_batches(padded if self.pads else rows, to_spark_schema(fields))

    def _with_metadata(self, rows: pa.RecordBatch, known: Mapping[str, ArrowAny] | None = None) -> pa.RecordBatch:
        for name in self.metadata:
            column = known.get(name) if known else None
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int64()) if column is None else column)
        return rows


def _python_frame(
    spark: SparkSession, ref: TableRef, fields: tuple[DataField, ...], splits: list[DataSplit]
) -> DataFrame:
    schema = nullable(to_spark_schema(fields))
    if not splits:
        return spark.createDataFrame([], schema)
    ensure_python_worker(spark)
    names = tuple(field.name for field in fields)
    rows = [(pickle.dumps(split),) for split in splits]
    # One row per partition, so that every split is its own task.
    frame = spark.createDataFrame(rows, f"{_SPLIT_COLUMN} binary").repartition(len(rows))
    return frame.mapInArrow(ReadTask(ref=ref, columns=names), schema)


def scan_files(
    spark: SparkSession,
    file_format: FileFormat,
    schema: StructType,
    files: Iterable[tuple[str, int]],
    options: Mapping[str, str],
) -> DataFrame:
    """Return a DataFrame of exactly these files of one format, read by Spark's own reader.

    If a directory has ``_spark_metadata``, the log of Spark's file sink, Spark takes the list of files from it. So a
    log in a temporary directory that names the files gives a scan without any listing, with Spark's vectorized reader,
    column pruning and push-down. Spark reads the log once, when it makes the relation.

    Args:
        schema: columns, by their names in the files; columns that a file does not have are null.
        files: URI and exact size in bytes of each file.
        options: of ``scan_options``.
    """
    directory = tempfile.mkdtemp(prefix="penstock-scan-")
    try:
        log = Path(directory, LOG_DIRECTORY)
        log.mkdir()
        (log / "0").write_text("\n".join(["v1", *(log_line(uri, size) for uri, size in files)]), encoding="utf-8")
        return _load(spark, file_format, schema, Path(directory).as_uri(), options)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _load(
    spark: SparkSession, file_format: FileFormat, schema: StructType, uri: str, options: Mapping[str, str]
) -> DataFrame:
    java_session: Any = spark._jsparkSession  # noqa: SLF001 - Python has no way to resolve in another session
    resolving = scan_session(java_session, file_format)
    reader: Any = spark.read
    reader._jreader = resolving.read()  # noqa: SLF001 - see above
    frame: DataFrame = reader.schema(schema).format(file_format).options(**options).load(uri)
    if resolving is java_session:
        return frame
    jvm: Any = spark._jvm  # noqa: SLF001 - see above
    resolved: Any = frame._jdf  # noqa: SLF001 - see above
    plan = resolved.queryExecution().analyzed()
    return DataFrame(classic(jvm).Dataset.ofRows(java_session, plan), spark)


def log_line(uri: str, size: int) -> str:
    """Return the log line for a file."""
    return json.dumps(
        {
            "path": uri,
            "size": size,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": _BLOCK_BYTES,
            "action": "add",
        }
    )
