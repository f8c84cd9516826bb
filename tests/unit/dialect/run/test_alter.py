"""``ALTER TABLE`` of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import InvalidSchemaError, InvalidSqlError, NotFoundError, OptionWarning, UnsupportedFeatureError

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql


def types(sql: Sql, table: str = "t") -> dict[str, str]:
    return {row["name"]: row["type"] for row in sql.rows(f"DESCRIBE {table}")}


def test_a_row_gets_other_fields_and_keeps_its_data(shop: Sql) -> None:
    shop("CREATE TABLE t (k INT, address ROW<city STRING, zip INT>, tags ARRAY<INT>) WITH ('bucket' = '-1')")
    shop.catalog.load_table("shop.t").append([{"k": 1, "address": {"city": "Bonn", "zip": 53}, "tags": [1]}])
    shop("ALTER TABLE t MODIFY address ROW<country STRING, city STRING, zip BIGINT>")
    shop("ALTER TABLE t MODIFY (tags ARRAY<BIGINT>)")
    assert types(shop)["address"] == "ROW<country STRING, city STRING, zip BIGINT>"
    assert types(shop)["tags"] == "ARRAY<BIGINT>"
    assert shop.rows("SELECT * FROM t") == [
        {"k": 1, "address": {"country": None, "city": "Bonn", "zip": 53}, "tags": [1]}
    ]
    with pytest.raises(InvalidSchemaError, match="keep their order"):
        shop("ALTER TABLE t MODIFY address ROW<zip BIGINT, city STRING>")


def test_casts_that_may_lose_are_allowed_by_an_option(shop: Sql) -> None:
    shop("CREATE TABLE t (a BIGINT) WITH ('bucket' = '-1'); INSERT INTO t VALUES (7)")
    with pytest.raises(InvalidSchemaError, match="'disable-explicit-type-casting' = 'false'"):
        shop("ALTER TABLE t MODIFY a DOUBLE")
    shop("ALTER TABLE t SET ('disable-explicit-type-casting' = 'false'); ALTER TABLE t MODIFY a DOUBLE")
    assert (types(shop), shop.rows("SELECT * FROM t")) == ({"a": "DOUBLE"}, [{"a": 7.0}])


def test_computed_columns_are_added_behind_the_others(shop: Sql) -> None:
    shop("CREATE TABLE t (a BIGINT, b AS a) WITH ('bucket' = '-1')")
    shop("ALTER TABLE t ADD ts AS TO_TIMESTAMP_LTZ(a, 3)")
    shop("ALTER TABLE t ADD (c AS CAST(a AS STRING), d AS PROCTIME())")
    assert [(row["name"], row["extras"]) for row in shop.rows("DESCRIBE t")] == [
        ("a", None),
        ("b", "AS `a`"),
        ("ts", "AS TO_TIMESTAMP_LTZ(`a`, 3)"),
        ("c", "AS CAST(`a` AS STRING)"),
        ("d", "AS PROCTIME()"),
    ]
    with pytest.raises(InvalidSqlError, match="type of this expression is not known"):
        shop("ALTER TABLE t ADD e AS UPPER(a)")
    shop("ALTER TABLE IF EXISTS none ADD e AS a")


def test_a_database_drops_its_comment_and_options_with_a_warning(sql: Sql) -> None:
    with pytest.warns(OptionWarning, match="keeps no comment and no options"):
        sql("CREATE DATABASE d COMMENT 'of the shop' WITH ('owner' = 'me')")
    assert sql.rows("SHOW DATABASES") == [{"database name": "d"}]


def test_partition_columns_of_a_connector_table_are_described_as_such(shop: Sql) -> None:
    shop(
        "CREATE TEMPORARY TABLE f (a BIGINT, dt STRING) PARTITIONED BY (dt) "
        "WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json')"
    )
    assert {row["name"]: row["partition_key"] for row in shop.rows("DESCRIBE f")} == {"a": False, "dt": True}


@pytest.mark.parametrize(
    "hides",
    [
        "CREATE TEMPORARY VIEW t AS SELECT id FROM orders",
        "CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'print')",
    ],
)
def test_a_table_that_is_hidden_is_not_altered(shop: Sql, hides: str) -> None:
    shop("CREATE TABLE t (k INT, at TIMESTAMP(3))")
    shop(hides)
    for action in (
        "ADD note STRING",
        "ADD (c AS k)",
        "MODIFY k BIGINT",
        "DROP k",
        "SET ('write-only' = 'true')",
        "RENAME TO u",
        "ADD WATERMARK FOR at AS at",
        "DROP PARTITION (k = 1)",
    ):
        for words in ("ALTER TABLE", "ALTER TABLE IF EXISTS"):
            with pytest.raises(UnsupportedFeatureError, match=r"is a view|belongs to this session"):
                shop(f"{words} t {action}")
    assert shop.catalog.load_table("shop.t").schema.id == 0


def test_a_table_that_is_missing_is_named_with_those_that_there_are(shop: Sql) -> None:
    for action in ("ADD note STRING", "RENAME TO u", "DROP WATERMARK", "ADD PARTITION (dt = 'a')"):
        with pytest.raises(NotFoundError, match=r"there is no table shop\.order; did you mean orders\?"):
            shop(f"ALTER TABLE order {action}")
        shop(f"ALTER TABLE IF EXISTS order {action}")


def test_a_default_can_be_modified(shop: Sql) -> None:
    shop("CREATE TABLE t (k INT DEFAULT 1, name STRING); ALTER TABLE t MODIFY (k BIGINT, name STRING DEFAULT 'x')")
    shop("INSERT INTO t VALUES (NULL, NULL)")
    assert shop.rows("SELECT * FROM t") == [{"k": 1, "name": "x"}]


def test_the_event_time_may_be_a_computed_column_that_was_added(shop: Sql) -> None:
    shop("CREATE TABLE t (ms BIGINT); ALTER TABLE t ADD at AS TO_TIMESTAMP_LTZ(ms, 3)")
    shop("ALTER TABLE t ADD WATERMARK FOR at AS at - INTERVAL '5' SECOND")
    assert "WATERMARK FOR `at` AS `at` - INTERVAL '5' SECOND" in shop.rows("SHOW CREATE TABLE t")[0]["result"]
    with pytest.raises(InvalidSchemaError, match="not one of its columns: ms, at"):
        shop("ALTER TABLE t MODIFY WATERMARK FOR time AS time")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("ALTER TABLE orders ADD COLUMN IF NOT EXISTS x INT", "columns have no IF NOT EXISTS"),
        ("ALTER TABLE orders ADD IF NOT EXISTS x INT", "columns have no IF NOT EXISTS"),
        ("ALTER TABLE orders DROP COLUMN IF EXISTS x", "columns have no IF EXISTS"),
        ("ALTER TABLE orders DROP PARTITION (dt = 'a', dt = 'b')", "found 'dt': partition column 'dt' is given twice"),
        ("TRUNCATE TABLE orders PARTITION (dt = 'a')", r"ALTER TABLE orders DROP PARTITION \(…\)"),
    ],
)
def test_what_other_engines_write_gets_its_cure(shop: Sql, statement: str, says: str) -> None:
    with pytest.raises(InvalidSqlError, match=says):
        shop(statement)
