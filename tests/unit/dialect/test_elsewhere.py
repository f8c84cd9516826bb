"""Words of other engines, and names that are not there, get the line that works here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock import InvalidSqlError, NotFoundError, TableStoreError, UnsupportedFeatureError

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("OPTIMIZE shop.orders ZORDER BY (id)", "CALL sys.compact("),
        ("VACUUM shop.orders RETAIN 168 HOURS", "CALL sys.expire_snapshots("),
        ("RESTORE TABLE orders TO VERSION AS OF 1", "CALL sys.rollback_to("),
        ("ANALYZE TABLE orders COMPUTE STATISTICS", "there are no statistics of tables"),
        ("SHOW TBLPROPERTIES shop.orders", "SELECT * FROM shop.orders$options"),
        ("DESCRIBE HISTORY shop.orders", "SELECT * FROM shop.orders$snapshots"),
        ("DESCRIBE DETAIL orders", "SELECT * FROM orders$files"),
        ("CALL sys.migrate_file('hive', 'a', 'b')", "sys.migrate_table"),
        ("CALL sys.creat_tag('shop.orders', 'b')", "did you mean sys.create_tag?"),
    ],
)
def test_a_statement_of_another_engine_gets_the_line_that_does_it_here(shop: Sql, statement: str, says: str) -> None:
    with pytest.raises((InvalidSqlError, UnsupportedFeatureError)) as caught:
        shop(statement)
    assert says in str(caught.value)


@pytest.mark.parametrize("line", ["CALL sys.expire_snapshots('shop.orders')", "SELECT * FROM shop.orders$snapshots"])
def test_the_lines_work(shop: Sql, line: str) -> None:
    shop(line)


def test_a_table_may_have_such_a_word_for_its_name(shop: Sql) -> None:
    shop("CREATE TABLE history (a INT)")
    assert shop.rows("DESCRIBE history")[0]["name"] == "a"


def test_procedures_are_listed_with_their_arguments(sql: Sql) -> None:
    found = sql.rows("SHOW PROCEDURES")
    assert {"procedure name": "sys.create_tag", "arguments": "table, tag, snapshot_id, time_retained"} in found
    assert [row["procedure name"] for row in sql.rows("SHOW PROCEDURES LIKE '%e_tag'")] == [
        "sys.create_tag",
        "sys.delete_tag",
        "sys.rename_tag",
        "sys.replace_tag",
    ]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            "SELECT * FROM b",
            (
                "there is no table b: the current database default has no tables; catalog paimon: its databases are "
                "shop; write database.b, or USE one first"
            ),
        ),
        ("SELECT * FROM `default`.b", "there is no database default in catalog paimon; there are shop"),
        ("SELECT * FROM shop.order", "there is no table shop.order; did you mean shop.orders?"),
    ],
)
def test_a_table_that_is_not_there(sql: Sql, statement: str, says: str) -> None:
    sql("CREATE DATABASE shop; CREATE TABLE shop.orders (a INT)")
    with pytest.raises(NotFoundError) as caught:
        sql(statement)
    assert str(caught.value) == says


def test_an_empty_catalog_says_so(sql: Sql) -> None:
    with pytest.raises(TableStoreError, match="it has no databases yet"):
        sql("SELECT * FROM b")
