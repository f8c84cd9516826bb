# ruff: noqa: S608 - SQL is what is tested
"""SQL beyond any limit ends with an error of ours, soon, and never with one of Python's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import InvalidSchemaError, InvalidSqlError, TableStoreError
from penstock.dialect.parse.parser import parse_script
from penstock.dialect.parse.tables import TableUse
from penstock.dialect.run.show import like_matches
from penstock.dialect.session import run_script
from penstock.dialect.state import SqlState

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

NINES = "9" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 100 + "1" + ")" * 100,
        "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
        "SELECT * FROM " + "(SELECT * FROM " * 1_000 + "t" + ")" * 1_000,
        "SELECT " + "NOT " * 2_000 + "TRUE",
        "SELECT " + "- " * 2_000 + "1",
        "SELECT " + "CASE WHEN a THEN " * 300 + "1" + " END" * 300,
        "SELECT a" + "[0]" * 1_000,
        "SELECT CAST(a AS " + "ARRAY<" * 1_000 + "INT" + ">" * 1_000 + ")",
        "SELECT a" + "[0]" * 20_000,
        "SELECT CAST(a AS " + "MAP<INT, " * 20_000 + "INT" + ">" * 20_000 + ")",
        "EXPLAIN SELECT " + "(" * 100 + "1" + ")" * 100,
        "INSERT INTO t SELECT " + "(" * 100 + "1" + ")" * 100,
        "CREATE TEMPORARY VIEW v AS SELECT " + "(" * 100 + "1" + ")" * 100,
        "CALL sys.compact(" + "(" * 10_000,
    ],
    ids=lambda text: text[:30],
)
def test_nesting_beyond_the_stack_is_an_error_with_a_place(text: str) -> None:
    with pytest.raises(InvalidSqlError, match=r"line 1, column \d+: it is nested too deeply.*WITH"):
        parse_script(text)


def test_nesting_that_people_write_is_read() -> None:
    parse_script("SELECT " + "(" * 20 + "1" + ")" * 20)
    parse_script("SELECT a FROM t WHERE " + " OR ".join(f"id = {each}" for each in range(300)))


def test_views_upon_views_end_with_an_error(sql: Sql) -> None:
    state = SqlState()
    with state.attached(sql.catalog, None):
        list(run_script(state, "CREATE TABLE t (a INT); CREATE TEMPORARY VIEW v AS SELECT * FROM t"))
        (view,) = state.views.values()
        below = view.name
        for number in range(1_000):
            path = (*view.name[:2], f"v{number}")
            query = replace(view.query, tables=(TableUse(name=below),))
            state.views[path] = replace(view, name=path, query=query)
            below = path
        assert len(list(run_script(state, "SELECT * FROM v20"))) == 1
        with pytest.raises(InvalidSqlError, match="line 1, column 1: it is nested too deeply"):
            list(run_script(state, "SELECT * FROM v999"))


def test_an_explain_explains_no_explain() -> None:
    with pytest.raises(InvalidSqlError, match="found 'EXPLAIN': expected a query or an INSERT"):
        parse_script("EXPLAIN " * 1_000 + "SELECT 1")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM t LIMIT {NINES}",
        f"SELECT * FROM t WHERE a = {NINES}",
        f"INSERT INTO t VALUES ({NINES})",
        f"INSERT INTO t VALUES (-{NINES}.5)",
        f"INSERT INTO t VALUES ({'9' * 100})",
        f"CREATE TABLE u (a DECIMAL({NINES}, 2))",
        f"CREATE TABLE u (a TIMESTAMP(3), WATERMARK FOR a AS a - INTERVAL '{NINES}' SECOND)",
        f"CALL sys.create_tag('default.t', 'x', {NINES})",
        f"CALL sys.create_tag('default.t', 'x', '{NINES}')",
        f"CALL sys.create_tag('default.t', 'x', '{'9' * 30}')",
        f"CALL sys.rollback_to(`table` => 'default.t', snapshot_id => {'9' * 30})",
        f"CALL sys.expire_snapshots('default.t', {'9' * 30})",
        f"SELECT * FROM t FOR SYSTEM_VERSION AS OF {NINES}",
        f"SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '{NINES}') */",
    ],
    ids=lambda text: text[:50],
)
def test_a_number_beyond_all_types_is_an_error_of_ours(sql: Sql, text: str) -> None:
    sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    with pytest.raises(TableStoreError):
        sql(text)


def test_a_limit_that_no_table_reaches_takes_all_rows(sql: Sql) -> None:
    sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)")
    assert len(sql.rows(f"SELECT * FROM t LIMIT {'9' * 18}")) == 2


@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (`a\ud800` INT)",
        "CREATE TABLE t (a ROW<`b\ud800` INT>)",
        "CREATE TABLE t (a INT COMMENT '\ud800')",
        "CREATE TABLE t (a INT) COMMENT '\ud800'",
        "CREATE TABLE t (a INT) WITH ('k' = '\ud800')",
        "CREATE TABLE t (a STRING DEFAULT '\ud800')",
    ],
)
def test_half_a_character_is_stored_in_no_schema(sql: Sql, text: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"is not valid Unicode: '\\ud800' has no counterpart"):
        sql(text)
    assert sql.rows("SHOW TABLES") == []


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("order%", ["order", "orders"], ["reorder", "Orders"]),
        ("%er%", ["orders", "er"], ["odd"]),
        ("o_d", ["odd", "o%d"], ["od", "oddd"]),
        ("", [""], ["a"]),
        ("%", ["", "a"], []),
        ("a.c", ["a.c"], ["abc"]),
        ("%a%b%c", ["abc", "xaybzc"], ["acb", "abcd"]),
    ],
)
def test_like_is_that_of_sql(pattern: str, matching: list[str], other: list[str]) -> None:
    assert [text for text in (*matching, *other) if like_matches(pattern, text)] == matching


def brute(pattern: str, text: str) -> bool:
    """LIKE by its definition."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(brute(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in {"_", text[0]} and brute(pattern[1:], text[1:])


@given(st.text(alphabet="ab%_", max_size=6), st.text(alphabet="ab%", max_size=8))
def test_like_is_what_its_definition_says(pattern: str, text: str) -> None:
    assert like_matches(pattern, text) == brute(pattern, text)


def test_many_wildcards_take_no_longer(sql: Sql) -> None:
    sql(f"CREATE TABLE `{'a' * 120}` (a INT)")
    # A match that tries each place of each wildcard would never end.
    rows: list[dict[str, Any]] = sql.rows(f"SHOW TABLES LIKE '{'%a' * 100}b'")
    assert rows == []
