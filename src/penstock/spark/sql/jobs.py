"""Jobs of one statement, which somebody may have enough of."""

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
    """Yield what cancels the jobs that this thread begins in the block, from any thread, and no others."""
    context = spark.sparkContext
    tag = f"penstock-sql-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield partial(context.cancelJobsWithTag, tag)
    finally:
        context.removeJobTag(tag)
