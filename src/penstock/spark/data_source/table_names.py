"""Find the location of a table that has a name in Spark's catalog.

For ``CREATE TABLE t USING penstock OPTIONS (path ...)``, Spark stores the columns of the table and passes them to the
reader and the writer without the options. So the location is stored in the metadata of one of the columns.

The writer gets the columns of the query. If they differ from the target's columns in name, type or nullability, Spark
adds a projection, whose columns have the target's metadata. If they do not differ, Spark passes them unchanged; they
may be the columns of another table, with the location of that table. To distinguish the two cases, the metadata also
has a declared type: Spark removes it from the target's columns when it adds the projection. For a STRING, the declared
type is a VARCHAR whose length depends on the location, so that Spark adds a projection for rows of any other table.

Source:
    Spark ``V2WriteCommand.outputResolved``, ``TableOutputResolver``, ``CharVarcharUtils``.
"""

from __future__ import annotations

import zlib
from typing import Final

from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType, TimestampType

from penstock.errors import InvalidOptionError
from penstock.spark.types import DECLARED_TYPE
from penstock.spark.versions.python_api import types

_LOCATION_KEY: Final = "penstock.location"
# Longer than any string in a row of Spark, so Spark's check of the length never fails.
_MIN_LENGTH: Final = 1 << 30


def with_location(schema: StructType, location: str) -> StructType:
    """Return the columns of a table with its location in the metadata of one; unchanged if no column is suitable."""
    place = _place(schema)
    if place is None:
        return schema
    fields = list(schema.fields)
    field = fields[place]
    metadata = {**field.metadata, _LOCATION_KEY: location, DECLARED_TYPE: _declared_type(field, location)}
    fields[place] = StructField(field.name, field.dataType, field.nullable, metadata)
    return StructType(fields)


def has_location(schema: StructType) -> bool:
    """Whether these columns are from ``with_location``, so Spark inferred them and the user did not choose them."""
    return any(_LOCATION_KEY in field.metadata for field in schema.fields)


def find_source(schema: StructType) -> str:
    """Return the location of the table that has these columns."""
    for field in schema.fields:
        if _LOCATION_KEY in field.metadata:
            return str(field.metadata[_LOCATION_KEY])
    raise InvalidOptionError(
        "Spark does not say where this penstock table lies: create it without a column list (CREATE TABLE t USING "
        "penstock OPTIONS (path '...')), or use load('<path>')"
    )


def find_target(schema: StructType) -> str:
    """Return the location of the table to which rows with these columns are written."""
    for field in schema.fields:
        if _LOCATION_KEY in field.metadata and DECLARED_TYPE not in field.metadata:
            return str(field.metadata[_LOCATION_KEY])
    raise InvalidOptionError(
        "Spark does not say which penstock table these rows are for: create t without a column list (CREATE TABLE t "
        "USING penstock OPTIONS (path '...')), and where that is done, name the path again: INSERT INTO t WITH (path = "
        "'<path>') SELECT ..., or df.write with save('<path>')"
    )


def _place(schema: StructType) -> int | None:
    """Return the position of the column that gets the location: a STRING if there is one, else one of a simple type."""
    nested = (ArrayType, MapType, StructType, types.VariantType)
    plain = [place for place, field in enumerate(schema.fields) if not isinstance(field.dataType, nested)]
    texts = [place for place in plain if isinstance(schema.fields[place].dataType, StringType)]
    return next(iter([*texts, *plain]), None)


def _declared_type(field: StructField, location: str) -> str:
    if isinstance(field.dataType, StringType):
        return f"varchar({_MIN_LENGTH + zlib.crc32(location.encode()) % _MIN_LENGTH})"
    # The meaning of TIMESTAMP is a setting of the session.
    return "timestamp_ltz" if isinstance(field.dataType, TimestampType) else field.dataType.simpleString()
