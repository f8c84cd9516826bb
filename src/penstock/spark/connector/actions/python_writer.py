"""Spark's writers for Python: a function from the Arrow batches of a task to one batch with one binary value."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.spark.connector.gateway import wrapped_class
from penstock.spark.source import PenstockDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject
    from penstock.spark.write.task import TaskOutcome

OUTCOME: Final = StructType([StructField("outcome", BinaryType())])
"""Columns of the batch that the function returns; it is pickled together with them."""


def writer_source(bridge: Bridge, spark: SparkSession) -> JavaObject:
    """Return the data source that the factory of writers takes; it only names the Python executable."""
    return bridge.private("UserDefinedPythonDataSource")(wrapped_class(spark, PenstockDataSource))


def outcomes_of(messages: JavaObject) -> list[TaskOutcome]:
    """Return what the tasks sent to ``commit``."""
    return [pickle.loads(bytes(message.pickledMessage())) for message in messages if message is not None]  # noqa: S301 - our own tasks wrote it
