"""Which conditions of a query are applied before Spark."""

from __future__ import annotations

import pytest

from penstock.dialect.parse.query import parse_query
from penstock.dialect.parse.reader import StatementText
from penstock.dialect.run.sources import safe_filter
from penstock.format.schema import assign_field_ids
from penstock.format.types.ddl import parse_columns
from penstock.predicate.text import format_filter

COLUMNS = (
    "id BIGINT, name STRING, day DATE, price DECIMAL(10, 2), ok BOOLEAN, f FLOAT, d DOUBLE, at TIMESTAMP(3),"
    " instant TIMESTAMP(3) WITH LOCAL TIME ZONE, c CHAR(3)"
)
FIELDS, _ = assign_field_ids(parse_columns(COLUMNS))


def early(query: str) -> str | None:
    found = safe_filter(parse_query(StatementText(text=query)).conditions, FIELDS)
    return None if found is None else format_filter(found)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("name = 'x'", "(`name` = 'x')"),
        ("t.name = 'x' AND upper(name) = 'X' AND id > 3", "(`name` = 'x') AND (`id` > 3)"),
        ("day >= DATE '2026-01-01' AND price < 2.5", "(`day` >= DATE '2026-01-01') AND (`price` < 2.5)"),
        ("name IN ('a', 'b') AND NOT ok = TRUE", "(`name` IN ('a', 'b')) AND (NOT (`ok` = TRUE))"),
        ("(name = 'a' OR id = 1) AND day IS NOT NULL", "((`name` = 'a') OR (`id` = 1)) AND (NOT (`day` IS NULL))"),
        ("name LIKE 'a%'", "(`name` LIKE 'a%')"),
        (r"name = 'a\tb'", "(`name` = 'a\tb')"),
    ],
)
def test_conditions_on_plain_values_are(where: str, expected: str) -> None:
    assert early(f"SELECT count(*) FROM t WHERE {where} GROUP BY name ORDER BY 1") == expected  # noqa: S608


@pytest.mark.parametrize(
    "where",
    [
        "f > 0.1",
        "d = 1.5",
        "at > TIMESTAMP '2026-01-01 00:00:00'",
        "instant > TIMESTAMP '2026-01-01 00:00:00'",
        "instant > '2026-01-01'",
        "day = '2026-01-01 10:00:00'",
        "c = 'a'",
        "id = '5'",
        "name = 5",
        "id = 2.5",
        "id = NULL",
        "NAME = 'x'",
        "nope = 1",
        "name = 'a' OR f > 1",
        "name = 'a' OR upper(name) = 'X'",
        "name RLIKE 'x'",
    ],
)
def test_what_spark_may_see_otherwise_is_not(where: str) -> None:
    assert early(f"SELECT * FROM t WHERE {where}") is None  # noqa: S608


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT * FROM t, u WHERE id = 1",
        "SELECT * FROM t WHERE id = 1 AND id IN (SELECT id FROM u WHERE id = 1)",
        "SELECT * FROM (SELECT id + 1 AS id FROM t) WHERE id = 1",
        "WITH c AS (SELECT 2 AS id) SELECT * FROM c WHERE id = 1",
        "SELECT * FROM t LATERAL VIEW explode(array(1)) AS id WHERE id = 1",
        "SELECT * FROM t WHERE id = 1 UNION ALL SELECT * FROM t WHERE id = 2",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1' DAY)) WHERE id = 1",
        "SELECT count(*) FROM t HAVING max(id) = 1",
    ],
)
def test_only_conditions_on_the_one_table_of_a_query_are(query: str) -> None:
    assert early(query) is None
