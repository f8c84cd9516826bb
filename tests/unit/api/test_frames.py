"""Rows leave as DataFrames and come back without a change."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import penstock
from penstock import SchemaMismatchError

NUMBERS = itertools.count()
LAST = dt.datetime.fromisoformat("9999-12-31T23:59:59.999999")
BIG = 2**53 + 1


def new_table(columns: str, options: dict[str, str] | None = None) -> penstock.Table:
    catalog = penstock.Catalog(f"memory://frames-{next(NUMBERS)}")
    catalog.create_database("db")
    return catalog.create_table("db.t", columns, options=options)


TYPES: list[tuple[str, list[object]]] = [
    ("BIGINT", [BIG, None]),
    ("BIGINT", [BIG, -1]),
    ("TINYINT", [-128, None]),
    ("INT", [2**31 - 1, None]),
    ("BOOLEAN", [True, None, False]),
    ("FLOAT", [0.5, None]),
    ("DOUBLE", [0.1, None, float("inf")]),
    ("DECIMAL(38, 10)", [Decimal("1234567890123456789012345678.0000000001"), None]),
    ("STRING", ["a", "", None]),
    ("BYTES", [b"a", None]),
    ("DATE", [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    ("TIME(3)", [dt.time(23, 59, 59, 999_000), None]),
    ("TIMESTAMP(3)", [LAST.replace(microsecond=1000), None]),
    ("TIMESTAMP(6)", [LAST, None]),
    ("TIMESTAMP_LTZ(6)", [LAST.replace(tzinfo=dt.UTC), None]),
    ("ARRAY<BIGINT>", [[BIG, None], [], None]),
    ("ARRAY<BIGINT>", [[BIG, 1], None]),
    ("ARRAY<DOUBLE>", [[0.5, None], None]),
    ("ARRAY<BOOLEAN>", [[True, None], None]),
    ("ARRAY<DATE>", [[dt.date(1, 1, 1), None], None]),
    ("ARRAY<DECIMAL(5, 2)>", [[Decimal("1.50"), None], None]),
    ("ARRAY<TIME(3)>", [[dt.time(1), None], None]),
    ("ARRAY<TIMESTAMP(6)>", [[LAST, None], None]),
    ("ARRAY<TIMESTAMP_LTZ(6)>", [[LAST.replace(tzinfo=dt.UTC), None], None]),
    ("ARRAY<ARRAY<BIGINT>>", [[[BIG, None], None], None]),
    ("ARRAY<ROW<a BIGINT>>", [[{"a": BIG}, {"a": None}, None], None]),
    ("ROW<a BIGINT, t TIMESTAMP(6)>", [{"a": BIG, "t": LAST}, {"a": None, "t": None}, None]),
    ("MAP<STRING, BIGINT>", [[("a", BIG), ("b", None)], [], None]),
    ("VECTOR<FLOAT, 2>", [[0.5, 1.5], None]),
]


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("backend", ["numpy", "pyarrow", "polars"])
def test_a_frame_of_a_table_is_written_back_unchanged(kind: str, values: list[object], backend: str) -> None:
    if backend == "polars" and "MAP" in kind:
        pytest.skip("polars has no maps")
    table = new_table(f"c {kind}")
    table.append([{"c": value} for value in values])
    assert table.to_arrow()["c"].to_pylist() == values
    frame: Any = table.to_polars() if backend == "polars" else table.to_pandas()
    if backend == "pyarrow":
        frame = table.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
    table.overwrite(frame, partition={})
    assert table.to_arrow()["c"].to_pylist() == values


def test_nanoseconds_are_written_back_unchanged() -> None:
    table = new_table("c TIMESTAMP(9), l ARRAY<TIMESTAMP(9)>")
    moment = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns"))
    lists = pa.array([[1_700_000_000_123_456_789, None], None], pa.list_(pa.timestamp("ns")))
    rows = pa.table({"c": moment, "l": lists})
    table.append(rows)
    table.overwrite(table.to_pandas(), partition={})
    assert table.to_arrow().equals(table.to_arrow().cast(rows.schema))
    assert table.to_arrow()["c"].cast(pa.int64()).to_pylist() == moment.cast(pa.int64()).to_pylist()
    assert table.to_arrow()["l"].combine_chunks().flatten().cast(pa.int64()).to_pylist() == [
        1_700_000_000_123_456_789,
        None,
    ]


def test_integers_have_a_nullable_type_only_where_there_are_nulls() -> None:
    table = new_table("a BIGINT, b BIGINT, c SMALLINT")
    table.append([{"a": BIG, "b": BIG, "c": None}])
    frame = table.to_pandas()
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "int64", "Int16"]
    assert list(frame.columns) == ["a", "b", "c"]


WRONG: list[tuple[Any, str]] = [
    (pd.DataFrame({"c": pd.Series([1, "a"], dtype=object)}), "row 1 .*column 'c' takes a number, not 'a'"),
    (pd.DataFrame({"c": [1 + 2j]}), "column 'c' of the DataFrame"),
    (pd.DataFrame({"c": pd.period_range("2026-01", periods=1, freq="M")}), "column 'c' is given as"),
    (pd.DataFrame({"c": [pd.Timedelta(1)]}), "column 'c' is given as duration"),
    (pd.DataFrame({"c": ["\ud800"]}), "column 'c' takes a number"),
    (pd.DataFrame({"c": [1.5]}), "column 'c' in row 0 .*no value 1.5"),
    (pd.DataFrame([[1, 2]], columns=["c", "c"]), "'c' is given more than once"),
    (pd.DataFrame({"c": [1], "d": pd.Series([1j], dtype=object)}), "column 'd'"),
    (pl.DataFrame({"c": [object()]}, schema={"c": pl.Object}), "table db.t"),
]


@pytest.mark.parametrize(("frame", "says"), WRONG, ids=range(len(WRONG)))
def test_a_frame_that_does_not_fit_is_refused_by_table_and_column(frame: object, says: str) -> None:
    table = new_table("c BIGINT")
    with pytest.raises(SchemaMismatchError, match=says):
        table.append(frame)  # type: ignore[arg-type]
    assert table.latest_snapshot() is None


def test_numbers_of_frames_fit_by_value() -> None:
    table = new_table("i INT, d DOUBLE, e DECIMAL(5, 2), f FLOAT, l ARRAY<INT>")
    table.append(pd.DataFrame({"i": [1], "d": [2], "e": [3], "f": [0.1], "l": [np.array([4])]}))
    table.append(pl.DataFrame({"i": [1], "d": [2], "e": [3.0], "f": [0.1], "l": [[4]]}))
    row = {"i": 1, "d": 2.0, "e": Decimal("3.00"), "f": 0.10000000149011612, "l": [4]}
    assert table.to_arrow().to_pylist() == [row, row]
    with pytest.raises(SchemaMismatchError, match=r"column 'i' in row 2 .* INT, which has no value 2147483648"):
        table.append(pd.DataFrame({"i": [1, 2, 2**31], "d": 0, "e": 0, "f": 0, "l": [[]] * 3}))


def test_categories_of_polars_are_written_as_their_texts() -> None:
    table = new_table("s STRING, e STRING")
    texts = ["a", "b", None, "a"]
    kinds = {"s": pl.Categorical, "e": pl.Enum(["b", "a"])}
    table.append(pl.DataFrame({"s": texts, "e": texts}, schema=kinds))
    assert table.to_arrow().to_pydict() == {"s": texts, "e": texts}


def test_a_column_of_nothing_but_null_fits_every_nullable_column() -> None:
    table = new_table("s STRING, d DATE, t TIMESTAMP_LTZ(6), l ARRAY<INT>, i INT NOT NULL")
    nothing = {"s": [np.nan] * 2, "d": [pd.NaT] * 2, "t": [pd.NaT] * 2, "l": [np.nan] * 2}
    table.append(pd.DataFrame({**nothing, "i": [1, 2]}))
    assert table.to_arrow().to_pylist() == [{"s": None, "d": None, "t": None, "l": None, "i": i} for i in (1, 2)]
    with pytest.raises(SchemaMismatchError, match="column 'i' is NOT NULL"):
        table.append(pd.DataFrame({**nothing, "i": [np.nan] * 2}))
    with pytest.raises(SchemaMismatchError, match="column 's' is given as double"):
        table.append(pd.DataFrame({**nothing, "s": [np.nan, 1.0], "i": [1, 2]}))
