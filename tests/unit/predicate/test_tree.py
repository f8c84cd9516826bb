from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from penstock.errors import InvalidFilterError
from penstock.predicate.tree import And, Compare, Operator, col

if TYPE_CHECKING:
    from collections.abc import Callable


def test_comparing_a_column_builds_a_value() -> None:
    assert (col("x") > 5) == Compare(column="x", operator=Operator.GT, value=5)
    assert (5 > col("x")) == Compare(column="x", operator=Operator.LT, value=5)


def test_filters_combine_and_survive_pickling() -> None:
    both = (col("x") > 5) & ~col("y").isin(["a"]) | col("z").is_null()
    assert pickle.loads(pickle.dumps(both)) == both


def test_between_is_two_comparisons() -> None:
    assert col("x").between(1, 2) == And(operands=(col("x") >= 1, col("x") <= 2))


@pytest.mark.parametrize(
    "slip",
    [
        lambda: (col("x") > 5) and (col("y") > 5),
        lambda: not (col("x") > 5),
        lambda: 1 < col("x") < 5,
        lambda: col("x") == None,  # noqa: E711 - that is the slip
        lambda: col("x") == col("y"),
        lambda: (col("x") > 5) & True,
        lambda: col("x").isin("abc"),
        lambda: bool(col("x")),
    ],
)
def test_slips_of_python_are_errors(slip: Callable[[], object]) -> None:
    with pytest.raises(InvalidFilterError):
        slip()
