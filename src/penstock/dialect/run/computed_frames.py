"""Add computed columns to the tables that queries read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.lazy import lazy_spark
from penstock.dialect.parse.computed_value import spark_expression
from penstock.errors import UnsupportedFeatureError
from penstock.format.watermark import computed_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame

    from penstock.api.table import Table


def with_computed_columns(frame: DataFrame, table: Table, names: Collection[str] | None) -> DataFrame:
    """Return the rows of a table with its computed columns at their positions, as Flink returns them.

    Args:
        names: the columns that are needed, in lower case; None for all.

    Raises:
        UnsupportedFeatureError: Penstock cannot evaluate a computed column that is needed.
    """
    schema, options = table.schema, table.schema.option_map
    wanted = wanted_columns(table, names)
    if not wanted:
        return frame
    columns: list[tuple[str, str | None]] = [(name, None) for name in frame.columns]
    types = {field.name: field.type for field in schema.fields if field.name in frame.columns}
    for place, name in wanted.items():
        expression = options.get(f"schema.{place}.expr")
        cure = "name the desired columns instead" if names is None else "compute it in the query"
        if expression is None:
            raise UnsupportedFeatureError(f"table {table.name}: column '{name}' is one of Flink's metadata; {cure}")
        try:
            text = spark_expression(expression, types)
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(
                f"table {table.name}: column '{name}' is computed as {expression}, and {error}, since Spark may have"
                f" other values than Flink; {cure}"
            ) from error
        columns.insert(place, (name, text))
    return lazy_spark.computed_frame(frame, columns)


def wanted_columns(table: Table, names: Collection[str] | None) -> dict[int, str]:
    """Return the computed columns of a table that are among these names, by position."""
    computed = computed_columns(table.schema.fields, table.schema.option_map)
    return {place: name for place, name in computed.items() if names is None or name.lower() in names}
