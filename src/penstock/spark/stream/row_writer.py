"""Write the rows of micro-batches: in the driver if there are few rows, else in tasks.

Writing 1,000 rows in the driver takes a fifth of the time that starting the Python workers of one job takes. A few rows
can still be too large for the driver: Spark estimates a string column at 20 bytes per row, whatever its values. So
tasks measure each row and do not send wide rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as spark_types

from penstock.format.text.names import quoted
from penstock.options import SinkStrategy, WriteOptions
from penstock.printable import open_log
from penstock.spark.compact.job import merge_on_executors
from penstock.spark.versions.python_api import classic, to_arrow
from penstock.spark.versions.python_api import types as newest_types
from penstock.spark.write.native_sink import Dictionaries, StreamRows
from penstock.spark.write.sink import write_dataframe
from penstock.spark.write.task import write_batches
from penstock.table.compact.write import TableWrite
from penstock.table.store import MetadataStore
from penstock.table.stream.event_time import EventTimes, usable_watermark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.watermark import DeclaredWatermark
    from penstock.table.message import CommitMessage
    from penstock.table.ref import TableRef

_LOG: Final = open_log(__name__)
_MAX_ROWS: Final = 20_000
_MAX_BYTES: Final = 16 << 20
# Rows that all tasks together may send, as a multiple of the limit, since one task may have all rows.
_TASKS_FACTOR: Final = 4
_MIN_ROWS_PER_TASK: Final = 1_000
# Overhead of an element: an offset and a flag.
_OVERHEAD_BYTES: Final = 8
_TOO_LARGE: Final = "spark.driver.maxResultSize"
# Columns in addition to those of the rows.
_TASK: Final = "_penstock_task"
_WIDTH: Final = "_penstock_width"
_TASK_COLUMN: Final = "__penstock_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The written files of a micro-batch.

    Attributes:
        least_of_tasks: latest event time minus the delay, ms: the minimum over the tasks that had rows, or over the
            files if tasks wrote several. None if not asked for, or unknown.
    """

    messages: tuple[CommitMessage, ...]
    least_of_tasks: int | None = None


class RowWriter:
    """Writes the batches of one query.

    Args:
        sdf: the rows of the query.
        is_observed: whether the query observes metrics of the rows.
    """

    def __init__(self, sdf: DataFrame, *, is_observed: bool) -> None:
        # Small batches may read rows twice, and metrics would count them twice.
        self._max_rows = 0 if is_observed else max_small_rows(sdf)
        self._last_rows = 0
        self._query = StreamRows(rows=sdf, dictionaries=Dictionaries())

    def write(self, df: DataFrame, ref: TableRef, job_id: str, times: TaskTimes | None = None) -> Written:
        """Write the rows of a batch; nothing is committed.

        Args:
            times: reads event times of rows; None if they are not needed.
        """
        written = self._write_here(df, ref, job_id, times)
        if written is None:
            messages = write_dataframe(df, ref, job_id, query=self._query)
            written = Written(messages=messages, least_of_tasks=None if times is None else times.least(messages))
        self._last_rows = sum(file.row_count for message in written.messages for file in message.new_files)
        merged = TableWrite(ref=ref, merge_on=merge_on_executors(df.sparkSession)).merge(written.messages)
        return Written(messages=merged, least_of_tasks=written.least_of_tasks)

    def _write_here(self, df: DataFrame, ref: TableRef, job_id: str, times: TaskTimes | None) -> Written | None:
        if self._last_rows >= self._max_rows:
            return None
        rows = collect_small(df if times is None else with_tasks(df), self._max_rows)
        if rows is None:
            return None
        least = None
        if times is not None:
            rows, least = times.split(rows)
        return Written(messages=write_batches(ref, rows.to_batches(), job_id=job_id), least_of_tasks=least)


def max_small_rows(df: DataFrame) -> int:
    """Return how many rows of this schema the driver may collect, by Spark's estimate of their width."""
    java_frame: Any = df._jdf  # noqa: SLF001 - Python's types have no sizes
    return max(1, min(_MAX_ROWS, _MAX_BYTES // int(java_frame.schema().defaultSize())))


def collect_small(df: DataFrame, max_rows: int) -> pa.Table | None:
    """Collect the rows, in order; None if there are more than ``max_rows`` or if they are too large.

    A task sends at most one row more than its limit, and no values of rows that are wider than the allowed average, so
    little was read if the result is None. If there are few rows, but some are wide, all are read twice.
    """
    without_wide = _without_wide_rows(df, _MAX_BYTES // max_rows)
    limit = max_rows + 1
    limited = _limited(without_wide, limit)
    per_task = max(_MIN_ROWS_PER_TASK, max_rows * _TASKS_FACTOR // _count_tasks(limited))
    if per_task < max_rows:
        limit = per_task + 1
        limited = _limited(without_wide, limit)
    measured = _collect(limited)
    if measured is None:
        return None
    rows = measured.drop_columns([_TASK, _WIDTH])
    if rows.num_rows > max_rows or _largest_task(measured) >= limit:
        return None
    if not rows.num_rows or pc.max(measured[_WIDTH]).as_py() <= _MAX_BYTES // max_rows:
        return rows.rename_columns(df.columns)
    return _collect(_limited(df, limit)) if pc.sum(measured[_WIDTH]).as_py() <= _MAX_BYTES else None


def _collect(df: DataFrame) -> pa.Table | None:
    """Collect all rows; None if Spark refuses because the result is too large for the driver."""
    try:
        return to_arrow(df)
    except (PySparkException, Py4JJavaError) as error:
        if _TOO_LARGE not in str(error):
            raise
        _LOG.warning("a micro-batch is too large for the driver (%s), so tasks write it", _TOO_LARGE)
        return None


def _largest_task(measured: pa.Table) -> int:
    # Not Table.group_by, which imports pandas: a second of the processor before the first micro-batch.
    counts = pc.value_counts(measured[_TASK])
    return int(pc.max(counts.field("counts")).as_py() or 0)


def _without_wide_rows(df: DataFrame, max_width: int) -> DataFrame:
    """Add the task and the width of each row; set values of variable size to null in rows that are too wide."""
    if len({_WIDTH, *(name.lower() for name in df.columns)}) <= len(df.columns):  # else names would be ambiguous
        df = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    return df.selectExpr(*_measuring(df.schema, max_width))


@lru_cache(maxsize=8)
def _measuring(schema: spark_types.StructType, max_width: int) -> tuple[str, ...]:
    """Return the expressions of ``_without_wide_rows``.

    As text, since each part of a ``Column`` is a JVM call: for four columns, 20 ms per micro-batch.
    """
    columns = [quoted(field.name) for field in schema.fields]
    sizes = [_bytes_of(column, field.dataType) for column, field in zip(columns, schema.fields, strict=True)]
    width = f"{_sum_of(size for size in sizes if size is not None)} AS {_WIDTH}"
    values = [
        column if size is None else f"CASE WHEN {_WIDTH} <= {max_width} THEN {column} END"
        for column, size in zip(columns, sizes, strict=True)
    ]
    named = (f"{value} AS c{number}" for number, value in enumerate(values))
    return f"spark_partition_id() AS {_TASK}", width, *named


def _sum_of(sizes: Iterable[str]) -> str:
    return f"({' + '.join(('0L', *sizes))})"


def _bytes_of(value: str, kind: spark_types.DataType, depth: int = 0) -> str | None:
    """Return an expression for the approximate size of a value in bytes; None for types of fixed width."""
    match kind:
        case spark_types.StringType() | spark_types.BinaryType():
            size = f"octet_length({value})"
        case newest_types.VariantType():
            size = f"octet_length(to_json({value}))"
        case spark_types.ArrayType():
            size = _bytes_of_elements(value, kind.elementType, depth)
        case spark_types.MapType():
            keys = _bytes_of_elements(f"map_keys({value})", kind.keyType, depth)
            size = f"{keys} + {_bytes_of_elements(f'map_values({value})', kind.valueType, depth)}"
        case spark_types.StructType():
            parts = [_bytes_of(f"{value}.{quoted(field.name)}", field.dataType, depth) for field in kind.fields]
            known = [part for part in parts if part is not None]
            if not known:
                return None
            size = _sum_of(known)
        case _:
            return None
    return f"coalesce({size}, 0L)"


def _bytes_of_elements(value: str, kind: spark_types.DataType, depth: int) -> str:
    total, each = f"total{depth}", f"each{depth}"
    size = _bytes_of(each, kind, depth + 1)
    overhead = f"size({value}) * {_OVERHEAD_BYTES}L"
    if size is None:
        return overhead
    return f"{overhead} + aggregate({value}, 0L, ({total}, {each}) -> {total} + {size})"


def _count_tasks(df: DataFrame) -> int:
    """Return the number of tasks that produce the rows; Spark caches the plan that this creates."""
    java_frame: Any = df._jdf  # noqa: SLF001 - the partitions of a micro-batch are known, and Python would make an RDD
    return max(1, int(java_frame.queryExecution().toRdd().getNumPartitions()))


def _limited(df: DataFrame, rows_per_task: int) -> DataFrame:
    """Return the first rows of each task; ``DataFrame.limit`` would run one task after another."""
    java_frame: Any = df._jdf  # noqa: SLF001 - Python has no limit for each task
    jvm = _classes_of(df.sparkSession._jvm)  # noqa: SLF001 - see above
    count = jvm.literal(rows_per_task, jvm.integer)
    limited = jvm.dataset.ofRows(
        java_frame.sparkSession(), jvm.local_limit(count, java_frame.queryExecution().analyzed())
    )
    return DataFrame(limited, df.sparkSession)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SparkClasses:
    """JVM classes; each part of their names takes one call to resolve."""

    literal: Any
    integer: Any
    local_limit: Any
    dataset: Any


@lru_cache(maxsize=1)
def _classes_of(jvm: Any) -> _SparkClasses:  # noqa: ANN401 - py4j's view of the JVM
    sql = jvm.org.apache.spark.sql
    return _SparkClasses(
        literal=sql.catalyst.expressions.Literal,
        integer=sql.types.DataTypes.IntegerType,
        local_limit=sql.catalyst.plans.logical.LocalLimit,
        dataset=classic(jvm).Dataset,
    )


def with_tasks(df: DataFrame) -> DataFrame:
    """Return the rows with the number of the task that has each row."""
    return df.withColumn(_TASK_COLUMN, F.spark_partition_id())


def task_times(ref: TableRef, *, shuffles: bool) -> TaskTimes | None:
    """Return the reader of event times by task; None if the table declares no watermark, or if rows are shuffled."""
    declared = usable_watermark(ref)
    is_spread = ref.parsed(WriteOptions).sink_strategy is not SinkStrategy.NONE
    return None if declared is None or is_spread or shuffles else TaskTimes(ref, declared)


class TaskTimes:
    """Reads event times, in ms minus the declared delay, of rows that are written to one table.

    They are needed for sources that do not report event times per partition. Such a source counts as one partition, and
    one of its tasks may lag behind another: so the event time of the source is the minimum, over its tasks, of the
    latest event time of each task.
    """

    def __init__(self, ref: TableRef, declared: DeclaredWatermark) -> None:
        self._declared = declared
        self._files = EventTimes(ref, MetadataStore(ref))

    def split(self, rows: pa.Table) -> tuple[pa.Table, int | None]:
        """Return the rows without the column of ``with_tasks``, and the minimum over tasks (None: no time)."""
        times = rows.select([_TASK_COLUMN, self._declared.column]).group_by(_TASK_COLUMN)
        latest = times.aggregate([(self._declared.column, "max")])[f"{self._declared.column}_max"]
        return rows.drop_columns([_TASK_COLUMN]), self._less_delay(pc.min(latest))

    def least(self, messages: Iterable[CommitMessage]) -> int | None:
        """Return the minimum over the files, which is never later than that over tasks; None without a time."""
        files = (file for message in messages for file in message.new_files)
        return min((time for file in files if (time := self._files.latest_millis(file)) is not None), default=None)

    def _less_delay(self, latest: pa.TimestampScalar) -> int | None:
        if not latest.is_valid:
            return None
        millis = pc.cast(pc.cast(latest, pa.timestamp("ms", latest.type.tz), safe=False), pa.int64()).as_py()
        return int(millis) - (self._declared.delay_millis or 0)
