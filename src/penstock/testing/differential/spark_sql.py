"""Conditions of cases as SQL of Spark, for tables in an attached catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.testing.differential.case import FuzzColumn, FuzzLeaf

if TYPE_CHECKING:
    import pyarrow as pa

CATALOG: Final = "penstock"
"""Name under which the warehouse is attached to the session."""

# Fits no DOUBLE, so Spark has another value for it.
_TOO_LARGE: Final = "1e400"


def select_rows(spark: Any, table: str, condition: str | None) -> pa.Table:  # noqa: ANN401 - a session
    """Return the rows of a table that match a condition."""
    found: pa.Table = spark.sql(f"SELECT * FROM {CATALOG}.{table}{_where(condition)}").toArrow()  # noqa: S608 - our own names
    return found


def count_rows(spark: Any, table: str, condition: str | None) -> int:  # noqa: ANN401 - a session
    """Return the number of rows of a table that match a condition."""
    return int(spark.sql(f"SELECT count(*) FROM {CATALOG}.{table}{_where(condition)}").first()[0])  # noqa: S608 - as above


def to_spark_sql(leaf: FuzzLeaf, column: FuzzColumn) -> str | None:
    """Return a condition as Spark has to be asked; None if Spark has no such literal."""
    if _TOO_LARGE in leaf.texts:
        return None
    texts = tuple(_to_literal(text, column.sql) for text in leaf.texts)
    return FuzzLeaf(column=leaf.column, operator=leaf.operator, texts=texts).to_sql(column)


def _where(condition: str | None) -> str:
    return "" if condition is None else f" WHERE {condition}"


def _to_literal(text: str, sql: str) -> str:
    if text == "NULL":
        return text
    if sql in {"FLOAT", "DOUBLE"}:
        # Spark compares a FLOAT with other types as DOUBLE: exact for numbers that are whole.
        return f"CAST('{text}' AS {sql if text == '0.1' else 'DOUBLE'})"
    if sql == "TIMESTAMP(6)":
        return text.replace("TIMESTAMP", "TIMESTAMP_NTZ", 1)
    return text
