"""Views, tables made out of others, and EXPLAIN, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import (
    AlreadyExistsError,
    InvalidSqlError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

KAFKA = """
CREATE TABLE topic (id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '5' SECOND) WITH (
  'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'localhost:1',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json')
"""
SOURCE = """
CREATE TABLE source (ms BIGINT NOT NULL COMMENT 'since 1970', n INT DEFAULT 5, at AS TO_TIMESTAMP_LTZ(ms, 3),
  dt STRING, again AS n, WATERMARK FOR at AS at - INTERVAL '5' SECOND)
PARTITIONED BY (dt) WITH ('bucket' = '2', 'bucket-key' = 'ms', 'target-file-size' = '8 mb')
"""


def ddl(sql: Sql, name: str) -> str:
    (row,) = sql.rows(f"SHOW CREATE TABLE {name}")
    return str(row["result"])


def test_views_are_read_listed_shown_and_dropped(shop: Sql) -> None:
    shop("CREATE VIEW cheap (number, day COMMENT 'it''s') COMMENT 'x' AS SELECT id, dt FROM orders WHERE id < 9")
    rows = shop.rows("SELECT day, number AS n FROM cheap LIMIT 5")
    assert sorted(rows, key=lambda row: row["n"]) == [{"day": "a", "n": 1}, {"day": "b", "n": 2}]
    assert shop.rows("SHOW VIEWS") == [{"view name": "cheap"}]
    assert shop.rows("SHOW TABLES") == [{"table name": "cheap"}, {"table name": "orders"}]
    assert shop.rows("SHOW VIEWS FROM shop LIKE 'x%'") == []
    assert shop.rows("SHOW CREATE VIEW cheap") == [
        {
            "result": "CREATE VIEW `shop`.`cheap` (`number`, `day` COMMENT 'it''s') COMMENT 'x' AS\n"
            "SELECT id, dt FROM orders WHERE id < 9"
        }
    ]
    assert [(row["name"], row["type"], row["null"], row["comment"]) for row in shop.rows("DESCRIBE cheap")] == [
        ("number", "BIGINT", False, None),
        ("day", "STRING", True, "it's"),
    ]
    shop("DROP VIEW cheap; DROP VIEW IF EXISTS cheap")
    with pytest.raises(NotFoundError, match=r"there is no view shop\.cheap in this session or its catalog; SHOW VIEWS"):
        shop("DROP VIEW cheap")


def test_the_names_in_a_view_are_those_of_where_it_was_made(shop: Sql) -> None:
    shop("CREATE TEMPORARY VIEW v AS SELECT id FROM orders; CREATE DATABASE other; USE other")
    shop("CREATE TABLE orders (id BIGINT); CREATE VIEW w AS SELECT * FROM shop.v")
    assert sorted(row["id"] for row in shop.rows("SELECT * FROM w")) == [1, 2]
    shop("DROP TABLE shop.orders")
    with pytest.raises(NotFoundError):
        shop("SELECT * FROM w")


def test_a_temporary_view_hides_a_table_of_its_name(shop: Sql) -> None:
    shop("CREATE TABLE few (id BIGINT); CREATE TEMPORARY VIEW orders AS SELECT id FROM few")
    assert shop.rows("SELECT * FROM orders") == []
    shop("DROP VIEW orders")
    assert len(shop.rows("SELECT * FROM orders")) == 2


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("CREATE VIEW orders AS SELECT id FROM orders", AlreadyExistsError, "a TEMPORARY VIEW of that name would hide"),
        ("CREATE VIEW v AS SELECT id FROM nope", NotFoundError, r"no table shop\.nope; there are shop\.orders"),
        ("CREATE VIEW v (a, a) AS SELECT id, dt FROM orders", InvalidSqlError, "'a' is given twice"),
        ("CREATE VIEW v (a) AS SELECT id, dt FROM orders; SELECT * FROM v", InvalidSqlError, "1 columns, and .* 2"),
        ("{v}; CREATE VIEW v AS SELECT 1", AlreadyExistsError, r"view shop\.v already exists in this session"),
        ("{v}; CREATE TABLE v (a INT)", AlreadyExistsError, r"view shop\.v already exists in this session"),
        ("{v}; DROP TABLE v", InvalidSqlError, "is a view: DROP VIEW"),
        ("DROP VIEW orders", InvalidSqlError, "is a table: DROP TABLE"),
        ("{v}; INSERT INTO v VALUES (1)", UnsupportedFeatureError, "v is a view: it can be used in queries"),
        ("{v}; SELECT * FROM v /*+ OPTIONS('a' = 'b') */", InvalidSqlError, "hints, time travel .* in its query"),
        ("{v}; SELECT id FROM v WHERE id = 1", UnsupportedFeatureError, "WHERE on v needs Spark"),
        ("{v}; SELECT dt FROM v", InvalidSqlError, "v has no column 'dt'; it has id"),
        (
            "{v}; CREATE VIEW w AS SELECT * FROM v; DROP VIEW v; CREATE VIEW v AS SELECT * FROM w",
            InvalidSqlError,
            r"view shop\.v reads itself",
        ),
    ],
)  # fmt: skip
def test_unsupported_views_are_refused(shop: Sql, text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        shop(text.replace("{v}", "CREATE VIEW v AS SELECT id FROM orders"))


def test_a_table_is_made_of_a_query_with_its_types(shop: Sql) -> None:
    snapshot = shop(
        "CREATE TABLE copy (note STRING, WATERMARK FOR w AS w - INTERVAL '5' SECOND) COMMENT 'x' PARTITIONED BY (dt)"
        " WITH ('bucket' = '-1') AS SELECT at AS w, dt, id FROM orders WHERE id = 1"
    )
    assert snapshot.id == 1
    assert ddl(shop, "copy") == (
        "CREATE TABLE `shop`.`copy` (\n  `note` STRING,\n  `w` TIMESTAMP(3),\n  `dt` STRING,\n  `id` BIGINT NOT NULL,\n"
        "  WATERMARK FOR `w` AS `w` - INTERVAL '5' SECOND\n) COMMENT 'x' PARTITIONED BY (`dt`) WITH (\n"
        "  'bucket' = '-1'\n)"
    )
    (row,) = shop.rows("SELECT note, dt, id FROM copy")
    assert row == {"note": None, "dt": "a", "id": 1}


def test_columns_of_the_query_get_the_declared_type_or_another_order(shop: Sql) -> None:
    shop("CREATE TABLE wide (id BIGINT COMMENT 'number', x INT) AS SELECT dt, id FROM orders")
    table = shop.catalog.load_table("shop.wide")
    assert (table.schema.field_names, table.schema.fields[2].description) == (("x", "dt", "id"), "number")
    shop("CREATE TABLE turned (id, dt) AS SELECT dt, id FROM orders WHERE id = 1")
    assert shop.rows("SELECT * FROM turned") == [{"id": 1, "dt": "a"}]
    with pytest.raises(InvalidSqlError, match="expected the names of the query's columns, each once: dt, id"):
        shop("CREATE TABLE other (id) AS SELECT dt, id FROM orders")


def test_a_table_that_is_there_stays_as_it_is(shop: Sql) -> None:
    shop("CREATE TABLE IF NOT EXISTS orders AS SELECT dt FROM orders")
    assert len(shop.rows("SELECT * FROM orders")) == 2
    with pytest.raises(AlreadyExistsError):
        shop("CREATE TABLE orders AS SELECT dt FROM orders")
    with pytest.raises(UnsupportedFeatureError, match="the columns of this query are known to Spark only"):
        shop("CREATE TABLE counts AS SELECT COUNT(*) FROM orders")
    with pytest.raises(UnsupportedFeatureError, match="a table with a connector is declared with its columns"):
        shop("CREATE TABLE k WITH ('connector' = 'kafka') AS SELECT dt FROM orders")
    assert shop.catalog.list_tables("shop") == ("orders",)


def test_a_table_like_another_has_all_of_it(sql: Sql) -> None:
    sql(f"{SOURCE}; CREATE TABLE other LIKE source")
    assert ddl(sql, "other") == ddl(sql, "source").replace("`source`", "`other`")


def test_a_table_like_another_has_what_the_rules_say(sql: Sql) -> None:
    sql(
        f"""
        {SOURCE};
        CREATE TABLE other (x INT, y AS CAST(x AS BIGINT), WATERMARK FOR w AS w, w TIMESTAMP(3)) WITH ('bucket' = '-1')
        LIKE source (EXCLUDING ALL, INCLUDING GENERATED)
        """
    )
    assert ddl(sql, "other") == (
        "CREATE TABLE `default`.`other` (\n  `ms` BIGINT NOT NULL COMMENT 'since 1970',\n  `n` INT DEFAULT '5',\n"
        "  `at` AS TO_TIMESTAMP_LTZ(`ms`, 3),\n  `dt` STRING,\n  `again` AS `n`,\n  `x` INT,\n"
        "  `y` AS CAST(`x` AS BIGINT),\n  `w` TIMESTAMP(3),\n  WATERMARK FOR `w` AS `w`\n) WITH (\n  'bucket' = '-1'\n)"
    )
    sql("CREATE TABLE third (at AS TO_TIMESTAMP('x'), WATERMARK FOR at AS at) WITH ('bucket' = '4')"
        " LIKE source (OVERWRITING GENERATED OVERWRITING WATERMARKS EXCLUDING PARTITIONS)")  # fmt: skip
    assert ddl(sql, "third") == (
        "CREATE TABLE `default`.`third` (\n  `ms` BIGINT NOT NULL COMMENT 'since 1970',\n  `n` INT DEFAULT '5',\n"
        "  `dt` STRING,\n  `again` AS `n`,\n  `at` AS TO_TIMESTAMP('x'),\n  WATERMARK FOR `at` AS `at`\n) WITH (\n"
        "  'bucket' = '4',\n  'bucket-key' = 'ms',\n  'target-file-size' = '8 mb'\n)"
    )


def test_a_table_like_a_topic(sql: Sql) -> None:
    sql(f"{KAFKA}; CREATE TABLE kept WITH ('bucket' = '2', 'bucket-key' = 'id') LIKE topic (EXCLUDING OPTIONS)")
    assert sql.catalog.load_table("default.kept").options["schema.watermark.0.strategy.expr"] == (
        "`at` - INTERVAL '5' SECOND"
    )
    sql("CREATE TABLE late WITH ('scan.startup.mode' = 'latest-offset') LIKE topic")
    assert sql.catalog.list_tables("default") == ("kept",)
    assert sql.rows("SHOW TABLES") == [{"table name": "kept"}, {"table name": "late"}, {"table name": "topic"}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(n INT) LIKE source", "column 'n' is duplicated"),
        ("PARTITIONED BY (ms) LIKE source", r"both tables have partitions; LIKE … \(EXCLUDING PARTITIONS\)"),
        ("WITH ('bucket' = '1') LIKE source (INCLUDING OPTIONS)", "option 'bucket' is duplicated"),
        ("(WATERMARK FOR w AS w, w TIMESTAMP(3)) LIKE source", r"a watermark; LIKE … \(OVERWRITING WATERMARKS\)"),
        ("(again AS TO_TIMESTAMP('x')) LIKE source", "computed column 'again' is duplicated"),
    ],
)
def test_two_tables_with_the_same_text_are_distinguished_by_rules(sql: Sql, text: str, says: str) -> None:
    sql(SOURCE)
    with pytest.raises(InvalidSqlError, match=says):
        sql(f"CREATE TABLE other {text}")


def test_explain_shows_files_and_changes_nothing(shop: Sql) -> None:
    (row,) = shop.rows("EXPLAIN INSERT INTO orders SELECT id, price, at, dt FROM orders WHERE dt = 'a'")
    text = str(row["result"])
    assert "== Target ==\nappends to shop.orders" in text
    assert "== orders ==\nsnapshot 1 (APPEND)" in text
    assert "filter: `dt` = 'a'" in text
    assert "after partitions: 1" in text
    assert text.endswith("== Plan ==\nread in this process, without Spark")
    assert len(shop.rows("SELECT * FROM orders")) == 2
    with pytest.raises(
        UnsupportedFeatureError, match=r"this query needs Spark.*DuckDB runs any query on Table\.to_duckdb\(\)"
    ):
        shop("EXPLAIN SELECT COUNT(*) FROM orders")


def test_rows_that_do_not_fit_a_table_made_of_them_are_refused(shop: Sql) -> None:
    with pytest.raises(SchemaMismatchError, match="'dt'"):
        shop("CREATE TABLE narrow (dt INT) AS SELECT dt FROM orders")
