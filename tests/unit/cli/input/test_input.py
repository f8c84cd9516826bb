"""Rows from CSV, JSON and Parquet files and from standard input."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.api.exchange import csv_files as csv_input
from penstock.api.exchange import json_files as json_input
from penstock.api.exchange.options import InputOptions
from penstock.cli.input.files import open_rows, plan_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command


CSV = 'order_id,product,price,dt\n1,tea,1.50,2026-01-01\n2,"a ""b""\nc",,2026-01-02\n3,"",2.25,2026-01-02\n'
ROWS = [
    {"order_id": 1, "product": "tea", "price": "1.50", "dt": "2026-01-01"},
    {"order_id": 2, "product": 'a "b"\nc', "price": None, "dt": "2026-01-02"},
    {"order_id": 3, "product": "", "price": "2.25", "dt": "2026-01-02"},
]


def test_csv_files_are_appended_in_their_order_as_one_commit(orders: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "b.csv").write_text("dt,price,product,order_id\n2026-01-01,3,milk,4\n")

    output = orders("append", "shop.orders", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")).stdout

    assert output == "appended to shop.orders: snapshot 1, +4 rows, 4 in all\n"
    rows = sorted(orders.rows("shop.orders"), key=lambda row: row["order_id"])
    assert rows == [*ROWS, {"order_id": 4, "product": "milk", "price": "3.00", "dt": "2026-01-01"}]
    assert orders.catalog.load_table("shop.orders").latest_snapshot().id == 1


def test_standard_input_is_read_in_any_format(orders: Command, tmp_path: Path) -> None:
    rows = pa.table({"order_id": [5], "product": ["x"], "price": pa.array([Decimal("1.00")]), "dt": ["p"]})
    pq.write_table(rows, tmp_path / "x.parquet")
    lines = "".join(f"{json.dumps(row)}\n" for row in ROWS)

    orders("append", "shop.orders", "-", "--input-format", "csv", input=CSV)
    orders("append", "shop.orders", "-", "--input-format", "json", input=lines)
    orders("append", "shop.orders", "-", "--input-format", "parquet", input=(tmp_path / "x.parquet").read_bytes())

    assert len(orders.rows("shop.orders")) == 7
    assert orders.rows("shop.orders", "--where", "order_id = 5")[0]["price"] == "1.00"
    assert "--input-format" in orders("append", "shop.orders", "-", code=2, input=CSV).stderr
    orders("append", "shop.orders", "-", "-", "--input-format", "csv", code=2, input=CSV)


def test_compressed_files_and_other_delimiters_are_read(orders: Command, tmp_path: Path) -> None:
    path = tmp_path / "rows.tsv.gz"
    path.write_bytes(gzip.compress(b"7\tNA\t1.5\tp\n"))
    orders("append", "shop.orders", str(path), "--delimiter", "\\t", "--no-header", "--null-value", "NA")
    assert orders.rows("shop.orders") == [{"order_id": 7, "product": None, "price": "1.50", "dt": "p"}]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("order_id,product,price,dt\n1,a,1,p\nx,b,1,p\n", ["row 3, column 'order_id': 'x' is not a value of BIGINT"]),
        ("order_id,product,price,dt\n1,a,1,p\n2,b\n", ["row 3", "Expected 4 columns"]),
        ("order_id,product,price,dt\n1,a,1.234,p\n", ["row 2", "'price'"]),
        ("order_id,product,price\n1,a,1\n", ["column 'dt' is missing"]),
        ("order_id,product,price,dt,more\n1,a,1,p,q\n", ["'more' is not in the table"]),
        ("order_id,product,price,dt\n,a,1,p\n", ["'order_id' is NOT NULL", "row 2"]),
        ("order_id,product,price,dt\n1,a,1,p\n2," + "x" * (5 << 20) + ",1,p\n", ["longer than 2097152 bytes"]),
        ("", ["Empty CSV file"]),
        ("order_id;product;price;dt\n1;a;1;p\n", ["its first line has ';' between the columns", "give --delimiter"]),
    ],
    ids=["value", "length", "scale", "missing", "extra", "null", "long", "empty", "delimiter"],
)
def test_csv_that_does_not_fit_is_refused_with_its_place(
    orders: Command, tmp_path: Path, text: str, where: list[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    error = orders("append", "shop.orders", str(path), code=9).stderr
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    for each in [str(path), *where]:
        assert each in error
    assert orders.catalog.load_table("shop.orders").latest_snapshot() is None


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ('{"order_id": 1}\n\n{"order_id": "x"}\n', ["line 3", "string"]),
        ('{"order_id": 1}\n{"order_id": 2, "prize": 1}\n', ["line 2", "'prize' is not a column"]),
        ('{"order_id": 1}\n{"order_id": \n', ["line 2"]),
        ('[{"order_id": 1}]\n', ["line 1", "one JSON object a line"]),
        ('{"order_id": 1}\n{"product": "x"}\n', ["line 2", "'order_id' is NOT NULL"]),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_line(
    orders: Command, tmp_path: Path, lines: str, where: list[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(lines)
    error = orders("append", "shop.orders", str(path), code=9).stderr
    for each in [str(path), *where]:
        assert each in error


def test_the_line_of_a_json_error_counts_over_blocks(
    orders: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_input, "_BLOCK_BYTES", 64)
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f'{{"order_id": {number}, "dt": "p"}}\n' for number in range(100)) + '{"order_id": 1.5}\n')
    assert "line 101" in orders("append", "shop.orders", str(path), code=9).stderr


def test_parquet_that_does_not_fit_is_refused_by_name(orders: Command, tmp_path: Path) -> None:
    good, other, broken = tmp_path / "good.parquet", tmp_path / "other.parquet", tmp_path / "broken.parquet"
    rows = pa.table({"order_id": [5], "product": ["x"], "price": pa.array([Decimal("1.00")]), "dt": ["p"]})
    pq.write_table(rows, good)
    pq.write_table(rows.set_column(0, "order_id", pa.array(["x"])), other)
    broken.write_bytes(good.read_bytes()[:-9])
    for bad in (other, broken):
        error = orders("append", "shop.orders", str(good), str(bad), code=9).stderr
        assert str(bad) in error
    assert orders.catalog.load_table("shop.orders").latest_snapshot() is None


def test_a_file_that_is_not_there_is_not_found(orders: Command, tmp_path: Path) -> None:
    assert "does not exist" in orders("append", "shop.orders", str(tmp_path / "no.csv"), code=3).stderr
    directory = tmp_path / "dir.csv"
    directory.mkdir()
    orders("append", "shop.orders", str(directory), code=7)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_files_are_read_piece_by_piece(
    orders: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(csv_input, "_BLOCK_BYTES", 4096)
    monkeypatch.setattr(json_input, "_BLOCK_BYTES", 4096)
    count = 20_000
    path = tmp_path / name
    if name.endswith("csv"):
        path.write_text("order_id,product,price,dt\n" + "".join(f"{n},tea,1.5,p\n" for n in range(count)))
    elif name.endswith("jsonl"):
        path.write_text("".join(f'{{"order_id": {n}, "dt": "p"}}\n' for n in range(count)))
    else:
        columns = {
            "order_id": range(count),
            "product": ["x"] * count,
            "price": [Decimal(1)] * count,
            "dt": ["p"] * count,
        }
        pq.write_table(pa.table(columns), path, row_group_size=1000, compression="none", use_dictionary=False)
    table = orders.catalog.load_table("shop.orders")
    options = InputOptions(batch_rows=500)
    reports: list[tuple[int, int | None]] = []

    rows = open_rows(table, plan_inputs([str(path)], options), options, lambda *told: reports.append(told))
    batches = [rows.read_next_batch(), rows.read_next_batch()]

    assert all(batch.num_rows <= 500 for batch in batches)
    assert reports[0][1] < path.stat().st_size
    assert sum(batch.num_rows for batch in (*batches, *rows)) == count
    assert reports[-1] == (count, path.stat().st_size)


@pytest.mark.parametrize(
    ("column", "text", "name"),
    [
        ("FLOAT", "1e300", "w.jsonl"),
        ("FLOAT", "16777217", "w.jsonl"),
        ("FLOAT", "1e300", "w.csv"),
        ("FLOAT", "16777217", "w.csv"),
        ("DOUBLE", "1e400", "w.csv"),
        ("DOUBLE", "9007199254740993", "w.csv"),
        ("TIME(3)", '"10:00:00.0001"', "w.jsonl"),
        ("TIMESTAMP(3)", '"2026-01-01 00:00:00+02:00"', "w.jsonl"),
        ("TIMESTAMP_LTZ(3)", '"2026-01-01 00:00:00"', "w.jsonl"),
        ("ARRAY<FLOAT>", "[1e300]", "w.jsonl"),
    ],
)
def test_texts_of_values_that_a_column_does_not_have_are_refused(
    orders: Command, tmp_path: Path, column: str, text: str, name: str
) -> None:
    is_json = name.endswith("jsonl")
    table = orders.catalog.create_table("shop.w", f"id INT, c {column}")
    path = tmp_path / name
    path.write_text(f'{{"id": 1}}\n{{"id": 2, "c": {text}}}\n' if is_json else f"id,c\n1,\n2,{text}\n")
    error = orders("append", "shop.w", str(path), code=9).stderr
    assert ("line 2" if is_json else "row 3, column 'c'") in error
    assert table.latest_snapshot() is None


def test_fractions_and_infinities_in_text_become_the_nearest_numbers(orders: Command, tmp_path: Path) -> None:
    table = orders.catalog.create_table("shop.w", "f FLOAT, x DOUBLE")
    path = tmp_path / "w.csv"
    path.write_text("f,x\n0.123456789,3.14159265358979323846\ninf,-inf\n 1e2 ,nan\n")
    orders("append", "shop.w", str(path))
    rows = table.to_arrow().to_pylist()
    assert str(rows) == (
        "[{'f': 0.12345679104328156, 'x': 3.141592653589793}, {'f': inf, 'x': -inf}, {'f': 100.0, 'x': nan}]"
    )


def test_int96_is_read_as_instants_only_into_a_column_of_instants(penstock: Command, tmp_path: Path) -> None:
    (tmp_path / "old" / "dt=p").mkdir(parents=True)
    path = tmp_path / "old" / "dt=p" / "a.parquet"
    moments = pa.array([dt.datetime(2026, 1, 1, 15), None], pa.timestamp("us"))  # noqa: DTZ001 - as Spark writes it
    pq.write_table(pa.table({"ts": moments}), path, use_deprecated_int96_timestamps=True, store_schema=False)
    penstock("create", "shop.clocks", "ts TIMESTAMP(6), dt STRING", "--partition-by", "dt")
    penstock("create", "shop.instants", "ts TIMESTAMP_LTZ(6), dt STRING", "--partition-by", "dt")

    for arguments in (
        ("import", "shop.clocks", str(tmp_path / "old")),
        ("create", "shop.t", "--schema-from", str(path)),
    ):
        assert "ts TIMESTAMP_LTZ(6)" in penstock(*arguments, code=9).stderr.replace("\n", " ")
    penstock("import", "shop.instants", str(tmp_path / "old"))

    found = penstock.catalog.load_table("shop.instants").to_arrow()["ts"].to_pylist()
    assert found == [dt.datetime(2026, 1, 1, 15, tzinfo=dt.UTC), None]
    pq.write_table(pa.table({"ts": moments}), path, use_deprecated_int96_timestamps=True)
    penstock("import", "shop.clocks", str(tmp_path / "old"))
    assert penstock.catalog.load_table("shop.clocks").to_arrow().num_rows == 2
