"""A REST catalog in Spark: its name in Spark SQL, streams, executors, and in the dialect of Flink."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors.exceptions.base import PySparkException
from tests.interop.conftest import java, pypaimon
from tests.interop.test_rest_catalog import TOKEN, Server, server, shop

import penstock

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.interop.engines import Engine

__all__ = ["java", "pypaimon", "server", "shop"]

pytestmark = pytest.mark.interop


def test_spark_sql_reads_and_writes_tables_of_the_server(
    spark: SparkSession, server: Server, shop: penstock.Catalog
) -> None:
    shop.attach(spark, "lake")
    spark.sql("CREATE TABLE lake.shop.t (id BIGINT, name STRING, dt STRING) PARTITIONED BY (dt)")
    spark.sql("INSERT INTO lake.shop.t VALUES (1, 'a', 'x'), (2, NULL, 'y'), (3, 'c', 'x')")
    spark.sql("INSERT INTO lake.shop.t SELECT id + 10, name, dt FROM lake.shop.t WHERE dt = 'x'")
    found = spark.sql("SELECT id, name, dt FROM lake.shop.t WHERE dt = 'x'").collect()
    assert sorted(map(tuple, found)) == [(1, "a", "x"), (3, "c", "x"), (11, "a", "x"), (13, "c", "x")]
    spark.sql("DELETE FROM lake.shop.t WHERE dt = 'y'")
    spark.sql("ALTER TABLE lake.shop.t ADD COLUMNS (price INT)")
    seen = server.ask(server.java, "read", "shop.t")["rows"]
    assert sorted((row["id"], row["price"]) for row in seen) == [(1, None), (3, None), (11, None), (13, None)]
    assert [row["snapshot_id"] for row in shop.load_table("shop.t").snapshots().to_pylist()] == [1, 2, 3]


def test_executors_and_streams_write_and_the_server_decides(
    spark: SparkSession, server: Server, shop: penstock.Catalog, tmp_path: Path
) -> None:
    queue = shop.create_table("shop.queue", "id BIGINT, name STRING", options={"bucket": "2", "bucket-key": "id"})
    queue.append(spark.range(40).selectExpr("id", "cast(id AS STRING) AS name"))
    copy = shop.create_table("shop.copy", "id BIGINT, name STRING")
    stream = copy.write_stream(
        queue.read_stream(spark), checkpoint=str(tmp_path / "checkpoint"), trigger={"availableNow": True}
    )
    stream.awaitTermination(120)
    assert not stream.isActive
    assert sorted(row.id for row in copy.to_spark(spark).collect()) == list(range(40))
    assert len(server.ask(server.java, "read", "shop.copy")["rows"]) == 40


def test_catalog_of_the_dialect_has_the_options_of_the_server(
    spark: SparkSession, server: Server, shop: penstock.Catalog, tmp_path: Path
) -> None:
    shop.create_table("shop.t", "id BIGINT, name STRING")
    options = {"type": "paimon", "warehouse": "lake", "metastore": "rest", "uri": server.uri}
    options |= {"token.provider": "bear", "token": TOKEN}
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    home = penstock.Catalog(str(tmp_path))
    penstock.sql(spark, home, f"CREATE CATALOG lake WITH ({given}); USE CATALOG lake; USE shop")
    penstock.sql(spark, home, "INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO t SELECT id + 10, name FROM t")
    found = penstock.sql(spark, home, "SELECT id FROM t WHERE name = 'b'").collect()
    assert sorted(row.id for row in found) == [2, 12]
    assert len(server.ask(server.java, "read", "shop.t")["rows"]) == 4


def test_views_are_those_of_the_server(spark: SparkSession, server: Server, shop: penstock.Catalog) -> None:
    shop.create_table("shop.t", "id BIGINT, name STRING").append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    shop.attach(spark, "lake")
    spark.sql("USE lake.shop")
    spark.sql("CREATE VIEW v COMMENT 'first' AS SELECT id FROM t WHERE id < 2")
    spark.sql("USE spark_catalog.default")
    assert server.ask(server.java, "views", "shop.t") == {"v": "SELECT id FROM t WHERE id < 2"}
    assert server.ask(server.java, "names", "shop.t") == ["t"]
    assert spark.table("lake.shop.v").collect() == [(1,)]
    spark.sql("ALTER VIEW lake.shop.v AS SELECT id, name FROM lake.shop.t")
    assert spark.table("lake.shop.v").count() == 2
    spark.sql("ALTER VIEW lake.shop.v RENAME TO shop.w")
    server.ask(server.java, "create_view", "shop.theirs", columns=["most"], query="SELECT max(id) FROM t")
    assert spark.sql("SELECT most FROM lake.shop.theirs").first() == (2,)
    assert sorted(row.viewName for row in spark.sql("SHOW VIEWS IN lake.shop").collect()) == ["theirs", "w"]
    with pytest.raises(penstock.errors.AlreadyExistsError, match="view"):
        shop.create_table("shop.w", "id BIGINT")
    for name in ("w", "theirs"):
        spark.sql(f"DROP VIEW lake.shop.{name}")
    assert server.ask(server.java, "views", "shop.t") == {}


def test_engines_do_not_take_the_views_of_a_directory_for_tables(
    spark: SparkSession, java: Engine, pypaimon: Engine, tmp_path: Path
) -> None:
    catalog = penstock.attach(spark, tmp_path / "w", name="views")
    catalog.create_database("d")
    catalog.create_table("d.t", "id BIGINT").append([{"id": 1}])
    spark.sql("CREATE VIEW views.d.v AS SELECT id FROM views.d.t")
    for engine in (java, pypaimon):
        assert engine.ask("names", tmp_path / "w" / "d.db" / "t") == ["t"], engine.name
        assert len(engine.read(tmp_path / "w" / "d.db" / "t")) == 1
    assert spark.table("views.d.v").collect() == [(1,)]


def test_tables_of_the_server_are_created_and_replaced_with_their_rows(
    spark: SparkSession, server: Server, shop: penstock.Catalog
) -> None:
    shop.attach(spark, "lake")
    failing = "SELECT 1 / (id - 3) AS x FROM range(0, 4, 1, 2)"
    with pytest.raises(PySparkException):
        spark.sql(f"CREATE TABLE lake.shop.t AS {failing}")
    assert shop.list_tables("shop") == ()
    spark.sql("CREATE TABLE lake.shop.t AS SELECT id FROM range(3)")
    with pytest.raises(PySparkException):
        spark.sql(f"CREATE OR REPLACE TABLE lake.shop.t AS {failing}")
    spark.sql("CREATE OR REPLACE TABLE lake.shop.t AS SELECT id + 10 AS id FROM lake.shop.t")
    assert sorted(row["id"] for row in server.ask(server.java, "read", "shop.t")["rows"]) == [10, 11, 12]
    assert shop.load_table("shop.t").snapshots()["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE"]
    with pytest.raises(PySparkException, match="cannot take the place of the old one on a REST catalog"):
        spark.sql("CREATE OR REPLACE TABLE lake.shop.t AS SELECT id, 'x' AS name FROM lake.shop.t")
    assert server.ask(server.java, "names", "shop.t") == ["t"]
