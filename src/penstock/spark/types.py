"""Convert column types to Spark's types and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import types as spark_types

from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_LENGTH,
    SMALLINT,
    STRING,
    TINYINT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    decimal_type,
    time_type,
    timestamp_type,
    with_nullability,
)
from penstock.format.types.ddl import ColumnSpec
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterable

# Spark's timestamps have microseconds.
SPARK_PRECISION: Final = 6

_TO_SPARK: Final[dict[TypeRoot, spark_types.DataType]] = {
    TypeRoot.CHAR: spark_types.StringType(),
    TypeRoot.VARCHAR: spark_types.StringType(),
    TypeRoot.BOOLEAN: spark_types.BooleanType(),
    TypeRoot.BINARY: spark_types.BinaryType(),
    TypeRoot.VARBINARY: spark_types.BinaryType(),
    TypeRoot.BLOB: spark_types.BinaryType(),
    TypeRoot.TINYINT: spark_types.ByteType(),
    TypeRoot.SMALLINT: spark_types.ShortType(),
    TypeRoot.INT: spark_types.IntegerType(),
    TypeRoot.BIGINT: spark_types.LongType(),
    TypeRoot.FLOAT: spark_types.FloatType(),
    TypeRoot.DOUBLE: spark_types.DoubleType(),
    TypeRoot.DATE: spark_types.DateType(),
    # Milliseconds of the day, as in Paimon's Spark connector: Spark's own TIME is disabled by default.
    TypeRoot.TIME: spark_types.IntegerType(),
    TypeRoot.TIMESTAMP: spark_types.TimestampNTZType(),
    TypeRoot.TIMESTAMP_LTZ: spark_types.TimestampType(),
    TypeRoot.VARIANT: spark_types.VariantType(),
}
_FROM_SPARK: Final[dict[type[spark_types.DataType], AtomicType]] = {
    spark_types.StringType: STRING,
    spark_types.BooleanType: BOOLEAN,
    spark_types.BinaryType: BYTES,
    spark_types.ByteType: TINYINT,
    spark_types.ShortType: SMALLINT,
    spark_types.IntegerType: INT,
    spark_types.LongType: BIGINT,
    spark_types.FloatType: FLOAT,
    spark_types.DoubleType: DOUBLE,
    spark_types.DateType: DATE,
    spark_types.TimestampNTZType: timestamp_type(SPARK_PRECISION),
    spark_types.TimestampType: timestamp_type(SPARK_PRECISION, local_zone=True),
    spark_types.VariantType: AtomicType(root=TypeRoot.VARIANT),
}


def to_spark_schema(fields: Iterable[DataField]) -> spark_types.StructType:
    """Return the Spark schema of columns, with their comments."""
    return spark_types.StructType([_to_spark_field(field) for field in fields])


def nullable(schema: spark_types.StructType) -> spark_types.StructType:
    """Make all columns nullable, also inside: files written before a column became NOT NULL may have nulls."""
    return spark_types.StructType(
        [
            spark_types.StructField(f.name, _nullable_inside(f.dataType), nullable=True, metadata=f.metadata)
            for f in schema
        ]
    )


def _nullable_inside(kind: spark_types.DataType) -> spark_types.DataType:
    match kind:
        case spark_types.ArrayType(elementType=element):
            return spark_types.ArrayType(_nullable_inside(element))
        case spark_types.MapType(keyType=key, valueType=value):
            return spark_types.MapType(_nullable_inside(key), _nullable_inside(value))
        case spark_types.StructType():
            return nullable(kind)
        case _:
            return kind


def to_spark_type(data_type: DataType) -> spark_types.DataType:
    """Return the Spark type for such values; lengths and precisions that Spark cannot express are lost.

    Raises:
        UnsupportedFeatureError: Spark has no such type.
    """
    match data_type:
        case ArrayType(element=element) | VectorType(element=element):
            return spark_types.ArrayType(to_spark_type(element), element.nullable)
        case MapType(key=key, value=value):
            return spark_types.MapType(to_spark_type(key), to_spark_type(value), value.nullable)
        case MultisetType(element=element):
            return spark_types.MapType(to_spark_type(element), spark_types.IntegerType(), valueContainsNull=False)
        case RowType(fields=fields):
            return to_spark_schema(fields)
        case AtomicType():
            return _atomic_to_spark(data_type)


def _atomic_to_spark(data_type: AtomicType) -> spark_types.DataType:
    if data_type.root is TypeRoot.DECIMAL:
        return spark_types.DecimalType(data_type.precision or 10, data_type.scale or 0)
    found = _TO_SPARK.get(data_type.root)
    if found is None:
        raise UnsupportedFeatureError(
            f"Spark has no type for {format_sql_type(data_type)}: leave the column out, or read it with to_arrow"
        )
    return found


def from_spark_schema(schema: spark_types.StructType) -> tuple[ColumnSpec, ...]:
    """Return the columns of a new table with Spark's schema.

    Raises:
        UnsupportedFeatureError: the format has no such type.
    """
    return tuple(
        ColumnSpec(
            name=field.name,
            type=with_nullability(from_spark_type(field.dataType, field.name), nullable=field.nullable),
            description=field.metadata.get("comment"),
        )
        for field in schema.fields
    )


def from_spark_type(spark_type: spark_types.DataType, column: str) -> DataType:
    """Return the column type for a Spark type; field ids inside a ROW are 0, and the catalog assigns them.

    Raises:
        UnsupportedFeatureError: the format has no such type.
    """
    match spark_type:
        case spark_types.ArrayType():
            element = from_spark_type(spark_type.elementType, column)
            return ArrayType(element=with_nullability(element, nullable=spark_type.containsNull))
        case spark_types.MapType():
            key = from_spark_type(spark_type.keyType, column)
            value = from_spark_type(spark_type.valueType, column)
            return MapType(
                key=with_nullability(key, nullable=False),
                value=with_nullability(value, nullable=spark_type.valueContainsNull),
            )
        case spark_types.StructType():
            specs = from_spark_schema(spark_type)
            return RowType(
                fields=tuple(
                    DataField(id=0, name=spec.name, type=spec.type, description=spec.description) for spec in specs
                )
            )
        case _:
            return _atomic_from_spark(spark_type, column)


def _atomic_from_spark(spark_type: spark_types.DataType, column: str) -> AtomicType:
    match spark_type:
        case spark_types.DecimalType():
            return decimal_type(spark_type.precision, spark_type.scale)
        case spark_types.TimeType():
            return time_type(spark_type.precision)
        case spark_types.CharType():
            return AtomicType(root=TypeRoot.CHAR, length=spark_type.length)
        case spark_types.StringType() if not spark_type.isUTF8BinaryCollation():
            raise UnsupportedFeatureError(
                f"column '{column}': the format has no {spark_type.simpleString()}: its texts are compared by their "
                "bytes; leave COLLATE out of the column, and give it in the query"
            )
        case spark_types.VarcharType():
            return AtomicType(root=TypeRoot.VARCHAR, length=min(spark_type.length, MAX_LENGTH))
        case _:
            pass
    found = _FROM_SPARK.get(type(spark_type))
    if found is None:
        raise UnsupportedFeatureError(
            f"column '{column}': the format has no type for Spark's {spark_type.simpleString()}; cast it, for "
            "instance to STRING"
        )
    return found


def _to_spark_field(field: DataField) -> spark_types.StructField:
    metadata = {"comment": field.description} if field.description else {}
    return spark_types.StructField(field.name, to_spark_type(field.type), field.type.nullable, metadata)
