"""Two applications of one program whose settings name catalogs; run by ``test_catalog_class``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import penstock
from penstock.spark.versions.facts import PROCEDURES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def start(**catalogs: str) -> SparkSession:
    """Start an application with catalogs, of which ``lake`` is the default."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name, warehouse in catalogs.items():
        builder = builder.config(f"spark.sql.catalog.{name}", "penstock.Catalog")
        builder = builder.config(f"spark.sql.catalog.{name}.warehouse", warehouse)
        builder = builder.config(f"spark.sql.catalog.{name}.penstock.durable", "false")
    spark = builder.config("spark.sql.defaultCatalog", "lake").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def error_of(spark: SparkSession, text: str) -> str:
    try:
        return f"no error, but {spark.sql(text).collect()}"
    except PySparkException as error:
        return str(error)


def first(root: str) -> None:
    spark = start(lake=f"{root}/lake", other=f"{root}/other")
    assert penstock.serve(spark) == ("lake", "other")
    for name in ("lake", "other"):
        spark.sql(f"CREATE DATABASE {name}.d")
        spark.sql(f"CREATE TABLE {name}.d.t (n BIGINT, name STRING)")
        spark.sql(f"INSERT INTO {name}.d.t VALUES (1, '{name}')")
    assert spark.newSession().sql("SELECT name FROM d.t").collect() == [("lake",)]
    assert spark.newSession().sql("SELECT name FROM other.d.t").collect() == [("other",)]
    if PROCEDURES.is_here:
        assert spark.sql("CALL lake.sys.create_tag('d.t', 'one')").count() == 1

    def batch(rows: DataFrame, _: int) -> None:
        rows.createOrReplaceTempView("rows")
        rows.sparkSession.sql("INSERT INTO other.d.t SELECT n + 1, 'batch' FROM rows JOIN d.t USING (n)")

    stream = spark.readStream.option("scan.mode", "earliest").table("lake.d.t").writeStream.foreachBatch(batch)
    query = stream.option("checkpointLocation", f"{root}/checkpoint").trigger(availableNow=True).start()
    assert query.awaitTermination(100)
    assert spark.table("other.d.t").count() == 2
    own = spark.newSession()
    own.conf.set("spark.sql.catalog.lake.warehouse", root)
    error = error_of(own, "SHOW NAMESPACES IN lake")
    assert "another warehouse than the application" in error, error
    spark.stop()


def second(root: str) -> None:
    spark = start(lake=f"{root}/other")
    # The class is there already, and the settings are those of the new application.
    assert spark.sql("SELECT count(*) FROM d.t").collect() == [(2,)]
    spark.conf.set("spark.sql.catalog.third", "penstock.Catalog")
    spark.conf.set("spark.sql.catalog.third.warehouse", f"{root}/other")
    error = error_of(spark, "SHOW NAMESPACES IN third")
    assert "not one of this application" in error, error
    catalog = penstock.attach(spark, f"{root}/lake", "mine")
    spark.sql("INSERT INTO mine.d.t VALUES (7, 'mine')")
    assert catalog.load_table("d.t").to_arrow().num_rows == 2
    spark.stop()


if __name__ == "__main__":
    first(sys.argv[1])
    second(sys.argv[1])
    print("done")  # noqa: T201 - its result
