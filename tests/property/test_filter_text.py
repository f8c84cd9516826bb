"""A filter written as text passes the same rows as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_predicate_laws import FIELDS, filters, rows, to_batch

from penstock.datafile.filter import row_mask
from penstock.errors import InvalidFilterError
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.predicate.text import format_filter
from penstock.predicate.tree import Compare, Operator, StartsWith

if TYPE_CHECKING:
    from tests.property.test_predicate_laws import Row

    from penstock.predicate.tree import Predicate


@given(filters, rows)
def test_the_text_of_a_filter_passes_the_rows_that_the_filter_passes(predicate: Predicate, some: list[Row]) -> None:
    try:
        text = format_filter(predicate)
    except InvalidFilterError as error:
        assert "unknown" in str(error)  # noqa: PT017 - only these have none
        return
    batch = to_batch(some)
    masks = [row_mask(batch, bind(each, FIELDS, "t")) for each in (predicate, parse_filter(text))]
    assert [mask.to_pylist() for mask in masks[:1]] == [mask.to_pylist() for mask in masks[1:]]


@given(st.text(), st.text(min_size=1))
def test_any_name_and_any_text_survive(name: str, text: str) -> None:
    for predicate in (
        Compare(column=name, operator=Operator.EQ, value=text),
        StartsWith(column=name, prefix=text, negated=True),
    ):
        assert parse_filter(format_filter(predicate)) == predicate


@pytest.mark.parametrize("value", [object(), [1]])
def test_a_value_without_a_text_is_named(value: object) -> None:
    with pytest.raises(InvalidFilterError, match="cannot be written as text"):
        format_filter(Compare(column="a", operator=Operator.EQ, value=value))
