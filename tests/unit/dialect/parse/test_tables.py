"""Statements about catalogs, databases and tables, run without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock import (
    AlreadyExistsError,
    InvalidOptionError,
    InvalidSchemaError,
    InvalidSqlError,
    NotFoundError,
    OptionWarning,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

GOLDEN = Path(__file__).parents[3] / "golden" / "data" / "warehouse" / "flink131s.db"

F_WATERMARK = """
CREATE TABLE {name} (order_id BIGINT, order_time TIMESTAMP(3), amount DECIMAL(10, 2),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND) WITH ('bucket' = '-1')
"""
F_WATERMARK_EXPR = """
CREATE TABLE {name} (order_id BIGINT, ts_ms BIGINT, order_time AS TO_TIMESTAMP_LTZ(ts_ms, 3),
  WATERMARK FOR order_time AS order_time)
"""


@pytest.mark.parametrize(("name", "ddl"), [("f_watermark", F_WATERMARK), ("f_watermark_expr", F_WATERMARK_EXPR)])
def test_watermarks_and_computed_columns_are_stored_as_flink_stored_them(sql: Sql, name: str, ddl: str) -> None:
    sql(ddl.format(name=name))
    theirs = json.loads((GOLDEN / name / "schema" / "schema-0").read_text("utf-8"))
    schema = sql.catalog.load_table(f"default.{name}").schema
    assert dict(schema.options) == theirs["options"]
    assert [field.name for field in schema.fields] == [field["name"] for field in theirs["fields"]]


def test_the_statement_that_show_prints_makes_the_same_table(sql: Sql) -> None:
    sql(
        """
        CREATE TABLE t (id BIGINT NOT NULL COMMENT 'it''s', w TIMESTAMP(3), n INT DEFAULT 5, dt STRING,
          ts AS CAST(w AS TIMESTAMP(3)), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE)
        COMMENT 'orders' PARTITIONED BY (dt) WITH ('bucket' = '2', 'bucket-key' = 'id')
        """
    )
    (row,) = sql.rows("SHOW CREATE TABLE t")
    first = sql.catalog.load_table("default.t").schema
    sql("DROP TABLE t")
    sql(row["result"])
    second = sql.catalog.load_table("default.t").schema
    assert (second.fields, second.options, second.partition_keys, second.comment) == (
        first.fields,
        first.options,
        first.partition_keys,
        first.comment,
    )


def test_describe_shows_partition_keys_computed_columns_and_the_watermark(sql: Sql) -> None:
    sql("CREATE TABLE t (ms BIGINT NOT NULL COMMENT 'c', at AS TO_TIMESTAMP_LTZ(ms, 3), dt STRING,"
        " WATERMARK FOR at AS at) PARTITIONED BY (dt)")  # fmt: skip
    assert [tuple(row.values()) for row in sql.rows("DESCRIBE t")] == [
        ("ms", "BIGINT", False, False, None, None, "c"),
        ("at", "TIMESTAMP(3) WITH LOCAL TIME ZONE", True, False, "AS TO_TIMESTAMP_LTZ(`ms`, 3)", "`at`", None),
        ("dt", "STRING", True, True, None, None, None),
    ]
    assert sql.rows("SHOW COLUMNS FROM t") == sql.rows("DESC default.t")


def test_a_connector_makes_a_table_of_the_session_and_writes_nothing(sql: Sql) -> None:
    sql(
        "CREATE TABLE k (id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '5' SECOND)"
        " WITH ('connector' = 'kafka', 'topic' = 'a',"
        " 'properties.bootstrap.servers' = 'localhost:1', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json')"
    )
    assert sql.catalog.list_databases() == ()
    assert sql.rows("SHOW TABLES") == [{"table name": "k"}]
    assert [row["watermark"] for row in sql.rows("DESCRIBE k")] == [None, "`at` - INTERVAL '5' SECOND"]
    with pytest.raises(AlreadyExistsError, match="already exists in this session"):
        sql("CREATE TABLE k (id BIGINT)")
    with pytest.raises(UnsupportedFeatureError, match="not a table of a catalog"):
        sql("TRUNCATE TABLE k")
    sql("DROP TABLE k")
    assert sql.rows("SHOW TABLES") == []


def test_a_session_lasts_as_long_as_its_catalog_object(sql: Sql) -> None:
    sql("CREATE DATABASE shop; USE shop; SET 'pipeline.name' = 'x'")
    assert sql.rows("SHOW CURRENT DATABASE") == [{"current database name": "shop"}]
    other = penstock.Catalog(sql.catalog.warehouse)
    shown = penstock.sql(None, other, "SHOW CURRENT DATABASE")
    assert shown.to_pylist() == [{"current database name": "default"}]


def test_catalogs_of_the_session(sql: Sql, tmp_path: Path) -> None:
    sql(f"CREATE CATALOG my WITH ('type' = 'paimon', 'warehouse' = '{tmp_path}'); USE CATALOG my")
    sql("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    sql("USE CATALOG paimon")
    assert sql.rows("SELECT * FROM my.`default`.t") == [{"id": 1}]
    assert sql.rows("SHOW CATALOGS") == [{"catalog name": "my"}, {"catalog name": "paimon"}]
    sql("DROP CATALOG my")
    with pytest.raises(NotFoundError, match="no catalog 'my'"):
        sql("USE CATALOG my")


def test_alterations_change_the_schema(shop: Sql) -> None:
    shop("ALTER TABLE orders ADD (n INT DEFAULT 3 FIRST, s STRING); ALTER TABLE orders RENAME s TO note")
    shop("ALTER TABLE orders MODIFY n BIGINT COMMENT 'how many' AFTER id; ALTER TABLE orders DROP note")
    shop("ALTER TABLE orders SET ('target-file-size' = '8 mb')")
    shop("ALTER TABLE orders ALTER COLUMN price TYPE DECIMAL(20, 2)")
    table = shop.catalog.load_table("shop.orders")
    assert table.schema.field_names == ("id", "n", "price", "at", "dt")
    assert (table.schema.fields[1].description, table.schema.fields[1].default_value) == ("how many", "3")
    assert table.options["target-file-size"] == "8 mb"
    shop("ALTER TABLE orders RESET ('target-file-size'); ALTER TABLE orders RENAME TO old")
    assert "target-file-size" not in shop.catalog.load_table("shop.old").options


def test_a_watermark_can_be_declared_later_and_taken_back(shop: Sql) -> None:
    shop("ALTER TABLE orders ADD WATERMARK FOR at AS at - INTERVAL '3' HOURS")
    options = shop.catalog.load_table("shop.orders").options
    assert options["schema.watermark.0.strategy.expr"] == "`at` - INTERVAL '3' HOUR"
    shop("ALTER TABLE orders DROP WATERMARK")
    assert not [key for key in shop.catalog.load_table("shop.orders").options if "watermark" in key]


def test_if_exists_and_if_not_exists_are_no_errors(shop: Sql) -> None:
    shop("CREATE DATABASE IF NOT EXISTS shop; CREATE TABLE IF NOT EXISTS orders (x INT)")
    shop("ALTER TABLE IF EXISTS nothing DROP a; DROP TABLE IF EXISTS nothing; DROP DATABASE IF EXISTS nothing CASCADE")
    with pytest.raises(NotFoundError):
        shop("ALTER TABLE nothing DROP a")


def test_names_are_listed_by_pattern(shop: Sql) -> None:
    shop("CREATE TABLE order_lines (id INT); CREATE TABLE customers (id INT)")
    assert [row["table name"] for row in shop.rows("SHOW TABLES LIKE 'order%'")] == ["order_lines", "orders"]
    assert [row["table name"] for row in shop.rows("SHOW TABLES FROM shop NOT LIKE 'order_'")] == [
        "customers",
        "order_lines",
    ]
    assert shop.rows("SHOW DATABASES") == [{"database name": "shop"}]


def test_a_failed_statement_is_named_and_those_before_it_stay_done(sql: Sql) -> None:
    with pytest.raises(NotFoundError) as caught:
        sql("CREATE DATABASE a;\n  TRUNCATE TABLE a.nothing;\nCREATE DATABASE b")
    assert caught.value.__notes__ == ["in the statement at line 2, column 3: TRUNCATE TABLE a.nothing"]
    assert sql.catalog.list_databases() == ("a",)


def test_nothing_is_run_of_a_script_that_is_not_understood_to_its_end(sql: Sql) -> None:
    with pytest.raises(InvalidSqlError, match="line 1, column 20"):
        sql("CREATE DATABASE a; FROB")
    assert sql.catalog.list_databases() == ()


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (
            "CREATE TABLE t (id INT) WITH ('connector' = 'jdbc')",
            InvalidOptionError,
            "'jdbc' is not known; there is kafka",
        ),
        ("CREATE TABLE t (id INT) WITH ('connector' = 'kafka', 'topic' = 'a')", InvalidOptionError, "table t: "),
        ("CREATE TEMPORARY TABLE t (id INT)", InvalidSqlError, "needs a connector"),
        (
            "CREATE TABLE t (id INT) WITH ('connector' = 'upsert-kafka', 'topic' = 'a')",
            UnsupportedFeatureError,
            "an append table has no keys",
        ),
        ("CREATE CATALOG c WITH ('type' = 'hive')", InvalidOptionError, "'type' = 'paimon'"),
        (
            "CREATE CATALOG c WITH ('type' = 'paimon', 'metastore' = 'hive', 'uri' = 'thrift://x', 'warehouse' = 'w')",
            UnsupportedFeatureError,
            "'metastore' = 'hive': a catalog is a directory",
        ),
        (
            "CREATE CATALOG c WITH ('type' = 'paimon', 'metastore' = 'jdbc', 'uri' = 'jdbc:x', 'warehouse' = 'w')",
            UnsupportedFeatureError,
            "'metastore' = 'jdbc': a catalog is a directory",
        ),
        ("SET 'execution.runtime-mode' = 'automatic'", InvalidOptionError, "'batch' or 'streaming'"),
        ("SET 'execution.checkpointing.interval' = 'often'", InvalidOptionError, "duration"),
        ("SET 'spark.sql.shuffle.partitions' = '2'", InvalidOptionError, "no Spark session"),
        ("USE nothing", NotFoundError, "no database nothing"),
        ("CREATE TABLE t (n INT, WATERMARK FOR n AS n)", InvalidSchemaError, "an event time must be"),
        ("ALTER TABLE orders ADD PARTITION (nope = '1')", InvalidOptionError, "they are: dt"),
        ("DROP TEMPORARY TABLE orders", NotFoundError, "no temporary table"),
    ],
)
def test_errors_say_what_to_do_instead(shop: Sql, text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        shop(text)


def test_a_setting_without_effect_warns(sql: Sql) -> None:
    with pytest.warns(OptionWarning, match="the setting 'parallelism.default' has no effect"):
        sql("SET 'parallelism.default' = '4'")
    assert sql.rows("SET") == [{"key": "parallelism.default", "value": "4"}]
    sql("RESET 'parallelism.default'")
    assert sql.rows("SET") == []
