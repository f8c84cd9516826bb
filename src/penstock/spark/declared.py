"""What Spark takes a table's columns for, against what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import SchemaMismatchError
from penstock.spark.types import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.table.ref import TableRef


def check_columns(ref: TableRef, schema: StructType) -> None:
    """Make sure that the columns that Spark expects are there, with their types.

    Raises:
        SchemaMismatchError: one is not.
    """
    fields = {field.name: field for field in ref.schema.fields}
    again = "create the Spark table again, or give load() the columns that exist"
    for column in schema.fields:
        field = fields.get(column.name)
        if field is None:
            raise SchemaMismatchError(
                f"table {ref.name} has no column '{column.name}' (any more): its columns are {', '.join(fields)}; "
                f"{again}"
            )
        wanted = to_spark_type(field.type).simpleString()
        if column.dataType.simpleString() != wanted:
            raise SchemaMismatchError(
                f"table {ref.name}: Spark takes column '{column.name}' for {column.dataType.simpleString()}, but it is "
                f"{wanted} (now): {again} with their types"
            )
