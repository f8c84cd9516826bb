"""Spark on tables of HDFS: Python workers write, and Spark's own reader reads without a JAR."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from tests.cloud_servers import HdfsServer
from tests.spark.hadoop_script import change_tables, check_changes

import penstock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not HdfsServer.JARS.exists(), reason="HDFS is not here: make test-cloud fetches it"),
]
ROWS = 10_000


@pytest.fixture(scope="module")
def server() -> Iterator[HdfsServer]:
    with HdfsServer() as server:
        yield server


def test_rows_go_through_tables_and_a_stream(spark: SparkSession, server: HdfsServer, tmp_path: object) -> None:
    catalog = penstock.Catalog(f"{server.root}/{uuid.uuid4()}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT, k BIGINT")
    queue = catalog.create_table("d.q", "id BIGINT, k BIGINT", options={"bucket": "2", "bucket-key": "id"})
    table.append(spark.range(ROWS).selectExpr("id", "id % 7 AS k"))
    read = table.to_spark(spark, filter="k = 3")
    assert read.count() == len(range(3, ROWS, 7))
    assert "parquet" in read._jdf.queryExecution().toString()
    catalog.attach(spark, "onhdfs")
    assert spark.sql("SELECT count(*), sum(id) FROM onhdfs.d.t WHERE k >= 0").first() == (ROWS, sum(range(ROWS)))
    check_changes(change_tables(spark, catalog, "onhdfs"), catalog.warehouse)
    source = table.read_stream(spark, options={"scan.mode": "latest-full"})
    query = queue.write_stream(source, checkpoint=f"{tmp_path}/checkpoint", trigger={"availableNow": True})
    assert query.awaitTermination(120)
    assert queue.compact(spark).snapshots is not None
    assert sorted(queue.to_arrow(["id"])["id"].to_pylist()) == list(range(ROWS))
    assert spark.read.format("penstock").load(queue.location).count() == ROWS
    assert queue.inspect.fsck().findings == ()
