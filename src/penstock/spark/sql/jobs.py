"""Cancel the Spark jobs of one SQL statement."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession


@contextmanager
def cancellable_jobs(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Yield a function that cancels only the jobs that this thread starts in the block; any thread may call it."""
    context = spark.sparkContext
    tag = f"penstock-sql-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield partial(context.cancelJobsWithTag, tag)
    finally:
        context.removeJobTag(tag)
