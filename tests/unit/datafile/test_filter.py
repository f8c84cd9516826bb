from __future__ import annotations

import math

import pyarrow as pa

from penstock.datafile.filter import filter_batch, row_mask
from penstock.format.types.data_types import DOUBLE, INT, DataField, timestamp_type
from penstock.predicate.bind import bind
from penstock.predicate.parse import parse_filter
from penstock.predicate.tree import Predicate, col

FIELDS = (
    DataField(id=0, name="d", type=DOUBLE),
    DataField(id=1, name="n", type=INT),
    DataField(id=2, name="ts", type=timestamp_type(3)),
)
NAN = math.nan
BATCH = pa.record_batch(
    [
        pa.array([1.0, NAN, None, -0.0], pa.float64()),
        pa.array([1, None, 2, 3], pa.int32()),
        pa.array([0, 1, None, -1], pa.timestamp("ms")),
    ],
    names=["d", "n", "ts"],
)


def mask(predicate: Predicate | str) -> list[bool | None]:
    parsed = parse_filter(predicate) if isinstance(predicate, str) else predicate
    answers: list[bool | None] = row_mask(BATCH, bind(parsed, FIELDS, "t")).to_pylist()
    return answers


def test_nan_is_the_greatest_and_equals_itself() -> None:
    assert mask("d > 0.5") == [True, True, None, False]
    assert mask("d <= 1") == [True, False, None, True]
    assert mask("d <> 1") == [False, True, None, True]
    assert mask(col("d") == NAN) == [False, True, None, False]
    assert mask(col("d") < NAN) == [True, False, None, True]
    assert mask(col("d").isin([NAN, 0.0])) == [False, True, None, True]


def test_null_in_a_list_makes_a_miss_unknown() -> None:
    assert mask("n IN (1, NULL)") == [True, None, None, None]
    assert mask("n NOT IN (1, NULL)") == [False, None, None, None]
    assert mask("d IN (1, NULL)") == [True, None, None, None]


def test_timestamps_compare_in_the_columns_unit() -> None:
    assert mask("ts >= TIMESTAMP '1970-01-01 00:00:00.0005'") == [False, True, None, False]
    assert mask("ts < TIMESTAMP '1970-01-01'") == [False, False, None, True]


def test_constants_answer_for_every_row() -> None:
    assert mask("TRUE") == [True] * 4
    assert mask("n = NULL") == [None] * 4


def test_rows_that_are_not_true_are_left_out_in_order() -> None:
    kept = filter_batch(BATCH, bind(parse_filter("n >= 2 OR d = 1"), FIELDS, "t"))
    assert kept.column("n").to_pylist() == [1, 2, 3]
    assert filter_batch(BATCH, bind(parse_filter("TRUE"), FIELDS, "t")) is BATCH
