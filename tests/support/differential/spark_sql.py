"""Conditions of cases as Spark SQL, for tables in an attached catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from tests.support.differential.case import FuzzColumn, FuzzCondition, FuzzLeaf, condition_sql, leaves_of
from tests.support.differential.kinds import CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CATALOG: Final = "penstock"
"""Name under which the warehouse is attached to the session."""

# Does not fit a DOUBLE, so Spark uses another value.
_TOO_LARGE: Final = "1e400"
# Spark's analyser takes a comparison of whole numbers with a literal beyond BIGINT for true or false, also for NULL:
# `n < 9223372036854775808` returns rows where n is NULL, from any table.
_BEYOND_BIGINT: Final = str(2**63)

_AS_OF: Final = {
    "scan.snapshot-id": " VERSION AS OF {}",
    "scan.tag-name": " VERSION AS OF '{}'",
    "scan.timestamp-millis": " TIMESTAMP AS OF timestamp_millis({})",
}
_PLACE: Final = "__place"
_TASKS: Final = 2


def select_rows(spark: Any, table: str, condition: str | None, options: dict[str, str]) -> Any:
    """Return the rows of a table that match a condition, as a DataFrame; ``options`` name a past state or changes."""
    if "incremental" in "".join(options):
        return spark.read.options(**options).table(f"{CATALOG}.{table}").where(condition or "TRUE")
    # Options would return the columns of today.
    at = "".join(_AS_OF[key].format(value) for key, value in options.items())
    return spark.sql(f"SELECT * FROM {CATALOG}.{table}{at}{_where(condition)}")  # noqa: S608 - our own names


def count_rows(spark: Any, table: str, conditions: Sequence[str | None]) -> list[int]:
    """Return the numbers of rows of a table that match conditions, counted in one job."""
    counts = [
        f"SELECT {place} AS place, count(*) AS rows FROM {CATALOG}.{table}{_where(condition)}"  # noqa: S608 - as above
        for place, condition in enumerate(conditions)
    ]
    found = spark.sql(" UNION ALL ".join(counts)).collect()
    return [int(row["rows"]) for row in sorted(found, key=lambda row: int(row["place"]))]


def collect_together(frames: Sequence[Any]) -> Iterator[pa.Table]:
    """Yield the rows of DataFrames with the same columns, read in one job of few tasks, which take long to start."""
    parts = [frame.selectExpr(f"{place} AS {_PLACE}", "*") for place, frame in enumerate(frames)]
    together: pa.Table = _united(parts).coalesce(_TASKS).toArrow()
    places = together.column(0)
    rows = together.drop_columns([_PLACE])
    for place in range(len(frames)):
        yield rows.filter(pc.equal(places, pa.scalar(place, places.type)))


def _united(frames: Sequence[Any]) -> Any:
    """Return the union of DataFrames, which ``union`` would analyse once for each of them."""
    spark = frames[0].sparkSession
    jvm = spark._jvm
    plans = jvm.org.apache.spark.api.python.PythonUtils.toSeq([frame._jdf.logicalPlan() for frame in frames])
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Union(plans, False, False)  # noqa: FBT003 - Java's arguments
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
    return type(frames[0])(rows, spark)


def to_spark_sql(condition: FuzzCondition, column_of: Callable[[int], FuzzColumn]) -> str | None:
    """Return a condition in Spark SQL; None if Spark has no such literal.

    Args:
        column_of: returns the column of a key.
    """
    if any(_TOO_LARGE in leaf.texts for leaf in leaves_of(condition)):
        return None
    return condition_sql(condition, lambda leaf: _leaf_sql(leaf, column_of(leaf.column)))


def _leaf_sql(leaf: FuzzLeaf, column: FuzzColumn) -> str:
    return replace(leaf, texts=tuple(to_literal(text, column.sql) for text in leaf.texts)).to_sql(column)


def _where(condition: str | None) -> str:
    return "" if condition is None else f" WHERE {condition}"


def to_literal(text: str, sql: str) -> str:
    """Return the literal of a column's type in Spark SQL."""
    if text == "NULL":
        return text
    if sql in {"FLOAT", "DOUBLE"}:
        # Spark compares a FLOAT with other types as DOUBLE: exact for numbers that are whole.
        return f"CAST('{text}' AS {sql if text == '0.1' else 'DOUBLE'})"
    if text == _BEYOND_BIGINT:
        return f"CAST('{text}' AS DECIMAL(20, 0))"
    if sql.startswith("TIME("):
        # Spark reads a TIME as a number.
        return str(CLOCK[text.removeprefix("TIME '").removesuffix("'")])
    if sql.startswith("TIMESTAMP("):
        return text.replace("TIMESTAMP", "TIMESTAMP_NTZ", 1)
    # In quotes, Spark takes a backslash for an escape, and two of them for one.
    return text.replace("\\", "\\\\")
