"""``ALTER TABLE`` of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import InvalidSchemaError, InvalidSqlError, OptionWarning

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
