"""Columns whose type was changed: Spark converts the values of older files as Penstock does, next to ``to_arrow``."""

from __future__ import annotations

import datetime as dt
import decimal
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.errors.exceptions.base import StreamingQueryException
from tests.deletion_vectors import delete_keys
from tests.spark.connector.readers import reader
from tests.spark.needs import needs
from tests.spark.plans import plan_of

from penstock.catalog.changes import AddColumn, DropColumn, RenameColumn, SetOption, UpdateColumnType
from penstock.datafile.evolve import can_cast
from penstock.datafile.types import to_arrow_type
from penstock.format.types.data_types import AtomicType
from penstock.format.types.text import parse_sql_type
from penstock.spark.connector import scan
from penstock.spark.read.conversions import can_convert, mode_of
from penstock.spark.versions.facts import METADATA_COLUMNS, PYTHON_SCANS
from penstock.spark.versions.python_api import to_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

__all__ = ["reader"]

_DIGITS: Final = decimal.Context(prec=80)
_POWERS: Final = (7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63)


def _integers(bits: int) -> list[int]:
    limit = 2 ** (bits - 1)
    near = {sign * 2**power + step for power in _POWERS for sign in (1, -1) for step in (-2, -1, 0, 1, 2)}
    round_ = {sign * (10**power - step) for power in range(19) for sign in (1, -1) for step in (0, 1)}
    return sorted(each for each in near | round_ | {0} if -limit <= each < limit)


_FLOATS: Final = [
    *(0.0, -0.0, 1.5, -1.5, 0.1, 1 / 3, 2.5, 1e7, 9999999.0, 1e10, -1e10, 1e19, -1e19, 1e38, 3.4e38, 1e-10, 1e-45),
    *(127.9, 128.0, -128.9, 32768.0, 2147483647.0, 2147483648.0, -2147483649.0, 9.223372036854775e18, 9.3e18),
    *(float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 4.9e-324, 16777217.0, 1.00000005960464477539),
]


def _decimals(precision: int, scale: int) -> list[Decimal]:
    units = {0, 1, -1, 10**precision - 1, 1 - 10**precision}
    for power in range(precision):
        units |= {10**power, -5 * 10**power, 10 ** (power + 1) - 1}
    units |= {each * 10**scale for each in (128, -129, 32768, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 + 5)}
    fitting = sorted(each for each in units if abs(each) < 10**precision)
    return [Decimal(each).scaleb(-scale, _DIGITS) for each in fitting]


_DAYS: Final = [
    *(dt.date(1, 1, 1), dt.date(1500, 2, 28), dt.date(1582, 10, 10), dt.date(1582, 10, 15), dt.date(1900, 1, 1)),
    *(dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 3, 31), dt.date(9999, 12, 31)),
]
_MICROS: Final = [
    *(-62135596800000000, -12219292800000000, -12219379200000001, -2208988800000001, -1000001, -1000, -999, -1, 0, 1),
    *(999, 1000, 999999, 1500000, 1711846800123456, 1729994400120000, 253402300799999999),
]
_TEXTS: Final = ["", "a", "\u0000", "日本語", "x" * 300]
_DECIMALS: Final = (
    *((1, 0), (5, 2), (9, 0), (9, 9), (10, 2), (15, 3), (18, 6)),
    *((19, 0), (20, 2), (38, 0), (38, 10), (38, 38)),
)
VALUES: Final[dict[str, list[Any]]] = {
    "BOOLEAN": [True, False],
    "TINYINT": _integers(8),
    "SMALLINT": _integers(16),
    "INT": _integers(32),
    "BIGINT": _integers(64),
    "FLOAT": _FLOATS,
    "DOUBLE": _FLOATS,
    **{f"DECIMAL({precision}, {scale})": _decimals(precision, scale) for precision, scale in _DECIMALS},
    "STRING": _TEXTS,
    "VARCHAR(5)": ["", "a", "日本語"],
    "BYTES": [b"", b"a", b"\xff\xfe", b"\x00"],
    "VARBINARY(3)": [b"", b"abc", b"\xff"],
    "DATE": _DAYS,
    **{f"{kind}({precision})": _MICROS for kind in ("TIMESTAMP", "TIMESTAMP_LTZ") for precision in (0, 3, 6)},
}


def _array(kind: str, values: list[Any], rows: int) -> pa.Array:
    """Return as many values, with NULL after each turn."""
    data_type = to_arrow_type(parse_sql_type(kind))
    turn = [*values, None]
    if kind.startswith("TIMESTAMP"):
        unit = 10 ** (6 - int(kind[-2]))
        counts = [None if each is None else each // unit * unit // (1000 if unit >= 1000 else 1) for each in turn]
        made = pa.array(counts, pa.int64()).view(data_type)
    elif kind in ("FLOAT", "DOUBLE"):
        made = pa.array(turn, pa.float64()).cast(data_type, safe=False)
    else:
        made = pa.array(turn, data_type)
    return made.take(pa.array([row % len(turn) for row in range(rows)]))


def _pairs(kinds: list[str]) -> list[tuple[str, str]]:
    """Return the changes of types that Spark's readers or expressions make."""
    types = {kind: parse_sql_type(kind) for kind in VALUES}
    return [
        (old, new)
        for old in kinds
        for new in VALUES
        if old != new and can_cast(types[old], types[new]) and can_convert(types[old], types[new])
    ]


def _shown(column: pa.ChunkedArray) -> str:
    """Return values as text, in which NaN equals itself and 0.0 is not -0.0."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return repr(column.to_pylist())


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_every_change_that_spark_makes_gives_the_same_values(
    spark: SparkSession, catalog: Catalog, reader: str, file_format: str
) -> None:
    name = f"d.all_{file_format}_{reader[:3]}"
    # Spark reads no timestamps of ORC, and no dates of which no statistics say that they are not old.
    pairs = _pairs([kind for kind in VALUES if file_format == "parquet" or not kind.startswith(("TIMESTAMP", "DATE"))])
    columns = ", ".join(f"c{place} {old}" for place, (old, _) in enumerate(pairs))
    table = catalog.create_table(name, f"id INT, {columns}", options={"file.format": file_format})
    rows = 2 * max(map(len, VALUES.values()))
    arrays = [_array(old, VALUES[old], rows) for old, _ in pairs]
    names = [f"c{place}" for place in range(len(pairs))]
    table.append(pa.table([pa.array(range(rows), pa.int32()), *arrays], names=["id", *names]))
    changes = zip(names, pairs, strict=True)
    table = catalog.alter_table(
        name, *(UpdateColumnType(column=column, type=new, allow_explicit=True) for column, (_, new) in changes)
    )
    # The setting of the session, which is not that of the casts.
    spark.conf.set("spark.sql.ansi.enabled", str(reader == "vectorised").lower())
    try:
        frame = spark.table(f"penstock.{name}")
        found = to_arrow(frame.orderBy("id"))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert f"by {file_format} reader of Spark, values of older types converted, filter" in plan_of(frame)
    expected = table.to_arrow()
    for place, pair in enumerate(pairs):
        assert _shown(found[f"c{place}"]) == _shown(expected[f"c{place}"]), (pair, mode_of(*map(_atomic, pair)))


def _atomic(kind: str) -> AtomicType:
    data_type = parse_sql_type(kind)
    assert isinstance(data_type, AtomicType)
    return data_type


def test_changes_that_differ_for_some_value_are_not_left_to_spark() -> None:
    for old, new in (
        ("STRING", "INT"),  # Spark trims blanks
        ("STRING", "DATE"),
        ("DOUBLE", "DECIMAL(10, 2)"),  # NaN is NULL to Spark
        ("DOUBLE", "STRING"),  # the digits depend on the version of Java
        ("DECIMAL(18, 6)", "DOUBLE"),  # 9999999999.999999
        ("DECIMAL(5, 2)", "FLOAT"),
        ("INT", "VARCHAR(5)"),
        ("STRING", "VARCHAR(5)"),
        ("BYTES", "STRING"),
        ("TIMESTAMP(6)", "TIMESTAMP(3)"),
        ("TIMESTAMP(3)", "STRING"),
        ("BIGINT", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP(3)", "BIGINT"),
        ("DATE", "TIMESTAMP(9)"),
    ):
        assert can_cast(parse_sql_type(old), parse_sql_type(new))
        assert not can_convert(parse_sql_type(old), parse_sql_type(new)), (old, new)


@pytest.fixture(scope="module")
def changed(catalog: Catalog) -> Table:
    """A table in which columns have changed types and names, a ROW has changed fields, and rows are deleted."""
    columns = "id INT, n INT, d DECIMAL(9, 2), f DOUBLE, r ROW<a INT, b STRING, s ROW<x INT>>, big BIGINT"
    table = catalog.create_table("d.changed", columns, options={"deletion-vectors.enabled": "true"})
    rows = [
        {
            "id": number,
            "n": None if number % 7 == 0 else number * 1000,
            "d": Decimal(number) / 4,
            "f": number / 2,
            "r": None if number % 5 == 0 else {"a": number, "b": None, "s": {"x": number} if number % 2 else None},
            "big": number << 33,
        }
        for number in range(50)
    ]
    table.append(pa.Table.from_pylist(rows[:25], table.arrow_schema))
    table = catalog.alter_table(
        "d.changed",
        UpdateColumnType(column="n", type="SMALLINT", allow_explicit=True),
        UpdateColumnType(column="d", type="STRING", allow_explicit=True),
        UpdateColumnType(column=("r", "a"), type="STRING", allow_explicit=True),
        AddColumn(column=("r", "c"), type="INT"),
        AddColumn(column=("r", "s", "y"), type="DOUBLE"),
        DropColumn(column=("r", "b")),
        RenameColumn(column=("r", "a"), new_name="b"),
        RenameColumn(column="n", new_name="m"),
        SetOption(key="file.format", value="orc"),
    )
    table.append([{"id": 100, "m": 5, "d": "z", "f": 1.0, "r": {"b": "k", "s": None, "c": 1}, "big": 1}])
    assert delete_keys(table, "id", {3, 24}) == 2
    return table


CONDITIONS: Final = (
    "true",
    "m = 5",
    "m < 0",
    "m IS NULL",
    "d = '1.75'",
    "d LIKE '1%' AND id > 4",
    "big = 8589934592",
    "f > 3 AND m > 2000",
)


def test_renamed_retyped_and_nested_columns_are_converted(spark: SparkSession, changed: Table, reader: str) -> None:
    for condition in CONDITIONS:
        frame = spark.sql(f"SELECT * FROM penstock.d.changed WHERE {condition}")
        wanted = changed.to_arrow(filter=condition)
        assert sorted(to_arrow(frame).to_pylist(), key=repr) == sorted(wanted.to_pylist(), key=repr), condition
    text = "with deletion vectors, columns by the names in files of 2 schemas, values of older types converted, filter"
    frame = spark.table("penstock.d.changed")
    assert text in plan_of(frame)
    assert "converted" not in plan_of(frame.select("id", "f"))
    assert spark.sql("SELECT r.s.x, r.c, r.b FROM penstock.d.changed WHERE id IN (1, 2, 100)").count() == 3
    nested = spark.sql("SELECT id, r.b FROM penstock.d.changed WHERE r.b = '4' OR r.c = 1 ORDER BY id")
    assert nested.collect() == [(4, "4"), (100, "k")]


@needs(METADATA_COLUMNS)
@pytest.mark.usefixtures("changed", "compiled")
def test_metadata_columns_follow_converted_ones(spark: SparkSession) -> None:
    frame = spark.sql("SELECT m, __paimon_bucket FROM penstock.d.changed WHERE __paimon_file_path LIKE '%.parquet'")
    assert frame.where("m = 9000").collect() == [(9000, 0)]


def test_a_stream_converts_values(spark: SparkSession, changed: Table, tmp_path: Path) -> None:
    frame = spark.readStream.table("penstock.d.changed")
    sink = frame.writeStream.format("memory").queryName("converted").outputMode("append")
    sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    found = to_arrow(spark.table("converted"))
    assert sorted(found.to_pylist(), key=repr) == sorted(changed.to_arrow().to_pylist(), key=repr)


def test_a_stream_that_began_with_a_narrower_type_ends_at_values_of_the_wider_one(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("d.widened", "id INT, v INT")
    frame = spark.readStream.option("scan.mode", "earliest").table("penstock.d.widened")
    table = catalog.alter_table("d.widened", UpdateColumnType(column="v", type="BIGINT"))
    table.append([{"id": 1, "v": 5_000_000_000}])
    sink = frame.writeStream.format("memory").queryName("widened").option("checkpointLocation", str(tmp_path))
    with pytest.raises(StreamingQueryException, match="became BIGINT in schema 1, and is read here as INT"):
        sink.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("widened").count() == 0
    sink = frame.select("id").writeStream.format("memory").queryName("ids").outputMode("append")
    sink.option("checkpointLocation", str(tmp_path / "ids")).trigger(availableNow=True).start().awaitTermination()
    assert spark.table("ids").collect() == [(1,)]


def test_an_update_keeps_the_values_of_older_files(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.kept", "id INT, v BIGINT")
    table.append([{"id": number, "v": number << 31} for number in range(4)])
    table = catalog.alter_table("d.kept", UpdateColumnType(column="v", type="INT", allow_explicit=True))
    before = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    spark.sql("UPDATE penstock.d.kept SET v = 7 WHERE id = 2")
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == {**before, 2: 7}


@needs(PYTHON_SCANS)
def test_without_the_class_python_workers_convert(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("d.classless", "v INT")
    table.append([{"v": 1000}, {"v": None}])
    table = catalog.alter_table("d.classless", UpdateColumnType(column="v", type="TINYINT", allow_explicit=True))
    monkeypatch.setattr(scan, "executors_have_classes", lambda _: False)
    frame = spark.table("penstock.d.classless")
    assert "by Python workers, because the type of a column was changed, and some files" in plan_of(frame)
    assert _shown(to_arrow(frame)["v"]) == _shown(table.to_arrow()["v"]) == "[-24, None]"
