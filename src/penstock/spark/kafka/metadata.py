"""Metadata columns of Kafka records: position, time and headers.

Source:
    Flink's Kafka connector, "Available Metadata"; columns of Spark's Kafka source.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.spark.kafka.decode import ORIGIN, ORIGIN_FIELDS
from penstock.spark.types import to_spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.format.types.data_types import DataField

HEADERS: Final = "headers"
_KEYS: Final = ("topic", "partition", HEADERS, "offset", "timestamp", "timestamp-type")
_OF_SPARK: Final = {"timestamp-type": "timestampType"}
_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}


def check_metadata(shown: Mapping[str, str], table: str) -> None:
    """Check the names of metadata, by column.

    Raises:
        InvalidOptionError: there is no such metadata.
        UnsupportedFeatureError: Spark's source does not have it.
    """
    for column, key in shown.items():
        if key == "leader-epoch":
            raise UnsupportedFeatureError(
                f"table {table}: column '{column}': Spark does not read 'leader-epoch': leave it out"
            )
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(_KEYS)}"
            raise InvalidOptionError(f"table {table}: column '{column}': a record has no metadata '{key}': {hint}")


def origin_of(keys: Iterable[str]) -> Column:
    """Return the origin of a record, with the requested metadata."""
    names = [_OF_SPARK.get(key, key) for key in keys]
    return F.struct(*dict.fromkeys((*ORIGIN_FIELDS, *names)))


def with_metadata(rows: DataFrame, fields: Sequence[DataField], shown: Mapping[str, str]) -> DataFrame:
    """Return ``ORIGIN`` and the columns of the table in their order, those of metadata with their declared types."""
    if not shown:
        return rows
    columns = [
        _value(shown[field.name]).cast(to_spark_type(field.type)).alias(field.name)
        if field.name in shown
        else F.col(quoted(field.name))
        for field in fields
    ]
    return rows.select(ORIGIN, *columns)


def _value(key: str) -> Column:
    found = F.col(ORIGIN)[_OF_SPARK.get(key, key)]
    if key == HEADERS:
        # A key may occur several times; the last value is used, as in Flink.
        names = F.array_distinct(F.coalesce(found["key"], F.array()))
        return F.map_from_arrays(names, F.transform(names, lambda name: _last(found, name)))
    if key == "timestamp-type":
        kind = F.lit("NoTimestampType")
        for number, text in _TYPES.items():
            kind = F.when(found == number, F.lit(text)).otherwise(kind)
        return kind
    return found


def _last(headers: Column, name: Column) -> Column:
    return F.element_at(F.filter(headers, lambda each: each["key"] == name), -1)["value"]
