from __future__ import annotations

import math

import pytest

from penstock.format.types.data_types import DOUBLE, INT, STRING, DataField
from penstock.predicate.bind import bind
from penstock.predicate.evaluate import allowed_values, evaluate, matches_partition, residual
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import FALSE, TRUE, BoundPredicate, col

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
    assert matches_partition(predicate, {"a": 1})
    assert matches_partition(predicate, {"a": 2})
    assert not matches_partition(predicate, {"a": 3})
    assert not matches_partition(predicate, {"a": None})


def test_the_residual_speaks_of_the_other_columns() -> None:
    predicate = bound("a = 1 AND s = 'x' OR a = 2")
    assert residual(predicate, {"a": 1}).root == (col("s") == "x")
    assert residual(predicate, {"a": 1}).columns == ("s",)
    assert residual(predicate, {"a": 2}).root == TRUE
    assert residual(predicate, {"a": 3}).root == FALSE


def test_a_null_partition_matches_is_null_only() -> None:
    assert matches_partition(bound("a IS NULL"), {"a": None})
    assert not matches_partition(bound("a IS NOT NULL"), {"a": None})
    assert not matches_partition(bound("NOT a = 1"), {"a": None})


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
