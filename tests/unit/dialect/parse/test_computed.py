"""Computed columns as expressions of Spark."""

from __future__ import annotations

import pytest

from penstock import UnsupportedFeatureError
from penstock.dialect.parse.computed import spark_expression
from penstock.format.types.text import parse_sql_type

COLUMNS = {
    name: parse_sql_type(text)
    for name, text in {
        "ms": "BIGINT NOT NULL",
        "n": "INT",
        "x": "DOUBLE",
        "price": "DECIMAL(10, 2)",
        "a b": "STRING",
        "w": "TIMESTAMP(3)",
        "day": "DATE",
        "flag": "BOOLEAN",
        "tags": "ARRAY<STRING>",
    }.items()
}


@pytest.mark.parametrize(
    ("expression", "spark"),
    [
        ("`ms`", "`ms`"),
        ("`tags`", "`tags`"),
        ("TO_TIMESTAMP_LTZ(`ms`, 3)", "timestamp_millis(`ms`)"),
        ("TO_TIMESTAMP_LTZ(`n` * 60, 0)", "timestamp_seconds((`n` * 60))"),
        ("PROCTIME()", "timestamp_millis(unix_millis(current_timestamp()))"),
        ("CAST(`n` + 1 AS BIGINT)", "CAST((`n` + 1) AS BIGINT)"),
        ("CAST((`ms` - `n`) * `x` AS DOUBLE)", "CAST((((`ms` - `n`)) * `x`) AS DOUBLE)"),
        ("CAST(`ms` AS STRING)", "CAST(`ms` AS STRING)"),
        ("CAST(`n` AS DECIMAL(12, 2))", "CAST(`n` AS DECIMAL(12, 2))"),
        ("CAST(`price` AS DECIMAL(12, 2))", "CAST(`price` AS DECIMAL(12, 2))"),
        ("CAST(`w` AS DATE)", "CAST(`w` AS DATE)"),
        ("CAST(`w` AS TIMESTAMP(6) WITH LOCAL TIME ZONE)", "CAST(`w` AS TIMESTAMP)"),
        ("CAST(`day` AS TIMESTAMP(3))", "CAST(`day` AS TIMESTAMP_NTZ)"),
    ],
)
def test_what_is_the_same_with_both_is_evaluated(expression: str, spark: str) -> None:
    assert spark_expression(expression, COLUMNS) == spark


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("UPPER(`a b`)", "'UPPER'"),
        ("`nope`", "'nope'"),
        ("`ms` / 2", "'/'"),
        ("`price` * 2", r"DECIMAL \* INT"),
        ("`a b` + 1", r"VARCHAR \+ INT"),
        ("CAST(`flag` AS STRING)", "CAST of BOOLEAN as STRING"),
        ("CAST(`w` AS STRING)", "CAST of TIMESTAMP as STRING"),
        ("CAST(`w` AS TIMESTAMP(0))", r"CAST of TIMESTAMP as TIMESTAMP\(0\)"),
        ("CAST(`a b` AS INT)", "CAST of VARCHAR as INT"),
        ("CAST(`ms` AS INT)", "CAST of BIGINT as INT"),
        ("CAST(`ms` AS DECIMAL(10, 2))", r"CAST of BIGINT as DECIMAL\(10, 2\)"),
        ("CAST(`tags` AS STRING)", "CAST of a nested type as STRING"),
        ("TO_TIMESTAMP_LTZ(`ms`, 6)", "TO_TIMESTAMP_LTZ of BIGINT with precision 6"),
        ("TO_TIMESTAMP(`ms`)", "TO_TIMESTAMP of BIGINT"),
        ("TO_TIMESTAMP(`a b`, 'dd.MM.yyyy')", "TO_TIMESTAMP with another format"),
        ("CAST(`n` AS BIGINT) IS NULL", "'IS'"),
    ],
)
def test_what_may_differ_is_refused(expression: str, says: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"^{says}.* is not evaluated here$"):
        spark_expression(expression, COLUMNS)
