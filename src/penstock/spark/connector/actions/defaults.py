"""Default values of columns: ``DEFAULT`` in statements, and the ``defaultValue`` of a column in the format.

Source:
    Spark stores a default as SQL in the metadata of a column (``CURRENT_DEFAULT``); the format stores the text of a
    literal, which replaces null in written rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructField, StructType

from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import INTEGERS, AtomicType, TypeRoot
from penstock.predicate.literals import FLOAT_ROOTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.format.types.data_types import DataField
    from penstock.spark.connector.gateway import Bridge

CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"
"""Key of the default in the metadata of a column."""

# The value of a column in rows written before the column was added.
_EXISTS_DEFAULT: Final = "EXISTS_DEFAULT"
_NUMBERS: Final = frozenset({TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DECIMAL})
_TYPED: Final = {TypeRoot.DATE: "DATE ", TypeRoot.TIMESTAMP: "TIMESTAMP_NTZ "}
_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
# Spark's names of types whose values have the same text in Spark and in the format.
_PLAIN: Final = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "char")
_ALSO_PLAIN: Final = ("varchar", "date", "timestamp_ntz")


def default_text(bridge: Bridge, sql: str, column: str, data_type: str, table: str) -> str | None:
    """Return the text of a default for the format; None if the default is NULL.

    Args:
        sql: a constant expression.
        data_type: Spark's name of the column's type.
    """
    if data_type.partition("(")[0] not in {*_PLAIN, *_ALSO_PLAIN}:
        raise UnsupportedFeatureError(
            f"table {table}: DEFAULT of column '{column}' of type {data_type}: only columns of numbers, texts, dates "
            "and TIMESTAMP_NTZ can have one here; set it with ALTER TABLE ... SET DEFAULT of penstock.sql"
        )
    frame = bridge.python_session(bridge.session()).sql(f"SELECT CAST(CAST(({sql}) AS {data_type}) AS STRING)")
    if bridge.is_current(frame):
        raise UnsupportedFeatureError(
            f"table {table}: DEFAULT {sql} of column '{column}': a default is one value, which is stored when it is "
            "declared, and this is a function of the time, the user or the session; leave DEFAULT out, and call the "
            "function in each INSERT"
        )
    found = frame.first()
    return None if found is None else found[0]


def with_defaults(schema: StructType, fields: Iterable[DataField]) -> StructType:
    """Return a schema with the defaults of its columns as Spark expects them.

    Args:
        fields: the same columns in the format.
    """
    defaults = {field.name: _to_sql(field) for field in fields}
    return StructType([_with_default(field, defaults) for field in schema.fields])


def _with_default(field: StructField, defaults: Mapping[str, str | None]) -> StructField:
    sql = defaults[field.name]
    if sql is None:
        return field
    # Rows written before the column was added have null.
    metadata = {**field.metadata, CURRENT_DEFAULT: sql, _EXISTS_DEFAULT: "NULL"}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _to_sql(field: DataField) -> str | None:
    """Return the default as Spark SQL; None if there is none, or Spark does not support it."""
    text = field.default_value
    if text is None or not isinstance(field.type, AtomicType):
        return None
    if field.type.root in FLOAT_ROOTS and not math.isfinite(float(text)):
        return f"{field.type.root}('{text.strip()}')"
    if field.type.root in _NUMBERS:
        return text.strip()
    if field.type.root in _TEXTS or field.type.root in _TYPED:
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"{_TYPED.get(field.type.root, '')}'{escaped}'"
    return None
