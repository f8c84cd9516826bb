"""Read with Penstock's reader in Spark's Python workers: for files that Spark's readers would misread.

Source:
    ``PythonPartitionReaderFactory`` of Spark, and ``pyspark.sql.worker.plan_data_source_read``, which defines the input
    of the factory: a pickled function from Arrow batches of partitions to Arrow batches of rows.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from penstock.spark.connector.gateway import wrapped_class
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.source import PenstockDataSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.split import DataSplit
    from penstock.table.stream.tasks import StreamTask


def python_factory(
    bridge: Bridge,
    spark: SparkSession,
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> JavaObject:
    """Return the factory that creates readers on executors.

    Args:
        task: converts batches of partitions, each a pickled value, to rows.
        schema: the columns of the rows.
    """
    ensure_python_worker(spark)
    source = bridge.private("UserDefinedPythonDataSource")(wrapped_class(spark, PenstockDataSource))
    factory = bridge.private("PythonPartitionReaderFactory")
    function = bytearray(pickle.dumps((task, schema)))
    return factory(source, function, bridge.schema(schema), bridge.nothing(), bridge.nothing())


def python_partitions(bridge: Bridge, values: Sequence[DataSplit] | Sequence[StreamTask]) -> JavaObject:
    """Return one partition for each value."""
    made = bridge.private("PythonInputPartition")
    partitions = [made(place, bytearray(pickle.dumps(value))) for place, value in enumerate(values)]
    return bridge.array(bridge.connector("read.InputPartition"), partitions)
