"""Expressions of Spark that make values of the type that a column has in files of the type that it has in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StringType, StructField, StructType

from penstock.format.types.data_types import AtomicType, RowType
from penstock.spark.read.conversions import mode_of
from penstock.spark.types import nullable, to_spark_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import DataType as SparkType

    from penstock.format.types.data_types import DataType
    from penstock.spark.connector.gateway import Bridge, JavaObject

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
# Java Paimon's, on a machine that runs in UTC, of which ``datafile.cast`` is the model.
_ZONE: Final = "UTC"


def converting(bridge: Bridge, readers: Sequence[Sequence[tuple[DataType, DataType] | None]]) -> JavaObject:
    """Return an ``Expression[][]``: for each reader expressions over its rows, null for columns that stay as they are.

    Args:
        readers: stored and wanted types of the columns of each.
    """
    expression = bridge.java(f"{_EXPRESSIONS}Expression")
    made = bridge.gateway.new_array(expression, len(readers), 0)
    for number, columns in enumerate(readers):
        if columns:
            made[number] = bridge.array(
                expression,
                [
                    None if each is None else _converted(bridge, _reference(bridge, place, each[0]), *each)
                    for place, each in enumerate(columns)
                ],
            )
    return made


def _reference(bridge: Bridge, place: int, stored: DataType) -> JavaObject:
    return bridge.java(f"{_EXPRESSIONS}BoundReference")(place, _type(bridge, nullable_type(stored)), True)  # noqa: FBT003 - of Spark


def _converted(bridge: Bridge, value: JavaObject, stored: DataType, wanted: DataType) -> JavaObject:
    old, new = nullable_type(stored), nullable_type(wanted)
    if isinstance(stored, RowType) and isinstance(wanted, RowType):
        return _converted_row(bridge, value, stored, wanted)
    if old == new or not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return value
    mode = bridge.java(f"{_EXPRESSIONS}EvalMode").withName(mode_of(stored, wanted))
    zone = bridge.java("scala.Option").apply(_ZONE)
    return bridge.java(f"{_EXPRESSIONS}Cast")(value, _type(bridge, new), zone, mode)


def _converted_row(bridge: Bridge, value: JavaObject, stored: RowType, wanted: RowType) -> JavaObject:
    literal = bridge.java(f"{_EXPRESSIONS}Literal")
    places = {field.id: place for place, field in enumerate(stored.fields)}
    parts: list[JavaObject] = []
    for field in wanted.fields:
        parts.append(literal.create(field.name, _type(bridge, StringType())))
        place = places.get(field.id)
        if place is None:
            parts.append(literal.create(None, _type(bridge, nullable_type(field.type))))
        else:
            part = bridge.java(f"{_EXPRESSIONS}GetStructField")(value, place, bridge.scala_none())
            parts.append(_converted(bridge, part, stored.fields[place].type, field.type))
    made = bridge.java(f"{_EXPRESSIONS}CreateNamedStruct")(bridge.sequence(parts))
    nothing = literal.create(None, made.dataType())
    return bridge.java(f"{_EXPRESSIONS}If")(bridge.java(f"{_EXPRESSIONS}IsNull")(value), nothing, made)


def nullable_type(data_type: DataType) -> SparkType:
    """Return the type of Spark, of which values and their parts may be NULL."""
    return nullable(StructType([StructField("value", to_spark_type(data_type))]))[0].dataType


def _type(bridge: Bridge, data_type: SparkType) -> JavaObject:
    return bridge.schema(StructType([StructField("value", data_type)])).fields()[0].dataType()
