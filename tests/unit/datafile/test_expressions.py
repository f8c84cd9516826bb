"""Arrow expressions as filters: the rows are those of pyarrow's own filter, and what is not a filter is refused."""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datafile.expressions import to_filter
from penstock.datafile.filter import filter_batch, row_mask
from penstock.datafile.types import to_arrow_schema
from penstock.errors import InvalidFilterError
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TINYINT,
    DataField,
    decimal_type,
    timestamp_type,
)
from penstock.predicate.bind import bind
from penstock.predicate.tree import And, Compare, In, IsNull, Operator, Or, StartsWith, col
from penstock.table.dml.values import evaluate_all

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_NUMBERS: Final = st.sampled_from([-129, -1, 0, 1, 2, 127, 128, 2**40])
_FLOATS: Final = st.sampled_from([math.nan, -math.inf, math.inf, -0.0, 0.0, 0.1, 0.5, 1.0, -2.0, 1e39, 16777217.0])
_OF_SETS: Final = _FLOATS.filter(lambda number: number != 0)
_TEXTS: Final = st.text("ab%\n\U0010ffff", max_size=3)
_DATES: Final = st.sampled_from([dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)])
_SECOND: Final = dt.datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001 - a wall clock
_MOMENTS: Final = st.sampled_from([_SECOND, _SECOND + dt.timedelta(microseconds=1), _SECOND + dt.timedelta(seconds=1)])
_INSTANTS: Final = _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))
_PRICES: Final = st.sampled_from([Decimal("-99.99"), Decimal("0.00"), Decimal("0.10"), Decimal("1.50")])

# Column: its type, values of rows, values to compare with, values of sets.
COLUMNS: Final[dict[str, tuple[Any, SearchStrategy[Any], SearchStrategy[Any], SearchStrategy[Any]]]] = {
    "tiny": (TINYINT, st.sampled_from([-128, -1, 0, 1, 2, 127]), _NUMBERS | st.sampled_from([0.5, 1.0]), _NUMBERS),
    "big": (BIGINT, st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1]), _NUMBERS, _NUMBERS),
    "price": (decimal_type(4, 2), _PRICES, _PRICES | st.sampled_from([Decimal("0.105"), 0.1, 1.5, -1e30]), _PRICES),
    "f": (FLOAT, _FLOATS.map(lambda number: pa.scalar(number, pa.float32()).as_py()), _FLOATS | _PRICES, _OF_SETS),
    "d": (DOUBLE, _FLOATS, _FLOATS | _PRICES, _OF_SETS),
    "s": (STRING, _TEXTS, _TEXTS, _TEXTS),
    "raw": (BYTES, st.binary(max_size=2), st.binary(max_size=2), st.binary(max_size=2)),
    "ok": (BOOLEAN, st.booleans(), st.booleans(), st.booleans()),
    "day": (DATE, _DATES, _DATES | _MOMENTS, _DATES),
    "ts": (timestamp_type(6), _MOMENTS, _MOMENTS | _DATES, _MOMENTS),
    "ltz": (timestamp_type(6, local_zone=True), _INSTANTS, _INSTANTS, _INSTANTS),
}
FIELDS: Final = tuple(DataField(id=i, name=name, type=COLUMNS[name][0]) for i, name in enumerate(COLUMNS))
SCHEMA: Final = to_arrow_schema(FIELDS)
_COMPARISONS: Final = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)

rows = st.lists(st.fixed_dictionaries({name: st.none() | column[1] for name, column in COLUMNS.items()}), max_size=6)


def leaf_of(name: str) -> SearchStrategy[pc.Expression]:
    field = pc.field(name)
    kind = SCHEMA.field(name).type
    literals = st.none().map(lambda _: pa.scalar(None, kind)) | COLUMNS[name][2]
    sets = st.lists(st.none() | COLUMNS[name][3], min_size=1, max_size=3).filter(any_value)
    leaves: list[SearchStrategy[Any]] = [
        st.builds(lambda compare, value: compare(field, value), st.sampled_from(_COMPARISONS), literals),
        st.builds(lambda compare, value: compare(pc.scalar(value), field), st.sampled_from(_COMPARISONS), literals),
        st.builds(
            lambda values, skip: pc.is_in(field, value_set=pa.array(values), skip_nulls=skip), sets, st.booleans()
        ),
        st.builds(field.is_null),
        st.builds(field.is_valid),
    ]
    if name == "s":
        leaves += [st.builds(lambda prefix: pc.starts_with(field, prefix), _TEXTS)]
        leaves += [st.builds(lambda text: pc.match_like(field, text), st.text("ab", max_size=2) | st.just("a%"))]
    if name in {"f", "d"}:
        leaves += [st.builds(lambda: pc.is_nan(field)), st.builds(lambda: field.is_null(nan_is_null=True))]
    if name == "ok":
        leaves.append(st.just(field))
    return st.one_of(leaves)


def any_value(values: list[object]) -> bool:
    return any(value is not None for value in values)


leaf_expressions = st.sampled_from(sorted(COLUMNS)).flatmap(leaf_of)
expressions = st.recursive(
    leaf_expressions,
    lambda inner: st.one_of(
        st.builds(operator.and_, inner, inner), st.builds(operator.or_, inner, inner), st.builds(operator.invert, inner)
    ),
    max_leaves=6,
)


def answers(expression: pc.Expression, batch: pa.RecordBatch) -> list[bool | None]:
    return row_mask(batch, bind(to_filter(expression, "db.t"), FIELDS, "db.t")).to_pylist()


@given(rows, expressions)
def test_a_filter_gives_the_answers_of_the_expression(table: list[dict[str, Any]], expression: pc.Expression) -> None:
    batch = pa.RecordBatch.from_pylist(table, schema=SCHEMA)
    expected = evaluate_all(batch, {"answer": expression}, "db.t")["answer"].to_pylist()
    assert answers(expression, batch) == expected


@given(rows, expressions)
def test_rows_that_pass_are_those_of_pyarrow(table: list[dict[str, Any]], expression: pc.Expression) -> None:
    batch = pa.RecordBatch.from_pylist(table, schema=SCHEMA)
    bound = bind(to_filter(expression, "db.t"), FIELDS, "db.t")
    expected = pa.Table.from_batches([batch]).filter(expression)
    assert str(filter_batch(batch, bound).to_pylist()) == str(expected.to_pylist())


def test_parts_become_those_of_filters() -> None:
    a, s = pc.field("a"), pc.field("s")
    five = Compare(column="a", operator=Operator.GT, value=col("a").__gt__(5).value)
    assert repr(to_filter(a > 5, "t")) == repr(five)
    assert repr(to_filter(pc.scalar(5) < a, "t")) == repr(five)
    assert to_filter(a.is_null(), "t") == IsNull(column="a")
    assert to_filter(pc.starts_with(s, "x%"), "t") == StartsWith(column="s", prefix="x%")
    assert to_filter(pc.match_like(s, "x%"), "t") == StartsWith(column="s", prefix="x")
    assert to_filter(s.isin(["x", None]), "t") == Or(operands=(IsNull(column="s"), In(column="s", values=("x",))))
    joined = to_filter((s == "x") & (s == "y") & (s == "z"), "t")
    assert isinstance(joined, And)
    assert len(joined.operands) == 3


def test_a_long_chain_is_flat_and_deep_nesting_is_refused() -> None:
    chain = functools.reduce(operator.or_, (pc.field("big") == number for number in range(3_000)))
    batch = pa.RecordBatch.from_pylist([{"big": 2_999}, {"big": 3_000}], schema=SCHEMA)
    assert answers(chain, batch) == [True, False]
    deep = functools.reduce(lambda inner, _: ~inner, range(200), pc.field("ok"))
    with pytest.raises(InvalidFilterError, match="more than 100 levels of nesting"):
        to_filter(deep, "t")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (pc.field("a") > pc.field("b"), r"greater\(a, b\): columns compare with values only"),
        (pc.field("a") + 1 > 5, r"add_checked\(a, 1\) is not a condition on a column"),
        (pc.field("a").cast(pa.int64()) > 5, r"cast\(a\) is not a column; compare the column itself"),
        (pc.field("ok") & (pc.utf8_length(pc.field("s")) > 1), r"utf8_length\(s\) is not a condition"),
        (pc.field("a", "b") == 1, r"a\.b is in a nested column"),
        (pc.field(0) == 1, "name the columns"),
        (pc.starts_with(pc.field("s"), "a", ignore_case=True), "ignore_case is not supported"),
        (pc.match_like(pc.field("s"), "%a"), "only 'abc%'"),
        (pc.match_like(pc.field("s"), "a\\%"), "only 'abc%'"),
        (pc.scalar(5), "5 is not a condition"),
    ],
)
def test_a_part_that_no_filter_expresses_is_named(expression: pc.Expression, words: str) -> None:
    with pytest.raises(InvalidFilterError, match=words) as raised:
        to_filter(expression, "db.t")
    assert str(raised.value).startswith("table db.t: filter ")


def test_and_without_kleene_names_the_operator() -> None:
    plain = pc.Expression._call("and", [pc.field("a"), pc.field("b")])  # type: ignore[attr-defined]
    with pytest.raises(InvalidFilterError, match="join conditions with &"):
        to_filter(plain, "t")


@pytest.mark.parametrize("column", ["f", "d"])
def test_a_set_with_zero_is_refused_for_floats_whose_zeros_arrow_holds_apart(column: str) -> None:
    with pytest.raises(InvalidFilterError, match=r"0\.0 and -0\.0"):
        bind(to_filter(pc.field(column).isin([0.0, 1.0]), "t"), FIELDS, "t")


def test_nanoseconds_are_exact() -> None:
    moment = pa.scalar(1_700_000_000_000_000_001, pa.timestamp("ns"))
    fields = (DataField(id=0, name="ts", type=timestamp_type(9)),)
    batch = pa.RecordBatch.from_pydict({"ts": pa.array([moment.value, moment.value + 1], pa.timestamp("ns"))})
    bound = bind(to_filter(pc.field("ts") == moment, "t"), fields, "t")
    assert row_mask(batch, bound).to_pylist() == [True, False]
