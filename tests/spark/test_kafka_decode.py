"""Values of Kafka records as columns: the semantics of Flink's formats, without a broker."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import DataField
from penstock.format.types.ddl import parse_columns
from penstock.options.kafka import CsvFormat, JsonFormat, RawFormat, TimestampStandard, ValueFormat
from penstock.spark.kafka.decode import ORIGIN, decode_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LENIENT = JsonFormat(ignores_errors=True)


def fields_of(columns: str) -> tuple[DataField, ...]:
    return tuple(DataField(id=n, name=spec.name, type=spec.type) for n, spec in enumerate(parse_columns(columns)))


def frame(spark: SparkSession, columns: str, how: ValueFormat, *values: str | bytes | None) -> DataFrame:
    rows = [(value.encode() if isinstance(value, str) else value, n) for n, value in enumerate(values)]
    records = spark.createDataFrame(rows, "value BINARY, offset BIGINT").coalesce(1)
    records = records.withColumns(
        {"topic": F.lit("orders"), "partition": F.lit(3), "timestamp": F.lit("2026-01-01").cast("timestamp")}
    )
    return decode_values(records, fields_of(columns), how, "shop.kafka")


def read(spark: SparkSession, columns: str, how: ValueFormat, *values: str | bytes | None) -> list[tuple[Any, ...]]:
    return [tuple(row)[1:] for row in frame(spark, columns, how, *values).collect()]


def fails(spark: SparkSession, columns: str, how: ValueFormat, value: str, text: str) -> None:
    with pytest.raises(PySparkException) as caught:
        frame(spark, columns, how, value).collect()
    message = str(caught.value)
    assert f"table shop.kafka: Kafka topic orders, partition 3, offset 0 is {text}: {value}" in message


def test_json_of_every_type_is_read(spark: SparkSession) -> None:
    columns = (
        "i INT, l BIGINT, d DOUBLE, n DECIMAL(10, 2), b BOOLEAN, s STRING, y BYTES, t TIMESTAMP(3), "
        "z TIMESTAMP(3) WITH LOCAL TIME ZONE, e DATE, a ARRAY<INT>, m MAP<STRING, INT>, r ROW<x INT, y STRING>"
    )
    value = (
        '{"i": 1, "l": 9007199254740993, "d": 1.5, "n": 12.34, "b": true, "s": "\u00e9", "y": "AQI=", '
        '"t": "2026-03-08 02:30:00.123", "z": "2026-03-08 02:30:00.5Z", "e": "2026-03-08", "a": [1, null], '
        '"m": {"k": 2}, "r": {"x": 1, "y": "in"}, "other": 0}'
    )
    [row] = frame(spark, columns, JsonFormat(), value).withColumn("z", F.unix_micros("z")).collect()
    # 02:30 is not on the clocks of the session's zone on that day.
    seconds = datetime(2026, 3, 8, 2, 30, tzinfo=UTC).timestamp()
    assert row.asDict(recursive=True) == {
        ORIGIN: row[ORIGIN].asDict(),
        "i": 1,
        "l": 9007199254740993,
        "d": 1.5,
        "n": Decimal("12.34"),
        "b": True,
        "s": "\u00e9",
        "y": b"\x01\x02",
        "t": datetime(2026, 3, 8, 2, 30, 0, 123000),  # noqa: DTZ001 - a wall clock
        "z": int(seconds * 1_000_000) + 500_000,
        "e": date(2026, 3, 8),
        "a": [1, None],
        "m": {"k": 2},
        "r": {"x": 1, "y": "in"},
    }
    assert (row[ORIGIN].topic, row[ORIGIN].partition, row[ORIGIN].offset) == ("orders", 3, 0)


@pytest.mark.parametrize("fraction", ["", ".5", ".123456", ".123456789"])
@pytest.mark.parametrize(("standard", "between"), [(TimestampStandard.SQL, " "), (TimestampStandard.ISO, "T")])
def test_timestamps_are_read_by_the_standard_that_is_set(
    spark: SparkSession, standard: TimestampStandard, between: str, fraction: str
) -> None:
    value = f'{{"t": "2026-01-02{between}03:04:05{fraction}"}}'
    micros = int(fraction[1:7].ljust(6, "0")) if fraction else 0
    expected = datetime(2026, 1, 2, 3, 4, 5, micros)  # noqa: DTZ001 - a wall clock
    assert read(spark, "t TIMESTAMP(6)", JsonFormat(timestamps=standard), value) == [(expected,)]


@pytest.mark.parametrize(("precision", "micros"), [(0, 0), (3, 123_000), (5, 123_450), (6, 123_456)])
@pytest.mark.parametrize("second", ["1969-12-31 23:59:59", "2026-03-08 02:30:00"])
def test_digits_that_a_column_does_not_have_are_cut(
    spark: SparkSession, second: str, precision: int, micros: int
) -> None:
    columns = f"t TIMESTAMP({precision}), z TIMESTAMP({precision}) WITH LOCAL TIME ZONE"
    value = f'{{"t": "{second}.123456", "z": "{second}.123456Z"}}'
    [row] = frame(spark, columns, JsonFormat(), value).withColumn("z", F.unix_micros("z")).collect()
    expected = datetime.fromisoformat(second).replace(microsecond=micros)
    assert row.t == expected
    since = expected.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert row.z == since // timedelta(microseconds=1)


def test_a_timestamp_of_the_other_standard_is_an_error(spark: SparkSession) -> None:
    fails(spark, "t TIMESTAMP(3)", JsonFormat(), '{"t": "2026-01-02T03:04:05"}', "no JSON object of these types")


def test_a_missing_field_is_null_and_a_record_without_value_no_row(spark: SparkSession) -> None:
    assert read(spark, "a INT, b STRING", JsonFormat(), '{"a": 1}', None, "{}") == [(1, None), (None, None)]


@pytest.mark.parametrize("value", ["1767225600000", "1", '"2026-01-02 03:04:05"', '"2026-02-30 00:00:00Z"'])
def test_only_texts_with_a_zone_are_instants(spark: SparkSession, value: str) -> None:
    columns = "z TIMESTAMP(3) WITH LOCAL TIME ZONE, s STRING"
    text = f'{{"z": {value}, "s": "x"}}'
    fails(spark, columns, JsonFormat(), text, "no JSON object of these types")
    assert read(spark, columns, LENIENT, text, '{"s": "y"}') == [(None, "x"), (None, "y")]


@pytest.mark.parametrize(
    ("columns", "how", "lenient"),
    [
        ("n INT, s STRING", JsonFormat(), LENIENT),
        ("n STRING, s STRING", CsvFormat(), CsvFormat(ignores_errors=True)),
        ("s STRING", RawFormat(), None),
    ],
)
def test_bytes_that_are_no_utf_8_are_not_read_as_another_text(
    spark: SparkSession, columns: str, how: ValueFormat, lenient: ValueFormat | None
) -> None:
    values = [b'{"n": 1, "s": "a\xffb"}', '{"n": 2, "s": "\ufffd\U0001f600"}', None]
    with pytest.raises(PySparkException, match="partition 3, offset 0 is not in UTF-8"):
        frame(spark, columns, how, *values).collect()
    assert len(read(spark, columns, how, *values[1:])) == (2 if isinstance(how, RawFormat) else 1)
    if lenient is not None:
        assert [row[-1].count("\ufffd\U0001f600") for row in read(spark, columns, lenient, *values)] == [1]


@pytest.mark.parametrize("value", ["no json", '{"a": 1, "b"', '{"a": "x"}', "5", "[]", "", "  "])
def test_json_in_error_fails_with_topic_partition_and_offset(spark: SparkSession, value: str) -> None:
    fails(spark, "a INT, b STRING", JsonFormat(), value, "no JSON object of these types")


def test_errors_that_are_ignored_leave_null_fields_and_no_row_where_there_is_no_object(spark: SparkSession) -> None:
    values = ["no json", '{"a": 1, "b"', '{"a": "x", "b": "y"}', "5", "[]", "", '{"a": 2, "b": "z"}', '{"a": "x"}']
    assert read(spark, "a INT, b STRING", LENIENT, *values) == [(None, "y"), (2, "z"), (None, None)]


def test_a_missing_field_is_an_error_when_it_is_to_be(spark: SparkSession) -> None:
    how = JsonFormat(fails_on_missing=True)
    assert read(spark, "a INT, b STRING", how, '{"b": null, "a": 1}') == [(1, None)]
    fails(spark, "a INT, b STRING", how, '{"a": 1}', "no JSON object with all of the columns")


def test_an_error_is_one_even_where_no_column_is_asked_for(spark: SparkSession) -> None:
    rows = frame(spark, "a INT", JsonFormat(), '{"a": 1}', "no json")
    with pytest.raises(PySparkException, match="offset 1 is no JSON object"):
        rows.count()
    with pytest.raises(PySparkException, match="offset 1 is no JSON object"):
        rows.select(F.col(ORIGIN)["offset"]).collect()


def test_every_value_is_parsed_once(spark: SparkSession) -> None:
    rows = frame(spark, "a INT, b STRING", JsonFormat(), '{"a": 1}').where("a = 1").drop(ORIGIN)
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json(") == 1


def test_csv_is_read_with_quotes_and_empty_texts(spark: SparkSession) -> None:
    values = ['1,"a,""b""",2026-01-02 03:04:05.5', "2,,", None]
    expected = datetime(2026, 1, 2, 3, 4, 5, 500_000)  # noqa: DTZ001 - a wall clock
    found = read(spark, "i INT, s STRING, t TIMESTAMP(3)", CsvFormat(), *values)
    assert found == [(1, 'a,"b"', expected), (2, "", None)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_end_of_a_csv_line_is_no_part_of_its_last_field(spark: SparkSession, end: str) -> None:
    values = [f"1,a{end}", f'2,"b{end}"{end}', f"3,{end}"]
    assert read(spark, "i INT, s STRING", CsvFormat(), *values) == [(1, "a"), (2, f"b{end}"), (3, "")]


def test_csv_follows_its_options(spark: SparkSession) -> None:
    how = CsvFormat(delimiter="\t", null_literal="-", quote="'", escape="\\", allows_comments=True)
    assert read(spark, "i INT, s STRING", how, "1\t'a\\'b'", "#x", "-\t-") == [(1, "a'b"), (None, None)]
    assert read(spark, "i INT, s STRING", CsvFormat(is_unquoted=True), '1,"a"') == [(1, '"a"')]


@pytest.mark.parametrize("value", ["x,y", "1", "1,a,b"])
def test_csv_in_error_fails_or_leaves_null_fields(spark: SparkSession, value: str) -> None:
    fails(spark, "i INT, s STRING", CsvFormat(), value, "no line with these columns")
    expected = {"x,y": (None, "y"), "1": (1, None), "1,a,b": (1, "a")}[value]
    assert read(spark, "i INT, s STRING", CsvFormat(ignores_errors=True, null_literal=""), value) == [expected]


def test_raw_is_one_column_of_text_or_bytes(spark: SparkSession) -> None:
    assert read(spark, "b BYTES", RawFormat(), b"\xff\x00", None) == [(b"\xff\x00",), (None,)]
    assert read(spark, "s STRING", RawFormat(charset="ISO-8859-1"), b"\xe9") == [("\u00e9",)]


@pytest.mark.parametrize(
    ("columns", "how", "message"),
    [
        ("a INT, b STRING", RawFormat(), "format raw needs exactly one column"),
        ("a INT", RawFormat(), "format raw needs exactly one column"),
        ("t TIME(3)", JsonFormat(), "column 't': format json does not read TIME"),
        ("r ROW<t TIME(3)>", JsonFormat(), "column 'r': format json does not read TIME"),
        ("a ARRAY<INT>", CsvFormat(), "column 'a': format csv reads plain columns only"),
        ("b BYTES", CsvFormat(), "column 'b': format csv does not read BYTES"),
    ],
)
def test_columns_that_a_format_does_not_have_are_refused(
    spark: SparkSession, columns: str, how: ValueFormat, message: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"table shop.kafka: .*{message}"):
        frame(spark, columns, how)
