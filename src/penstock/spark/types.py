"""Convert column types to Spark's types and back; compare the columns that Spark expects with those of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import types as spark_types

from penstock.errors import NotFoundError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.text.names import quoted
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
from penstock.spark.versions.facts import VARIANT
from penstock.spark.versions.python_api import has_other_collation
from penstock.spark.versions.python_api import types as newest_types
from penstock.table.read.query import read_ref
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql.types import StructType

    from penstock.table.ref import TableRef


DECLARED_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""Key of the type of a CHAR or VARCHAR in the metadata of a column."""
# Spark's timestamps have microseconds.
SPARK_PRECISION: Final = 6
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})

_TO_SPARK: Final[dict[TypeRoot, spark_types.DataType]] = {
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
    **({TypeRoot.VARIANT: newest_types.VariantType()} if VARIANT.is_here else {}),
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
    newest_types.VariantType: AtomicType(root=TypeRoot.VARIANT),
}


TextType: TypeAlias = "Callable[[AtomicType], spark_types.DataType]"
"""Returns the type of a CHAR or VARCHAR."""


def has_nanoseconds(data_type: DataType) -> bool:
    """Whether values of a type itself, not of its parts, may have digits that Spark cuts off."""
    if not isinstance(data_type, AtomicType) or data_type.root not in _TIMESTAMPS:
        return False
    return (data_type.precision or 0) > SPARK_PRECISION


def _string(_: AtomicType) -> spark_types.DataType:
    return spark_types.StringType()


def _declared_text(data_type: AtomicType) -> spark_types.DataType:
    if data_type.root is TypeRoot.CHAR:
        return spark_types.CharType(data_type.length or 1)
    length = data_type.length or MAX_LENGTH
    return spark_types.StringType() if length >= MAX_LENGTH else spark_types.VarcharType(length)


def to_spark_schema(fields: Iterable[DataField]) -> spark_types.StructType:
    """Return the Spark schema of columns, with their comments."""
    return spark_types.StructType([_to_spark_field(field) for field in fields])


def to_declared_schema(fields: Iterable[DataField]) -> spark_types.StructType:
    """Return the schema as a statement declares it, with CHAR(n) and VARCHAR(n) instead of STRING."""
    return spark_types.StructType([_to_spark_field(field, _declared_text) for field in fields])


def to_catalog_schema(fields: Iterable[DataField]) -> spark_types.StructType:
    """Return the schema as Spark's catalogs have it: STRING for CHAR and VARCHAR, whose types are in the metadata.

    Source:
        Spark ``CharVarcharUtils``, which writes the type without quoting names, and then cannot parse some of them.
    """
    columns = tuple(fields)
    return spark_types.StructType(
        [
            plain if plain.dataType == declared.dataType else _with_declared_type(plain, declared.dataType)
            for plain, declared in zip(to_spark_schema(columns), to_declared_schema(columns), strict=True)
        ]
    )


def _with_declared_type(field: spark_types.StructField, declared: spark_types.DataType) -> spark_types.StructField:
    metadata = {**field.metadata, DECLARED_TYPE: _type_text(declared)}
    return spark_types.StructField(field.name, field.dataType, field.nullable, metadata)


def _type_text(data_type: spark_types.DataType) -> str:
    match data_type:
        case spark_types.ArrayType():
            return f"array<{_type_text(data_type.elementType)}>"
        case spark_types.MapType():
            return f"map<{_type_text(data_type.keyType)},{_type_text(data_type.valueType)}>"
        case spark_types.StructType():
            return f"struct<{','.join(f'{quoted(each.name)}:{_type_text(each.dataType)}' for each in data_type)}>"
        case _:
            # The meaning of TIMESTAMP is a setting of the session.
            return "timestamp_ltz" if isinstance(data_type, spark_types.TimestampType) else data_type.simpleString()


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


def to_spark_type(data_type: DataType, text: TextType = _string) -> spark_types.DataType:
    """Return the Spark type for such values; lengths and precisions that Spark cannot express are lost.

    Args:
        text: returns the type of a CHAR or VARCHAR.
    """
    match data_type:
        case ArrayType(element=element) | VectorType(element=element):
            return spark_types.ArrayType(to_spark_type(element, text), element.nullable)
        case MapType(key=key, value=value):
            return spark_types.MapType(to_spark_type(key, text), to_spark_type(value, text), value.nullable)
        case MultisetType(element=element):
            return spark_types.MapType(to_spark_type(element, text), spark_types.IntegerType(), valueContainsNull=False)
        case RowType(fields=fields):
            return spark_types.StructType([_to_spark_field(field, text) for field in fields])
        case AtomicType():
            return _atomic_to_spark(data_type, text)


def _atomic_to_spark(data_type: AtomicType, text: TextType) -> spark_types.DataType:
    if data_type.root in {TypeRoot.CHAR, TypeRoot.VARCHAR}:
        return text(data_type)
    if data_type.root is TypeRoot.DECIMAL:
        return spark_types.DecimalType(data_type.precision or 10, data_type.scale or 0)
    found = _TO_SPARK.get(data_type.root)
    if data_type.root is TypeRoot.VARIANT:
        VARIANT.check("this table")
    if found is None:
        raise UnsupportedFeatureError(
            f"Spark has no type for {format_sql_type(data_type)}: leave the column out, or read it with to_arrow"
        )
    return found


def from_spark_schema(schema: spark_types.StructType) -> tuple[ColumnSpec, ...]:
    """Return the columns of a new table with Spark's schema."""
    return tuple(
        ColumnSpec(
            name=field.name,
            type=with_nullability(from_spark_type(field.dataType, field.name), nullable=field.nullable),
            description=field.metadata.get("comment"),
        )
        for field in schema.fields
    )


def from_spark_type(spark_type: spark_types.DataType, column: str) -> DataType:
    """Return the column type for a Spark type; field ids inside a ROW are 0, and the catalog assigns them."""
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
        case newest_types.TimeType():
            return time_type(spark_type.precision)
        case spark_types.CharType():
            return AtomicType(root=TypeRoot.CHAR, length=spark_type.length)
        case spark_types.StringType() if has_other_collation(spark_type):
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


def _to_spark_field(field: DataField, text: TextType = _string) -> spark_types.StructField:
    metadata = {"comment": field.description} if field.description else {}
    return spark_types.StructField(field.name, to_spark_type(field.type, text), field.type.nullable, metadata)


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
