"""Collect the rows of small micro-batches in the driver.

Writing 1,000 rows in the driver takes a fifth of the time that starting the Python workers of one job takes.

A few rows can still be too large for the driver: Spark estimates a string column at 20 bytes a row, whatever its
values. So tasks measure each row and do not send wide rows.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql import types as spark_types

from penstock.printable import open_log

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

_LOG: Final = open_log(__name__)
_MAX_ROWS: Final = 20_000
_MAX_BYTES: Final = 16 << 20
# Rows that all tasks together may send, as a multiple of the limit, since one task may have all rows.
_TASKS_FACTOR: Final = 4
_LEAST_ROWS_PER_TASK: Final = 1_000
# Size of an element besides its bytes: an offset and a flag.
_OVERHEAD_BYTES: Final = 8
_TOO_LARGE: Final = "spark.driver.maxResultSize"
_TASK: Final = "task"
_WIDTH: Final = "width"


def max_small_rows(df: DataFrame) -> int:
    """Return how many rows of this schema the driver may collect, by Spark's estimate of their width."""
    given: Any = df._jdf  # noqa: SLF001 - Python's types have no sizes
    return max(1, min(_MAX_ROWS, _MAX_BYTES // int(given.schema().defaultSize())))


def collect_small(df: DataFrame, max_rows: int) -> pa.Table | None:
    """Collect the rows, in order; None if there are more than ``max_rows`` or if they are too large.

    A task sends at most one row more than its limit, and no values of rows that are wider than the average that is
    allowed; so little was read if the result is None. If there are few rows, but some are wide, all are read twice.
    """
    given: Any = df._jdf  # noqa: SLF001 - the partitions of a micro-batch are known, and Python would make an RDD
    tasks = int(given.queryExecution().toRdd().getNumPartitions())
    per_task = max(_LEAST_ROWS_PER_TASK, max_rows * _TASKS_FACTOR // max(tasks, 1))
    limit = min(max_rows, per_task) + 1
    limited = _limited(df, limit)
    max_width = _MAX_BYTES // max_rows
    measured = _collect(_without_wide_rows(limited, max_width))
    if measured is None:
        return None
    rows = measured.drop_columns([_TASK, _WIDTH])
    if rows.num_rows > max_rows or _largest_task(measured) >= limit:
        return None
    if not rows.num_rows or pc.max(measured[_WIDTH]).as_py() <= max_width:
        return rows.rename_columns(df.columns)
    return _collect(limited) if pc.sum(measured[_WIDTH]).as_py() <= _MAX_BYTES else None


def _collect(df: DataFrame) -> pa.Table | None:
    """Collect all rows; None if Spark refuses because the result is too large for the driver."""
    try:
        return df.toArrow()
    except (PySparkException, Py4JJavaError) as error:
        if _TOO_LARGE not in str(error):
            raise
        _LOG.warning("a micro-batch is too large for the driver (%s), so tasks write it", _TOO_LARGE)
        return None


def _largest_task(measured: pa.Table) -> int:
    counts = measured.group_by(_TASK).aggregate([(_TASK, "count")])
    return int(pc.max(counts[f"{_TASK}_count"]).as_py() or 0)


def _without_wide_rows(df: DataFrame, max_width: int) -> DataFrame:
    """Add the task and the width of each row; set values of variable size to null in rows that are too wide."""
    plain = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    columns = [F.col(name) for name in plain.columns]
    sizes = [_bytes_of(column, field.dataType) for column, field in zip(columns, df.schema.fields, strict=True)]
    width = reduce(add, [size for size in sizes if size is not None], F.lit(0).cast("long"))
    measured = plain.select("*", F.spark_partition_id().alias(_TASK), width.alias(_WIDTH))
    is_narrow = F.col(_WIDTH) <= max_width
    return measured.select(
        *[
            column if size is None else F.when(is_narrow, column).alias(name)
            for name, column, size in zip(plain.columns, columns, sizes, strict=True)
        ],
        _TASK,
        _WIDTH,
    )


def _bytes_of(value: Column, kind: spark_types.DataType) -> Column | None:
    """Return the approximate size of a value in bytes; None for types of fixed width."""
    match kind:
        case spark_types.StringType() | spark_types.BinaryType():
            size = F.octet_length(value)
        case spark_types.VariantType():
            size = F.octet_length(F.to_json(value))
        case spark_types.ArrayType():
            size = _bytes_of_elements(value, kind.elementType)
        case spark_types.MapType():
            keys = _bytes_of_elements(F.map_keys(value), kind.keyType)
            size = keys + _bytes_of_elements(F.map_values(value), kind.valueType)
        case spark_types.StructType():
            sizes = [_bytes_of(value.getField(field.name), field.dataType) for field in kind.fields]
            known = [size for size in sizes if size is not None]
            if not known:
                return None
            size = reduce(add, known)
        case _:
            return None
    return F.coalesce(size.cast("long"), F.lit(0).cast("long"))


def _bytes_of_elements(value: Column, kind: spark_types.DataType) -> Column:
    zero = F.lit(0).cast("long")
    least = F.size(value).cast("long") * _OVERHEAD_BYTES

    def with_element(total: Column, each: Column) -> Column:
        size = _bytes_of(each, kind)
        return total if size is None else total + size

    return least + F.aggregate(value, zero, with_element)


def _limited(df: DataFrame, rows_per_task: int) -> DataFrame:
    """Return the first rows of each task; ``DataFrame.limit`` would run one task after the other."""
    given: Any = df._jdf  # noqa: SLF001 - Python has no limit for each task
    jvm: Any = df.sparkSession._jvm  # noqa: SLF001 - see above
    sql = jvm.org.apache.spark.sql
    count = sql.catalyst.expressions.Literal(rows_per_task, sql.types.DataTypes.IntegerType)
    plan = sql.catalyst.plans.logical.LocalLimit(count, given.queryExecution().analyzed())
    limited = sql.classic.Dataset.ofRows(given.sparkSession(), plan)
    return DataFrame(limited, df.sparkSession)
