"""Values cast to the type that their column has now, with Java's rules."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.datafile.arrays import batch_of, column, rows_of

from penstock.datafile.cast.text import (
    parse_boolean,
    parse_date,
    parse_decimal,
    parse_float,
    parse_integer,
    parse_time,
    parse_timestamp,
)
from penstock.datafile.evolve import plan_evolution
from penstock.datafile.types import to_arrow_schema
from penstock.errors import UnsupportedFeatureError
from penstock.format.types.data_types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    DataField,
    DataType,
    MapType,
    RowType,
    decimal_type,
    time_type,
    timestamp_type,
)
from penstock.format.types.text import parse_sql_type


def evolve(old: tuple[DataField, ...], new: tuple[DataField, ...], *rows: Any) -> list[Any]:
    evolution = plan_evolution(old, new)
    places = [old.index(field) for field in evolution.file_fields]
    batch = batch_of([tuple(row[place] for place in places) for row in rows], evolution.file_fields)
    if not evolution.file_fields:  # a batch cannot be made of rows without columns
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    result = evolution.apply(batch)
    assert result.schema.equals(to_arrow_schema(new), check_metadata=True)
    result.validate(full=True)
    return rows_of([result], new)


def test_times_are_stored_alike_whatever_their_precision() -> None:
    assert evolve((column("t", time_type(0), 1),), (column("t", time_type(3), 1),), (5,)) == [(5,)]


def test_decimals_that_no_longer_fit_become_null_and_others_are_rounded() -> None:
    old, new = (column("d", decimal_type(38, 10), 1),), (column("d", decimal_type(5, 2), 1),)
    values = ("999.9949999999", "999.9950000000", "-1.0050000000", "9999999999999999999999999999.9999999999")

    read = evolve(old, new, *((Decimal(value),) for value in values))

    assert read == [(Decimal("999.99"),), (None,), (Decimal("-1.01"),), (None,)]


@pytest.mark.parametrize(
    ("old", "value", "expected"),
    [
        (DOUBLE, 1e300, None),
        (DOUBLE, 999.994, Decimal("999.99")),
        (DOUBLE, -999.995, None),
        (DOUBLE, 1e-300, Decimal("0.00")),
        (STRING, "1e1000", None),
        (STRING, "-1e999999999", None),
        (STRING, "0e1000", Decimal("0.00")),
        (STRING, "1e-1000", Decimal("0.00")),
    ],
)
def test_numbers_that_do_not_fit_into_a_decimal_become_null(old: DataType, value: Any, expected: Any) -> None:
    assert evolve((column("d", old, 1),), (column("d", decimal_type(5, 2), 1),), (value,)) == [(expected,)]


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        ("VARCHAR(3)", "VARCHAR(5)", "abcdefgh", "abcdefgh"),
        ("CHAR(3)", "VARCHAR(5)", "abcdefgh", "abcdefgh"),
        ("CHAR(3)", "CHAR(5)", "abc", "abc  "),
        ("VARBINARY(2)", "VARBINARY(3)", b"abcdef", b"abcdef"),
        ("BINARY(2)", "VARBINARY(3)", b"abcdef", b"abcdef"),
        ("VARCHAR(5)", "VARCHAR(3)", "abcdefgh", "abc"),
        ("VARBINARY(5)", "VARBINARY(3)", b"abcdef", b"abc"),
    ],
)
def test_only_a_shorter_type_cuts_values(old: str, new: str, value: Any, expected: Any) -> None:
    # Files of other writers hold values longer than their type says.
    before, after = (column("a", parse_sql_type(text), 1) for text in (old, new))

    assert evolve((before,), (after,), (value,)) == [(expected,)]


def test_timestamps_lose_digits_towards_the_past() -> None:
    old, new = (column("t", timestamp_type(9), 1),), (column("t", timestamp_type(4), 1),)

    assert evolve(old, new, (-1,), (123_456_789,)) == [(-100_000,), (123_400_000,)]


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_boolean, "YES", True),
        (parse_float, " 1e3f ", 1000.0),
        (parse_date, "2024-2-9", 19_762),
        (parse_date, "-1", None),
        (parse_time, "1:2:3.4", 3_723_400),
        (parse_time, "24:00:00", None),
        (parse_decimal, "1e400", None),
        (parse_decimal, "NaN", None),
        (parse_float, "nan", None),
        (parse_float, "1_0", None),
        (parse_boolean, "maybe", None),
        (lambda text: parse_integer(text, 8), "128", None),
        (lambda text: parse_integer(text, 8), "-", None),
        (lambda text: parse_integer(text, 8), "\u0661", None),
        (lambda text: parse_timestamp(text, 3), "2024-02-30 00:00:00", None),
        (lambda text: parse_timestamp(text, 3), "1970-01-01 00:00:01.2345", 1_234_000_000),
        (lambda text: parse_timestamp(text, 5), "17", None),
    ],
)
def test_text_is_parsed_as_java_parses_it(parse: Any, text: str, value: Any) -> None:
    if value is not None:
        assert parse(text) == value
    elif parse is parse_decimal and text[0] == "1":
        assert parse(text) > 10**300
    else:
        with pytest.raises(ValueError, match=r"is no|does not fit|out of range|must be"):
            parse(text)


NESTED = RowType(fields=(column("a", ArrayType(element=DOUBLE), 8), column("m", MapType(key=STRING, value=BYTES), 9)))


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        (ArrayType(element=INT), [1, None, 3], "[1, null, 3]"),
        (ArrayType(element=INT), [], "[]"),
        (ArrayType(element=parse_sql_type("DATE")), [19723], "[2024-01-01]"),
        (ArrayType(element=ArrayType(element=STRING)), [["a", "null"], None], "[[a, null], null]"),
        (MapType(key=STRING, value=BIGINT), [("b", 1), ("a", None)], "{b -> 1, a -> null}"),
        (RowType(fields=(column("x", INT, 8), column("y", STRING, 9))), (7, None), "{7, null}"),
        (NESTED, ([1.0, 1e10], [("k", b"v")]), "{[1.0, 1.0E10], {k -> v}}"),
    ],
)
def test_nested_values_become_the_text_that_java_prints(written: DataType, value: Any, text: str) -> None:
    old, new = (column("c", written, 1),), (column("c", STRING, 1),)
    assert evolve(old, new, (value,), (None,), (value,)) == [(text,), (None,), (text,)]
    whole = batch_of([(None,), (value,), (None,), (value,)], old)
    assert plan_evolution(old, new).apply(whole.slice(1, 2)).column(0).to_pylist() == [text, None]
    with pytest.raises(UnsupportedFeatureError, match="column 'c': values cannot be cast"):
        evolve(old, (column("c", parse_sql_type("VARCHAR(9)"), 1),), (value,))
