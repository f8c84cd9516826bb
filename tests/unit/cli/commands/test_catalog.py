"""create, list, show, options, rename, drop."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.options import describe_options

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Command


def test_create_makes_a_database_and_a_table_with_every_clause(penstock: Command) -> None:
    penstock(
        "create",
        "shop.clicks",
        "id BIGINT COMMENT 'the key', seen TIMESTAMP(3), dt STRING",
        *("--partition-by", "dt", "-o", "bucket=2", "--option", "bucket-key=id"),
        *("--watermark", "seen - INTERVAL '5' SECOND", "--comment", "who clicked"),
    )

    table = penstock.catalog.load_table("shop.clicks")
    assert table.schema.partition_keys == ("dt",)
    assert table.schema.comment == "who clicked"
    assert table.schema.fields[0].description == "the key"
    assert dict(table.schema.options)["bucket-key"] == "id"
    assert "INTERVAL '5' SECOND" in dict(table.schema.options)["schema.watermark.0.strategy.expr"]


def test_create_if_not_exists_leaves_what_is_there(orders: Command) -> None:
    orders("create", "shop.orders", "other INT", "--if-not-exists")
    orders("create", "shop", "--if-not-exists")
    assert orders.catalog.load_table("shop.orders").schema.field_names[0] == "order_id"


def test_create_takes_the_columns_of_a_csv_file(penstock: Command, tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("n,price,day,name,nothing\n1,1.5,2026-01-01,x,\n")

    penstock("create", "shop.days", "--schema-from", str(path))

    columns = {each["column"]: each["type"] for each in penstock.json("show", "shop.days")[0]["columns"]}
    assert columns == {"n": "BIGINT", "price": "DOUBLE", "day": "DATE", "name": "STRING", "nothing": "STRING"}


@pytest.mark.parametrize("name", ["days.parquet", "days.jsonl"])
def test_create_takes_the_columns_of_other_files(penstock: Command, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"n": [1], "list": [["a"]]}), path)
    else:
        path.write_text('{"n": 1, "list": ["a"]}\n')

    penstock("create", "shop.days", "--schema-from", str(path))

    columns = {each["column"]: each["type"] for each in penstock.json("show", "shop.days")[0]["columns"]}
    assert columns == {"n": "BIGINT", "list": "ARRAY<STRING>"}


def test_create_wants_columns_once(penstock: Command, tmp_path: Path) -> None:
    assert "give the columns" in penstock("create", "shop.none", code=2).stderr
    assert "not both" in penstock("create", "shop.t", "a INT", "--schema-from", str(tmp_path / "x.csv"), code=2).stderr
    assert "KEY=VALUE" in penstock("create", "shop.t", "a INT", "-o", "bucket", code=2).stderr


def test_list_names_databases_and_tables_in_every_format(orders: Command) -> None:
    assert orders.json("list") == [{"database": "shop"}]
    assert orders("list", "shop", "--format", "csv").stdout == '"table"\n"orders"\n'
    assert orders("list", "shop").stdout.split() == ["table", "──────", "orders"]
    assert orders.json("list", "shop") == [{"table": "orders"}]


def test_show_counts_what_is_there(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "json", input='{"order_id": 1, "dt": "a"}\n')
    orders("append", "shop.orders", "-", "--input-format", "json", input='{"order_id": 2, "dt": "b"}\n')
    orders("tag", "create", "shop.orders", "two")

    (shown,) = orders.json("show", "shop.orders")

    files = orders.catalog.load_table("shop.orders").files()
    assert (shown["snapshot_id"], shown["snapshots"], shown["rows"], shown["files"]) == (2, 2, 2, 2)
    assert shown["bytes"] == sum(files.column("file_size_in_bytes").to_pylist())
    assert shown["tags"] == ["two"]
    assert shown["partition_keys"] == ["dt"]
    text = orders("show", "shop.orders").stdout
    assert "DECIMAL(10, 2)" in text
    assert "BIGINT NOT NULL" in text
    lines = dict(csv.reader(io.StringIO(orders("show", "shop.orders", "--format", "csv").stdout)))
    assert lines["rows"] == "2"
    assert json.loads(lines["columns"])[0]["column"] == "order_id"


def test_show_works_before_the_first_commit(orders: Command) -> None:
    (shown,) = orders.json("show", "shop.orders")
    assert shown["snapshot_id"] is None
    assert shown["rows"] == 0


def test_options_lists_those_of_a_table_or_all(penstock: Command) -> None:
    penstock("create", "shop.q", "id BIGINT", "-o", "bucket=1")
    assert {"key": "bucket", "value": "1"} in penstock.json("options", "shop.q")
    everything = penstock.json("options", "--all")
    assert [row["key"] for row in everything] == [row.key for row in describe_options()]
    assert everything[0].keys() == {"key", "type", "default", "group", "meaning", "honoured", "status"}
    penstock("options", code=2)


def test_rename_moves_a_table(orders: Command) -> None:
    orders("rename", "shop.orders", "shop.sales")
    assert orders.catalog.list_tables("shop") == ("sales",)
    orders("rename", "shop.orders", "shop.other", code=3)


def test_drop_asks_and_takes_no_for_an_answer(orders: Command) -> None:
    assert "drop table shop.orders" in orders("drop", "shop.orders", input="n\n", code=1).stderr
    orders("drop", "shop.orders", input="", code=1)
    assert orders.catalog.list_tables("shop") == ("orders",)
    orders("drop", "shop.orders", input="y\n")
    assert orders.catalog.list_tables("shop") == ()


def test_drop_dry_run_says_what_would_go_and_keeps_it(orders: Command) -> None:
    orders("append", "shop.orders", "-", "--input-format", "json", input='{"order_id": 1}\n')
    (goes,) = orders.json("drop", "shop.orders", "--dry-run")
    assert (goes["rows"], goes["files"], goes["dry_run"]) == (1, 1, True)
    assert orders.json("drop", "shop", "--cascade", "--dry-run")[0]["tables"] == ["orders"]
    assert orders.catalog.list_tables("shop") == ("orders",)


def test_drop_of_a_database_needs_cascade_for_its_tables(orders: Command) -> None:
    assert "--cascade" in orders("drop", "shop", "--yes", code=2).stderr
    orders("drop", "shop", "--yes", "--cascade")
    assert orders.catalog.list_databases() == ()


def test_drop_of_nothing_is_an_error_unless_asked_otherwise(penstock: Command) -> None:
    for name in ("shop.nothing", "nowhere"):
        penstock("drop", name, "--yes", code=3)
        penstock("drop", name, "--yes", "--if-exists")


def test_a_table_that_cannot_be_read_can_be_dropped(orders: Command) -> None:
    place = orders.catalog.load_table("shop.orders")
    place._ref.file_io.write(f"{place.location}/schema/schema-0", b"")
    orders("show", "shop.orders", code=8)
    assert "schema-0" in orders.json("drop", "shop.orders", "--dry-run")[0]["problem"]
    orders("drop", "shop.orders", "--yes")
    assert orders.catalog.list_tables("shop") == ()


def test_a_name_that_is_nearly_right_gets_the_right_one(penstock: Command) -> None:
    penstock("create", "shop.orders", "a INT")
    assert "did you mean shop.orders?" in penstock("show", "shop.order", code=3).stderr
    assert "no schema file" in penstock("show", "shop.else", code=3).stderr


def test_a_warehouse_that_is_not_there_is_no_empty_one(penstock: Command, tmp_path: Path) -> None:
    result = penstock("-w", str(tmp_path / "typo"), "list", code=3)
    assert f"there is no directory {tmp_path / 'typo'}" in result.stderr
    assert penstock("-w", str(tmp_path), "list", "--format", "json").stdout == "[]\n"


def test_a_filter_goes_by_both_its_names(penstock: Command) -> None:
    penstock("create", "shop.t", "a INT")
    assert (
        penstock("read", "shop.t", "--filter", "a > 1").stdout == penstock("read", "shop.t", "--where", "a > 1").stdout
    )
