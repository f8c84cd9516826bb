"""Compare the columns that Spark expects with the columns of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import NotFoundError, SchemaMismatchError, UnsupportedFeatureError
from penstock.spark.types import to_spark_schema, to_spark_type
from penstock.table.read.query import read_ref
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.table.ref import TableRef

_ALTERED: Final = (
    "Spark's own ALTER TABLE changes Spark's catalog only: alter the table with Catalog.alter_table or penstock sql"
)


def check_columns(ref: TableRef, schema: StructType, *, event_time: str | None = None) -> None:
    """Check that the table has the columns that Spark expects, with the same types.

    Args:
        event_time: column that may be read as TIMESTAMP if it is TIMESTAMP_NTZ.
    """
    fields = {field.name: field for field in ref.schema.fields}
    again = "create the Spark table again, or give load() the columns that exist"
    for column in schema.fields:
        field = fields.get(column.name)
        if field is None:
            raise SchemaMismatchError(
                f"table {ref.name} has no column '{column.name}': its columns are {', '.join(fields)}; "
                f"{again}; {_ALTERED}"
            )
        wanted, actual = to_spark_type(field.type).simpleString(), column.dataType.simpleString()
        if actual != wanted and (column.name != event_time or (actual, wanted) != ("timestamp", "timestamp_ntz")):
            raise SchemaMismatchError(
                f"table {ref.name}: Spark takes column '{column.name}' for {actual}, but it is "
                f"{wanted} (now): {again} with their types; {_ALTERED}"
            )


def why_rows_may_not_fit(ref: TableRef, schema: StructType) -> str:
    """Return a message if Spark's catalog has other columns for the table than the table itself, else an empty string.

    Args:
        schema: schema of the rows, which Spark has converted to the columns in its catalog.
    """
    row_columns, columns = _texts(schema), _texts(to_spark_schema(ref.schema.fields))
    if set(row_columns) == set(columns):
        return ""
    return f"Spark takes its columns for {', '.join(row_columns)}, but they are {', '.join(columns)} (now): {_ALTERED}"


def columns_at_start(ref: TableRef) -> TableRef:
    """Return the table with the schema of the snapshot that its options select.

    Spark does not say whether it asks for the columns of a batch read or of a stream. A stream may start before the
    first snapshot or after the last one, where a batch read fails; so this function does not raise. The reader of a
    batch read raises the error.
    """
    try:
        return read_ref(ref, MetadataStore(ref))
    except (NotFoundError, UnsupportedFeatureError):
        return ref


def check_not_outdated(ref: TableRef, schema: StructType) -> None:
    """Check that a stream does not have the columns of a batch read with the same options.

    Args:
        schema: the columns that Spark inferred, not the user's choice.
    """
    columns, today = _texts(schema), _texts(to_spark_schema(ref.schema.fields))
    if columns != today and columns == _texts(to_spark_schema(columns_at_start(ref).schema.fields)):
        raise SchemaMismatchError(
            f"table {ref.name}: Spark takes the columns of the snapshot that the stream begins with for those of the "
            f"stream ({', '.join(columns)}), but the table has others since ({', '.join(today)}): read the stream "
            "with Table.read_stream, or say with readStream.schema(...) which columns it is to have"
        )


def _texts(schema: StructType) -> list[str]:
    return [f"{field.name} {field.dataType.simpleString()}" for field in schema.fields]
