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
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.read.filters import to_column, without_float_pushdown
from penstock.spark.read.native_files import NativeFileChecker
from penstock.spark.read.native_scan import scan_files
from penstock.spark.types import nullable, to_spark_schema, to_spark_type
from penstock.table.external_paths import ExternalPaths
from penstock.table.read.batches import TableReader, select_fields
from penstock.table.read.split import plan_splits
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.format.types.data_types import DataField
    from penstock.spark.read.native_columns import NativeColumn
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
    checker = NativeFileChecker(ref, store, needed)
    if checker.refusal is not None:
        _LOG.info("table %s is read by Python workers, because %s", mask_locations(ref.name), checker.refusal)
    for split in plan_splits(ref, plan):
        left = []
        deleted = {name for name, _ in split.vectors}
        for file in split.files:
            found = checker.columns_of(file)
            if found is None or file.file_name in deleted or checker.why_not(split, file) is not None:
                left.append(file)
            else:
                group = _NativeGroup(schema_id=file.schema_id, file_format=format_of(file.file_name), columns=found)
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
