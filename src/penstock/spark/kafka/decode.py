"""Decode the values of Kafka records to columns, by the rules of Flink's formats.

Parsing, checking and unpacking are one expression, so that Spark parses every value once. With a projection and a
filter, Spark would parse it for each of them.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)
from penstock.format.types.text import format_sql_type
from penstock.options.kafka import CsvFormat, JsonFormat, RawFormat, TimestampStandard
from penstock.spark.types import SPARK_PRECISION, to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.format.types.data_types import DataField, DataType
    from penstock.options.kafka import ValueFormat

ORIGIN: Final = "__kafka_origin"
"""Additional struct column: ``topic``, ``partition``, ``offset``, ``timestamp`` of the record of a row."""

_CORRUPT: Final = "__kafka_corrupt"
ORIGIN_FIELDS: Final = ("topic", "partition", "offset", "timestamp")
"""Fields of ``ORIGIN`` that every record of Kafka has."""

_SHOWN_CHARACTERS: Final = 200
_DATE: Final = "yyyy-MM-dd"
_TIME_OF_DAY: Final = "HH:mm:ss[.SSSSSSSSS]"
_NO_JSON: Final = frozenset({TypeRoot.TIME, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY})
_NO_CSV: Final = _NO_JSON | {TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.VARIANT}
_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_MOMENTS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})
_RAW: Final = _TEXTS | {TypeRoot.BINARY, TypeRoot.VARBINARY}


def decode_values(
    records: DataFrame,
    fields: Sequence[DataField],
    how: ValueFormat,
    table: str,
    *,
    origin: Column | None = None,
    place: Column | None = None,
) -> DataFrame:
    """Return the column ``ORIGIN`` with the origin of each row, then the columns of the values.

    A record without a value (a tombstone) yields no row, except in the raw format.

    Args:
        records: rows with the column ``value``, such as those of Spark's Kafka source.
        table: name of the table, for messages.
        origin: struct with metadata of the record; None for topic, partition, offset and time.
        place: expression for the position of a record in messages; None for topic, partition and offset.
    """
    check_columns(fields, how, table)
    origin = (F.struct(*ORIGIN_FIELDS) if origin is None else origin).alias(ORIGIN)
    where = F.concat(F.lit(f"table {table}: "), _kafka_place() if place is None else place)
    match how:
        case JsonFormat():
            values = records.where(_is_utf8(where, None if how.ignores_errors else _skips("json")))
            rows = _unpack(values, origin, _parse_json(fields, how), _check_json(fields, how, where))
        case CsvFormat():
            values = records.where(~F.startswith(_text(), F.lit("#"))) if how.allows_comments else records
            values = values.where(_is_utf8(where, None if how.ignores_errors else _skips("csv")))
            rows = _unpack(values, origin, _parse_csv(fields, how), _check_csv(how, where))
        case RawFormat():
            if _is_text(fields[0]) and how.charset.upper() in {"UTF-8", "UTF8"}:
                records = records.where(_is_utf8(where, "name its encoding in 'raw.charset', or declare BYTES"))
            return records.select(origin, _decode_raw(fields[0], how))
    # Without a null literal, an empty field is an empty string; Spark's parser returns null for both.
    fills = isinstance(how, CsvFormat) and how.null_literal is None
    json = how if isinstance(how, JsonFormat) else None
    return rows.select(ORIGIN, *(_finish(field, fills=fills, json=json) for field in fields))


def check_columns(fields: Sequence[DataField], how: ValueFormat, table: str) -> None:
    """Raise ``UnsupportedFeatureError`` if the format does not support these columns."""
    match how:
        case JsonFormat():
            _check_types(fields, _NO_JSON, "json", table)
        case CsvFormat():
            _check_types(fields, _NO_CSV, "csv", table)
            for field in fields:
                if not isinstance(field.type, AtomicType):
                    raise UnsupportedFeatureError(
                        f"table {table}: column '{field.name}': format csv reads plain columns only: declare it STRING"
                    )
        case _:
            types = [field.type for field in fields]
            if len(types) != 1 or not isinstance(types[0], AtomicType) or types[0].root not in _RAW:
                raise UnsupportedFeatureError(f"table {table}: format raw needs exactly one column, STRING or BYTES")


def _check_types(fields: Sequence[DataField], refused: frozenset[TypeRoot], name: str, table: str) -> None:
    for field in fields:
        for each in _atomic_types(field.type):
            if each.root in refused:
                raise UnsupportedFeatureError(
                    f"table {table}: column '{field.name}': format {name} does not read "
                    f"{format_sql_type(replace(each, nullable=True))} on Spark: declare it STRING and cast it"
                )


def _atomic_types(data_type: DataType) -> Iterable[AtomicType]:
    match data_type:
        case AtomicType():
            yield data_type
        case ArrayType(element=element) | VectorType(element=element) | MultisetType(element=element):
            yield from _atomic_types(element)
        case MapType(key=key, value=value):
            yield from _atomic_types(key)
            yield from _atomic_types(value)
        case RowType(fields=fields):
            for field in fields:
                yield from _atomic_types(field.type)


def _unpack(records: DataFrame, origin: Column, parsed: Column, is_row: Callable[[Column], Column]) -> DataFrame:
    """Parse, check and unpack each value.

    Args:
        is_row: expression that is true if the parsed value is a row, false to skip it; or fails.
    """
    rows = F.filter(F.array(parsed), is_row)
    return records.where(F.col("value").isNotNull()).select(origin, F.inline(rows))


def _is_utf8(where: Column, cure: str | None) -> Column:
    """Return an expression that is true if a value is UTF-8 or null; else it fails, or is false if there is no cure.

    Spark's parsers would read other bytes as U+FFFD. Java's regular expressions do, too, so the text differs then.
    """
    is_other = F.regexp_extract(_text(), "(?s).*", 0).cast("binary") != F.col("value")
    failed = F.lit(False) if cure is None else _failure(where, "not in UTF-8", cure)  # noqa: FBT003 - SQL's FALSE
    return F.when(is_other, failed).otherwise(F.lit(True))  # noqa: FBT003 - SQL's TRUE


def _parse_json(fields: Sequence[DataField], how: JsonFormat) -> Column:
    schema = [
        StructField(each.name, StringType()) if isinstance(each.dataType, TimestampType) else each  # see _instant
        for each in _with_corrupt(fields)
    ]
    return F.from_json(_text(), StructType(schema), _json_options(how))


def _json_options(how: JsonFormat) -> dict[str, str]:
    return _parser_options(" " if how.timestamps is TimestampStandard.SQL else "'T'")


def _instant(text: Column, how: JsonFormat) -> Column:
    """Return the time that a text is, or null. Of a number, Spark's parser of objects would take seconds since 1970."""
    schema = StructType([StructField("at", TimestampType())])
    return F.from_json(F.to_json(F.struct(text.alias("at"))), schema, _json_options(how))["at"]


def _check_json(fields: Sequence[DataField], how: JsonFormat, where: Column) -> Callable[[Column], Column]:
    names = F.array(*(F.lit(field.name) for field in fields))
    # Null for a value that is not a JSON object.
    keys = F.json_object_keys(_text())
    instants = [field.name for field in fields if _is_instant(field)]

    def is_row(row: Column) -> Column:
        is_good = row.isNotNull() & row[_CORRUPT].isNull()
        if how.ignores_errors:
            return is_good | (row.isNotNull() & keys.isNotNull())
        for name in instants:
            is_good &= row[name].isNull() | _instant(row[name], how).isNotNull()
        if how.fails_on_missing:
            is_good &= F.size(F.array_except(names, keys)) == 0
        problem = "no JSON object with all of the columns" if how.fails_on_missing else "no JSON object of these types"
        return F.when(is_good, F.lit(True)).otherwise(_failure(where, problem, _skips("json")))  # noqa: FBT003 - SQL's TRUE

    return is_row


def _parse_csv(fields: Sequence[DataField], how: CsvFormat) -> Column:
    quote = "" if how.is_unquoted else how.quote
    options = {
        "sep": how.delimiter,
        "quote": quote,
        # A quote inside quotes is doubled, unless an escape character is set.
        "escape": how.escape or quote,
        "nullValue": how.null_literal or "",
    }
    # A value that is a line of a file may end as one.
    line = F.regexp_replace(_text(), r"(\r\n?|\n)\z", "")
    return F.from_csv(line, _to_ddl(_with_corrupt(fields)), {**_parser_options(" "), **options})


def _check_csv(how: CsvFormat, where: Column) -> Callable[[Column], Column]:
    def is_row(row: Column) -> Column:
        if how.ignores_errors:
            return row.isNotNull()
        is_good = row.isNotNull() & row[_CORRUPT].isNull()
        problem = "no line with these columns"
        return F.when(is_good, F.lit(True)).otherwise(_failure(where, problem, _skips("csv")))  # noqa: FBT003 - SQL's TRUE

    return is_row


def _finish(field: DataField, *, fills: bool, json: JsonFormat | None) -> Column:
    """Convert a parsed column to its declared type."""
    column = F.col(f"`{field.name.replace('`', '``')}`")
    if json is not None and _is_instant(field):
        column = _instant(column, json).alias(field.name)
    if not isinstance(field.type, AtomicType):
        return column
    if fills and field.type.root in _TEXTS:
        return F.coalesce(column, F.lit("")).alias(field.name)
    precision = field.type.precision
    if field.type.root in _MOMENTS and precision is not None and precision < SPARK_PRECISION:
        # Truncate to the column's precision, as Flink does when it stores a value. Spark's date_trunc does not support
        # TIMESTAMP_NTZ.
        rest = F.extract(F.lit("SECOND"), column) % F.lit(Decimal(1).scaleb(-precision))
        return (column - F.make_dt_interval(secs=rest)).alias(field.name)
    return column


def _decode_raw(field: DataField, how: RawFormat) -> Column:
    value = F.col("value")
    return (F.decode(value, how.charset) if _is_text(field) else value).alias(field.name)


def _is_text(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in _TEXTS


def _is_instant(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root is TypeRoot.TIMESTAMP_LTZ


def _text() -> Column:
    return F.col("value").cast("string")


def _parser_options(between: str) -> dict[str, str]:
    moment = f"{_DATE}{between}{_TIME_OF_DAY}"
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "dateFormat": _DATE,
        "timestampNTZFormat": moment,
        "timestampFormat": f"{moment}XXX",
        "enableDateTimeParsingFallback": "false",
        "timeZone": "UTC",
    }


def _with_corrupt(fields: Sequence[DataField]) -> StructType:
    return StructType([*to_spark_schema(fields).fields, StructField(_CORRUPT, StringType())])


def _to_ddl(schema: StructType) -> str:
    """Return a schema as DDL: Spark takes the schema of CSV as text only. All columns have atomic types."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema.fields)


def _kafka_place() -> Column:
    return F.concat(
        F.lit("Kafka topic "), F.col("topic"), F.lit(", partition "), F.col("partition"), F.lit(", offset "), "offset"
    )


def _skips(name: str) -> str:
    return f"'{name}.ignore-parse-errors' = 'true' skips what cannot be read"


def _failure(where: Column, problem: str, cure: str) -> Column:
    """Return an expression that fails with an error that names the record."""
    return F.raise_error(
        F.concat(
            where,
            F.lit(f" is {problem}: "),
            F.substring(_text(), 1, _SHOWN_CHARACTERS),
            F.lit(f"; {cure}"),
        )
    ).cast("boolean")
