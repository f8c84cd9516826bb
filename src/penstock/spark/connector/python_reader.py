"""Read with our own reader in Spark's Python workers: for files that Spark's readers would read wrongly.

Source:
    ``PythonPartitionReaderFactory`` of Spark, and ``pyspark.sql.worker.plan_data_source_read``, which says what the
    factory is given: a pickled function from Arrow batches of partitions to Arrow batches of rows.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from penstock.spark.connector.gateway import wrapped_class
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.read.frame import ReadTask
from penstock.spark.source import PenstockDataSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef


def python_factory(bridge: Bridge, spark: SparkSession, ref: TableRef, schema: StructType) -> JavaObject:
    """Return the factory that makes readers of splits on executors.

    Args:
        schema: the columns to read.
    """
    ensure_python_worker(spark)
    task = ReadTask(ref=ref, columns=tuple(schema.fieldNames()))
    source = bridge.private("UserDefinedPythonDataSource")(wrapped_class(spark, PenstockDataSource))
    factory = bridge.private("PythonPartitionReaderFactory")
    function = bytearray(pickle.dumps((task, schema)))
    return factory(source, function, bridge.schema(schema), bridge.nothing(), bridge.nothing())


def python_partitions(bridge: Bridge, splits: Sequence[DataSplit]) -> JavaObject:
    """Return one partition for each split."""
    made = bridge.private("PythonInputPartition")
    partitions = [made(place, bytearray(pickle.dumps(split))) for place, split in enumerate(splits)]
    return bridge.array(bridge.connector("read.InputPartition"), partitions)
