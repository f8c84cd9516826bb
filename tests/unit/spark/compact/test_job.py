"""Merges as Spark jobs, as far as it takes no Spark."""

from __future__ import annotations

import uuid
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from penstock import Catalog
from penstock.errors import TableStoreError
from penstock.spark.compact.job import SparkMerger
from penstock.table.compact.plan import plan_compaction
from penstock.table.store import MetadataStore


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
