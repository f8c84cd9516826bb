"""Encode rows as lines of text or as values of Kafka records, by the rules of Flink's formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.format.text.names import quoted
from penstock.format.types.data_types import AtomicType, TypeRoot
from penstock.options.kafka import CsvFormat, JsonFormat, RawFormat, TimestampStandard
from penstock.spark.kafka.decode import check_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from penstock.format.types.data_types import DataField
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
