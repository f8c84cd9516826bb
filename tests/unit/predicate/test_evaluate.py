from __future__ import annotations

import math

import pytest

from penstock.format.manifest.stats import ColumnStats
from penstock.format.types.data_types import BYTES, DOUBLE, INT, STRING, AtomicType, DataField, TypeRoot
from penstock.predicate.bind import bind
from penstock.predicate.evaluate import allowed_values, evaluate, may_match, residual
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import FALSE, TRUE, BoundPredicate, Predicate, col

NAN = math.nan
FIELDS = tuple(
    DataField(id=i, name=name, type=data_type)
    for i, (name, data_type) in enumerate({"a": INT, "b": INT, "s": STRING, "d": DOUBLE}.items())
)


def bound(text: str) -> BoundPredicate:
    return bind(parse_filter(text), FIELDS, "t")


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("a = 1 AND b = 1", (1, 1), True),
        ("a = 1 AND b = 1", (None, 1), None),
        ("a = 1 AND b = 1", (None, 2), False),
        ("a = 1 OR b = 1", (None, 1), True),
        ("a = 1 OR b = 1", (None, 2), None),
        ("NOT a = 1", (None, 0), None),
        ("NOT (a = 1 AND b = 1)", (None, 2), True),
        ("NOT (a = 1 AND b = 1)", (None, 1), None),
        ("a = NULL", (1, 0), None),
        ("NOT a = NULL", (1, 0), None),
        ("a IS NULL", (None, 0), True),
        ("a IS NOT NULL", (None, 0), False),
        ("a IN (1, NULL)", (2, 0), None),
        ("a NOT IN (1, NULL)", (1, 0), False),
        ("a NOT BETWEEN 1 AND 3", (2, 0), False),
        ("a NOT BETWEEN 1 AND 3", (4, 0), True),
        ("a NOT BETWEEN 1 AND NULL", (0, 0), True),
        ("a NOT BETWEEN 1 AND NULL", (2, 0), None),
    ],
)
def test_logic_has_three_values(text: str, row: tuple[int | None, int | None], expected: object) -> None:
    assert evaluate(bound(text).root, {"a": row[0], "b": row[1]}) is expected


def test_nan_equals_itself_and_is_the_greatest() -> None:
    nan = bind(col("d") == NAN, FIELDS, "t").root
    assert [evaluate(nan, {"d": value}) for value in (math.nan, 1.0, None)] == [True, False, None]
    greater = bound("d > 5").root
    assert [evaluate(greater, {"d": value}) for value in (math.nan, math.inf, 1.0)] == [True, True, False]
    less = bind(col("d") < NAN, FIELDS, "t").root
    assert [evaluate(less, {"d": value}) for value in (math.nan, math.inf)] == [False, True]


def test_the_two_zeros_are_equal() -> None:
    assert evaluate(bound("d = 0").root, {"d": -0.0}) is True
    assert evaluate(bound("d < 0").root, {"d": -0.0}) is False


def test_a_partition_is_judged_by_its_own_columns_only() -> None:
    predicate = bound("a = 1 AND s = 'x' OR a = 2")
    assert residual(predicate, {"a": 1}).root != FALSE
    assert residual(predicate, {"a": 2}).root != FALSE
    assert residual(predicate, {"a": 3}).root == FALSE
    assert residual(predicate, {"a": None}).root == FALSE


def test_the_residual_speaks_of_the_other_columns() -> None:
    predicate = bound("a = 1 AND s = 'x' OR a = 2")
    assert residual(predicate, {"a": 1}).root == (col("s") == "x")
    assert residual(predicate, {"a": 1}).columns == ("s",)
    assert residual(predicate, {"a": 2}).root == TRUE
    assert residual(predicate, {"a": 3}).root == FALSE


def test_a_null_partition_matches_is_null_only() -> None:
    assert residual(bound("a IS NULL"), {"a": None}).root != FALSE
    assert residual(bound("a IS NOT NULL"), {"a": None}).root == FALSE
    assert residual(bound("NOT a = 1"), {"a": None}).root == FALSE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", {1}),
        ("a IN (1, 2, NULL)", {1, 2}),
        ("a IS NULL", {None}),
        ("a = 1 AND b > 5", {1}),
        ("a IN (1, 2) AND a IN (2, 3)", {2}),
        ("a = 1 OR a = 2", {1, 2}),
        ("a = 1 OR b = 2", None),
        ("(a = 1 AND b = 1) OR (a = 2 AND b = 2)", {1, 2}),
        ("a = 1 OR FALSE", {1}),
        ("a > 1", None),
        ("a NOT IN (1)", None),
        ("a = NULL", set()),
        ("b = 1", None),
    ],
)
def test_allowed_values_are_what_a_passing_row_must_hold(text: str, expected: object) -> None:
    assert allowed_values(bound(text).root, "a") == expected


STATS_FIELDS = tuple(
    DataField(id=i, name=name, type=data_type)
    for i, (name, data_type) in enumerate(
        {"a": INT, "s": STRING, "d": DOUBLE, "c": AtomicType(root=TypeRoot.CHAR, length=5), "raw": BYTES}.items()
    )
)
STATS = {
    "a": ColumnStats(min=1, max=5, null_count=2),
    "s": ColumnStats(min="abc", max="abz", null_count=0),
    "d": ColumnStats(min=1.0, max=5.0, null_count=0),
    "c": ColumnStats(min="abc  ", max="abc  ", null_count=0),
    "raw": ColumnStats(min=b"\x01", max=b"\x02", null_count=0),
}


def may(predicate: Predicate | str, stats: dict[str, ColumnStats] | None = None, rows: int = 10) -> bool:
    parsed = parse_filter(predicate) if isinstance(predicate, str) else predicate
    return may_match(bind(parsed, STATS_FIELDS, "t"), STATS if stats is None else stats, rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 0", False),
        ("a = 1", True),
        ("a < 1", False),
        ("a <= 1", True),
        ("a > 5", False),
        ("a >= 5", True),
        ("a <> 3", True),
        ("a IN (0, 6)", False),
        ("a IN (0, 5)", True),
        ("a NOT IN (1, NULL)", False),
        ("a IS NULL", True),
        ("s IS NULL", False),
        ("s LIKE 'ab%'", True),
        ("s LIKE 'b%'", False),
        ("s LIKE 'aa%'", False),
        ("s NOT LIKE 'ab%'", False),
        ("s NOT LIKE 'abc%'", True),
        ("a = 0 OR s = 'abc'", True),
        ("a = 0 AND s = 'abc'", False),
        ("a = NULL", False),
    ],
)
def test_only_what_cannot_match_is_excluded(text: str, expected: bool) -> None:  # noqa: FBT001 - pytest gives it by name
    assert may(text) is expected


def test_what_is_not_known_excludes_nothing() -> None:
    for text in ("a = 0", "a IS NULL", "a IS NOT NULL", "s NOT LIKE 'ab%'", "a <> 3"):
        assert may(text, {})
        assert may(text, {"a": ColumnStats(), "s": ColumnStats()})
    assert may("a < 0", {"a": ColumnStats(max=5)})
    assert not may("a > 9", {"a": ColumnStats(max=5)})


def test_a_column_of_nulls_matches_is_null_only() -> None:
    nulls = {"a": ColumnStats(null_count=10)}
    assert not may("a = 1", nulls)
    assert not may("a <> 1", nulls)
    assert not may("a IS NOT NULL", nulls)
    assert may("a IS NULL", nulls)


def test_no_rows_match_nothing() -> None:
    assert not may("a IS NULL", rows=0)


def test_one_value_excludes_its_opposite() -> None:
    same = {"a": ColumnStats(min=3, max=3, null_count=0)}
    assert not may("a <> 3", same)
    assert not may("a NOT IN (3, 4)", same)


def test_nan_may_hide_above_the_maximum_and_spoil_the_minimum() -> None:
    assert may("d > 5")
    assert may(col("d") == NAN)
    assert not may("d < 1")
    assert may("d < 1", {"d": ColumnStats(min=NAN, max=NAN, null_count=0)})


def test_padding_of_char_does_not_count() -> None:
    assert may("c = 'abc'")
    assert not may("c = 'abb'")


def test_ranges_of_bytes_are_not_trusted() -> None:
    assert may(col("raw") == b"\xff")
