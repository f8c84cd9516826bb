"""Readers and writers of Spark's that run a pickled function of ours in Python workers."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.spark.connector.gateway import wrapped_class
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.versions.facts import PYTHON_SCANS, PYTHON_WRITES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.write.task import TaskOutcome
OUTCOME: Final = StructType([StructField("outcome", BinaryType())])
"""Columns of the batch, of one binary value, that a writer's function returns; it is pickled together with them."""


def python_factory(
    bridge: Bridge,
    spark: SparkSession,
    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> JavaObject:
    """Return the factory that creates readers on executors, for files that Spark's readers would misread.

    Args:
        task: converts batches of partitions, each a pickled value, to rows.
        schema: the columns of the rows.

    Source:
        ``PythonPartitionReaderFactory`` of Spark, and ``pyspark.sql.worker.plan_data_source_read``, which defines the
        input of the factory: a pickled function from Arrow batches of partitions to Arrow batches of rows.
    """
    PYTHON_SCANS.check("this query")
    ensure_python_worker(spark)
    source = bridge.private("UserDefinedPythonDataSource")(wrapped_class(spark, PenstockDataSource))
    function = bytearray(pickle.dumps((task, schema)))
    return made_factory(bridge, "PythonPartitionReaderFactory", source, function, schema)


def made_factory(bridge: Bridge, name: str, source: JavaObject, function: bytearray, schema: StructType) -> JavaObject:
    """Return one of Spark's factories of Python readers and writers, without metrics and for any session."""
    nothing = bridge.scala_none()
    return bridge.made(name, source, function, bridge.schema(schema), nothing, nothing)


def python_partitions(bridge: Bridge, values: Sequence[object]) -> JavaObject:
    """Return one partition for each value."""
    PYTHON_SCANS.check("this query")
    made = bridge.private("PythonInputPartition")
    partitions = [made(place, bytearray(pickle.dumps(value))) for place, value in enumerate(values)]
    return bridge.array(bridge.connector("read.InputPartition"), partitions)


def writer_source(bridge: Bridge, spark: SparkSession) -> JavaObject:
    """Return the data source that the factory of writers takes; it only names the Python executable."""
    PYTHON_WRITES.check("this write")
    return bridge.private("UserDefinedPythonDataSource")(wrapped_class(spark, PenstockDataSource))


def outcomes_of(messages: JavaObject) -> list[TaskOutcome]:
    """Return what the tasks sent to ``commit``."""
    return [pickle.loads(bytes(message.pickledMessage())) for message in messages if message is not None]  # noqa: S301 - our own tasks wrote it
