"""Rows in and out without Spark."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock import (
    InvalidFilterError,
    InvalidOptionError,
    InvalidSqlError,
    NotFoundError,
    OptionWarning,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from penstock.dialect.session import run_script
from penstock.dialect.state import SqlState

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.dialect.conftest import Sql


def ids(sql: Sql, where: str = "") -> list[int]:
    return sorted(row["id"] for row in sql.rows(f"SELECT id FROM orders {where}"))  # noqa: S608 - of this file


def test_literals_of_every_kind_reach_their_columns(sql: Sql) -> None:
    sql(
        "CREATE TABLE t (a TINYINT, b DOUBLE, c DECIMAL(10, 2), d STRING, e BOOLEAN, f DATE, g TIME(3), h TIMESTAMP(3),"
        " i TIMESTAMP(6) WITH LOCAL TIME ZONE, j BYTES)"
    )
    sql(
        "INSERT INTO t VALUES (-1, 2, 3, 'it''s', TRUE, DATE '2026-01-31', TIME '10:00:00', TIMESTAMP '2026-01-31"
        " 10:00:00.123', TIMESTAMP '2026-01-31 10:00:00+01:00', X'00ff'), (NULL, 2.5, -3.25, '', FALSE, NULL, NULL,"
        " NULL, NULL, NULL)"
    )
    first, second = sql.rows("SELECT * FROM t")
    assert list(first.values()) == [
        -1,
        2.0,
        Decimal("3.00"),
        "it's",
        True,
        dt.date(2026, 1, 31),
        dt.time(10),
        dt.datetime(2026, 1, 31, 10, 0, 0, 123_000),  # noqa: DTZ001 - a wall clock
        dt.datetime(2026, 1, 31, 9, tzinfo=dt.UTC),
        b"\x00\xff",
    ]
    assert list(second.values())[:5] == [None, 2.5, Decimal("-3.25"), "", False]


def test_decimals_keep_every_digit(sql: Sql) -> None:
    digits = f"{'9' * 28}.{'8' * 10}"
    sql("CREATE TABLE t (c DECIMAL(38, 10))")
    sql(f"INSERT INTO t VALUES ({digits}), (-{digits})")  # noqa: S608 - of this file
    assert [row["c"] for row in sql.rows("SELECT * FROM t")] == [Decimal(digits), Decimal(f"-{digits}")]


def test_columns_are_matched_by_place_and_left_out_ones_are_null(shop: Sql) -> None:
    shop("INSERT INTO orders (dt, id) VALUES ('c', 3)")
    assert shop.rows("SELECT * FROM orders WHERE id = 3") == [{"id": 3, "price": None, "at": None, "dt": "c"}]


def test_a_partition_can_be_named_instead_of_being_a_column(shop: Sql) -> None:
    shop("INSERT INTO orders PARTITION (dt = 'z') SELECT id, price, at FROM orders WHERE dt = 'a'")
    assert ids(shop, "WHERE dt = 'z'") == [1]


def test_overwrite_replaces_the_partitions_of_the_rows_by_default(shop: Sql) -> None:
    shop("INSERT OVERWRITE orders VALUES (9, 1, NULL, 'a')")
    assert ids(shop) == [2, 9]
    shop("INSERT OVERWRITE orders /*+ OPTIONS('dynamic-partition-overwrite' = 'false') */ VALUES (8, 1, NULL, 'a')")
    assert ids(shop) == [8]


def test_overwrite_of_a_partition_leaves_the_others(shop: Sql) -> None:
    shop("INSERT OVERWRITE orders PARTITION (dt = 'b') VALUES (7, 1, NULL)")
    assert ids(shop) == [1, 7]


def test_older_states_by_version_time_and_tag(shop: Sql) -> None:
    shop("CALL sys.create_tag('orders', 'first'); INSERT INTO orders VALUES (3, 1, NULL, 'c')")
    assert ids(shop) == [1, 2, 3]
    assert ids(shop, "VERSION AS OF 1") == [1, 2]
    assert ids(shop, "VERSION AS OF 'first'") == [1, 2]
    assert ids(shop, "FOR SYSTEM_TIME AS OF TIMESTAMP '9999-01-01 00:00:00'") == [1, 2, 3]
    assert ids(shop, "/*+ OPTIONS('scan.tag-name' = 'first') */") == [1, 2]
    with pytest.raises(NotFoundError, match="no snapshot at or before"):
        ids(shop, "TIMESTAMP AS OF '2001-01-01'")


def test_an_option_of_a_hint_that_is_not_acted_on_is_refused_or_warned_of(shop: Sql) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"'scan\.bucket' = '1' is not supported"):
        ids(shop, "/*+ OPTIONS('scan.bucket' = '1') */")
    with pytest.warns(OptionWarning, match=r"'scan\.infer-parallelism\.max' = '3' has no effect here"):
        assert ids(shop, "/*+ OPTIONS('scan.infer-parallelism.max' = '3') */") == [1, 2]
    assert ids(shop, "/*+ OPTIONS('scan.partitions' = 'dt=b') */") == [2]


def test_columns_conditions_and_limits(shop: Sql) -> None:
    assert shop.rows("SELECT dt AS day, id FROM orders WHERE id > 1 AND price IS NULL LIMIT 3") == [
        {"day": "b", "id": 2}
    ]
    with pytest.raises(InvalidFilterError):
        shop("SELECT id FROM orders WHERE id + 1 = 2")


def test_system_tables_are_tables(shop: Sql) -> None:
    assert shop.rows("SELECT snapshot_id AS id, commit_kind FROM orders$snapshots LIMIT 1") == [
        {"id": 1, "commit_kind": "APPEND"}
    ]
    with pytest.raises(NotFoundError, match="no system table"):
        shop("SELECT * FROM orders$nothing")


def test_partitions_are_shown_dropped_and_truncated(shop: Sql) -> None:
    assert shop.rows("SHOW PARTITIONS orders") == [{"partition name": "dt=a"}, {"partition name": "dt=b"}]
    assert shop.rows("SHOW PARTITIONS orders PARTITION (dt = 'b')") == [{"partition name": "dt=b"}]
    snapshot = shop("ALTER TABLE orders DROP PARTITION (dt = 'a')")
    assert (snapshot.id, ids(shop)) == (2, [2])
    with pytest.raises(NotFoundError, match="has no partition with dt = a; nothing was dropped"):
        shop("ALTER TABLE orders DROP PARTITION (dt = 'b'), PARTITION (dt = 'a')")
    assert shop("ALTER TABLE orders DROP IF EXISTS PARTITION (dt = 'a')") is None
    assert ids(shop) == [2]
    assert shop("TRUNCATE TABLE orders").id == 3
    assert ids(shop) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM orders",
        "SELECT * FROM orders ORDER BY id",
        "SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' HOUR))",
        "SELECT * FROM orders /*+ OPTIONS('scan.bounded.watermark' = '1') */",
    ],
)
def test_a_query_that_takes_an_engine_says_so(shop: Sql, query: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="this query needs Spark"):
        shop(query)


def test_streaming_mode_takes_an_engine(shop: Sql) -> None:
    with pytest.raises(UnsupportedFeatureError, match="this query needs Spark"):
        shop("SET 'execution.runtime-mode' = 'streaming'; SELECT * FROM orders")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("INSERT INTO orders VALUES (1, 2)", "row 1 has 2 values, and 4 are to be written: id, price, at, dt"),
        ("INSERT INTO orders SELECT id FROM orders", "has 1 columns, and 4 are to be written"),
        ("INSERT INTO orders (id, nope) VALUES (1, 2)", "'nope' cannot be among"),
        ("INSERT INTO orders (id, id) VALUES (1, 2)", "'id' cannot be among"),
        ("INSERT INTO orders PARTITION (id = 1) VALUES (1)", "'id' is not a partition column"),
        ("INSERT INTO orders (id) VALUES ('x')", "row 0 .*: column 'id' takes a number, not 'x'"),
        ("INSERT INTO orders (id) VALUES (1.5)", r"column 'id' is BIGINT, which has no value Decimal\('1.5'\)"),
        ("INSERT INTO orders (id, at) VALUES (1, '2026-01-01')", "in SQL TIMESTAMP '2026-01-31 10:00:00', not '2026"),
        (
            "INSERT INTO orders (id, at) VALUES (1, TIMESTAMP '2026-01-01 00:00:00Z')",
            "datetime without a zone, .* not TIMESTAMP '2026-01-01 00:00:00.000000000Z'",
        ),
        (
            "INSERT INTO orders (id, at) VALUES (1, TIMESTAMP '2026-01-01 00:00:00.0001')",
            r"column 'at' is TIMESTAMP\(3\), which has no value TIMESTAMP '2026-01-01 00:00:00.0001",
        ),
        ("INSERT INTO orders (dt) VALUES ('x')", "'id'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_written(shop: Sql, text: str, says: str) -> None:
    with pytest.raises(SchemaMismatchError, match=says):
        shop(text)
    assert shop.rows("SELECT snapshot_id FROM orders$snapshots") == [{"snapshot_id": 1}]


@pytest.mark.parametrize("value", ["'abc'", "99999999999", "''"])
def test_a_partition_value_of_another_type_is_refused(shop: Sql, value: str) -> None:
    shop("CREATE TABLE t (id INT, n INT) PARTITIONED BY (n)")
    for rows in ("VALUES (1)", "SELECT id FROM t"):
        with pytest.raises(
            SchemaMismatchError, match=r"table shop\.t: PARTITION \(n = '.*is not a value of its type INT"
        ):
            shop(f"INSERT INTO t PARTITION (n = {value}) {rows}")
    shop("INSERT INTO t PARTITION (n = 5) VALUES (1); INSERT INTO t PARTITION (n = NULL) VALUES (2)")
    assert shop.rows("SELECT n FROM t WHERE id = 1") == [{"n": 5}]


@pytest.mark.parametrize("kind", ["TIME(3)", "DATE", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"])
def test_a_number_as_the_time_of_a_partition_is_refused_with_an_example_that_is_taken(shop: Sql, kind: str) -> None:
    shop(f"CREATE TABLE t (id INT, at {kind}) PARTITIONED BY (at)")
    text = "INSERT OVERWRITE t PARTITION (at = 3600000) VALUES (1)"
    with pytest.raises(
        SchemaMismatchError, match=r"PARTITION \(at = '3600000'\): .*; write a text such as "
    ) as refused:
        shop(text)
    shop(text.replace("3600000", str(refused.value).partition("such as ")[2]))
    assert len(shop.rows("SELECT at FROM t")) == 1


def test_partitions_of_a_branch_are_shown(shop: Sql) -> None:
    shop("CALL sys.create_branch('orders', 'b'); INSERT INTO orders$branch_b (id, dt) VALUES (7, 'z')")
    assert shop.rows("SHOW PARTITIONS orders$branch_b") == [{"partition name": "dt=z"}]
    assert shop.rows("SHOW PARTITIONS orders PARTITION (dt = 'b')") == [{"partition name": "dt=b"}]
    with pytest.raises(InvalidSqlError, match=r"'price' is not a partition column; they are: dt"):
        shop("SHOW PARTITIONS orders PARTITION (price = NULL)")


def test_columns_are_listed_by_a_pattern(shop: Sql) -> None:
    assert [row["name"] for row in shop.rows("SHOW COLUMNS FROM orders LIKE '%i%'")] == ["id", "price"]
    assert [row["name"] for row in shop.rows("SHOW COLUMNS IN orders NOT LIKE '%i%'")] == ["at", "dt"]


def test_a_script_may_begin_with_the_mark_of_an_editor(shop: Sql) -> None:
    assert shop.rows("\ufeffSELECT id FROM orders\r\nWHERE id = 1;\r\n-- end\r\n") == [{"id": 1}]


def test_a_system_table_that_is_missing_is_named_with_the_others(shop: Sql) -> None:
    with pytest.raises(InvalidSqlError, match=r"sys\.nothing: .*tables, partitions"):
        shop("SELECT * FROM sys.nothing")


def test_arguments_of_other_types_are_refused(shop: Sql, tmp_path: Path) -> None:
    assert penstock.sql(None, tmp_path, "SHOW DATABASES").num_rows == 0
    for arguments in ((shop.catalog, None, "SHOW TABLES"), (None, shop.catalog, None), ("local", shop.catalog, "")):
        with pytest.raises(InvalidOptionError, match=r"penstock\.sql\(spark, catalog, text\): .*found "):
            penstock.sql(*arguments)


def test_threads_and_calls_inside_of_calls_share_a_catalog(shop: Sql) -> None:
    def read(_: int) -> int:
        return len(shop.rows("SHOW DATABASES; SELECT id FROM orders WHERE id > 0"))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(60))) == {2}
    state = SqlState()
    with state.attached(shop.catalog, None):
        with state.attached(shop.catalog, None):
            pass
        assert [outcome.message for outcome in run_script(state, "USE shop")] == ["using database shop"]
    assert state.catalogs == {}
