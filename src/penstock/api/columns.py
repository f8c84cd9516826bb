"""Convert schemas from users to column definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

import pyarrow as pa

from penstock.api.arguments import is_spark_object
from penstock.api.lazy import lazy_spark
from penstock.datafile.types import from_arrow_schema
from penstock.errors import InvalidSchemaError
from penstock.format.types.ddl import ColumnSpec, parse_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

SchemaLike: TypeAlias = "str | pa.Schema | StructType | Sequence[ColumnSpec]"


def columns_of(schema: SchemaLike) -> tuple[ColumnSpec, ...]:
    """Return the columns of a schema.

    Args:
        schema: text such as ``id BIGINT NOT NULL, name STRING``, a pyarrow or Spark schema, or column definitions.

    Raises:
        InvalidSchemaError: the text cannot be parsed, or the schema has another form.
        UnsupportedFeatureError: the format does not have a type.
    """
    if isinstance(schema, str):
        return parse_columns(schema)
    if isinstance(schema, pa.Schema):
        return tuple(
            ColumnSpec(name=column.name, type=column.type, description=column.description)
            for column in from_arrow_schema(schema)
        )
    if is_spark_object(schema):
        return lazy_spark.from_spark_schema(cast("StructType", schema))
    columns = tuple(schema) if isinstance(schema, list | tuple) else ()
    if not columns or not all(isinstance(column, ColumnSpec) for column in columns):
        raise InvalidSchemaError(
            f"cannot derive columns from a {type(schema).__name__}: give text such as 'id BIGINT, name STRING', a "
            "pyarrow schema, or a Spark schema"
        )
    return columns
