"""Values of every type go from Spark into a table and back, whatever the session's zone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest
from pyspark.sql import types as spark_types
from tests.spark.ways import READ_BOTH_WAYS, READ_FORMAT_IF_SLOW

from penstock import Catalog, Table
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import DataField
from penstock.format.types.text import format_sql_type, parse_sql_type
from penstock.spark.batches import from_spark_batch, to_spark_batches
from penstock.spark.types import from_spark_schema, to_spark_schema, to_spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

UTC: Final = dt.UTC
COLUMNS: Final = {
    "boo": "BOOLEAN",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "i": "INT NOT NULL",
    "big": "BIGINT",
    "flo": "FLOAT",
    "dou": "DOUBLE",
    "de5": "DECIMAL(5, 2)",
    "de18": "DECIMAL(18, 4)",
    "de38": "DECIMAL(38, 10)",
    "ch": "CHAR(4)",
    "vch": "VARCHAR(5)",
    "str": "STRING",
    "fix": "BINARY(3)",
    "bin": "BYTES",
    "day": "DATE",
    "tim": "TIME(3)",
    "ts0": "TIMESTAMP(0)",
    "ts3": "TIMESTAMP(3)",
    "ts6": "TIMESTAMP(6)",
    "ltz3": "TIMESTAMP_LTZ(3)",
    "ltz6": "TIMESTAMP_LTZ(6)",
    "arr": "ARRAY<STRING>",
    "map": "MAP<STRING, DECIMAL(10, 2)>",
    "bag": "MULTISET<STRING>",
    "row": "ROW<a INT, b ARRAY<ROW<c TIMESTAMP(3), d TIMESTAMP_LTZ(6)>>>",
    "tims": "ARRAY<TIME(3)>",
    "timr": "ROW<t TIME(3), m MAP<INT, TIME(3)>>",
}
WALLS: Final = [
    dt.datetime(2024, 3, 10, 2, 30, 1, 123_456),  # noqa: DTZ001 - a wall clock that Los Angeles skips
    dt.datetime(2024, 11, 3, 1, 30, 0, 654_321),  # noqa: DTZ001 - one that it has twice
    dt.datetime(1883, 11, 18, 12, 3),  # noqa: DTZ001 - from when its offset had seconds
    dt.datetime(1582, 10, 10),  # noqa: DTZ001 - of the days that the Julian calendar lacks
    dt.datetime(1, 1, 2),  # noqa: DTZ001 - a wall clock
    dt.datetime(9999, 12, 30, 23, 59, 59, 999_999),  # noqa: DTZ001 - a wall clock
]


def row(number: int, wall: dt.datetime) -> dict[str, object]:
    sign = -1 if number % 2 else 1
    second, milli = (wall.replace(microsecond=wall.microsecond // unit * unit) for unit in (10**6, 1000))
    clock = dt.time(23, 59, 59, 999_000) if number else dt.time()
    return {
        "boo": sign > 0,
        "tiny": sign * 127,
        "small": sign * 32_767,
        "i": sign * (2**31 - 1),
        "big": sign * (2**63 - 1),
        "flo": [float("nan"), float("-inf"), 0.1][number % 3],
        "dou": [float("nan"), float("inf"), 0.1][number % 3],
        "de5": sign * Decimal("999.99"),
        "de18": sign * Decimal("99999999999999.9999"),
        "de38": Decimal(f"{sign:+}"[0] + "9" * 28 + "." + "9" * 10),
        "ch": "abcd",
        "vch": "Ünï☃",
        "str": "" if number else "a long one, " * 100,
        "fix": bytes([0, 255, number]),
        "bin": b"" if number else bytes(range(256)),
        "day": wall.date(),
        "tim": clock,
        "ts0": second,
        "ts3": milli,
        "ts6": wall,
        "ltz3": milli.replace(tzinfo=UTC),
        "ltz6": wall.replace(tzinfo=UTC),
        "arr": ["a", None, ""] if number else [],
        "map": [("k", sign * Decimal("1.50")), ("none", None)] if number else [],
        "bag": [("twice", 2)],
        "row": {"a": None if number else 1, "b": [{"c": milli, "d": wall.replace(tzinfo=UTC)}, None]},
        "tims": [clock, None],
        "timr": {"t": clock, "m": [(1, clock), (2, None)]},
    }


ROWS: Final = [
    *(row(number, wall) for number, wall in enumerate(WALLS)),
    {name: 0 if name == "i" else None for name in COLUMNS},
]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Set the session's zone for one test."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def make(catalog: Catalog, name: str, **options: str) -> Table:
    return catalog.create_table(
        f"d.{name}", ", ".join(f"`{one}` {kind}" for one, kind in COLUMNS.items()), options=options
    )


def same_rows(found: pa.Table, expected: pa.Table) -> bool:
    # NaN is unlike itself, as text it is not.
    return found.schema == expected.schema and str(found.to_pylist()) == str(expected.to_pylist())


@READ_BOTH_WAYS
@pytest.mark.parametrize(
    ("zone", "strategy"), [("America/Los_Angeles", "none"), ("Asia/Kolkata", "hash")], indirect=["zone"]
)
def test_values_of_all_types_come_back_from_spark_as_they_went_in(
    spark: SparkSession, catalog: Catalog, zone: str, strategy: str
) -> None:
    assert zone
    source = make(catalog, "source")
    rows = pa.Table.from_pylist(ROWS, source.arrow_schema)
    source.append(rows)
    target = make(catalog, "target", bucket="1", **{"bucket-key": "i", "partition.sink-strategy": strategy})
    target.append(source.to_spark(spark).coalesce(1))
    assert same_rows(target.to_arrow(), rows)
    if strategy == "none":
        again = make(catalog, "again")
        frame = spark.read.format("penstock").load(target.location)
        frame.write.format("penstock").mode("append").save(again.location)
        assert same_rows(again.to_arrow(), rows)


@READ_FORMAT_IF_SLOW
def test_wall_clocks_and_instants_are_what_spark_says_they_are(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "wall TIMESTAMP(6), instant TIMESTAMP_LTZ(6)")
    table.append(
        spark.sql("SELECT timestamp_ntz'2024-03-10 02:30:00' AS wall, timestamp'2024-07-01 05:00:00' AS instant")
    )
    summer_morning = dt.datetime(2024, 7, 1, 12, tzinfo=UTC)  # 05:00 in Los Angeles
    assert table.to_arrow().to_pylist() == [{"wall": dt.datetime(2024, 3, 10, 2, 30), "instant": summer_morning}]  # noqa: DTZ001 - a wall clock
    texts = table.to_spark(spark).selectExpr("string(wall)", "string(instant)").first()
    assert texts == ("2024-03-10 02:30:00", "2024-07-01 05:00:00")


@READ_BOTH_WAYS
def test_narrower_types_are_widened(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "a BIGINT, b DOUBLE, c DECIMAL(10, 4), d TIMESTAMP(3)")
    table.append(
        spark.sql(
            "SELECT 1 AS a, float(0.5) AS b, cast(1.25 AS DECIMAL(5, 2)) AS c, "
            "timestamp_ntz'2024-01-01 00:00:00.001' AS d"
        )
    )
    assert table.to_spark(spark).selectExpr("a", "b", "c", "string(d)").collect() == [
        (1, 0.5, Decimal("1.2500"), "2024-01-01 00:00:00.001")
    ]


# Without a session


SPARK_TYPES: Final = {
    "CHAR(4)": "string",
    "VARCHAR(5)": "string",
    "BINARY(3)": "binary",
    "TIME(3)": "int",
    "TIMESTAMP(9)": "timestamp_ntz",
    "TIMESTAMP_LTZ(9)": "timestamp",
    "MULTISET<STRING>": "map<string,int>",
    "ARRAY<ROW<a INT, b MAP<STRING, TIMESTAMP(3)>>>": "array<struct<a:int,b:map<string,timestamp_ntz>>>",
    "VARIANT": "variant",
}


@READ_FORMAT_IF_SLOW
@pytest.mark.parametrize("text", SPARK_TYPES)
def test_column_types_are_what_spark_can_say(text: str) -> None:
    assert to_spark_type(parse_sql_type(text)).simpleString() == SPARK_TYPES[text]


@READ_FORMAT_IF_SLOW
def test_schema_of_a_dataframe_becomes_columns_with_the_same_types() -> None:
    schema = spark_types.StructType.fromDDL(
        "a INT NOT NULL COMMENT 'first', s STRING, d DECIMAL(12, 3), n TIMESTAMP_NTZ, t TIMESTAMP, "
        "l ARRAY<STRUCT<x: BIGINT, y: DATE>>, m MAP<STRING, DOUBLE>, b BINARY"
    )
    columns = from_spark_schema(schema)
    assert [f"{column.name} {format_sql_type(column.type)}" for column in columns[:5]] == [
        "a INT NOT NULL",
        "s STRING",
        "d DECIMAL(12, 3)",
        "n TIMESTAMP(6)",
        "t TIMESTAMP(6) WITH LOCAL TIME ZONE",
    ]
    assert columns[0].description == "first"


@READ_FORMAT_IF_SLOW
def test_type_that_the_format_lacks_is_refused_with_the_column() -> None:
    schema = spark_types.StructType([spark_types.StructField("gap", spark_types.DayTimeIntervalType())])
    with pytest.raises(UnsupportedFeatureError, match=r"column 'gap': the format has no type for Spark's interval day"):
        from_spark_schema(schema)


@READ_FORMAT_IF_SLOW
def test_nanoseconds_are_cut_towards_the_past_at_every_depth() -> None:
    nanos = pa.array([1, -1, 1_999, -1_001, None], pa.int64()).view(pa.timestamp("ns"))
    nested = pa.ListArray.from_arrays(pa.array([0, 2, 5], pa.int32()), nanos)
    struct = pa.StructArray.from_arrays([nested], ["l"])
    schema = spark_types.StructType.fromDDL("s STRUCT<l: ARRAY<TIMESTAMP_NTZ>>")
    (batch,) = to_spark_batches([pa.record_batch({"s": struct})], schema)
    flat = batch.column("s").field("l").flatten().view(pa.int64()).to_pylist()
    assert flat == [0, -1, 1, -2, None]


@READ_FORMAT_IF_SLOW
def test_batches_are_cut_to_what_spark_takes_at_once() -> None:
    numbers = pa.record_batch({"n": pa.array(range(150_000), pa.int64())})
    batches = list(to_spark_batches([numbers], spark_types.StructType.fromDDL("n BIGINT")))
    assert [batch.num_rows for batch in batches] == [65_536, 65_536, 18_928]
    assert pa.Table.from_batches(batches) == pa.Table.from_batches([numbers])


@READ_FORMAT_IF_SLOW
def test_only_columns_of_times_take_numbers_for_times() -> None:
    fields = [
        DataField(id=place, name=name, type=parse_sql_type(text))
        for place, (name, text) in enumerate([("t", "TIME(3)"), ("i", "INT")])
    ]
    batch = from_spark_batch(pa.record_batch({field.name: pa.array([1], pa.int32()) for field in fields}), fields)
    assert [str(field.type) for field in batch.schema] == ["time32[ms]", "int32"]
    assert to_spark_schema(fields).simpleString() == "struct<t:int,i:int>"
