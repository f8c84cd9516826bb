"""Read tables as DataFrames: native scans if Spark's readers read every value correctly, else Penstock's reader.

Penstock's reader is also used for files on object stores that Spark cannot open without a JAR and keys in its own
configuration.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.format.file_format import FileFormat, format_of
from penstock.format.text.names import quoted
from penstock.predicate.tree import TRUE
from penstock.printable import mask_locations, open_log
from penstock.spark.batches import pad_chars, to_spark_batches
from penstock.spark.hadoop_options import why_not_by_spark
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.read.filters import to_column, without_float_pushdown
from penstock.spark.read.native_columns import NativeColumn, are_gregorian, plan_native_columns
from penstock.spark.read.native_scan import scan_files
from penstock.spark.read.partition_columns import PartitionColumns
from penstock.spark.types import nullable, to_spark_schema, to_spark_type
from penstock.table.external_paths import ExternalPaths
from penstock.table.read.batches import TableReader, select_fields
from penstock.table.read.column_stats import ColumnStatsReader
from penstock.table.read.split import plan_splits
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.types.data_types import DataField
    from penstock.table.read.scan import ScanPlan
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
_SPLIT_COLUMN: Final = "split"


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
    groups = _GroupPlanner(ref=ref, store=store, fields=needed)
    for split in plan_splits(ref, plan):
        left = []
        deleted = {name for name, _ in split.vectors}
        for file in split.files:
            group = None if file.file_name in deleted else groups.group_of(split, file)
            if group is None:
                left.append(file)
            else:
                native[group].append((ref.file_io.to_uri(split.path_of(file, external)), file.file_size))
        if left:
            others.append(replace(split, files=tuple(left)))
    frames = [_native_frame(spark, plan, fields, group, files) for group, files in native.items()]
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

    @property
    def orc_dates(self) -> tuple[str, ...]:
        """Names of date columns in ORC, where Spark reads only dates since 1582-10-15 correctly."""
        if self.file_format is not FileFormat.ORC:
            return ()
        return tuple(column.field.name for column in self.columns if column.is_date)


class _GroupPlanner:
    """Decides whether and how Spark reads files natively; plans the columns once for each (schema, format)."""

    def __init__(self, *, ref: TableRef, store: MetadataStore, fields: tuple[DataField, ...]) -> None:
        self._ref = ref
        self._store = store
        self._fields = fields
        self._known: dict[tuple[int, FileFormat], _NativeGroup | None] = {}
        reason = why_not_by_spark(ref.file_io)
        self._is_refused = reason is not None
        if reason is not None:
            _LOG.info("table %s is read by Python workers, because %s", mask_locations(ref.name), reason)
        self._stats = ColumnStatsReader(store.load_schema, fields)
        self._keys = PartitionColumns(ref, store, fields)

    def group_of(self, split: DataSplit, file: DataFileMeta) -> _NativeGroup | None:
        if self._is_refused:
            return None
        key = (file.schema_id, format_of(file.file_name))
        if key not in self._known:
            self._known[key] = self._plan(*key)
        group = self._known[key]
        if group is None or not self._keys.are_in(split, file):
            return None
        if not group.orc_dates:
            return group
        known = self._stats.read(file)
        is_modern = all(are_gregorian(known.get(name), file.row_count) for name in group.orc_dates)
        return group if is_modern else None

    def _plan(self, schema_id: int, file_format: FileFormat) -> _NativeGroup | None:
        is_today = schema_id == self._ref.schema.id
        file_fields = self._ref.schema.fields if is_today else self._store.load_schema(schema_id).fields
        columns = plan_native_columns(file_format, file_fields, self._fields)
        if columns is None:
            return None
        return _NativeGroup(schema_id=schema_id, file_format=file_format, columns=columns)


def _native_frame(
    spark: SparkSession,
    plan: ScanPlan,
    fields: tuple[DataField, ...],
    group: _NativeGroup,
    files: list[tuple[str, int]],
) -> DataFrame:
    stored = [column.file_field for column in group.columns if column.file_field is not None]
    # The file may hold NULL from before a column became NOT NULL.
    frame = scan_files(spark, group.file_format, nullable(to_spark_schema(stored)), files)
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
    """

    ref: TableRef
    columns: tuple[str, ...]
    pads: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the splits of a task."""
        reader = TableReader(self.ref, MetadataStore(self.ref), self.columns)
        fields = select_fields(self.ref, self.columns)
        schema = to_spark_schema(fields)
        for batch in batches:
            for data in batch.column(0):
                split = pickle.loads(data.as_py() or b"")  # noqa: S301 - our own driver wrote it
                rows = reader.read_split(split)
                yield from to_spark_batches(pad_chars(rows, fields) if self.pads else rows, schema)


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
