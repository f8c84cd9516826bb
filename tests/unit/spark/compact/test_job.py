"""Merges as Spark jobs, as far as it takes no Spark."""

from __future__ import annotations

import uuid
from typing import Final
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from penstock import Catalog
from penstock.errors import TableStoreError
from penstock.spark.compact.job import SparkMerger, spark_cause
from penstock.table.compact.plan import plan_compaction
from penstock.table.store import MetadataStore

STAGE: Final = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 8.0 failed 1 times, "
FULL: Final = "(10.0.0.1 executor driver): java.io.IOException: No space left on device"
OURS: Final = "penstock.errors.StorageError: table d.t: cannot write"


def test_a_merge_that_would_begin_after_the_cancelling_does_not() -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT")
    for number in range(5):
        table.append(pa.table({"k": pa.array([number], pa.int64())}))
    (task,) = plan_compaction(table._ref, MetadataStore(table._ref)).tasks
    spark = MagicMock()
    merger = SparkMerger(spark=spark, ref=table._ref)
    merger.cancel()
    spark.sparkContext.cancelJobsWithTag.assert_called_once_with(merger.tag)
    for merge in (merger.merge, lambda each: merger.merge_at(each, table._ref)):
        with pytest.raises(TableStoreError, match="cancelled before it began"):
            merge(task)
    spark.sparkContext.parallelize.assert_not_called()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            f"calling o1.collect.\n: {STAGE}most recent failure: Lost task 1.0 in stage 8.0 (TID 9) {FULL}\n\tat java",
            "java.io.IOException: No space left on device",
        ),
        (
            f"{STAGE}most recent failure: Lost task (TID 9) (h executor 2): Traceback:\n{OURS}\n\tat org.apache.spark",
            OURS,
        ),
        ("[JOB_CANCELLED] Job 3 cancelled\n\tat org.apache.spark", "[JOB_CANCELLED] Job 3 cancelled"),
        ("", "RuntimeError"),
    ],
)
def test_cause_is_the_error_of_the_task(text: str, cause: str) -> None:
    assert spark_cause(RuntimeError(text)) == cause
