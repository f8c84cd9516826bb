"""Columns that are in the keys of Kafka records.

Source:
    Flink ``DynamicKafkaDeserializationSchema``: a record whose key cannot be decoded yields no row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.format.text.names import quoted
from penstock.spark.kafka.decode import ORIGIN, decode_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.format.types.data_types import DataField
    from penstock.options.kafka import KafkaKey

KEY: Final = "key"
"""The field of ``ORIGIN`` with the key of a record."""

_ROW: Final = "__kafka_row"


def with_key(rows: DataFrame, key: KafkaKey, fields: Sequence[DataField], table: str) -> DataFrame:
    """Return ``ORIGIN`` and all columns in their order, those of the key decoded from it.

    Args:
        rows: from ``decode_values``, with ``KEY`` in its ``ORIGIN``.
        fields: of key and value.
        table: name of the table, for messages.

    Raises:
        UnsupportedFeatureError: the format does not support these columns.
    """
    by_name = {field.name: field for field in fields}
    # Without its prefix, a column of the key may have the name of a column of the value.
    of_key = [replace(by_name[name], name=name.removeprefix(key.prefix)) for name in key.fields]
    packed = rows.select(F.struct("*").alias(_ROW), F.col(ORIGIN)[KEY].alias("value"))
    place = F.concat(F.lit("the key of Kafka topic "), *_place(F.col(_ROW)[ORIGIN]))
    decoded = decode_values(packed, of_key, key.format, table, origin=F.col(_ROW), place=place)
    names = {name: name.removeprefix(key.prefix) for name in key.fields}
    row = F.col(ORIGIN)
    columns = [
        (F.col(quoted(names[field.name])) if field.name in names else row[field.name]).alias(field.name)
        for field in fields
    ]
    return decoded.select(row[ORIGIN].alias(ORIGIN), *columns)


def _place(origin: Column) -> tuple[Column, ...]:
    return (origin["topic"], F.lit(", partition "), origin["partition"], F.lit(", offset "), origin["offset"])
