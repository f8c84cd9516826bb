"""Spark on a table of an object store, without a JAR: our readers and writers in the tasks."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from tests.s3_server import ACCESS_KEY, SECRET_KEY

from penstock import Catalog, StorageError, Table
from penstock.api.arguments import add_session_store_options
from penstock.io.resolve import resolve
from penstock.spark.hadoop_options import why_not_by_spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from tests.s3_server import S3Bucket


@pytest.fixture
def catalog(s3_bucket: S3Bucket) -> Catalog:
    catalog = Catalog(f"{s3_bucket.root}/{uuid.uuid4()}", s3_bucket.options)
    catalog.create_database("d")
    return catalog


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def copy(spark: SparkSession, source: Table, target: Table, checkpoint: Path) -> DataFrame:
    stream = source.read_stream(spark)
    query = target.write_stream(stream, checkpoint=str(checkpoint), trigger={"availableNow": True})
    query.awaitTermination()
    return stream


def shown(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def test_rows_are_appended_and_read(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    table.append(spark.range(100))
    frame = table.to_spark(spark, filter="id < 30")
    assert ids(frame) == list(range(30))
    assert SECRET_KEY not in shown(frame)
    assert SECRET_KEY not in shown(table.read_stream(spark))


def test_a_catalog_on_azure_takes_the_key_of_the_session(spark: SparkSession) -> None:
    setting = "fs.azure.account.key.acc.dfs.core.windows.net"
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(setting, "SECRET")
    try:
        for location, options in (
            ("abfss://c@acc.dfs.core.windows.net/a", {}),
            ("az://c/a", {"penstock.azure.account": "acc"}),
        ):
            assert add_session_store_options(location, options) == {**options, setting: "SECRET"}
        for options in ({setting: "own"}, {"fs.azure.sas.fixed.token.acc.dfs.core.windows.net": "own"}):
            assert add_session_store_options("abfss://c@acc.dfs.core.windows.net/a", options) == options
    finally:
        settings.unset(setting)
    assert why_not_by_spark(resolve("abfss://c@acc.dfs.core.windows.net/a")[0]) == (
        "its files are on Azure, and there is no hadoop-azure on Spark's class path"
    )


def test_a_missing_jar_is_named(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "id BIGINT")
    assert why_not_by_spark(table._handle.ref.file_io) == (
        "its files are on S3, and there is no hadoop-aws on Spark's class path"
    )
    started = time.monotonic()
    for location in ("s3a://bucket/checkpoint", "s3://bucket/checkpoint"):
        with pytest.raises(StorageError, match=r"Spark has no connector .* add the JAR \(hadoop-aws for s3a://"):
            table.write_stream(table.read_stream(spark), checkpoint=location)
    assert time.monotonic() - started < 40
    assert table.latest_snapshot() is None


@pytest.mark.slow
def test_rows_go_through_a_table_and_a_stream(
    spark: SparkSession, catalog: Catalog, s3_bucket: S3Bucket, tmp_path: Path
) -> None:
    queue = catalog.create_table("d.queue", "id BIGINT, k INT", options={"bucket": "2", "bucket-key": "k"})
    target = catalog.create_table("d.target", "id BIGINT, k INT")
    frame = spark.range(1000).withColumn("k", (F.col("id") % 7).cast("int"))
    queue.append(frame)
    assert ids(queue.to_spark(spark)) == list(range(1000))
    assert ids(queue.to_spark(spark, filter="k = 3 AND id < 30")) == [3, 10, 17, 24]
    copy(spark, queue, target, tmp_path / "checkpoint")
    queue.append(frame.withColumn("id", F.col("id") + 1000))
    stream = copy(spark, queue, target, tmp_path / "checkpoint")
    assert ids(target.to_spark(spark)) == list(range(2000))
    assert target.compact(spark=spark).snapshots
    assert sorted(target.to_arrow()["id"].to_pylist()) == list(range(2000))

    by_format = spark.read.format("penstock").options(**s3_bucket.options)
    assert by_format.load(target.location).count() == 2000
    frame.limit(5).write.format("penstock").options(**s3_bucket.options).mode("append").save(target.location)
    assert by_format.load(f"{target.location}$snapshots").count() == len(target.snapshots())
    assert target.inspect.fsck().findings == ()

    kept = [path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    for secret in (SECRET_KEY, ACCESS_KEY):
        assert not [each for each in (stream, by_format.load(target.location)) if secret in shown(each)]
        assert not [data for data in kept if secret.encode() in data]


def test_tables_are_created_and_replaced_with_their_rows(spark: SparkSession, catalog: Catalog) -> None:
    catalog.attach(spark, "cloud")
    with pytest.raises(PySparkException):
        spark.sql("CREATE TABLE cloud.d.t AS SELECT 1 / (id - 3) AS x FROM range(0, 4, 1, 2)")
    assert catalog.list_tables("d") == ()
    spark.sql("CREATE TABLE cloud.d.t AS SELECT id, CAST(id AS STRING) AS name FROM range(3)")
    with pytest.raises(PySparkException):
        spark.sql("CREATE OR REPLACE TABLE cloud.d.t AS SELECT 1 / (id - 2) AS x FROM cloud.d.t")
    table = catalog.load_table("d.t")
    assert ids(table.to_spark(spark)) == [0, 1, 2]
    spark.sql("CREATE OR REPLACE TABLE cloud.d.t AS SELECT id + 1 AS id, 1.5D AS price FROM cloud.d.t WHERE id > 0")
    assert sorted(map(tuple, spark.sql("SELECT * FROM cloud.d.t").collect())) == [(2, 1.5), (3, 1.5)]
    assert sorted(map(tuple, spark.sql("SELECT * FROM cloud.d.t VERSION AS OF 1").collect())) == [
        (0, "0"),
        (1, "1"),
        (2, "2"),
    ]
    with pytest.raises(PySparkException, match="cannot take the place of the old one on an object store"):
        spark.sql("CREATE OR REPLACE TABLE cloud.d.t PARTITIONED BY (id) AS SELECT * FROM cloud.d.t")
    assert catalog.load_table("d.t").inspect.fsck().findings == ()
