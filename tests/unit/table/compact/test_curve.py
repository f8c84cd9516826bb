"""Places on curves; the numbers were computed by the reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.table.compact.curve import Ranks, hilbert_keys, zorder_keys


def numbers(keys: np.ndarray) -> list[int]:
    return [int.from_bytes(bytes(key), "big") for key in keys.tolist()]


def codes(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def test_bits_are_interleaved_from_the_first_column_on() -> None:
    # Signed 1 and 2 with their sign bit flipped, as the reference interleaves them.
    keys = zorder_keys([codes(2**63 + 1), codes(2**63 + 2)], bits=64)
    assert [bytes(key).hex() for key in keys.tolist()] == ["c0000000000000000000000000000006"]
    keys = zorder_keys([codes(2**63 + 3), codes(2**63 + 5)], bits=64)
    assert [bytes(key).hex() for key in keys.tolist()] == ["c000000000000000000000000000001b"]


def test_places_on_the_hilbert_curve_are_those_of_the_reference() -> None:
    points = {(0, 0): 0, (0, 1): 1, (1, 1): 2, (1, 0): 3, (1, 2): 13, (3, 5): 28}
    keys = hilbert_keys([codes(*(x for x, _ in points)), codes(*(y for _, y in points))], bits=63)
    assert numbers(keys) == list(points.values())


@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_hilbert_curve_visits_every_point_by_steps_of_one(dimensions: int) -> None:
    bits = 3
    grid = np.indices((2**bits,) * dimensions).reshape(dimensions, -1).astype(np.uint64)
    places = numbers(hilbert_keys(list(grid), bits=bits))
    assert sorted(places) == list(range(2 ** (bits * dimensions)))
    path = grid[:, np.argsort(places)].astype(np.int64)
    assert np.abs(np.diff(path, axis=1)).sum(axis=0).tolist() == [1] * (len(places) - 1)


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1), st.lists(st.text(max_size=3)))
def test_ranks_are_ordered_as_the_values_are(values: list[str | None], sample: list[str]) -> None:
    ranks = Ranks.of(pa.array(sample, pa.string())).rank(pa.array(values, pa.string())).tolist()
    for value, rank in zip(values, ranks, strict=True):
        expected = 0 if value is None else 1 + sum(b.encode() <= value.encode() for b in set(sample))
        assert rank == expected


def test_a_large_sample_is_thinned_to_the_ranks_that_there_are() -> None:
    ranks = Ranks.of(pa.array(range(200_000)))
    found = ranks.rank(pa.array([-1, 0, 100_000, 199_999, None]))
    assert found[[0, 4]].tolist() == [1, 0]
    assert found[1] == 2
    assert abs(int(found[2]) - 2**15) < 4
    assert found[3] == 2**16 - 1


def test_a_column_of_few_values_weighs_as_much_as_one_of_many() -> None:
    few = Ranks.of(pa.array(["a", "b", "c", "d"])).spread(pa.array(["a", "b", "c", "d", None, ""]))
    assert [int(code) >> 14 for code in few] == [0, 1, 2, 3, 0, 0]
    many = Ranks.of(pa.array(range(1_000))).spread(pa.array([0, 500, 999]))
    assert [int(code) >> 14 for code in many] == [0, 2, 3]
    nothing = Ranks.of(pa.array([None], pa.int32())).spread(pa.array([None, 1], pa.int32()))
    assert nothing.tolist() == [0, 0]
