"""Which table a name in Spark's catalog stands for.

Spark keeps the columns of a table that ``CREATE TABLE t USING penstock OPTIONS (path ...)`` makes, and hands them to
reader and writer without the options. So the location is written into the metadata of one of them.

The writer is handed the columns of the query. Where those differ from the target's in name, type or nullability,
Spark puts a projection between that has the target's metadata. Where they do not, they come as they are, and may be
the columns of another table, with its location. A declared type beside the location tells the two apart, since Spark
takes it off the target's columns when it makes the projection; and a VARCHAR of a length of each table's own for a
STRING has Spark make one whatever table the rows come from.

Source:
    Spark ``V2WriteCommand.outputResolved``, ``TableOutputResolver``, ``CharVarcharUtils``.
"""

from __future__ import annotations

import zlib
from typing import Final

from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType, TimestampType, VariantType

from penstock.errors import InvalidOptionError

_LOCATION_KEY: Final = "penstock.location"
_DECLARED_TYPE_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
# Longer than any string that Spark can hold in a row, so that its check of the length never fails.
_LEAST_LENGTH: Final = 1 << 30


def with_location(schema: StructType, location: str) -> StructType:
    """Return the columns of a table with its location in one of them; as they are where none can hold it."""
    place = _place(schema)
    if place is None:
        return schema
    fields = list(schema.fields)
    field = fields[place]
    metadata = {**field.metadata, _LOCATION_KEY: location, _DECLARED_TYPE_KEY: _declared_type(field, location)}
    fields[place] = StructField(field.name, field.dataType, field.nullable, metadata)
    return StructType(fields)


def has_location(schema: StructType) -> bool:
    """Whether these columns are from ``with_location``: those that Spark asks for where nobody says which."""
    return any(_LOCATION_KEY in field.metadata for field in schema.fields)


def find_source(schema: StructType) -> str:
    """Return the location of the table whose columns these are.

    Raises:
        InvalidOptionError: the columns do not say.
    """
    for field in schema.fields:
        if _LOCATION_KEY in field.metadata:
            return str(field.metadata[_LOCATION_KEY])
    raise InvalidOptionError(
        "Spark does not say where this penstock table lies: create it without a column list (CREATE TABLE t USING "
        "penstock OPTIONS (path '...')), or use load('<path>')"
    )


def find_target(schema: StructType) -> str:
    """Return the location of the table that rows with these columns are for.

    Raises:
        InvalidOptionError: the columns do not say, or are those of the table that the rows come from.
    """
    for field in schema.fields:
        if _LOCATION_KEY in field.metadata and _DECLARED_TYPE_KEY not in field.metadata:
            return str(field.metadata[_LOCATION_KEY])
    raise InvalidOptionError(
        "Spark does not say which penstock table these rows are for: create t without a column list (CREATE TABLE t "
        "USING penstock OPTIONS (path '...')), and where that is done, name the path again: INSERT INTO t WITH (path = "
        "'<path>') SELECT ..., or df.write with save('<path>')"
    )


def _place(schema: StructType) -> int | None:
    """Choose the column: a STRING if there is one, else one whose type is a single word."""
    nested = (ArrayType, MapType, StructType, VariantType)
    plain = [place for place, field in enumerate(schema.fields) if not isinstance(field.dataType, nested)]
    texts = [place for place in plain if isinstance(schema.fields[place].dataType, StringType)]
    return next(iter([*texts, *plain]), None)


def _declared_type(field: StructField, location: str) -> str:
    if isinstance(field.dataType, StringType):
        return f"varchar({_LEAST_LENGTH + zlib.crc32(location.encode()) % _LEAST_LENGTH})"
    # What TIMESTAMP means is a setting of the session.
    return "timestamp_ltz" if isinstance(field.dataType, TimestampType) else field.dataType.simpleString()
