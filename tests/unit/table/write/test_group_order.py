"""Sorting rows by group keeps the order inside each group."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.table.write.spill import split_sorted, stable_order


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 300), st.integers(0, 70_000), st.integers(0, 2**31 - 1))))
def test_order_is_that_of_a_stable_sort(ids: list[int]) -> None:
    array = np.array(ids, dtype=np.int32)
    assert stable_order(array).tolist() == sorted(range(len(ids)), key=lambda place: ids[place])


@given(st.lists(st.integers(0, 5)))
def test_stretches_cover_sorted_rows_once(ids: list[int]) -> None:
    ids.sort()
    stretches = list(split_sorted(np.array(ids, dtype=np.int32)))
    assert [stretch.group for stretch in stretches] == sorted(set(ids))
    assert [stretch.group for stretch in stretches for _ in range(stretch.start, stretch.stop)] == ids
