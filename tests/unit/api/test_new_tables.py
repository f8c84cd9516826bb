"""Tables from DataFrames, Arrow data and dicts, and pandas types of reads."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from penstock import (
    AlreadyExistsError,
    Catalog,
    InvalidOptionError,
    InvalidSchemaError,
    SchemaMismatchError,
    Table,
)

COLUMNS = "id BIGINT, name STRING"
EVERY_TYPE = (
    "i BIGINT, n INT, sm SMALLINT, ti TINYINT, s STRING, dec DECIMAL(20, 0), f FLOAT, dbl DOUBLE, b BOOLEAN, d DATE, "
    "ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(6), tm TIME(3), bin BYTES, a ARRAY<INT>, m MAP<STRING, INT>, "
    "r ROW<a INT, b STRING>"
)
WALL_CLOCK = dt.datetime(2026, 1, 1, 1)  # noqa: DTZ001 - that is one
ROW: dict[str, Any] = {
    "i": 9_007_199_254_740_993, "n": 1, "sm": 1, "ti": 1, "s": "a", "dec": Decimal(5), "f": 1.5, "dbl": 2.5, "b": True,
    "d": dt.date(2026, 1, 1), "ts": WALL_CLOCK, "ltz": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "tm": dt.time(1, 2, 3), "bin": b"x", "a": [1, None], "m": {"k": 1}, "r": {"a": 1, "b": None},
}  # fmt: skip


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    return catalog


def columns(table: Table) -> str:
    return repr(table.schema).partition("columns='")[2].partition("'")[0]


FRAME = pd.DataFrame({"id": [1, 2], "name": ["a", None]})


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(FRAME, id="pandas"),
        pytest.param(FRAME.set_index("id", drop=False), id="pandas with an index"),
        pytest.param(pl.from_pandas(FRAME), id="polars"),
        pytest.param(pa.Table.from_pandas(FRAME), id="arrow"),
        pytest.param(pa.Table.from_pandas(FRAME).to_reader(), id="reader"),
        pytest.param(pa.Table.from_pandas(FRAME).schema, id="schema"),
        pytest.param({"id": "BIGINT", "name": "STRING"}, id="mapping"),
        pytest.param([("id", "BIGINT"), ("name", "STRING")], id="pairs"),
        pytest.param("id int64, name str", id="text"),
    ],
)
def test_a_table_is_created_with_the_columns_of_what_is_given(catalog: Catalog, given: Any) -> None:
    table = catalog.create_table("d.t", given)
    assert columns(table) == COLUMNS
    assert table.latest_snapshot() is None, "the rows are not written"


def test_duckdb_relations_have_columns_too(catalog: Catalog) -> None:
    relation = duckdb.sql("SELECT 1::BIGINT AS id, 'a' AS name")
    assert columns(catalog.create_table("d.t", relation)) == COLUMNS
    assert catalog.write("d.w", relation).to_arrow().to_pylist() == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int16", "SMALLINT"), ("int32", "INT"), ("int64", "BIGINT"), ("Int64", "BIGINT"), ("uint8", "SMALLINT"),
        ("uint16", "INT"), ("uint32", "BIGINT"), ("uint64", "DECIMAL(20, 0)"), ("float32", "FLOAT"),
        ("float64", "DOUBLE"), ("bool", "BOOLEAN"), ("str", "STRING"), ("large_string", "STRING"), ("date32", "DATE"),
    ],
)  # fmt: skip
def test_names_of_types_in_other_libraries(catalog: Catalog, text: str, expected: str) -> None:
    assert columns(catalog.create_table("d.t", f"c {text}")) == f"c {expected}"


@pytest.mark.parametrize(
    ("text", "hint"),
    [("int8", "write TINYINT or BIGINT"), ("object", "such as STRING"), ("datetime64[ns]", r"TIMESTAMP\(9\)")],
)
def test_names_of_types_with_several_meanings_are_refused(catalog: Catalog, text: str, hint: str) -> None:
    with pytest.raises(InvalidSchemaError, match=hint):
        catalog.create_table("d.t", f"c {text}")


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(FRAME, id="pandas"),
        pytest.param(pl.from_pandas(FRAME), id="polars"),
        pytest.param(pa.Table.from_pandas(FRAME), id="arrow"),
        pytest.param(pa.Table.from_pandas(FRAME).to_reader(), id="reader"),
        pytest.param([{"id": 1, "name": "a"}, {"id": 2, "name": None}], id="dicts"),
    ],
)
def test_rows_are_written_into_a_new_table(catalog: Catalog, rows: Any) -> None:
    table = catalog.write("d.t", rows, partition_by="name", options={"file.format": "orc"})
    assert columns(table) == COLUMNS
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": None},
    ]
    assert table.schema.partition_keys == ("name",)
    assert table.options["file.format"] == "orc"
    with pytest.raises(AlreadyExistsError):
        catalog.write("d.t", FRAME)
    assert table.to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (pd.DataFrame({"c": [1, "a"]}), InvalidSchemaError),
        (pd.DataFrame({"c": [None, None]}), InvalidSchemaError),
        (pd.DataFrame({"c": pd.to_timedelta([1], "s")}), InvalidSchemaError),
        (pd.DataFrame({"c": [1j]}), InvalidSchemaError),
        ([{"a": 1}, {"b": 1}], SchemaMismatchError),
        ([{"a": 1}, {"a": "x"}], InvalidSchemaError),
        ([{"a": None}], InvalidSchemaError),
        ([], InvalidSchemaError),
    ],
)
def test_rows_without_types_leave_no_table(catalog: Catalog, rows: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        catalog.write("d.t", rows)
    assert catalog.list_tables("d") == ()


def test_rows_that_fail_while_they_are_written_leave_no_table(catalog: Catalog) -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise ValueError("the source failed")

    with pytest.raises(ValueError, match="the source failed"):
        catalog.write("d.t", pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches()))
    assert catalog.list_tables("d") == ()


def test_a_lazy_frame_names_what_makes_it_rows(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    with pytest.raises(SchemaMismatchError, match=r"LazyFrame: call its collect\(\) first"):
        table.append(pl.from_pandas(FRAME).lazy())  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
def test_every_type_goes_to_pandas_and_back(catalog: Catalog, backend: Any) -> None:
    table = catalog.create_table("d.t", EVERY_TYPE)
    table.append([ROW, dict.fromkeys(ROW)])
    rows = table.to_arrow()
    frame = table.to_pandas(dtype_backend=backend)
    expected = {None: "Int64", "numpy_nullable": "Int64", "pyarrow": "int64[pyarrow]"}[backend]
    assert str(frame.dtypes["i"]) == expected
    assert frame["i"][0] == 9_007_199_254_740_993
    table.overwrite(frame)
    assert table.to_arrow().equals(rows)


def test_an_unknown_backend_is_refused(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", COLUMNS)
    assert str(table.to_pandas(dtype_backend="numpy_nullable").dtypes["id"]) == "Int64"
    with pytest.raises(InvalidOptionError, match="expected 'numpy_nullable' or 'pyarrow'"):
        table.to_pandas(dtype_backend="arrow")  # type: ignore[arg-type]


def test_every_type_goes_to_polars_and_duckdb_and_back(catalog: Catalog) -> None:
    table = catalog.create_table("d.t", EVERY_TYPE)
    table.append([ROW, dict.fromkeys(ROW)])
    rows = table.to_arrow()
    for frame in (table.to_polars(), table.to_duckdb()):
        table.overwrite(frame)  # type: ignore[arg-type]
        assert table.to_arrow().equals(rows)


def test_unsigned_numbers_fit_the_table_that_their_schema_makes(catalog: Catalog) -> None:
    rows = pa.table({f"u{bits}": pa.array([0, 2**bits - 1], f"uint{bits}") for bits in (8, 16, 32, 64)})
    table = catalog.create_table("d.unsigned", rows.schema)
    table.append(rows)
    stored = [[int(value) for value in row.values()] for row in table.to_arrow().to_pylist()]
    assert stored == [[0] * 4, [2**bits - 1 for bits in (8, 16, 32, 64)]]


@pytest.mark.parametrize(
    "rows",
    [
        [{"x": Decimal("1.25"), "l": [Decimal(1)], "r": {"d": Decimal("0.5")}}],
        pd.DataFrame({"x": [Decimal("1.25")], "l": [[Decimal(1)]], "r": [{"d": Decimal("0.5")}]}),
    ],
)
def test_decimals_of_python_give_columns_that_later_values_fit(catalog: Catalog, rows: Any) -> None:
    table = catalog.write("d.wide", rows)
    assert str(table.schema).count("DECIMAL(38, ") == 3
    table.append([{"x": Decimal("10000.00"), "l": [Decimal(99)], "r": {"d": Decimal("12.5")}}])
    assert table.to_arrow(["x"]).column("x").to_pylist() == [Decimal("1.25"), Decimal("10000.00")]
    assert "DECIMAL(3, 2)" in str(catalog.write("d.own", pa.table({"x": pa.array([Decimal("1.25")])})).schema)


def test_columns_of_polars_without_an_arrow_type_are_named(catalog: Catalog) -> None:
    frame = pl.DataFrame({"a": [1]}).with_columns(pl.lit(1).cast(pl.Int128).alias("wide"))
    with pytest.raises(InvalidSchemaError, match=r"column 'wide' \(Int128\) does not become Arrow"):
        catalog.write("d.t", frame)
    with pytest.raises(SchemaMismatchError, match=r"column 'wide' \(Int128\) does not become Arrow"):
        catalog.create_table("d.t", "a INT, wide BIGINT").append(frame)


def test_times_of_polars_fit_a_table_that_was_created_before(catalog: Catalog) -> None:
    frame = pl.DataFrame({"t": [dt.time(1, 2, 3)]})
    with pytest.raises(InvalidSchemaError, match=r"create the table with a column of TIME\(3\), and append"):
        catalog.write("d.t", frame)
    table = catalog.create_table("d.t", "t TIME(3)")
    table.append(frame)
    assert table.to_arrow().column("t").to_pylist() == [dt.time(1, 2, 3)]
