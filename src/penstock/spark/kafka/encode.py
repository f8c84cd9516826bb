"""Encode rows as lines of text or as values of Kafka records, by the rules of Flink's formats; write them to Kafka.

Source:
    Spark's Kafka sink: columns ``key`` and ``value``, option ``topic``; it delivers each record at least once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.options.kafka import CsvFormat, JsonFormat, RawFormat, TimestampStandard
from penstock.spark.kafka.decode import check_columns
from penstock.spark.kafka.frame import check_connector, describe_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.format.types.data_types import DataField
    from penstock.options.connectors import KafkaTable
    from penstock.options.kafka import ValueFormat


_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
# Six digits, the precision of Spark's values. Readers of both formats accept any number of digits.
_TIME: Final = "HH:mm:ss.SSSSSS"


def encode_value(fields: Sequence[DataField], how: ValueFormat, table: str, *, prefix: str = "") -> Column:
    """Return the expression for the text of a row, or for the value of its only column in the raw format.

    Args:
        fields: the columns of the text; the row may have others.
        table: name of the table, for messages.
        prefix: of the column names, which is omitted in the text.
    """
    check_columns(fields, how, table)
    row = F.struct(*(F.col(quoted(field.name)).alias(field.name.removeprefix(prefix)) for field in fields))
    match how:
        case JsonFormat():
            between = " " if how.timestamps is TimestampStandard.SQL else "'T'"
            # Nulls are written, since a reader may require all fields to be present.
            return F.to_json(row, {**_times(between), "ignoreNullFields": "false"})
        case CsvFormat():
            quote = "" if how.is_unquoted else how.quote
            null = how.null_literal or ""
            options = {"sep": how.delimiter, "quote": quote, "escape": how.escape or quote, "nullValue": null}
            return F.to_csv(row, {**_times(" "), **options, "emptyValue": "" if not quote else quote * 2})
        case RawFormat():
            column = F.col(quoted(fields[0].name))
            is_text = isinstance(fields[0].type, AtomicType) and fields[0].type.root in _TEXTS
            return F.encode(column, how.charset) if is_text else column


def _times(between: str) -> dict[str, str]:
    moment = f"yyyy-MM-dd{between}{_TIME}"
    return {
        "dateFormat": "yyyy-MM-dd",
        "timestampNTZFormat": moment,
        "timestampFormat": f"{moment}XXX",
        "timeZone": "UTC",
    }


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
