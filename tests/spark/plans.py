"""What Spark's physical plan of a DataFrame says about the files that a scan opens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_SPARK = "reader of Spark"
"""In plans with a scan by Spark's own reader."""
_FILES = re.compile(r"snapshot \d+, (\d+) of \d+ files")
_PYTHON = re.compile(r"Python workers for (\d+) of \d+ files")


def plan_of(frame: DataFrame) -> str:
    """Return the physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def files_opened(frame: DataFrame) -> int:
    """Return how many files Spark's own readers open for a DataFrame."""
    plan = plan_of(frame)
    by_python = sum(map(int, _PYTHON.findall(plan)))
    return sum(map(int, _FILES.findall(plan))) - by_python + len(frame.inputFiles())


def as_sent(spark: SparkSession, partition: Any) -> Any:
    """Return a partition as an executor gets it."""
    jvm: Any = spark._jvm
    utils = jvm.org.apache.spark.util.Utils
    return utils.deserialize(utils.serialize(partition))
