from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from penstock.errors import InvalidFilterError
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import FALSE, TRUE, Not, TimestampLiteral, col

if TYPE_CHECKING:
    from penstock.predicate.tree import Predicate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 5", col("a") == 5),
        ("a == -5", col("a") == -5),
        ("a != 1.50", col("a") != Decimal("1.50")),
        (f"a > -{'9' * 28}.{'9' * 10}", col("a") > Decimal(f"-{'9' * 28}.{'9' * 10}")),
        ("a <> 1e3", col("a") != 1000.0),
        ("5 < a", col("a") > 5),
        ("5 >= a", col("a") <= 5),
        ("a < 'it''s'", col("a") < "it's"),
        ("`odd ``name` > 5", col("odd `name") > 5),
        ('"select" > 5', col("select") > 5),
        ("ünï = 1", col("ünï") == 1),
        ("d = DATE '2024-01-31'", col("d") == dt.date(2024, 1, 31)),
        ("t = time '10:00:01.5'", col("t") == dt.time(10, 0, 1, 500_000)),
        ("x = X'00fF'", col("x") == b"\x00\xff"),
        ("ok = TRUE", col("ok") == True),  # noqa: E712 - builds a filter
        ("TRUE = ok", col("ok") == True),  # noqa: E712
        ("ok", col("ok") == True),  # noqa: E712
        ("not ok", ~(col("ok") == True)),  # noqa: E712
        ("a is null", col("a").is_null()),
        ("a Is Not Null", col("a").is_not_null()),
        ("a IN (1, 2)", col("a").isin([1, 2])),
        ("a IN ('x', NULL)", col("a").isin(["x", None])),
        ("a BETWEEN 1 AND 2", col("a").between(1, 2)),
        ("a NOT BETWEEN 1 AND 2", Not(operand=col("a").between(1, 2))),
        ("a LIKE 'abc%'", col("a").startswith("abc")),
        ("a LIKE 'a\\%b\\_%'", col("a").startswith("a%b_")),
        ("a LIKE 'abc'", col("a") == "abc"),
        ("a NOT LIKE 'abc'", col("a") != "abc"),
        ("TRUE", TRUE),
        ("FALSE", FALSE),
        ("date = '2024'", col("date") == "2024"),
    ],
)
def test_text_becomes_the_filter_that_it_says(text: str, expected: Predicate) -> None:
    assert parse_filter(text) == expected


def test_and_binds_closer_than_or_and_not_closest() -> None:
    parsed = parse_filter("NOT a = 1 AND b = 2 OR c = 3")
    assert parsed == (~(col("a") == 1) & (col("b") == 2)) | (col("c") == 3)


def test_parentheses_win() -> None:
    assert parse_filter("a = 1 AND (b = 2 OR c = 3)") == (col("a") == 1) & ((col("b") == 2) | (col("c") == 3))


def test_not_in_and_not_like_are_negated_tests() -> None:
    assert parse_filter("a NOT IN (1)").negated
    assert parse_filter("a NOT LIKE 'x%'").negated


@pytest.mark.parametrize(
    ("text", "nanos", "has_zone"),
    [
        ("TIMESTAMP '1970-01-01'", 0, False),
        ("TIMESTAMP '1970-01-01 00:01'", 60 * 10**9, False),
        ("TIMESTAMP '1970-01-01T00:00:01.123456789'", 1_123_456_789, False),
        ("TIMESTAMP '1969-12-31 23:59:59.5'", -500_000_000, False),
        ("TIMESTAMP '1970-01-01 01:00:00+01:00'", 0, True),
        ("TIMESTAMP '1970-01-01 00:00:00Z'", 0, True),
    ],
)
def test_timestamps_keep_nine_digits_and_their_zone(text: str, nanos: int, *, has_zone: bool) -> None:
    assert parse_filter(f"a = {text}").value == TimestampLiteral(nanos=nanos, has_zone=has_zone)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("a = ", 5, "expected a value"),
        ("a > 5 b", 7, "unexpected 'b'"),
        ("a 5", 3, "after a column comes"),
        ("a = b", 5, "'b'"),
        ("(a = 1", 7, "close the parenthesis that was opened at 1"),
        ("a = 'x", 5, "close the quote"),
        ("a LIKE '%x'", 8, "prefix"),
        ("a LIKE 5", 8, "LIKE"),
        ("a IN 5", 6, "IN (value"),
        ("a IN ()", 7, "expected a value"),
        ("a BETWEEN 1", 12, "BETWEEN low AND high"),
        ("a IS 5", 6, "IS NULL"),
        ("a NOT 5", 7, "after NOT"),
        ("5 5", 3, "comparison"),
        ("5 = 5", 5, "expected a column"),
        ("", 1, "expected a value"),
        ("a = 5 AND", 10, "expected a value"),
        ("a ; b", 3, "unexpected ';'"),
        ("a = DATE '2024-13-01'", 5, "DATE"),
        ("a = X'0'", 5, "X"),
        ("a = 5x", 5, "unexpected"),
    ],
)
def test_an_error_names_the_position_and_gives_a_hint(text: str, position: int, words: str) -> None:
    with pytest.raises(InvalidFilterError) as raised:
        parse_filter(text)
    assert f"position {position}:" in str(raised.value)
    assert words in str(raised.value)
    assert "; " in str(raised.value)


def test_nesting_beyond_reason_is_an_error_not_a_crash() -> None:
    with pytest.raises(InvalidFilterError, match="nesting"):
        parse_filter("(" * 5000 + "a = 1" + ")" * 5000)
    with pytest.raises(InvalidFilterError, match="nesting"):
        parse_filter("NOT " * 5000 + "a = 1")


@pytest.mark.parametrize("number", ["9" * 5_000, "0." + "9" * 1_000_000, "1" * 401, "-" + "9" * 5_000])
def test_a_number_longer_than_any_type_is_an_error_that_does_not_repeat_it(number: str) -> None:
    with pytest.raises(InvalidFilterError, match="digits, and there may be 400") as caught:
        parse_filter(f"id = {number}")
    assert len(str(caught.value)) < 400


def test_the_largest_double_can_be_written_out() -> None:
    assert parse_filter(f"x = {'9' * 309}") == (col("x") == int("9" * 309))


def test_a_filter_has_an_end() -> None:
    with pytest.raises(InvalidFilterError, match="10,000,001 characters, and a filter has at most 10,000,000"):
        parse_filter("a" * 10_000_001)


def test_an_error_quotes_what_is_around_the_position_of_a_long_filter() -> None:
    text = " OR ".join(["id = 1"] * 200) + " ORR x = 5 " + " OR ".join(["id = 2"] * 200)
    with pytest.raises(InvalidFilterError, match=r"filter '….*ORR x = 5.*…', position 1998") as caught:
        parse_filter(text)
    assert len(str(caught.value)) < 400
