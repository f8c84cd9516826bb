"""Write rows to Kafka through Spark's own sink, with the options of Flink's connector.

Source:
    Spark's Kafka sink: columns ``key`` and ``value``, option ``topic``; it delivers each record at least once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.spark.kafka.encode import encode_value
from penstock.spark.kafka.frame import check_connector, describe_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from penstock.format.types.data_types import DataField
    from penstock.options.connectors import KafkaTable

_GUARANTEE: Final = "sink.delivery-guarantee"
_PARTITIONER: Final = "sink.partitioner"


def kafka_writer_input(
    rows: DataFrame, kafka: KafkaTable, fields: Sequence[DataField], table: str
) -> tuple[DataFrame, dict[str, str]]:
    """Return rows in the form that Spark's Kafka sink expects, and the options of that sink."""
    options = kafka.options
    if len(options.topics) != 1:
        raise InvalidOptionError(f"table {table}: rows are written to one topic: give 'topic' with one name")
    if kafka.sink.get(_GUARANTEE, "at-least-once") not in {"at-least-once", "none"}:
        raise UnsupportedFeatureError(
            f"table {table}: '{_GUARANTEE}' = '{kafka.sink[_GUARANTEE]}': Spark's sink has no transactions; say "
            "'at-least-once', and let the readers drop duplicates"
        )
    if kafka.sink.get(_PARTITIONER, "default") != "default":
        raise UnsupportedFeatureError(
            f"table {table}: '{_PARTITIONER}' = '{kafka.sink[_PARTITIONER]}': Kafka's own partitioner chooses; say "
            "'default', or set 'properties.partitioner.class'"
        )
    key = kafka.key
    stored = [field for field in fields if key is None or key.is_in_value or field.name not in key.fields]
    columns = [encode_value(stored, kafka.value_format, table).alias("value")]
    if key is not None:
        by_name = {field.name: field for field in fields}
        of_key = [by_name[name] for name in key.fields]
        columns.append(encode_value(of_key, key.format, table, prefix=key.prefix).alias("key"))
    check_connector(rows.sparkSession, table)
    describe_topics(rows.sparkSession, options, table)
    properties = {f"kafka.{name}": text for name, text in options.properties if name != "group.id"}
    return rows.select(*columns), {**properties, "topic": options.topics[0]}
