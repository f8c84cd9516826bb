from __future__ import annotations

import datetime as dt
import math
import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from penstock.errors import InvalidFilterError
from penstock.format.manifest.stats import ColumnStats
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TINYINT,
    ArrayType,
    AtomicType,
    DataField,
    TypeRoot,
    decimal_type,
    time_type,
    timestamp_type,
)
from penstock.predicate.bind import bind
from penstock.predicate.evaluate import evaluate, may_match
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import FALSE, TRUE, Compare, Not, StartsWith, col

if TYPE_CHECKING:
    from penstock.predicate.tree import Predicate

FIELDS = tuple(
    DataField(id=i, name=name, type=data_type)
    for i, (name, data_type) in enumerate(
        {
            "tiny": TINYINT,
            "num": INT,
            "big": BIGINT,
            "f": FLOAT,
            "d": DOUBLE,
            "price": decimal_type(10, 2),
            "name": STRING,
            "ok": BOOLEAN,
            "raw": BYTES,
            "day": DATE,
            "at": time_type(3),
            "ts": timestamp_type(3),
            "ts9": timestamp_type(9),
            "ltz": timestamp_type(6, local_zone=True),
            "tags": ArrayType(element=STRING),
        }.items()
    )
)
NAN = math.nan
UTC_NOON = dt.datetime(1970, 1, 2, 12, tzinfo=dt.UTC)


def bound(predicate: Predicate) -> Predicate:
    return bind(predicate, FIELDS, "shop.orders").root


@pytest.mark.parametrize(
    ("predicate", "internal"),
    [
        (col("tiny") == 5, 5),
        (col("num") == np.int64(5), 5),
        (col("num") == 5.0, 5),
        (col("big") == Decimal("5.00"), 5),
        (col("f") == 0.1, float(np.float32(0.1))),
        (col("f") == math.inf, math.inf),
        (col("f") >= 0.1, float(np.float32(0.1))),
        (col("f") < np.float32(0.1), float(np.float32(0.1))),
        (parse_filter("f = 0.10000000149011612"), float(np.float32(0.1))),
        # As Java 8 to 17 prints them, and Python 1e-45 and 9.112305567888109e+18.
        (parse_filter("f = 1.4E-45"), 2.0**-149),
        (parse_filter("f = 2.43101206E14"), 243101205528576.0),
        (parse_filter("d = -9.1123055678881085E18"), -9.112305567888109e18),
        (parse_filter("f <= 16777216"), 16777216.0),
        (parse_filter("d <= 0.1"), 0.1),
        (col("d") == -0.0, -0.0),
        (col("d") == 1, 1.0),
        (col("d") == Decimal("1.5"), 1.5),
        (col("price") == 9.99, Decimal("9.99")),
        (col("price") == 3, Decimal("3.00")),
        (col("name") == "x", "x"),
        (col("ok") == True, True),  # noqa: E712
        (col("raw") == bytearray(b"x"), b"x"),
        (col("day") == dt.date(1970, 1, 2), 1),
        (col("day") == "1970-01-02", 1),
        (col("day") == dt.datetime(1970, 1, 2), 1),  # noqa: DTZ001 - columns without a zone take values without one
        (col("at") == dt.time(0, 0, 1), 1000),
        (col("at") == "00:00:01", 1000),
        (col("ts") == "1970-01-01 00:00:01.5", 1_500_000_000),
        (col("ts") == dt.date(1970, 1, 2), 86_400 * 10**9),
        (parse_filter("ts9 = TIMESTAMP '1970-01-01 00:00:00.000000001'"), 1),
        (col("ltz") == UTC_NOON, 36 * 3600 * 10**9),
        (col("ltz") == UTC_NOON.astimezone(dt.timezone(dt.timedelta(hours=5))), 36 * 3600 * 10**9),
        (col("ltz") == "1970-01-01 01:00:00+01:00", 0),
    ],
)
def test_literals_become_internal_values(predicate: Predicate, internal: object) -> None:
    root = bound(predicate)
    assert isinstance(root, Compare)
    assert root.value == internal
    assert type(root.value) is type(internal)


def test_decimal_literals_keep_every_digit() -> None:
    field = DataField(id=0, name="p", type=decimal_type(38, 3))
    value = Decimal("12345678901234567890123456789012345.678")
    assert bind(col("p") == value, [field], "t").root.value == value


@pytest.mark.parametrize(
    ("predicate", "values", "expected"),
    [
        (col("tiny") < 1000, [5, None], [True, None]),
        (col("tiny") >= 1000, [5, None], [False, None]),
        (col("tiny") == 1000, [5, None], [False, None]),
        (col("tiny") != -1000, [5, None], [True, None]),
        (col("tiny") > -1000, [5, None], [True, None]),
        (col("tiny") > 2.5, [2, 3, None], [False, True, None]),
        (col("tiny") >= 2.5, [2, 3], [False, True]),
        (col("tiny") < 2.5, [2, 3], [True, False]),
        (col("tiny") <= -2.5, [-3, -2], [True, False]),
        (col("tiny") == 2.5, [2, None], [False, None]),
        (col("tiny") != 2.5, [2, None], [True, None]),
        (~(col("tiny") == 2.5), [2, None], [True, None]),
        (col("tiny").isin([2.5, 300]), [2, None], [False, None]),
        (~col("tiny").isin([2.5, 300]), [2, None], [True, None]),
        (col("tiny").isin([2.5, 3]), [2, 3, None], [False, True, None]),
        (col("tiny").isin([3, None]), [2, 3, None], [None, True, None]),
        (~col("tiny").isin([3, None]), [2, 3, None], [None, False, None]),
        (col("tiny").isin([]), [2, None], [False, False]),
        (col("f") > 1e39, [3e38, math.inf, math.nan, None], [False, True, True, None]),
        (col("f") <= 1e39, [-math.inf, 3e38, math.inf], [True, True, False]),
        (col("f") == 1e39, [math.inf, None], [False, None]),
        (col("f") != 1e39, [math.inf, None], [True, None]),
        (col("f") < -1e39, [-math.inf, -3e38], [True, False]),
        (col("f") >= 16777217, [16777216.0, 16777218.0], [False, True]),
        (col("f").isin([16777217, 2]), [16777216.0, 2.0, None], [False, True, None]),
        (col("f") > 1e-60, [0.0, 1e-45], [False, True]),
        (col("f") >= -1e-60, [-1.5e-45, -0.0], [False, True]),
        (col("d") > 2**53 + 1, [2.0**53, 2.0**53 + 2], [False, True]),
        (col("d") < Decimal("1e400"), [1.7e308, math.inf, math.nan], [True, False, False]),
        (col("d") == Decimal("1e400"), [math.inf, None], [False, None]),
        (parse_filter("d IN (5, 1e400)"), [math.inf, 5.0], [False, True]),
        (parse_filter("f < -1e400"), [-math.inf, -3e38], [True, False]),
        (col("d") <= Decimal("-1e-999999"), [0.0, -5e-324], [False, True]),
        (col("tiny") > Decimal("1e-99999999"), [0, 1], [False, True]),
        (col("tiny") <= Decimal("-1e-99999999"), [0, -1], [False, True]),
        (col("tiny") < Decimal("1e99999999"), [127, None], [True, None]),
        (col("tiny") <= Decimal("-1e99999999"), [-128, None], [False, None]),
    ],
)
def test_literals_outside_of_the_type_still_mean_what_they_say(
    predicate: Predicate, values: list[object], expected: object
) -> None:
    root = bound(predicate)
    columns = ("tiny", "f", "d")
    assert [evaluate(root, dict.fromkeys(columns, value)) for value in values] == expected


def test_a_date_compares_with_a_moment_inside_a_day() -> None:
    root = bound(col("day") < dt.datetime(1970, 1, 2, 12))  # noqa: DTZ001
    assert [evaluate(root, {"day": day}) for day in (0, 1, 2)] == [True, True, False]


def test_a_literal_finer_than_the_column_lies_between_its_steps() -> None:
    root = bound(col("ts") >= "1970-01-01 00:00:00.0005")
    assert [evaluate(root, {"ts": nanos}) for nanos in (0, 10**6)] == [False, True]


def test_an_empty_prefix_fits_every_text() -> None:
    root = bound(parse_filter("name LIKE '%'"))
    assert [evaluate(root, {"name": value}) for value in ("", "x", None)] == [True, True, None]


def test_not_is_pushed_into_the_leaves() -> None:
    root = bound(~((col("num") > 5) & ~col("name").startswith("a") | col("num").is_null()))
    assert root == ((col("num") <= 5) | StartsWith(column="name", prefix="a")) & col("num").is_not_null()
    assert bound(Not(operand=Not(operand=col("num") > 5))) == (col("num") > 5)


def test_constants_fold() -> None:
    assert bound(TRUE & (col("num") > 5)) == (col("num") > 5)
    assert bound(FALSE & (col("num") > 5)) == FALSE
    assert bound(TRUE | (col("num") > 5)) == TRUE
    assert bind(TRUE, FIELDS, "t").is_always_true


def test_only_used_columns_are_listed_in_schema_order() -> None:
    predicate = bind((col("name") == "x") & (col("num") > 5) & (col("name") > "a"), FIELDS, "t")
    assert predicate.columns == ("num", "name")


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        (col("nam") == "x", ["shop.orders", "'nam'", "did you mean 'name'"]),
        (col("NAME") == "x", ["did you mean 'name'"]),
        (col("zzz") == "x", ["its columns are tiny"]),
        (col("num") == "5", ["shop.orders", "'num'", "a number", "'5'"]),
        (col("num") == True, ["a number"]),  # noqa: E712
        (col("num") == NAN, ["finite"]),
        (col("name") == 5, ["text in quotes", "5"]),
        (col("name").isin(["a", "\ud800"]), ["Unicode", "ud800"]),
        (col("ok") == 1, ["TRUE or FALSE"]),
        (col("raw") == "x", ["X'00ff'"]),
        (col("day") == 5, ["DATE '"]),
        (col("day") == "monday", ["DATE '", "monday"]),
        (col("day") == UTC_NOON, ["without a time zone"]),
        (col("ts") == UTC_NOON, ["without a time zone"]),
        (col("ltz") == UTC_NOON.replace(tzinfo=None), ["a time with a zone", "10:00:00+00:00'", "tzinfo"]),
        (col("ltz") >= "1970-01-02 12:00:00", ["a time with a zone"]),
        (col("ltz").isin([UTC_NOON, dt.date(1970, 1, 2)]), ["a time with a zone"]),
        (parse_filter("ltz < TIMESTAMP '1970-01-02 12:00:00'"), ["a time with a zone"]),
        (parse_filter("NOT ltz = DATE '1970-01-02'"), ["a time with a zone"]),
        (col("at") == 5, ["TIME '"]),
        (col("at") == "25:00", ["TIME '"]),
        (col("tags") == "x", ["'tags' (ARRAY<STRING>)", "IS NULL"]),
        (col("num").startswith("x"), ["LIKE needs a text column"]),
        (col("name") == 5, ["'name' (STRING)"]),
        (parse_filter("num"), ["a number"]),
    ],
)
def test_what_does_not_fit_names_table_column_and_cure(predicate: Predicate, words: list[str]) -> None:
    with pytest.raises(InvalidFilterError) as raised:
        bound(predicate)
    for word in words:
        assert word in str(raised.value)


PADDED = ("a", "a  ", "ab", "ab ", "abcd", "", " ", "b", "a\tb", "a\t", "\t", "a \x01")


@pytest.mark.parametrize("text", ["a", "a ", "ab", "ab    ", "", "zz", "abcd", "abcde"])
@pytest.mark.parametrize(
    ("template", "compare"),
    [
        ("c = '{}'", operator.eq),
        ("c <> '{}'", operator.ne),
        ("c < '{}'", operator.lt),
        ("c <= '{}'", operator.le),
        ("c > '{}'", operator.gt),
        ("c >= '{}'", operator.ge),
        ("c IN ('{}', 'q')", operator.eq),
        ("c LIKE '{}%'", None),
    ],
)
def test_a_char_is_compared_as_if_it_was_padded(template: str, compare: Any, text: str) -> None:
    fields = (DataField(id=0, name="c", type=AtomicType(root=TypeRoot.CHAR, length=4)),)
    size = max(4, len(text))
    for stored in PADDED:
        wide = stored.ljust(4)
        expected = wide.startswith(text) if compare is None else compare(stored.ljust(size), text.ljust(size))
        for predicate, is_true in (
            (parse_filter(template.format(text)), expected),
            (Not(operand=parse_filter(template.format(text))), not expected),
        ):
            bound = bind(predicate, fields, "t")
            assert evaluate(bound.root, {"c": stored}) is is_true, (stored, text)
            equal = ColumnStats(min=stored, max=stored, null_count=0)
            assert may_match(bound, {"c": equal}, 1) or not is_true
        assert evaluate(bind(parse_filter(template.format(text)), fields, "t").root, {"c": None}) is None


@pytest.mark.parametrize(
    "text", ["c BETWEEN 'a' AND 'abcd'", "NOT c BETWEEN 'abcd' AND 'b '", "c LIKE 'a'", "c IN (NULL, 'b')"]
)
def test_a_text_that_spark_does_not_pad_is_refused(text: str) -> None:
    fields = (DataField(id=0, name="c", type=AtomicType(root=TypeRoot.CHAR, length=4)),)
    with pytest.raises(InvalidFilterError, match=r"column 'c' .*Spark does not pad .*write >= AND <="):
        bind(parse_filter(text), fields, "t")


def test_a_text_that_needs_no_padding_is_compared_anywhere() -> None:
    fields = (DataField(id=0, name="c", type=AtomicType(root=TypeRoot.CHAR, length=4)),)
    for text in ("c BETWEEN 'a   ' AND 'aaaa'", "c LIKE 'a   '", "c IN (NULL, 'a   ')"):
        assert evaluate(bind(parse_filter(text), fields, "t").root, {"c": "a "}) is True


def test_a_char_has_no_order_by_characters_before_the_blank() -> None:
    fields = (DataField(id=0, name="c", type=AtomicType(root=TypeRoot.CHAR, length=4)),)
    assert evaluate(bind(parse_filter("c = 'a\t'"), fields, "t").root, {"c": "a\t "}) is True
    with pytest.raises(InvalidFilterError, match=r"column 'c' .*before the blank"):
        bind(parse_filter("c < 'a\t'"), fields, "t")


def test_a_long_list_of_long_chars_is_refused() -> None:
    fields = (DataField(id=0, name="c", type=AtomicType(root=TypeRoot.CHAR, length=20_000)),)
    with pytest.raises(InvalidFilterError, match="make the column a STRING"):
        bind(parse_filter("c = 'a'"), fields, "t")
